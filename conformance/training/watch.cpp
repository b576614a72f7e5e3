#include "small_network.hpp"
#include "subjects.hpp"

#include <tessera/nn/watch/finite_watch.hpp>

#include <limits>

namespace conformance::training {
namespace {

/// A number that is put into a tensor of the case.
struct put_number {
  std::string into;
  std::int64_t at = 0;
  double what = 0;

  /// The tensor of this name with it.
  at::Tensor in(const std::string& name, at::Tensor whole) const {
    if (name == into) whole.view(-1)[at] = what;
    return whole;
  }
};

std::optional<put_number> read_put(reading& c) {
  static const std::map<std::string, double> numbers{{"nan", std::numeric_limits<double>::quiet_NaN()},
                                                     {"inf", std::numeric_limits<double>::infinity()},
                                                     {"-inf", -std::numeric_limits<double>::infinity()}};
  if (!c.has("put")) return std::nullopt;
  const json& said = c.given().at("put");
  const auto what = numbers.find(said.at("what").get<std::string>());
  if (what == numbers.end()) throw unbuilt(fmt::format("the number {}", said.at("what").dump()));
  return put_number{said.at("into").get<std::string>(), said.at("at").get<std::int64_t>(), what->second};
}

}  // namespace

/// The first layer of a network whose result is not finite, and the workers that see it.
task watch(reading& c) {
  const small_network net(c);
  const recipe x = c.tensor("x");
  const std::optional<put_number> put = read_put(c);
  const json layer = c.expected("layer");
  const json workers = c.expected("workers");
  if (put && put->into != "x" && net.parameters().count(put->into) == 0)
    throw unbuilt(fmt::format("a number in '{}'", put->into));
  return c.in_each_world([=](world& w) -> body {
    const layout lies = w.lying("x", x.shape());
    const lying_parameters lying = net.lying(w);
    return [=](attempt& a) {
      const auto whole = [&](const std::string& name, const recipe& of) {
        const at::Tensor values = of.whole().to(a.type()).clone();
        return put ? put->in(name, values) : values;
      };
      nn::program p;
      p.output(layers_of{net, lying, 0, net.layers()}(p.input({lies, a.element})));
      nn::dynamic_network running{a.team, seed{1}, p};
      nn::state_dict values;
      for (const auto& [key, of] : net.parameters()) values[key] = whole(key, of);
      nn::assign(running, values);
      const auto seen = std::make_shared<nn::finite_watch>(a.team);
      running.observe(seen);
      running(distribute(a.team, lies, whole("x", x).to(device_of(*a.team))));
      const std::optional<nn::finite_watch::finding> found = seen->first();
      const json in = found ? json(found->path) : json();
      const json by = found ? json(found->workers) : json::array();
      if (in != layer) a.fail(fmt::format("the layer {} in place of {}", in.dump(), layer.dump()));
      if (!workers.is_null() && by != workers)
        a.fail(fmt::format("the workers {} in place of {}", by.dump(), workers.dump()));
    };
  });
}

}  // namespace conformance::training
