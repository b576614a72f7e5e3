#pragma once

#include <tessera/nn/normalisation.hpp>

namespace tessera::detail {

/// Mean and variance of groups, with a dimension of one element for each that a group has.
struct moments {
  at::Tensor mean;
  at::Tensor variance;
};

/// The groups of a normalisation on one worker.
class groups_here {
 public:
  groups_here(const nn::bound_layer& layer, const normalisation& what) : sent_(what.sent()) {
    const layout& whole = layer.inputs[0].to->layout();
    if (what.what == normalisation::kind::batch) channels_.resize(static_cast<std::size_t>(whole.dims.count), 1);
    for (int d = 0; d < whole.dims.count; ++d)
      if (what.over(d, whole.dims.count)) over_.push_back(d);
    for (const index_t d : over_) count_ *= static_cast<double>(whole.dims[static_cast<int>(d)].extent);
    coordinates mine;
    const bool inside = whole.mesh.locate(layer.team->rank(), mine);
    if (inside) here_ = std::max(1.0, elements_at(whole, mine));
    if (layer.exchanges.empty()) return;
    const auto held = [&](const placement_handle& x) { return held_by(x->layout(), layer.team->rank()); };
    const holding part = held(layer.exchanges[0].from);
    if (size_of(part[0]) == 0) silent_ = part;
    if (inside) counts_ = counts(whole, mine, size_of(held(layer.exchanges[0].to)[0]) / sent_);
  }

  /// How many elements a group has, on all workers.
  double count() const { return count_; }
  /// A tensor of one number a channel as it meets boxes, and one of the shape of groups as it is.
  at::Tensor along(const at::Tensor& x) const {
    if (channels_.empty()) return x;
    std::vector<index_t> sizes = channels_;
    sizes[1] = x.numel();
    return x.view(sizes);
  }
  /// The extents of a group here, as LibTorch's kernels take them.
  std::vector<index_t> sizes(const at::Tensor& x) const { return x.sizes().slice(x.sizes().size() - over_.size()).vec(); }

  /// Those of x, which is double, with all workers'.
  moments of(const nn::bound_layer& layer, const at::Tensor& x) const {
    const bool centred = sent_ == 2;
    const at::Tensor mean = centred ? x.sum(over_, true) / here_ : at::zeros({}, x.options());
    const at::Tensor squares = at::square(centred ? x - mean : x).sum(over_, true);
    if (layer.exchanges.empty()) return {mean, squares / all()};
    at::Tensor parts = centred ? at::stack({squares, mean}) : squares.unsqueeze(0);
    if (!silent_.empty()) parts = empty_result(silent_, {parts});
    parts = layer.exchanged(parts, 0);
    if (!counts_.defined()) return {mean, squares + parts.sum()};  // outside of the mesh
    parts = parts.unflatten(0, {-1, sent_});
    if (!centred) return {mean, parts.select(1, 0).sum(0) / all()};
    const at::Tensor means = parts.select(1, 1);
    const at::Tensor of_all = (counts_ * means).sum(0) / all();
    return {of_all, (parts.select(1, 0) + counts_ * at::square(means - of_all)).sum(0) / all()};
  }

 private:
  double all() const { return std::max(1.0, count_); }
  /// How many elements of a group a worker has.
  double elements_at(const layout& whole, const coordinates& c) const {
    double n = 1;
    for (const index_t d : over_) n *= static_cast<double>(size_of(cutting{whole}.held(static_cast<int>(d), c)));
    return n;
  }
  /// The same of each part, in their order.
  at::Tensor counts(const layout& whole, coordinates c, index_t parts) const {
    std::vector<double> n;
    for (index_t k = 0; k < parts; ++k) {
      index_t rest = k;
      for (int a = whole.roles.count - 1; a >= 0; --a) {
        const axis_role& r = whole.roles[a];
        if (r.kind != role::cut || std::find(over_.begin(), over_.end(), r.dimension) == over_.end()) continue;
        c[a] = static_cast<int>(rest % whole.mesh.axes[a].extent);
        rest /= whole.mesh.axes[a].extent;
      }
      n.push_back(elements_at(whole, c));
    }
    std::vector<index_t> sizes(static_cast<std::size_t>(whole.dims.count) + 1, 1);
    sizes[0] = parts;
    return at::tensor(n, at::kDouble).view(sizes);
  }

