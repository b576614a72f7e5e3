#include "parameter_set.hpp"
#include "serial_model.hpp"
#include "subjects.hpp"

#include <range/v3/view/zip.hpp>

#include <sstream>

namespace conformance::training {
namespace {

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
  return p.size() == q.size() &&
         std::equal(p.begin(), p.end(), q.begin(),
                    [](const std::string& a, const std::string& b) { return a == "*" || a == b; });
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
  if (rows > 1)
    throw unbuilt("two rows of a table for one layer: the library has no such table, which would refuse them");
  return cut;
}

}  // namespace

/// A serial model made parallel by a table: every layer's parameters lie as its row says, and put together again have
/// the bits they had.
task conversion(reading& c) {
  if (c.has("replace")) throw unbuilt("replacing layers of a serial model: the library has no table of them");
  const json& table = c.given().at("table");
  std::vector<serial_layer> layers;
  for (const json& said : c.given().at("model")) {
    layers.push_back(read_layer(said));
    layers.back().bias = layers.back().tensors.count("bias") != 0;
  }
  for (const json& row : table)
    if (std::none_of(layers.begin(), layers.end(),
                     [&](const serial_layer& l) { return fits(row.at(0).get<std::string>(), l.path); }))
      throw unbuilt("a row of a table that fits no layer: the library has no such table, which would refuse it");
  std::vector<std::string> cuts;
  for (const serial_layer& l : layers) cuts.push_back(cut_of(table, l.path));
  if (c.refused()) throw unbuilt("a table that the library has no entry point for");
  const json shapes = c.expected("local_shapes");
  for (const auto& [key, by_world] : shapes.items())
    if (std::none_of(layers.begin(), layers.end(), [&, &name = key](const serial_layer& l) {
          return std::any_of(l.tensors.begin(), l.tensors.end(), [&](const auto& t) { return l.key(t.first) == name; });
        }))
      throw unbuilt(fmt::format("the local shapes of '{}'", key));
  return c.in_each_world([&](world& w) -> body {
    std::vector<std::map<std::string, layout>> lying;
    for (const auto& [layer, cut] : ranges::views::zip(layers, cuts))
      lying.push_back(layer.extents.empty() ? std::map<std::string, layout>{} : lying_cut(layer, cut, w.mesh()));
    const std::optional<std::size_t> place = c.number_of(w);
    return [=](attempt& a) {
      parameter_set net(a.team);
      for (const auto& [layer, lies] : ranges::views::zip(layers, lying))
        for (const auto& [name, stored] : lies) {
          const at::Tensor value = layer.tensors.at(name).whole().to(a.type());
          const std::string key = layer.key(name);
          const nn::parameter& p = net.add(key, stored, a.element, value);
          const tensor<dyn> now = detach(p.stored());
          a.compare(key, now, {});
          if (!at::equal(full_tensor(now).to(at::kCPU), value)) a.fail(key + " put together again has other bits");
          if (!place || !shapes.contains(key)) continue;
          const auto mine = now.local().sizes().vec();
          const auto worker = static_cast<std::size_t>(a.team->mesh().number(a.team->at()));
          if (mine != shapes.at(key).at(*place).at(worker).get<integers>())
            a.fail(fmt::format("{} has the shape {}", key, json(mine).dump()));
        }
    };
  });
}

}  // namespace conformance::training
