#include "linear_parts.hpp"
#include "parameter_set.hpp"
#include "subjects.hpp"

#include <sstream>

namespace conformance::training {
namespace {

/// A layer of a serial model.
struct serial_layer {
  std::string path;
  integers extents;  ///< of its matrix as the case says it: [in, out], or [rows, features]
  bool is_table = false;
  lookup rows;       ///< of a table
  std::map<std::string, recipe> tensors;

  std::string key(const std::string& name) const { return path.empty() ? name : path + "." + name; }
};

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  std::istringstream all(path);
  for (std::string one; std::getline(all, one, '.');) parts.push_back(one);
  return parts;
}

/// Whether a path is that of a pattern, of which * stands for one part.
bool fits(const std::string& pattern, const std::string& path) {
  const std::vector<std::string> p = parts_of(pattern);
  const std::vector<std::string> q = parts_of(path);
  return p.size() == q.size() && std::equal(p.begin(), p.end(), q.begin(), [](const std::string& a, const std::string& b) { return a == "*" || a == b; });
}

/// How a layer is cut by the table, which has a row for it or not.
std::string cut_of(const json& table, const std::string& path) {
  std::string cut = "none";
  int rows = 0;
  for (const json& row : table)
    if (fits(row.at(0).get<std::string>(), path)) {
      cut = row.at(1).get<std::string>();
      ++rows;
    }
  if (rows > 1) throw unbuilt("two rows of a table for one layer: the library has no such table, which would refuse them");
  return cut;
}

serial_layer read_layer(const json& said) {
  serial_layer l;
  for (const auto& [name, value] : said.items()) {
    if (name == "path") l.path = value.get<std::string>();
    else if (name == "linear" || name == "embedding") l.extents = value.get<integers>();
    else if (name == "padding_idx") l.rows.padding = value.get<index_t>();
    else if (name == "scale_grad_by_freq") l.rows.by_frequency = value.get<bool>();
    else if (name == "tensors") for (const auto& [key, tensor] : value.items()) l.tensors.emplace(key, tensor);
    else if (name != "bias" && name != "kind") throw unbuilt(fmt::format("'{}' of a layer", name));
  }
  l.is_table = said.contains("embedding");
  return l;
}

/// How the parameters of a layer lie once it is cut, by name.
std::map<std::string, layout> lying_cut(const serial_layer& l, const std::string& cut, const mesh_value& m) {
  const int model = m.find(kept_name("model"));
  if (model < 0) throw unbuilt("a world without the axis model");
  const auto alike = [&](const integers& extents) {
    layout x = whole(m, extents);
    for (axis_role& r : x.roles) r = {role::invariant};
    return x;
  };
  if (l.is_table) {
    lookup what = l.rows;
    what.rows = l.extents.at(0);
    what.features = l.extents.at(1);
    if (cut == "vocabulary") what.cut_in.push(m.axes[model].name);
    else if (cut == "features") what.cut_out.push(m.axes[model].name);
    else if (cut != "none") throw unbuilt(fmt::format("a table cut '{}'", cut));
    const layer_plan p = plan_lookup({alike({1}), element::int64}, what);
    check(p.why);
    return {{"weight", p.stored(0)}};
  }
  linear_tensors lie{alike({1, l.extents.at(0)}), alike({l.extents.at(1), l.extents.at(0)}), {}, {}};
  if (l.tensors.count("bias") != 0) lie.bias = alike({l.extents.at(1)});
  if (cut == "out" || cut == "in") lie.weight.cut_by(cut == "out" ? 0 : 1, model);
  else if (cut != "none") throw unbuilt(fmt::format("a linear layer cut '{}'", cut));
  if (cut == "out" && lie.bias) lie.bias->cut_by(0, model);
  if (cut == "in") lie.y = alike({1, l.extents.at(1)});
  const link made = linear_link(lie);
  std::map<std::string, layout> all{{"weight", made.plan.stored(0)}};
  if (lie.bias) all["bias"] = made.plan.stored(1);
  return all;
}

}  // namespace

/// A serial model made parallel by a table: every layer's parameters lie as its row says, and put together again have the bits they had.
task conversion(reading& c) {
  if (c.has("replace")) throw unbuilt("replacing layers of a serial model: the library has no table of them");
  const json& table = c.given().at("table");
  std::vector<serial_layer> layers;
  for (const json& said : c.given().at("model")) layers.push_back(read_layer(said));
  for (const json& row : table)
    if (std::none_of(layers.begin(), layers.end(), [&](const serial_layer& l) { return fits(row.at(0).get<std::string>(), l.path); }))
      throw unbuilt("a row of a table that fits no layer: the library has no such table, which would refuse it");
  std::vector<std::string> cuts;
  for (const serial_layer& l : layers) cuts.push_back(cut_of(table, l.path));
  if (c.refused()) throw unbuilt("a table that the library has no door for");
  const json shapes = c.expected("local_shapes");
  for (const auto& [key, by_world] : shapes.items())
    if (std::none_of(layers.begin(), layers.end(), [&, &name = key](const serial_layer& l) {
          return std::any_of(l.tensors.begin(), l.tensors.end(), [&](const auto& t) { return l.key(t.first) == name; });
        }))
      throw unbuilt(fmt::format("the local shapes of '{}'", key));
  return c.in_each_world([&](world& w) -> body {
    std::vector<std::map<std::string, layout>> lying;
    for (std::size_t i = 0; i < layers.size(); ++i)
      lying.push_back(layers[i].extents.empty() ? std::map<std::string, layout>{} : lying_cut(layers[i], cuts[i], w.mesh()));
    const std::optional<std::size_t> place = c.number_of(w);
    return [=](attempt& a) {
      parameter_set net(a.team);
      for (std::size_t i = 0; i < layers.size(); ++i)
        for (const auto& [name, stored] : lying[i]) {
          const at::Tensor value = layers[i].tensors.at(name).whole().to(a.type());
          const std::string key = layers[i].key(name);
          const nn::parameter& p = net.add(key, stored, a.element, value);
          const tensor<dyn> now = detach(p.stored());
          a.compare(key, now, {});
          if (!at::equal(global(now).to(at::kCPU), value)) a.fail(key + " put together again has other bits");
          if (!place || !shapes.contains(key)) continue;
          const auto mine = now.local().sizes().vec();
          const auto worker = static_cast<std::size_t>(a.team->mesh().number(a.team->at()));
          if (mine != shapes.at(key).at(*place).at(worker).get<integers>()) a.fail(fmt::format("{} has the shape {}", key, json(mine).dump()));
        }
    };
  });
}

}  // namespace conformance::training
