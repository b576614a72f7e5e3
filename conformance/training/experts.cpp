#include "subjects.hpp"
#include "token_slots.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/parameter/state_dict.hpp>
#include <tessera/operation/layer/layer_values.hpp>

#include <cmath>

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
};

/// Slots in a world: [experts, groups, slots, features], first where tokens are and then where experts are.
struct slots_in_world {
  layout by_source;
  layout by_expert;
  layout terms;  ///< of a number for each expert, added up over all tokens
  slot_form form;
  integers groups;  ///< tokens of each, of all workers
};

slots_in_world slots_of(const experts_given& g, const layout& x, const layout& w) {
  slots_in_world s;
  const index_t groups = g.token_groups.value_or(x.part_count(0));
  index_t most = 0;
  for (index_t i = 0; i < groups; ++i) {
    s.groups.push_back(g.tokens() / groups + (i < g.tokens() % groups ? 1 : 0));
    most = std::max(most, s.groups.back());
  }
  s.form = {g.experts(), g.choices, most};
  if (g.capacity_factor) {
    if (g.tokens() % groups != 0) throw unbuilt("slots of groups that are not alike");
    const double share = *g.capacity_factor * static_cast<double>(most * g.choices) / static_cast<double>(g.experts());
    s.form.slots = static_cast<index_t>(std::ceil(share));
  }
  s.by_source = whole(x.mesh, {g.experts(), groups, s.form.slots, g.x.shape()[1]});
  s.terms = whole(x.mesh, {g.experts()});
  for (int a = 0; a < x.placements.count; ++a) {
    if (x.placements[a].kind == placement::cut) s.terms.placements[a] = {placement::partial};
    else s.by_source.placements[a] = s.terms.placements[a] = x.placements[a];
  }
  s.by_expert = s.by_source;
  for (int level = 0; level < x.levels(0); ++level) {
    const int a = x.cutter(0, level);
    s.by_source.cut_by(1, a);
    if (w.placements[a].kind != placement::cut) s.by_expert.cut_by(1, a);
  }
  for (int level = 0; level < w.levels(0); ++level) s.by_expert.cut_by(0, w.cutter(0, level));
  return s;
}

/// The groups that a worker has, which must be its tokens.
integers groups_of(const slots_in_world& s, const layout& x, int rank) {
  const engine::interval mine = box_of(s.by_source, rank)[1];
  const integers groups(s.groups.begin() + mine.lo, s.groups.begin() + mine.lo + mine.size());
  if (std::accumulate(groups.begin(), groups.end(), index_t{0}) != box_of(x, rank)[0].size())
    throw unbuilt("groups of tokens that lie on several workers");
  return groups;
}

/// Copies to be used differently.
tensor<dyn> used_apart(const tensor<dyn>& x) {
  layout apart = x.layout();
  for (engine::axis_placement& r : apart.placements)
    if (r.kind == placement::invariant) r = {};
  return to(apart, x);
}

/// The sum over workers of what each has, alike on all.
tensor<dyn> summed(const attempt& a, const layout& terms, const at::Tensor& mine) {
  layout all = terms;
  for (engine::axis_placement& r : all.placements) r = {placement::invariant};
  return to(all, tensor<dyn>(a.team, terms, mine));
}

/// Weights [experts, out, features] as the library's layer has them, and back.
at::Tensor turned(const at::Tensor& w) { return w.transpose(-2, -1); }

}  // namespace

