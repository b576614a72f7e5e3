#pragma once

#include <tessera/nn/call/bound_layer.hpp>
#include <tessera/nn/kernel/normalised_rows.hpp>
#include <tessera/operation/layer/normalisation.hpp>
#include <tessera/tensor/autograd/empty_result.hpp>

namespace tessera::detail {

/// The groups of a normalisation on one worker.
class local_groups {
 public:
  local_groups(const nn::engine::bound_layer& bound, const normalisation& layer)
      : of_(layer.groups),
        sent_(layer.sent()),
        team_(bound.team),
        exchanges_(bound.exchanges),
        whole_(bound.inputs[0].to->layout()),
        cut_(is_cut(parts_of_groups(whole_, of_, sent_), sent_)) {
    for (int d = 0; d < whole_.dims.count; ++d)
      if (of_.over(d, whole_.dims.count)) over_.push_back(d);
    for (const index_t d : over_) count_ *= static_cast<double>(whole_.dims[static_cast<int>(d)].extent);
    const int rank = bound.team->rank();
    if (of_.channels.is_set()) {
      count_ *= static_cast<double>(of_.range(whole_));
      find_ranges(held_by(whole_, rank)[1]);
    }
    for (const redistribution& x : bound.exchanges) {
      const holding part = held_by(x.from->layout(), rank);
      silent_.push_back(size_of(part[0]) == 0 ? part : holding{});
    }
    coordinates mine;
    if (whole_.mesh.locate(rank, mine)) {
      here_ = elements_at(mine).clamp_min(1);
      if (cut_ && silent_[0].empty()) counts_ = counts(mine, bound.exchanges[0].to->layout().dims[0].extent / sent_);
    }
    if (const box_vector& box = bound.inputs[0].to->extents(); cut_ || layer.averages())
      find_lines({box.begin(), box.end()});
    const c10::Device device = device_of(*team_);
    here_ = here_.to(device);
    if (counts_.defined()) counts_ = counts_.to(device);
  }

  /// Whether workers share groups.
  bool cut() const { return cut_; }
  /// How many elements a group has, on all workers.
  double count() const { return count_; }
  /// How many samples there are, on all workers.
  double samples() const { return static_cast<double>(whole_.dims[0].extent); }
  /// How many groups channels make here.
  index_t of_channels(const at::Tensor& x) const { return of_.channels.is_set() ? ranges_ : x.size(1); }
  /// A parameter as it meets boxes.
  at::Tensor along(const at::Tensor& x) const { return of_.by_channel ? a_channel(x) : x; }
  /// Rows and columns of this worker's box, for loops on the host.
  const line_groups& lines() const { return lines_; }
  /// The extents of a group here, as LibTorch's kernels take them.
  std::vector<index_t> sizes(const at::Tensor& x) const {
    return x.sizes().slice(x.sizes().size() - over_.size()).vec();
  }
  /// The numbers of groups, repeated for each of their channels.
  at::Tensor spread(const at::Tensor& of_groups) const {
    if (!of_.channels.is_set()) return of_groups;
    std::vector<index_t> sizes = of_groups.sizes().vec();
    sizes.insert(sizes.begin() + 2, widest_);
    const at::Tensor all = of_groups.unsqueeze(2).expand(sizes).flatten(1, 2);
    return positions_.defined() ? all.index_select(1, positions_) : all;
  }

  /// The moments of this worker's part of each group, from the moments of elements.
  moments joined(const moments& elements) const {
    if (sent_ == 1) return {at::zeros({}, elements.squares.options()), summed(elements.squares)};
    const at::Tensor mean = summed(elements.mean) / here_;
    return {mean, summed(elements.squares + at::square(elements.mean - spread(mean)))};
  }
  /// The numbers that a part of each group sends.
  at::Tensor sent(const moments& part) const {
    return sent_ == 2 ? at::stack({part.squares, part.mean}) : part.squares.unsqueeze(0);
  }
  /// The numbers of all workers in place of those that this worker sent.
  at::Tensor exchanged(const at::Tensor& parts, std::size_t i = 0) const {
    return change_layout(team_, exchanges_[i].from, exchanges_[i].to,
                         silent_[i].empty() ? parts : empty_result(silent_[i], {parts}));
  }
  /// Those of all workers' elements, of what this worker's are and of what all sent.
  moments whole(const moments& part, const at::Tensor& sent_by_all) const {
    if (!cut_) return {part.mean, part.squares / all()};
    if (!counts_.defined()) return {part.mean, part.squares + sent_by_all.sum()};  // it has no part in them
    const at::Tensor parts = sent_by_all.unflatten(0, {-1, sent_});
    if (sent_ == 1) return {part.mean, parts.select(1, 0).sum(0) / all()};
    const at::Tensor means = parts.select(1, 1);
    const at::Tensor mean = (counts_ * means).sum(0) / all();
    return {mean, (parts.select(1, 0) + counts_ * at::square(means - mean)).sum(0) / all()};
  }
  /// The sums of what all workers have of groups, by the way back of what they sent: to each part all of them.
  at::Tensor all_sums(const at::Tensor& mine, torch::autograd::Node& back) const {
    if (counts_.defined())
      return back(
          {at::stack(std::vector<at::Tensor>(static_cast<std::size_t>(counts_.size(0)), mine)).flatten(0, 1)})[0];
    const box_vector& none = exchanges_[0].to->extents();
    back({at::zeros(at::IntArrayRef(none.begin(), none.end()), mine.options())});
    return mine;
  }
  /// Sums over what groups have here, in one order wherever they are added.
  at::Tensor summed(const at::Tensor& x) const {
    const at::Tensor sums = over_.empty() ? x : x.sum(over_, true);
    if (!of_.channels.is_set()) return sums;
    std::vector<index_t> sizes = sums.sizes().vec();
    sizes[1] = ranges_ * widest_;
    const at::Tensor all =
        positions_.defined() ? at::zeros(sizes, sums.options()).index_copy(1, positions_, sums) : sums;
    return all.unflatten(1, {ranges_, widest_}).sum(2);
  }

