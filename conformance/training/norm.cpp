#include "parameter_set.hpp"
#include "subjects.hpp"

#include <tessera/nn/parameter/grad_norm.hpp>

#include <cmath>

namespace conformance::training {
namespace {

/// One order of the norm, and what comes of clipping by it.
struct clipping {
  double order;
  std::optional<numbers> norm;
  std::optional<numbers> factor;
  std::map<std::string, numbers> gradients;
};

clipping read_clipping(const json& order, const json& expected) {
  clipping one;
  if (order.is_string() && order != "inf") throw unbuilt(fmt::format("the order {}", order.dump()));
  one.order = order.is_string() ? HUGE_VAL : order.get<double>();
  for (const auto& [name, said] : expected.items()) {
    if (name == "norm") one.norm = numbers(said);
    else if (name == "factor") one.factor = numbers(said);
    else if (name == "gradients")
      for (const auto& [key, gradient] : said.items()) one.gradients.emplace(key, gradient);
    else throw unbuilt(fmt::format("the expected number '{}'", name));
  }
  return one;
}

}  // namespace

/// Clipping by a norm over all gradients, wherever they lie.
task norm(reading& c) {
  constexpr double epsilon = 1e-6;
  if (c.number("epsilon", epsilon) != epsilon) throw unbuilt("another number added to the norm than LibTorch's");
  const double most = c.number("most", 0);
  std::map<std::string, recipe> gradients;
  for (const auto& [name, said] : c.entries("gradient")) gradients.emplace(name, said);
  const json expected = c.expected("orders");
  std::vector<clipping> all;
  for (const json& order : c.given().at("orders"))
    all.push_back(read_clipping(order, expected.is_null() ? json::object() : expected.at(all.size())));
  for (const clipping& one : all)
    for (const auto& [name, said] : one.gradients)
      if (gradients.count(name) == 0) throw unbuilt(fmt::format("the gradient of '{}'", name));
  return c.in_each_world([=](world& w) -> body {
    std::map<std::string, layout> lying;
    for (const auto& [name, g] : gradients) lying[name] = w.lying(name, g.shape());
    return [=](attempt& a) {
      for (const clipping& one : all) {
        parameter_set net(a.team);
        for (const auto& [name, g] : gradients) {
          const tensor<dyn> lies = a.given(g, lying.at(name));
          const nn::parameter& p = net.add(name, cotangent(lying.at(name)), a.element, at::zeros(g.shape(), a.type()));
          p.stored().local().mutable_grad() = lies.local();
        }
        const double found = nn::clip_grad_norm(net, most, one.order);
        const auto number = [](double of) { return at::scalar_tensor(of, at::kDouble); };
        a.compare_whole(fmt::format("the norm of order {}", one.order), number(found), one.norm);
        a.compare_whole(fmt::format("the factor of order {}", one.order),
                        number(std::min(1.0, most / (found + epsilon))), one.factor);
        net.each_parameter([&](const nn::parameter& p) {
          const auto wanted = one.gradients.find(p.path());
          if (wanted != one.gradients.end())
            a.compare("the gradient of " + p.path(), attempt::gradient(p.stored()), wanted->second);
        });
      }
    };
  });
}

}  // namespace conformance::training
