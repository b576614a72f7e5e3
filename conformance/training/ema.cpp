#include "parameter_set.hpp"
#include "subjects.hpp"

#include <tessera/nn/training/average.hpp>

namespace conformance::training {
namespace {

/// What is averaged of a case.
struct averaged {
  std::map<std::string, recipe> parameters;
  std::map<std::string, recipe> buffers;  ///< copied with each update
  std::set<std::string> frozen;
  bool only_trainable = true;
  std::uint64_t updates = 0;
  double decay = 0.9999;
  bool gathered = false;
};

/// The axes whose workers share an average, as the case says; ours are shared over all.
std::vector<int> sharing(const mesh_value& m, const std::optional<std::vector<std::string>>& over) {
  std::vector<int> axes;
  for (int a = 0; !over && a < m.axes.count; ++a) axes.push_back(a);
  for (const std::string& name : over.value_or(std::vector<std::string>{})) {
    axes.push_back(m.find(kept_name(name)));
    if (axes.back() < 0) throw unbuilt(fmt::format("the axis '{}' is none of the world", name));
  }
  return axes;
}

}  // namespace

/// Moving averages by `nn::average`, whose tiles are gathered at the end: everywhere, or to one of the workers that
/// share them.
task ema(reading& c) {
  averaged of;
  for (const auto& [name, said] : c.entries("parameters")) of.parameters.emplace(name, said);
  if (c.has("frozen"))
    for (const json& name : c.given().at("frozen")) of.frozen.insert(name.get<std::string>());
  of.only_trainable = c.given().flag("only_trainable", true);
  of.updates = static_cast<std::uint64_t>(c.given().integer("updates"));
  of.decay = c.number("decay", 0.9999);
  of.gathered = c.given().flag("gathered");
  if (c.has("buffers"))
    for (const auto& [name, said] : c.entries("buffers")) of.buffers.emplace(name, said);
  std::optional<std::vector<std::string>> over;
  if (c.has("over")) over = c.given().at("over").get<std::vector<std::string>>();
  const std::map<std::string, numbers> expected = c.gradients({}, "averages");
  const std::map<std::string, numbers> copied = c.gradients({}, "buffers");
  for (const auto& [name, said] : expected)
    if (of.parameters.count(name) == 0) throw unbuilt(fmt::format("the average of '{}'", name));
  for (const auto& [name, said] : copied)
    if (of.buffers.count(name) == 0) throw unbuilt(fmt::format("the buffer '{}'", name));
  return c.in_each_world([=](world& w) -> body {
    const std::vector<int> axes = sharing(w.mesh(), over);
    std::map<std::string, layout> lying;
    for (const auto& [name, r] : of.parameters) lying[name] = w.lying(name, r.shape());
    for (const auto& [name, r] : of.buffers) lying[name] = w.lying(name, r.shape());
    return [=](attempt& a) {
      parameter_set net(a.team);
      for (const auto& [name, r] : of.parameters)
        net.add(name, lying.at(name), a.element).stored().local().set_requires_grad(of.frozen.count(name) == 0);
      for (const auto& [name, r] : of.buffers) net.add_buffer(name, lying.at(name), a.element);
      const auto take = [&](const nn::engine::state_tensor& one, const recipe& r) {
        const at::NoGradGuard no_graph;
        one.stored().local().copy_(a.given(r, one.stored().layout()).local());
      };
      const auto take_all = [&](std::uint64_t k) {
        net.each_parameter([&](const nn::parameter& p) { take(p, of.parameters.at(p.path()).raised(k)); });
        net.each_buffer([&](const nn::buffer& b) { take(b, of.buffers.at(b.path()).raised(k)); });
      };
      take_all(0);
      nn::average average(net, {.decay = of.decay, .only_trained = of.only_trainable});
      for (std::uint64_t k = 1; k <= of.updates; ++k) {
        take_all(k);
        average.update();
      }
      average.each_tensor([&](const std::string& name, tensor<dyn>& kept) {
        const bool is_buffer = of.buffers.count(name) != 0;
        layout there = lying.at(name);
        for (const int axis : axes)
          if (of.gathered && !is_buffer) there.set_placement(axis, held_on(0));
        const auto& expected_of = is_buffer ? copied : expected;
        const auto wanted = expected_of.find(name);
        a.compare((is_buffer ? "the buffer " : "the average of ") + name, to(there, kept),
                  wanted == expected_of.end() ? std::nullopt : std::optional(wanted->second));
      });
    };
  });
}

}  // namespace conformance::training
