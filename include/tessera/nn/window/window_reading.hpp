#pragma once

#include <tessera/operation/rule/local_boxes.hpp>
#include <tessera/operation/window/padding_plan.hpp>
#include <tessera/operation/window/transposed_crop.hpp>
#include <tessera/tensor/autograd/empty_result.hpp>
#include <tessera/tensor/tensor.hpp>

namespace tessera::detail {

/// The positions that one worker's outputs read along a dimension, beyond the edge too: one stretch, which continues
/// around the end where outputs do.
inline interval stretch(const intervals& outputs, const window& w) {
  const index_t lo = outputs[0].lo;
  return {w.first(lo), w.last(lo + size_of(outputs) - 1) + 1};
}

/// Where each position of a stretch lies in memory: positions beyond the edge of n elements read what the boundary
/// says.
inline std::vector<index_t> positions(const interval& read, const intervals& held, boundary edge, index_t n) {
  std::vector<index_t> all;
  for (index_t i = read.lo; i < read.hi; ++i) {
    index_t e = i;
    if (edge == boundary::periodic) e = modulo(i, n);
    if (edge == boundary::replicate) e = clamped(i, 0, n - 1);
    if (edge == boundary::reflect) e = i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    all.push_back(position(held, e));
  }
  return all;
}

/// The options of kernels as LibTorch takes them.
struct kernel_lists {
  std::vector<index_t> kernel, step, dilation, zero;
  std::vector<index_t> padding;  ///< what the operation does itself
  explicit kernel_lists(const static_vector<sliding, 8>& kernels) {
    for (const sliding& s : kernels) {
      kernel.push_back(s.kernel);
      step.push_back(s.stride);
      dilation.push_back(s.dilation);
      zero.push_back(0);
      padding.push_back(0);
    }
  }
};

/// The same of kernels over pictures: one over lines is one over pictures of one row.
struct picture_lists : kernel_lists {
  explicit picture_lists(const static_vector<sliding, 8>& kernels) : kernel_lists(kernels), lines_(kernels.count == 1) {
    for (auto* all : {&kernel, &step, &dilation})
      if (lines_) all->insert(all->begin(), 1);
    zero.resize(2, 0);
  }
  at::Tensor of(const at::Tensor& x) const { return lines_ ? x.unsqueeze(2) : x; }

 private:
  bool lines_;
};

/// A worker's reading under kernels that slide over the last dimensions of a layout: its padded box, restricted to
/// exactly the positions that are read.
class window_reading {
 public:
  window_reading(const layout& of, const team_state& team, const holding& outputs, int first,
                 const static_vector<sliding, 8>& kernels, const at::Scalar& outside, builtin_padding by)
      : around_{{}, {}, outside}, lists_(kernels) {
    const int rank = team.rank();
    const holding mine = held_by(of, rank);
    around_.before.resize(of.dims.count);
    around_.behind.resize(of.dims.count);
    for (const holding* all : {&mine, &outputs})
      if (std::any_of(all->begin(), all->end(), [](const intervals& i) { return size_of(i) == 0; })) return;
    for (int i = 0; i < kernels.count; ++i) {
      const int d = first + i;
      if (kernels[i].edge != boundary::zero) {
        gather(d, positions(stretch(outputs[d], kernels[i].needs()), mine[d], kernels[i].edge, of.dims[d].extent),
               device_of(team));
        continue;
      }
      const padding_plan f =
          padding_plan_of(kernels[i], mine[d][0], {outputs[d][0].lo, outputs[d][0].lo + size_of(outputs[d])}, by);
      around_.before[d] = f.before;
      around_.behind[d] = f.behind;
      lists_.padding[static_cast<std::size_t>(i)] = f.padded;
      if (f.trims(mine[d][0].size())) parts_.push_back({d, f.read.lo, f.read.size(), {}});
    }
  }

