#include "linear_parts.hpp"

#include "../running.hpp"

#include <range/v3/view/zip.hpp>

namespace conformance::training {
namespace {

/// Whether an axis cuts a dimension of samples: one before the features.
bool cuts_samples(const layout& x, int axis) {
  return x.placements[axis].kind == placement::cut && x.placements[axis].dimension != x.dims.count - 1;
}

static_vector<text, engine::max_axes> axes_that_cut(const linear_tensors& lie, int dim) {
  static_vector<text, engine::max_axes> axes;
  for (int level = 0; level < lie.weight.levels(dim); ++level) {
    const int a = lie.weight.cutter(dim, level);
    const bool only_stores = cuts_samples(lie.x, a) && (!lie.y || cuts_samples(*lie.y, a));
    if (!only_stores) axes.push(lie.weight.mesh.axes[a].name);
  }
  return axes;
}

/// A layout seen with its two dimensions in the other order.
layout transposed(layout x) {
  std::swap(x.dims[0], x.dims[1]);
  for (engine::axis_placement& r : x.placements)
    if (r.kind == placement::cut) r.dimension = static_cast<signed char>(1 - r.dimension);
  return x;
}

/// What is added once to each sample of y lies as its features do.
layout beside_features(const layout& y) {
  const int features = y.dims.count - 1;
  layout b = whole(y.mesh, {y.dims[features].extent});
  b.dims[0] = y.dims[features];
  for (int a = 0; a < b.placements.count; ++a) {
    const engine::axis_placement& r = y.placements[a];
    if (r.kind == placement::cut && r.dimension == features) b.placements[a] = {placement::cut, 0, r.level, r.joined};
    else if (r.kind == placement::invariant || r.kind == placement::on) b.placements[a] = r;
  }
  return b;
}

at::Tensor value_of(const recipe& r, bool turned, at::ScalarType type) {
  return (turned ? r.whole().t() : r.whole()).to(type).contiguous();
}

}  // namespace

linear_tensors lying_in(world& w, const linear_names& named, const recipe& weight, const std::optional<recipe>& bias,
                        bool in_out) {
  if (weight.shape().size() != 2) throw unbuilt("a weight that is no matrix");
  linear_tensors lie;
  lie.weight = w.lying(named.weight, weight.shape());
  if (in_out) lie.weight = transposed(lie.weight);
  if (bias) lie.bias = w.lying(named.bias, bias->shape());
  return lie;
}

layout between(const layout& x, const layout& weight) {
  const int features = x.dims.count - 1;
  layout y = x;
  y.dims[features] = weight.dims[0];
  for (int a = 0; a < y.placements.count; ++a) {
    const engine::axis_placement& w = weight.placements[a];
    if (w.kind == placement::cut && w.dimension == 0)
      y.placements[a] = {placement::cut, static_cast<signed char>(features), w.level, w.joined};
    else if (x.placements[a].kind == placement::partial ||
             (x.placements[a].kind == placement::cut && x.placements[a].dimension == features))
      y.placements[a] = {};
  }
  for (int d = 0; d < features; ++d) y.close_levels(d);
  return y;
}

link linear_link(const linear_tensors& lie) {
  contraction what;
  what.out = lie.weight.dims[0].extent;
  what.bias = false;
  what.cut_is_set = true;
  what.cut_out = axes_that_cut(lie, 0);
  what.cut_in = axes_that_cut(lie, 1);
  link l = contraction_on(lie.x, what);
  if (extents_of(lie.weight) == extents_of(l.plan.stored(0))) {  // a value of other extents the parameter refuses
    check(check_change(lie.weight, l.plan.weight(0)));
    l.plan.set_stored(lie.weight, 0);
  }
  if (lie.y) {
    check(check_change(l.plan.raw(), *lie.y));
    l.plan.set_output(*lie.y);
  }
  if (!lie.bias) return l;
  what.bias = true;
  l.what = what;
  parameter_value b;
  b.name = "bias";
  b.initial = l.plan.parameter(0).initial;
  b.stored = *lie.bias;
  b.used = beside_features(l.plan.output());
  check(check_change(b.stored, b.used));
  l.plan.add_parameter(b);
  return l;
}

json received_by_all(const std::vector<link>& links) {
  engine::traffic_value t;
  const element counted = element::float32;
  operand_elements operands;
  operands.push(counted);
  for (const link& l : links) t += traffic_of(l.plan, operands);
  return {{"forward", t.forward.bytes / bytes_of(counted)}, {"backward", t.backward.bytes / bytes_of(counted)}};
}

tensor<dyn> activated(const std::string& name, const tensor<dyn>& x) {
  if (name == "tanh") return tanh(x);
  if (name == "gelu") return gelu(x);
  if (name == "gelu_tanh") return gelu_tanh(x);
  if (name == "relu") return relu(x);
  return x;
}

void check_names(const linear_question& asked, const std::vector<linear_part>& parts) {
  if (!asked.gradients.empty() && !asked.cotangent) throw unbuilt("gradients without a cotangent");
  for (const auto& [name, expected] : asked.gradients) {
    const auto is = [&named = name](const linear_part& p) {
      return p.named.weight == named || (p.bias && p.named.bias == named);
    };
    if (name != "x" && std::none_of(parts.begin(), parts.end(), is))
      throw unbuilt(fmt::format("the gradient of '{}'", name));
  }
}

void run_linear(attempt& a, const std::vector<linear_part>& parts, const linear_question& asked) {
  const tensor<dyn> x = a.leaf(asked.x, parts.front().of.plan.given());
  std::vector<running_link> layers;
  tensor<dyn> y = x;
  for (const linear_part& p : parts) {
    serial_state begins;
    begins.parameters.push_back(value_of(p.weight, p.in_out, a.type()));
    if (p.bias) begins.parameters.push_back(value_of(*p.bias, false, a.type()));
    layers.emplace_back(a.team, p.of, begins, a.element);
    if (layers.size() > 1) y = activated(asked.activation, y);
    y = layers.back()(y, true);
  }
  a.compare("y", y, asked.y);
  if (!asked.cotangent) return;
  a.backward(y, *asked.cotangent);
  const auto expected = [&](const std::string& name) {
    return asked.gradients.count(name) == 0 ? std::nullopt : std::optional(asked.gradients.at(name));
  };
  a.compare("the gradient of x", attempt::gradient(x), expected("x"));
  for (const auto& [p, layer] : ranges::views::zip(parts, layers)) {
    const auto gradient = [&own = layer.state.parameters](std::size_t k) { return attempt::gradient(own[k].stored()); };
    if (p.in_out)
      a.compare_whole("the gradient of " + p.named.weight, full_tensor(gradient(0)).t(), expected(p.named.weight));
    else a.compare("the gradient of " + p.named.weight, gradient(0), expected(p.named.weight));
    if (p.bias) a.compare("the gradient of " + p.named.bias, gradient(1), expected(p.named.bias));
  }
}

}  // namespace conformance::training