  index_t sent_;
  std::vector<index_t> channels_;  ///< ones, of a batch normalisation
  std::vector<index_t> over_;
  double count_ = 1;
  double here_ = 1;
  holding silent_;      ///< what this worker sends, where it has nothing to
  at::Tensor counts_;
};

/// The distance of 1 from the next number of an element.
inline double epsilon_of(at::ScalarType e) {
  switch (e) {
    case at::kHalf: return std::numeric_limits<at::Half>::epsilon();
    case at::kBFloat16: return std::numeric_limits<at::BFloat16>::epsilon();
    case at::kFloat: return std::numeric_limits<float>::epsilon();
    default: return std::numeric_limits<double>::epsilon();
  }
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE at::Tensor forward(const call& c, const normalisation& what) {
  using kind = normalisation::kind;
  const at::Tensor& x = c.operand();
  using tessera::detail::groups_here;
  const groups_here& groups = c.layer.once<groups_here>([&] { return groups_here(c.layer, what); });
  const bool running = what.keeps() && !c.training;
  if (what.what == kind::batch && !running && groups.count() == 1) throw error(refusal{code::one_value_a_channel}, c.layer.team->label());
  std::vector<at::Tensor> operands{x};
  for (std::size_t i = 0; i < c.state.parameters.size(); ++i) operands.push_back(c.weight(i));
  const auto given = [&](std::size_t i) { return i < operands.size() ? std::optional(operands[i]) : std::nullopt; };
  const auto kept = [&](std::size_t i) { return what.keeps() ? std::optional(c.buffer(i).value()) : std::nullopt; };
  double share = what.momentum;
  if (what.keeps() && c.training) {
    c.buffer(2).set(c.buffer(2).value() + 1);
    if (what.cumulative) share = 1 / c.buffer(2).value().item<double>();
  }
  const double eps = what.eps == eps_of_element ? tessera::detail::epsilon_of(x.scalar_type()) : what.eps;
  if ((running || c.layer.exchanges.empty()) && x.numel() > 0) {
    switch (what.what) {
      case kind::batch: return c.layer.tied(at::batch_norm(x, given(1), given(2), kept(0), kept(1), !running, share, eps, false), operands);
      case kind::layer: return c.layer.tied(at::layer_norm(x, groups.sizes(x), given(1), given(2), eps), operands);
      case kind::rms: return c.layer.tied(at::rms_norm(x, groups.sizes(x), given(1), eps), operands);
    }
  }
  const at::Tensor wide = x.to(at::kDouble);
  const auto widened = [&](const at::Tensor& t) { return groups.along(t.to(at::kDouble)); };
  const tessera::detail::moments m = running ? tessera::detail::moments{widened(*kept(0)), widened(*kept(1))} : groups.of(c.layer, wide);
  if (what.keeps() && c.training && groups.count() > 0) {
    const auto blend = [&](std::size_t i, const at::Tensor& now) {
      const at::Tensor before = c.buffer(i).value().to(at::kDouble);
      c.buffer(i).set((1 - share) * before + share * now.detach().reshape(before.sizes()));
    };
    blend(0, m.mean);
    blend(1, m.variance * (groups.count() / (groups.count() - 1)));
  }
  at::Tensor scale = at::rsqrt(m.variance + eps);
  if (const auto w = given(1)) scale = scale * widened(*w);
  at::Tensor y = (what.what == kind::rms ? wide : wide - m.mean) * scale;
  if (const auto b = given(2)) y = y + widened(*b);
  return c.layer.tied(y.to(x.scalar_type()), operands);
}

}  // namespace tessera::nn
