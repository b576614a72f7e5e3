#include "subjects.hpp"

#include "../running.hpp"

namespace conformance::training {
namespace {

/// Whether an axis cuts samples of a tensor: any dimension but that of the features, which comes last.
bool cuts_samples(const layout& x, int axis, int features) {
  return x.placements[axis].kind == placement::cut && x.placements[axis].dimension != features;
}

/// The axes that cut a dimension of the table so that the look-up is cut; one that cuts indices and results only stores
/// it in tiles.
static_vector<text, engine::max_axes> axes_that_cut(const layout& table, int dim, const layout& indices) {
  static_vector<text, engine::max_axes> axes;
  for (int level = 0; level < table.levels(dim); ++level)
    if (const int a = table.cutter(dim, level); !cuts_samples(indices, a, -1)) axes.push(table.mesh.axes[a].name);
  return axes;
}

}  // namespace

/// Rows of a table.
task embedding(reading& c) {
  const recipe weight = c.tensor("weight");
  const recipe indices = c.tensor("indices");
  const std::optional<recipe> cotangent = c.maybe("cotangent");
  if (weight.shape().size() != 2) throw unbuilt("a table of other than rows and features");
  lookup what;
  what.rows = weight.shape()[0];
  what.features = weight.shape()[1];
  if (c.has("padding_idx")) what.padding = c.given().integer("padding_idx");
  if (c.has("max_norm")) what.max_norm = c.number("max_norm", 0);
  what.norm_type = c.number("norm_type", 2);
  what.by_frequency = c.given().flag("scale_grad_by_freq");
  what.frozen = c.given().flag("frozen");
  what.sparse = c.given().flag("sparse");
  const std::optional<numbers> y = c.result("y");
  const std::optional<numbers> after = c.result("weight_after");
  const std::map<std::string, numbers> gradients = c.gradients({"weight"});
  integers extents = indices.shape();
  extents.push_back(what.features);
  return c.in_each_world([=](world& w) -> body {
    const layout table = w.lying("weight", weight.shape());
    const layout asked = w.lying("indices", indices.shape());
    const std::optional<layout> result = w.names("y") ? std::optional(w.lying("y", extents)) : std::nullopt;
    return [=](attempt& a) {
      lookup one = what;
      one.element = a.element;
      one.cut_in = axes_that_cut(table, 0, asked);
      one.cut_out = axes_that_cut(table, 1, asked);
      link l{one, plan_of(one, {asked, element::int64})};
      check(l.plan.why);
      check(check_change(table, l.plan.weight(0)));
      l.plan.set_stored(table, 0);
      if (result) {
        check(check_change(l.plan.raw(), *result));
        l.plan.set_output(*result);
      }
      serial_state begins;
      begins.parameters.push_back(weight.whole().to(a.type()));
      const running_link layer(a.team, l, begins, a.element);
      const tensor<dyn> rows = layer(a.given(indices, asked, at::kLong), true);
      a.compare("y", rows, y);
      const tensor<dyn>& stored = layer.state.parameters[0].stored();
      a.compare("the table behind the call", detach(stored), after);
      if (one.frozen && (stored.local().requires_grad() || rows.local().requires_grad()))
        a.fail("a table that is frozen has a gradient");
      if (!cotangent || one.frozen) return;
      a.backward(rows, *cotangent);
      if (gradients.count("weight") != 0)
        a.compare("the gradient of weight", attempt::gradient(stored), gradients.at("weight"));
    };
  });
}

}  // namespace conformance::training
