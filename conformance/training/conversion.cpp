#include "parameter_set.hpp"
#include "serial_model.hpp"
#include "subjects.hpp"

#include <tessera/nn/serial/cut_state.hpp>
#include <tessera/nn/serial/outermost_modules.hpp>

#include <range/v3/view/zip.hpp>

namespace conformance::training {
namespace {

/// A module of a kind, which has others inside.
struct kind_of_module : torch::nn::Module {
  explicit kind_of_module(std::string is) : kind(std::move(is)) {}
  std::string kind;
};

/// Which modules of a kind are replaced: what is replaced is not entered.
task replaced(reading& c) {
  const std::string kind = c.given().at("replace").at("kind").get<std::string>();
  if (c.given().at("replace").size() != 1) throw unbuilt("a replacement by more than a kind");
  std::map<std::string, std::shared_ptr<kind_of_module>> all;
  for (const json& said : c.given().at("model")) {
    const std::string path = said.at("path").get<std::string>();
    const auto module = std::make_shared<kind_of_module>(said.at("kind").get<std::string>());
    all[path] = module;
    if (path.empty()) continue;
    const std::size_t dot = path.rfind('.');
    const auto outer = all.find(dot == path.npos ? "" : path.substr(0, dot));
    if (outer == all.end()) throw unbuilt(fmt::format("'{}' inside of what comes later", path));
    outer->second->register_module(path.substr(dot == path.npos ? 0 : dot + 1), module);
  }
  json paths = json::array();
  if (!all.contains("")) throw unbuilt("a model without a root");
  const auto is = [&](const torch::nn::Module& m) { return dynamic_cast<const kind_of_module&>(m).kind == kind; };
  for (const auto& found : nn::outermost_modules(*all.at(""), is)) paths.push_back(found.first);
  c.compare("replaced", paths);
  return c.planned();
}

/// The dimension of a weight that a word for a cut says.
int dimension_of(const std::string& cut) {
  if (cut == "out" || cut == "vocabulary") return 0;
  if (cut == "in" || cut == "features") return 1;
  throw unbuilt(fmt::format("a cut '{}'", cut));
}

/// The tensors of a layer, of zeros where the case does not say their values.
std::map<std::string, at::Tensor> tensors_of(const serial_layer& l) {
  std::map<std::string, at::Tensor> all;
  for (const auto& [name, value] : l.tensors) all[name] = value.whole();
  if (!all.empty() || l.extents.empty()) return all;
  const index_t n = l.extents.at(0), m = l.extents.at(1);
  all["weight"] = l.is_table ? at::zeros({n, m}, at::kDouble) : at::zeros({m, n}, at::kDouble);
  if (!l.is_table && l.bias) all["bias"] = at::zeros({m}, at::kDouble);
  return all;
}

}  // namespace

/// A serial model made parallel by a table: every worker's part of every parameter is what a layer that is cut so
/// stores, and put together again all have the bits they had.
task conversion(reading& c) {
  if (c.has("replace")) return replaced(c);
  std::vector<serial_layer> layers;
  nn::state_dict serial;
  for (const json& said : c.given().at("model")) {
    layers.push_back(read_layer(said));
    serial_layer& l = layers.back();
    if (!l.tensors.empty()) l.bias = l.tensors.count("bias") != 0;
    for (const auto& [name, value] : tensors_of(l)) serial[l.key(name)] = value;
  }
  nn::cut_table table;
  nn::path_table<std::string> words;
  for (const json& row : c.given().at("table")) {
    words.add(row.at(0).get<std::string>(), row.at(1).get<std::string>());
    table.add(row.at(0).get<std::string>(), {.dimension = dimension_of(row.at(1).get<std::string>())});
  }
  const json shapes = c.expected("local_shapes");
  for (const auto& [key, by_world] : shapes.items())
    if (!serial.contains(key)) throw unbuilt(fmt::format("the local shapes of '{}'", key));
  return c.in_each_world([&](world& w) -> body {
    const int model = w.mesh().find(kept_name("model"));
    if (model < 0) throw unbuilt("a world without the axis model");
    std::map<std::string, layout> stored;
    if (!c.refused())
      for (const serial_layer& l : layers) {
        if (l.extents.empty()) continue;
        const std::string* const cut = words.find(l.path);
        for (const auto& [name, lies] : lying_cut(l, cut != nullptr ? *cut : "none", w.mesh()))
          stored[l.key(name)] = lies;
      }
    const std::optional<std::size_t> place = c.number_of(w);
    return [=](attempt& a) {
      nn::state_dict whole;
      for (const auto& [key, t] : serial) whole[key] = t.to(a.type());
      const int parts = a.team->mesh().axes[model].extent;
      std::vector<nn::state_dict> all;
      for (int part = 0; part < parts; ++part) all.push_back(nn::cut_state(whole, table, parts, part));
      const nn::state_dict& mine = all.at(static_cast<std::size_t>(a.team->at()[model]));
      const nn::state_dict again = nn::joined_state(all, table);
      parameter_set net(a.team);
      for (const auto& [key, lies] : stored) {
        const nn::parameter& p = net.add(key, lies, a.element, whole.at(key));
        const tensor<dyn> now = detach(p.stored());
        a.compare(key, now, {});
        if (!at::equal(now.local().to(at::kCPU), mine.at(key))) a.fail(key + " has another part than its layer stores");
        if (!at::equal(full_tensor(now).to(at::kCPU), whole.at(key)) || !at::equal(again.at(key), whole.at(key)))
          a.fail(key + " put together again has other bits");
        if (!place || !shapes.contains(key)) continue;
        const auto worker = static_cast<std::size_t>(a.team->mesh().number(a.team->at()));
        if (const json is = mine.at(key).sizes().vec(); is != shapes.at(key).at(*place).at(worker))
          a.fail(fmt::format("{} has the shape {}", key, is.dump()));
      }
    };
  });
}

}  // namespace conformance::training