  /// Means over all workers' samples; of none they are NaN, as LibTorch's.
  moments averaged(const moments& m) const {
    at::Tensor parts = at::stack({m.squares.detach(), m.mean.detach()}).sum(1, true);
    if (const std::size_t last = cut_ ? 1 : 0; exchanges_.size() > last) {
      const at::Tensor all = exchanged(parts, last);
      if (silent_[last].empty()) parts = all.unflatten(0, {-1, 2}).sum(0);
    }
    parts = parts / samples();
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
  /// How kernels take a box. Where groups are channels of one element a sample, they are columns.
  row_shape shape(at::IntArrayRef box) const {
    const std::size_t inner = of_.by_channel ? 2 : box.size() - over_.size();
    const index_t columns = c10::size_from_dim_(static_cast<int>(inner), box);
    if (of_.by_channel && !of_.by_sample && columns == 1) return {box[0], box[1], true, true};
    return {c10::size_to_dim_(static_cast<int>(inner), box), columns, false, !of_.by_channel};
  }
  void find_lines(std::vector<index_t> box) {
    lines_.shape = shape(box);
    for (std::size_t d = 0; d < box.size(); ++d)
      if (of_.by_channel ? d > 1 || (d == 0 && lines_.shape.groups_along) : d >= box.size() - over_.size()) box[d] = 1;
    const at::TensorOptions options = options_of(*team_, at::kLong);
    lines_.extents = box;
    for (const index_t d : over_) lines_.extents[static_cast<std::size_t>(d)] = 1;
    if (of_.channels.is_set()) lines_.extents[1] = ranges_;
    if (of_.channels.is_set() || box != lines_.extents) {
      const at::Tensor group = spread(at::arange(c10::multiply_integers(lines_.extents), options).view(lines_.extents))
                                   .expand(box)
                                   .cpu()
                                   .contiguous();
      lines_.group.assign(group.const_data_ptr<index_t>(), group.const_data_ptr<index_t>() + group.numel());
    }
    const auto counts = [&](const at::Tensor& x) {
      const at::Tensor all = x.numel() == 1 ? x : x.expand(lines_.extents).contiguous();
      return line_groups::counts{{all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel()}};
    };
    lines_.here = counts(here_);
    for (index_t k = 0; counts_.defined() && k < counts_.size(0); ++k) lines_.parts.push_back(counts(counts_[k]));
    lines_.sent = sent_;
    lines_.all = all();
  }
  /// How these channels lie in ranges: each worker has whole ones, or some of those of any.
  void find_ranges(const intervals& channels) {
    widest_ = of_.range(whole_);
    ranges_ = ranges_whole(whole_, of_) ? size_of(channels) / widest_ : of_.channels.value();
    if (ranges_ * widest_ == size_of(channels)) return;
    std::vector<index_t> positions;
    for (const interval& i : channels)
      for (index_t c = i.lo; c < i.hi; ++c) positions.push_back(c);
    positions_ = at::tensor(positions, at::kLong).to(device_of(*team_));
  }
  /// How many elements of each group a worker has.
  at::Tensor elements_at(const coordinates& c) const {
    const cutting cuts{whole_};
    double n = 1;
    for (const index_t d : over_) n *= static_cast<double>(size_of(cuts.held(static_cast<int>(d), c)));
    if (!of_.channels.is_set()) return a_channel(at::full({1}, n, at::kDouble));
    std::vector<double> each(static_cast<std::size_t>(ranges_), 0);
    if (ranges_whole(whole_, of_)) each.assign(each.size(), n * static_cast<double>(of_.range(whole_)));
    else
      for (const interval& i : cuts.held(1, c))
        for (index_t channel = i.lo; channel < i.hi; ++channel)
          each[static_cast<std::size_t>(channel / of_.range(whole_))] += n;
    return a_channel(at::tensor(each, at::kDouble));
  }
  /// The same of each part, in their order.
  at::Tensor counts(coordinates c, index_t parts) const {
    const layout groups = groups_of(whole_, of_);
    std::vector<at::Tensor> all;
    for (index_t k = 0; k < parts; ++k) {
      index_t rest = k;
      for (int a = whole_.placements.count - 1; a >= 0; --a) {
        if (whole_.placements[a].kind != placement::cut || groups.placements[a].kind == placement::cut) continue;
        c[a] = static_cast<int>(rest % whole_.mesh.axes[a].extent);
        rest /= whole_.mesh.axes[a].extent;
      }
      all.push_back(elements_at(c));
    }
    return at::stack(all);
  }

  row_groups of_;
  index_t sent_;
  team_handle team_;
  std::vector<redistribution> exchanges_;
  layout whole_;
  bool cut_;
  std::vector<index_t> over_;
  double count_ = 1;
  index_t ranges_ = 0;
  index_t widest_ = 1;    ///< how many channels a range has
  at::Tensor positions_;  ///< of each channel here among those of all ranges, where it has not all of them
  at::Tensor here_ = at::ones({}, at::kDouble);
  at::Tensor counts_;  ///< of the parts of each group
  line_groups lines_;
  std::vector<holding> silent_;  ///< what this worker sends in each exchange, where it has nothing to
};

}  // namespace tessera::detail