  const padded_box& around() const { return around_; }
  const kernel_lists& lists() const { return lists_; }
  /// Whether all of the padded box is read.
  bool reads_all() const { return parts_.empty(); }

  /// Of a padded box the positions that are read.
  at::Tensor trimmed(at::Tensor x) const {
    for (const part& p : parts_)
      x = p.positions.defined() ? x.index_select(p.dimension, p.positions) : narrowed(x, p.dimension, p.begin, p.size);
    return x;
  }

 private:
  /// The positions read along a dimension, where these are not all: a range, or a list of places.
  struct part {
    int dimension;
    index_t begin, size;
    at::Tensor positions;
  };

  void gather(int d, const std::vector<index_t>& at, c10::Device device) {
    bool in_order = true;
    for (std::size_t k = 1; k < at.size(); ++k) in_order = in_order && at[k] == at[k - 1] + 1;
    parts_.push_back(
        {d, at[0], static_cast<index_t>(at.size()), in_order ? at::Tensor() : at::tensor(at, at::kLong).to(device)});
  }

  padded_box around_;
  kernel_lists lists_;
  std::vector<part> parts_;
};

/// How a worker's inputs give its outputs under transposed kernels that slide over the last dimensions of a result.
class window_giving {
 public:
  window_giving(const holding& given, const holding& outputs, int first, const static_vector<sliding, 8>& kernels)
      : lists_(kernels) {
    around_.before.resize(given.count);
    around_.behind.resize(given.count);
    for (int i = 0; i < kernels.count; ++i) {
      const int d = first + i;
      const interval& wanted = outputs[d][0];
      const transposed_crop c = transposed_crop_of(kernels[i], given[d][0], wanted);
      cut_.push_back(c.cut);
      further_.push_back(c.further);
      const interval taken = overlap(c.made, wanted);
      if (!(taken == c.made)) parts_.push_back({d, taken.empty() ? 0 : taken.lo - c.made.lo, taken.size()});
      around_.before[d] = taken.empty() ? wanted.size() : taken.lo - wanted.lo;
      around_.behind[d] = taken.empty() ? 0 : wanted.hi - taken.hi;
    }
  }

  const kernel_lists& lists() const { return lists_; }
  const std::vector<index_t>& cut() const { return cut_; }
  const std::vector<index_t>& further() const { return further_; }
  /// Whether the operation should add the bias itself. Zeros that are filled in would lack it; with padding at the far
  /// end alone, LibTorch would take a slow path.
  bool takes_bias() const {
    return complete() && std::all_of(further_.begin(), further_.end(), [](index_t n) { return n == 0; });
  }
  /// Whether inputs give all outputs.
  bool complete() const { return around_.empty(); }

  /// The results of the inputs, cropped to the outputs that are wanted.
  at::Tensor placed(at::Tensor y) const {
    for (const part& p : parts_) y = narrowed(y, p.dimension, p.begin, p.size);
    return complete() ? y : around_.around(y);
  }

 private:
  struct part {
    int dimension;
    index_t begin, size;
  };

  padded_box around_;
  kernel_lists lists_;
  std::vector<index_t> cut_, further_;
  std::vector<part> parts_;
};

/// The element in which products of boxes are added, to be rounded once: a device's kernels add those of half types in
/// float themselves.
inline at::ScalarType multiplied_in(const at::Tensor& x) {
  return x.device().is_cpu() ? added_in(x.scalar_type()) : x.scalar_type();
}

/// The same of a convolution. On the host it is float where oneDNN adds them one by one. Else it is double: LibTorch's
/// other float kernel is Winograd's, whose errors a half type shows.
inline at::ScalarType convolved_in(const at::Tensor& x) {
  const at::ScalarType e = x.scalar_type();
  if (!at::isReducedFloatingType(e) || !x.device().is_cpu()) return e;
  return at::hasMKLDNN() && at::globalContext().userEnabledMkldnn() ? at::kFloat : at::kDouble;
}

}  // namespace tessera::detail