/// Tokens sent to experts and back: routing is composed here, slots travel by changes of layout, and the library's
/// layer of experts serves them.
task experts(reading& c) {
  if (c.kind() == "refused") throw unbuilt("slots are composed here, so nothing of the library refuses a capacity");
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
  if (g.choices < 1 || g.choices > g.experts() || g.w.shape().size() != 3) throw unbuilt("more choices than experts");
  const recipe cot = c.tensor("cotangent");
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
    const slots_in_world slots = slots_of(g, tokens, weights);
    for (int i = 0; i < w.mesh().size(); ++i) groups_of(slots, tokens, w.mesh().rank(w.mesh().at(i)));
    return [=](attempt& a) {
      nn::program p;
      const nn::experts_layer each{.experts = g.experts(), .out = g.w.shape()[1]};
      p.output(p.input({slots.by_source, a.element}) | nn::repartition_layer{slots.by_expert} | nn::under("of", each) |
               nn::repartition_layer{slots.by_source});
      nn::dynamic_network net{a.team, seed{1}, p};
      nn::assign(net, {{"of.weight", turned(g.w.whole()).to(a.type()).contiguous()},
                       {"of.bias", g.b.whole().to(a.type()).unsqueeze(1)}});
      const tensor<dyn> x = a.leaf(g.x, tokens);
      const tensor<dyn> router = a.leaf(g.router, routers);

      const at::Tensor probability = at::softmax(x.local().matmul(used_apart(router).local().t()), -1);
      const at::Tensor chosen = std::get<1>(at::sort(probability, true, -1, true)).narrow(1, 0, g.choices);
      at::Tensor gates = probability.gather(1, chosen);
      if (g.normalised) gates = gates / gates.sum(-1, true);
      const slotted in = fill_slots(chosen, groups_of(slots, tokens, a.team->rank()), slots.form);
      const integers sizes = tessera::detail::sizes_of(held_by(slots.by_source, a.team->rank()));
      const at::Tensor sent = at::zeros({sizes[0] * sizes[1] * sizes[2], sizes[3]}, x.local().options())
                                  .index_add(0, in.slot, x.local().index_select(0, in.token));
      const at::Tensor back = net(tensor<dyn>(a.team, slots.by_source, sent.view(sizes))).local().flatten(0, 2);
      const at::Tensor served = back.index_select(0, in.slot) * gates.flatten().index_select(0, in.choice).unsqueeze(1);
      const tensor<dyn> y{
          a.team, result,
          at::zeros({x.local().size(0), g.w.shape()[1]}, x.local().options()).index_add(0, in.token, served)};
      a.compare("y", y, y_wanted);

      const double all = static_cast<double>(g.tokens());
      const at::Tensor counts = at::bincount(chosen.flatten(), {}, g.experts()).to(a.type());
      const at::Tensor shares = summed(a, slots.terms, counts).local() / (all * static_cast<double>(g.choices));
      const at::Tensor means = summed(a, slots.terms, probability.sum(0)).local() / all;
      const at::Tensor balance = static_cast<double>(g.experts()) * (shares * means).sum();
      a.compare_whole("the balance", balance, balance_wanted);
      const auto counted = [&](const at::Tensor& mine) {
        return summed(a, slots.terms, mine.to(device_of(*a.team))).local();
      };
      if (!kept.is_null())
        a.compare_whole("what is kept", counted(in.kept), numbers({{"shape", {g.experts()}}, {"values", kept}}));
      a.compare_whole("what is dropped",
                      counted(at::full({g.experts()}, static_cast<double>(in.dropped), at::kDouble))[0],
                      dropped_wanted);

      const at::Tensor seed = cot.box(cotangent(result), a.team->rank(), a.type()).to(device_of(*a.team));
      ((y.local() * seed).sum() + g.balance_times * balance).backward();
      const auto wanted = [&](const std::string& name) {
        return gradients.count(name) == 0 ? std::nullopt : std::optional(gradients.at(name));
      };
      a.compare("the gradient of x", attempt::gradient(x), wanted("x"));
      a.compare("the gradient of router", attempt::gradient(router), wanted("router"));
      net.each_parameter([&](const nn::parameter& of) {
        const bool bias = of.key() == "of.bias";
        const at::Tensor found = full_tensor(attempt::gradient(of.stored())).to(at::kCPU);
        a.compare_whole(bias ? "the gradient of b" : "the gradient of w", bias ? found.squeeze(1) : turned(found),
                        wanted(bias ? "b" : "w"));
        const layout& said = bias ? biases : weights;
        if (of.stored().local().size(0) != box_of(said, a.team->rank())[0].size())
          a.fail(of.key() + " lies on other workers");
      });
    };
  });
}

}  // namespace conformance::training
