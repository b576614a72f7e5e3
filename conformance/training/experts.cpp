#include "subjects.hpp"

#include <tessera/functions.hpp>
#include <tessera/nn/layer/forward.hpp>
#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/parameter/state_dict.hpp>
#include <tessera/operation/layer/layer_values.hpp>

namespace conformance::training {
namespace {

/// What a case of experts gives.
struct experts_given {
  recipe x, router, w, b;
  index_t choices = 1;
  bool normalised = false;
  std::optional<double> capacity_factor;
  std::optional<index_t> token_groups;
  double balance_times = 0;

  index_t experts() const { return router.shape()[0]; }
  index_t tokens() const { return x.shape()[0]; }
  /// The library's layer for it; the axes that cut the weights cut the experts.
  nn::route_layer route(const layout& w_lies) const {
    static_vector<text, engine::max_axes> over;
    for (int level = 0; level < w_lies.levels(0); ++level) over.push(w_lies.mesh.axes[w_lies.cutter(0, level)].name);
    nn::route_layer r{.experts = experts(), .choices = choices, .over_experts = engine::axis_names(over)};
    if (capacity_factor) r.capacity = *capacity_factor;
    r.groups = token_groups.value_or(0);
    r.normalised_gates = normalised;
    return r;
  }
};

/// Weights [experts, out, features] as the library's layer has them, and back.
at::Tensor turned(const at::Tensor& w) { return w.transpose(-2, -1); }

/// The first dimension alone of a tensor's numbers, of which every worker has the sums.
struct counting {
  const attempt& a;
  layout rows;

  at::Tensor operator()(const at::Tensor& mine) const {
    layout terms, all;
    terms.mesh = rows.mesh;
    for (const engine::axis_placement& r : rows.placements)
      terms.placements.push(r.kind == placement::cut ? engine::axis_placement{placement::partial} : r);
    engine::dimension d;
    d.extent = mine.size(0);
    terms.dims.push(d);
    all = terms;
    for (engine::axis_placement& r : all.placements) r = {placement::invariant};
    return to(all, tensor<dyn>(a.team, terms, mine.to(device_of(*a.team)))).local();
  }
};

}  // namespace

/// Tokens sent to experts and back by the library's layers, whose router scores them by a linear layer.
task experts(reading& c) {
  experts_given g{c.tensor("x"),
                  c.tensor("router"),
                  c.tensor("w"),
                  c.tensor("b"),
                  c.given().integer("choices"),
                  c.given().flag("normalised"),
                  {},
                  {},
                  c.number("balance_times", 0)};
  if (c.has("capacity_factor")) g.capacity_factor = c.number("capacity_factor", 0);
  if (c.has("token_groups")) g.token_groups = c.given().integer("token_groups");
  if (g.w.shape().size() != 3) throw unbuilt("experts of other weights");
  const std::optional<recipe> cot = c.maybe("cotangent");
  const std::optional<numbers> y_wanted = c.result("y");
  const std::optional<numbers> balance_wanted = c.result("balance");
  const std::optional<numbers> dropped_wanted = c.result("dropped");
  const json kept = c.expected("kept");
  const std::map<std::string, numbers> gradients = c.gradients({"x", "router", "w", "b"});
  return c.in_each_world([=](world& w) -> body {
    const layout tokens = w.lying("x", g.x.shape());
    const layout routers = w.lying("router", g.router.shape());
    const layout weights = w.lying("w", g.w.shape());
    const layout biases = w.lying("b", g.b.shape());
    const layout result = w.lying("y", {g.tokens(), g.w.shape()[1]});
    return [=](attempt& a) {
      nn::program p;
      const nn::dynamic_flow given = p.input({tokens, a.element});
      const nn::dynamic_flow scores = given | nn::under("router", nn::linear_layer{.out = g.experts(), .bias = false});
      const auto [slots, gates, numbers_of_slots, chosen] = g.route(weights)(given, scores);
      const nn::experts_layer each{.experts = g.experts(), .out = g.w.shape()[1]};
      const nn::dynamic_flow back = nn::combine{}(slots | nn::under("of", each), gates, numbers_of_slots, chosen);
      p.output(flows{back | nn::repartition_layer{result}, nn::load_balance_loss(scores, chosen), chosen});
      nn::dynamic_network net{a.team, seed{1}, p};
      nn::assign(net, {{"router.weight", g.router.whole().to(a.type())},
                       {"of.weight", turned(g.w.whole()).to(a.type()).contiguous()},
                       {"of.bias", g.b.whole().to(a.type()).unsqueeze(1)}});
      const tensor<dyn> x = a.leaf(g.x, tokens);
      const std::vector<tensor<dyn>> found = net({x});
      const tensor<dyn>& y = found[0];
      a.compare("y", y, y_wanted);
      a.compare_whole("the balance", found[1].local(), balance_wanted);
      const at::Tensor became = found[2].local();
      const counting counted{a, tokens};
      if (!kept.is_null())
        a.compare_whole("what is kept", counted((became >= 0).sum(0).to(at::kDouble)),
                        numbers({{"shape", {g.experts()}}, {"values", kept}}));
      a.compare_whole("what is dropped", counted((became == -2).sum().to(at::kDouble).reshape({1}))[0], dropped_wanted);
      if (!cot) return;

      const at::Tensor seed = cot->box(cotangent(result), a.team->rank(), a.type()).to(device_of(*a.team));
      ((y.local() * seed).sum() + g.balance_times * found[1].local()).backward();
      const auto wanted = [&](const std::string& name) {
        return gradients.count(name) == 0 ? std::nullopt : std::optional(gradients.at(name));
      };
      a.compare("the gradient of x", attempt::gradient(x), wanted("x"));
      net.each_parameter([&](const nn::parameter& of) {
        const bool scoring = of.key() == "router.weight", bias = of.key() == "of.bias";
        const at::Tensor all = full_tensor(attempt::gradient(of.stored())).to(at::kCPU);
        const std::string name = scoring ? "router" : bias ? "b" : "w";
        a.compare_whole("the gradient of " + name, scoring ? all : bias ? all.squeeze(1) : turned(all), wanted(name));
        const layout& said = scoring ? routers : bias ? biases : weights;
        if (of.stored().local().size(0) != box_of(said, a.team->rank())[0].size())
          a.fail(of.key() + " lies on other workers");
      });
    };
  });
}

}  // namespace conformance::training
