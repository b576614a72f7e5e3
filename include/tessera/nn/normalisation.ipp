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
  groups_here(const nn::call& c, const normalisation& what) : call_(c), what_(what), whole_(c.layer.inputs[0].to->layout()) {
    for (int d = 0; d < whole_.dims.count; ++d)
      if (what.over(d, whole_.dims.count)) over_.push_back(d);
    for (const index_t d : over_) count_ *= static_cast<double>(whole_.dims[static_cast<int>(d)].extent);
  }

  /// How many elements a group has, on all workers.
  double count() const { return count_; }
  /// A tensor of one number a channel as it meets boxes, and one of the shape of groups as it is.
  at::Tensor along(const at::Tensor& x) const {
    if (what_.what != normalisation::kind::batch) return x;
    std::vector<index_t> sizes(static_cast<std::size_t>(whole_.dims.count), 1);
    sizes[1] = x.numel();
    return x.view(sizes);
  }
  /// The extents of a group here, as LibTorch's kernels take them.
  std::vector<index_t> sizes(const at::Tensor& x) const { return x.sizes().slice(x.sizes().size() - over_.size()).vec(); }

  /// Those of x, which is double, with all workers'.
  moments of(const at::Tensor& x) const {
    const double here = std::max(1.0, static_cast<double>(elements_of(call_.layer.team->rank())));
    const bool centred = what_.what != normalisation::kind::rms;
    const at::Tensor mean = centred ? x.sum(over_, true) / here : at::zeros({}, x.options());
    const at::Tensor squares = at::square(centred ? x - mean : x).sum(over_, true);
    if (call_.layer.exchanges.empty()) return {mean, squares / all()};
    const holding sent = held_by(call_.layer.exchanges[0].from->layout(), call_.layer.team->rank());
    at::Tensor parts = centred ? at::stack({squares, mean}) : squares.unsqueeze(0);
    if (size_of(sent[0]) == 0) parts = empty_result(sent, {parts});
    parts = call_.exchanged(parts);
    std::vector<index_t> sizes = parts.sizes().vec();
    sizes.insert(sizes.begin(), sizes[0] / what_.sent());
    sizes[1] = what_.sent();
    parts = parts.view(sizes);
    if (!centred) return {mean, parts.select(1, 0).sum(0) / all()};
    const at::Tensor share = counts(sizes);
    const at::Tensor means = parts.select(1, 1);
    const at::Tensor of_all = (share * means).sum(0) / all();
    return {of_all, (parts.select(1, 0) + share * at::square(means - of_all)).sum(0) / all()};
  }

 private:
  double all() const { return std::max(1.0, count_); }
  /// How many elements of a group a worker has.
  index_t elements_of(int rank) const {
    coordinates c;
    return whole_.mesh.locate(rank, c) ? elements_at(c) : 0;
  }
  index_t elements_at(const coordinates& c) const {
    index_t n = 1;
    for (const index_t d : over_) n *= size_of(cutting{whole_}.held(static_cast<int>(d), c));
    return n;
  }
  /// The same of each part, in their order.
  at::Tensor counts(const std::vector<index_t>& parts) const {
    std::vector<double> n;
    coordinates c;
    whole_.mesh.locate(call_.layer.team->rank(), c);
    for (index_t k = 0; k < parts[0]; ++k) {
      index_t rest = k;
      for (int a = whole_.roles.count - 1; a >= 0; --a) {
        const axis_role& r = whole_.roles[a];
        if (r.kind != role::cut || !what_.over(r.dimension, whole_.dims.count)) continue;
        c[a] = static_cast<int>(rest % whole_.mesh.axes[a].extent);
        rest /= whole_.mesh.axes[a].extent;
      }
      n.push_back(static_cast<double>(elements_at(c)));
    }
    std::vector<index_t> sizes(parts.size() - 1, 1);
    sizes[0] = parts[0];
    return at::tensor(n, at::kDouble).view(sizes);
  }

  const nn::call& call_;
  const normalisation& what_;
  const layout& whole_;
  std::vector<index_t> over_;
  double count_ = 1;
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
  const tessera::detail::groups_here groups(c, what);
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
  const tessera::detail::moments m = running ? tessera::detail::moments{widened(*kept(0)), widened(*kept(1))} : groups.of(wide);
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
