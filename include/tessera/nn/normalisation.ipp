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
  groups_here(const nn::bound_layer& layer, const normalisation& what)
      : of_(what.groups), sent_(what.sent()), whole_(layer.inputs[0].to->layout()), cut_(is_cut(parts_of_groups(whole_, of_, sent_), sent_)) {
    for (int d = 0; d < whole_.dims.count; ++d)
      if (of_.over(d, whole_.dims.count)) over_.push_back(d);
    for (const index_t d : over_) count_ *= static_cast<double>(whole_.dims[static_cast<int>(d)].extent);
    const int rank = layer.team->rank();
    if (of_.channels.said()) {
      count_ *= static_cast<double>(of_.range(whole_));
      find_ranges(held_by(whole_, rank)[1]);
    }
    for (const way& x : layer.exchanges) {
      const holding part = held_by(x.from->layout(), rank);
      silent_.push_back(size_of(part[0]) == 0 ? part : holding{});
    }
    coordinates mine;
    if (!whole_.mesh.locate(rank, mine)) return;
    here_ = elements_at(mine).clamp_min(1);
    if (cut_ && silent_[0].empty()) counts_ = counts(mine, layer.exchanges[0].to->layout().dims[0].extent / sent_);
  }

  /// Whether workers share groups.
  bool cut() const { return cut_; }
  /// How many elements a group has, on all workers.
  double count() const { return count_; }
  /// How many groups channels make here.
  index_t of_channels(const at::Tensor& x) const { return of_.channels.said() ? ranges_ : x.size(1); }
  /// A parameter as it meets boxes.
  at::Tensor along(const at::Tensor& x) const { return of_.by_channel ? a_channel(x) : x; }
  /// The extents of a group here, as LibTorch's kernels take them.
  std::vector<index_t> sizes(const at::Tensor& x) const { return x.sizes().slice(x.sizes().size() - over_.size()).vec(); }
  /// What groups have, for each of their channels.
  at::Tensor spread(const at::Tensor& of_groups) const { return range_of_.defined() ? of_groups.index_select(1, range_of_) : of_groups; }

  /// Those of x, which is double, with all workers'.
  moments of(const nn::bound_layer& layer, const at::Tensor& x) const {
    const bool centred = sent_ == 2;
    const at::Tensor mean = centred ? summed(x) / here_ : at::zeros({}, x.options());
    const at::Tensor squares = summed(at::square(centred ? x - spread(mean) : x));
    if (!cut_) return {mean, squares / all()};
    at::Tensor parts = exchanged(layer, centred ? at::stack({squares, mean}) : squares.unsqueeze(0), 0);
    if (!counts_.defined()) return {mean, squares + parts.sum()};  // it has no part in them
    parts = parts.unflatten(0, {-1, sent_});
    if (!centred) return {mean, parts.select(1, 0).sum(0) / all()};
    const at::Tensor means = parts.select(1, 1);
    const at::Tensor of_all = (counts_ * means).sum(0) / all();
    return {of_all, (parts.select(1, 0) + counts_ * at::square(means - of_all)).sum(0) / all()};
  }

  /// Means over all workers' samples.
  moments averaged(const nn::bound_layer& layer, const moments& m) const {
    at::Tensor parts = at::stack({m.variance.detach(), m.mean.detach()}).sum(1, true);
    if (const std::size_t last = cut_ ? 1 : 0; layer.exchanges.size() > last) {
      const at::Tensor all = exchanged(layer, parts, last);
      if (silent_[last].empty()) parts = all.unflatten(0, {-1, 2}).sum(0);
    }
    parts = parts / std::max(1.0, static_cast<double>(whole_.dims[0].extent));
    return {parts[1], parts[0]};
  }

 private:
  static bool is_cut(const layout& parts, index_t sent) { return parts.dims[0].extent > sent; }
  /// One number each of channels, or of groups of them, as it meets boxes.
  at::Tensor a_channel(const at::Tensor& x) const {
    std::vector<index_t> sizes(static_cast<std::size_t>(whole_.dims.count), 1);
    if (sizes.size() > 1) sizes[1] = x.numel();
    return x.view(sizes);
  }
  double all() const { return std::max(1.0, count_); }
  at::Tensor exchanged(const nn::bound_layer& layer, const at::Tensor& parts, std::size_t i) const {
    return layer.exchanged(silent_[i].empty() ? parts : empty_result(silent_[i], {parts}), i);
  }
  /// Sums over what groups have here.
  at::Tensor summed(const at::Tensor& x) const {
    const at::Tensor sums = over_.empty() ? x : x.sum(over_, true);
    if (!range_of_.defined()) return sums;
    std::vector<index_t> sizes = sums.sizes().vec();
    sizes[1] = ranges_;
    return at::zeros(sizes, sums.options()).index_add(1, range_of_, sums);
  }
  /// Of which range each channel of these is.
  void find_ranges(const intervals& channels) {
    const index_t range = of_.range(whole_);
    const bool apart = ranges_whole(whole_, of_);
    ranges_ = apart ? size_of(channels) / range : of_.channels.as();
    std::vector<index_t> each;
    for (const interval& i : channels)
      for (index_t c = i.lo; c < i.hi; ++c) each.push_back(apart ? static_cast<index_t>(each.size()) / range : c / range);
    range_of_ = at::tensor(each, at::kLong);
  }
  /// How many elements of each group a worker has.
  at::Tensor elements_at(const coordinates& c) const {
    const cutting cuts{whole_};
    double n = 1;
    for (const index_t d : over_) n *= static_cast<double>(size_of(cuts.held(static_cast<int>(d), c)));
    if (!range_of_.defined()) return a_channel(at::full({1}, n, at::kDouble));
    std::vector<double> each(static_cast<std::size_t>(ranges_), 0);
    if (ranges_whole(whole_, of_)) each.assign(each.size(), n * static_cast<double>(of_.range(whole_)));
    else
      for (const interval& i : cuts.held(1, c))
        for (index_t channel = i.lo; channel < i.hi; ++channel) each[static_cast<std::size_t>(channel / of_.range(whole_))] += n;
    return a_channel(at::tensor(each, at::kDouble));
  }
  /// The same of each part, in their order.
  at::Tensor counts(coordinates c, index_t parts) const {
    const layout groups = groups_of(whole_, of_);
    std::vector<at::Tensor> all;
    for (index_t k = 0; k < parts; ++k) {
      index_t rest = k;
      for (int a = whole_.roles.count - 1; a >= 0; --a) {
        if (whole_.roles[a].kind != role::cut || groups.roles[a].kind == role::cut) continue;
        c[a] = static_cast<int>(rest % whole_.mesh.axes[a].extent);
        rest /= whole_.mesh.axes[a].extent;
      }
      all.push_back(elements_at(c));
    }
    return at::stack(all);
  }

  grouping of_;
  index_t sent_;
  layout whole_;
  bool cut_;
  std::vector<index_t> over_;
  double count_ = 1;
  index_t ranges_ = 0;
  at::Tensor range_of_;         ///< of each channel here, where groups are ranges of them
  at::Tensor here_ = at::ones({}, at::kDouble);
  at::Tensor counts_;           ///< of the parts of each group
  std::vector<holding> silent_;  ///< what this worker sends in each exchange, where it has nothing to
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
  const at::Tensor& x = c.operand();
  using tessera::detail::groups_here;
  const groups_here& groups = c.layer.once<groups_here>([&] { return groups_here(c.layer, what); });
  const bool running = what.tracked && !c.training;
  if (what.groups.by_channel && !what.groups.channels.said() && !running && groups.count() == 1) throw error(refusal{code::one_value_a_channel}, c.layer.team->label());
  std::vector<at::Tensor> operands{x};
  for (std::size_t i = 0; i < c.state.parameters.size(); ++i) operands.push_back(c.weight(i));
  const auto given = [&](std::size_t i) { return i < operands.size() ? std::optional(operands[i]) : std::nullopt; };
  const auto kept = [&](std::size_t i) { return what.tracked ? std::optional(c.buffer(i).value()) : std::nullopt; };
  double share = what.momentum;
  if (what.tracked && c.training) {
    if (!what.groups.by_sample || what.cumulative) c.buffer(2).set(c.buffer(2).value() + 1);
    if (what.cumulative) share = 1 / c.buffer(2).value().item<double>();
  }
  const double eps = what.eps == eps_of_element ? tessera::detail::epsilon_of(x.scalar_type()) : what.eps;
  if ((running || (!groups.cut() && !what.averages())) && x.numel() > 0) {
    const auto alone = [&] {
      if (!what.centred) return at::rms_norm(x, groups.sizes(x), given(1), eps);
      if (!what.groups.by_channel) return at::layer_norm(x, groups.sizes(x), given(1), given(2), eps);
      if (what.groups.by_sample && !running) return at::group_norm(x, groups.of_channels(x), given(1), given(2), eps, false);
      return at::batch_norm(x, given(1), given(2), kept(0), kept(1), !running, share, eps, false);
    };
    return c.layer.tied(alone(), operands);
  }
  const at::Tensor wide = x.to(at::kDouble);
  const auto widened = [&](const at::Tensor& t) { return groups.along(t.to(at::kDouble)); };
  const tessera::detail::moments m = running ? tessera::detail::moments{widened(*kept(0)), widened(*kept(1))} : groups.of(c.layer, wide);
  if (what.tracked && c.training && groups.count() > 0) {
    const auto blend = [&](std::size_t i, const at::Tensor& now) {
      const at::Tensor before = c.buffer(i).value().to(at::kDouble);
      c.buffer(i).set((1 - share) * before + share * now.detach().reshape(before.sizes()));
    };
    const tessera::detail::moments now = what.averages() ? groups.averaged(c.layer, m) : m;
    blend(0, now.mean);
    blend(1, now.variance * (groups.count() / (groups.count() - 1)));
  }
  at::Tensor scale = groups.spread(at::rsqrt(m.variance + eps));
  if (const auto w = given(1)) scale = scale * widened(*w);
  at::Tensor y = (what.centred ? wide - groups.spread(m.mean) : wide) * scale;
  if (const auto b = given(2)) y = y + widened(*b);
  return c.layer.tied(y.to(x.scalar_type()), operands);
}

}  // namespace tessera::nn
