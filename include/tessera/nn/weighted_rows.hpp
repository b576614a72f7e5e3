#pragma once

#include <tessera/tensor/change.hpp>

#include <ATen/Parallel.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tessera::detail {

/// A sparse matrix that acts along one dimension of a tensor: y[…, i, …] = Σ weight · x[…, from, …] over the entries of row i.
template <class Real>
class weighted_rows {
 public:
  explicit weighted_rows(index_t columns) : columns_(columns) {}

  index_t rows() const { return static_cast<index_t>(ends_.size()) - 1; }
  index_t columns() const { return columns_; }

  /// Adds an entry to the row that is not ended, and ends it.
  void add(index_t from, Real weight) { entries_.push_back({static_cast<std::int32_t>(from), weight}); }
  void end_row() { ends_.push_back(entries_.size()); }

  weighted_rows transposed() const {
    weighted_rows t(rows());
    t.ends_.assign(static_cast<std::size_t>(columns_) + 1, 0);
    for (const entry& e : entries_) ++t.ends_[static_cast<std::size_t>(e.from) + 1];
    std::partial_sum(t.ends_.begin(), t.ends_.end(), t.ends_.begin());
    t.entries_.resize(entries_.size());
    std::vector<std::size_t> next = t.ends_;
    std::size_t k = 0;
    for (index_t i = 0; i < rows(); ++i)
      for (; k < ends_[static_cast<std::size_t>(i) + 1]; ++k)
        t.entries_[next[static_cast<std::size_t>(entries_[k].from)]++] = {static_cast<std::int32_t>(i), entries_[k].weight};
    return t;
  }

  /// Writes the product with x[outer, columns, inner].
  void apply(const Real* x, Real* y, index_t outer, index_t inner) const {
    const std::size_t each = width();
    for (index_t o = 0; o < outer; ++o, x += columns_ * inner, y += rows() * inner) {
      if (inner > 1) of_rows(x, y, inner);
      else if (each == 1) of_numbers<1>(x, y);
      else if (each == 2) of_numbers<2>(x, y);
      else if (each == 4) of_numbers<4>(x, y);
      else of_numbers<0>(x, y);
    }
  }

 private:
  struct entry {
    std::int32_t from;
    Real weight;
  };

  /// How many entries each row has; 0 where they differ.
  std::size_t width() const {
    const std::size_t first = rows() > 0 ? ends_[1] : 0;
    for (std::size_t i = 1; i < ends_.size(); ++i)
      if (ends_[i] != i * first) return 0;
    return first;
  }
  template <int Count>
  void of_numbers(const Real* x, Real* y) const {
    const entry* e = entries_.data();
    const entry* const all = e;
    for (std::size_t i = 1; i < ends_.size(); ++i, ++y) {
      const entry* const end = Count > 0 ? e + Count : all + ends_[i];
      Real sum = Count == 0 && e == end ? 0 : e->weight * x[e->from];
      for (e += e != end; e != end; ++e) sum += e->weight * x[e->from];
      *y = sum;
    }
  }
  void of_rows(const Real* x, Real* y, index_t inner) const {
    const entry* e = entries_.data();
    const entry* const all = e;
    for (std::size_t i = 1; i < ends_.size(); ++i, y += inner) {
      const entry* const end = all + ends_[i];
      if (e == end) std::fill(y, y + inner, Real{0});
      for (bool first = true; e != end; ++e, first = false) {
        const Real* const row = x + e->from * inner;
        const Real w = e->weight;
        if (first && w == 1)
          std::copy(row, row + inner, y);
        else if (first)
          for (index_t j = 0; j < inner; ++j) y[j] = w * row[j];
        else
          for (index_t j = 0; j < inner; ++j) y[j] += w * row[j];
      }
    }
  }

  index_t columns_;
  std::vector<std::size_t> ends_{0};
  std::vector<entry> entries_;
};

/// A matrix for each of the last dimensions, applied one after the other.
template <class Real>
using matrices = std::vector<weighted_rows<Real>>;

/// The product, without a record for backward: of all other indices one after the other, so that what lies between stays in the cache.
template <class Real>
at::Tensor product(const matrices<Real>& along, const at::Tensor& given) {
  const at::Tensor x = given.contiguous();
  std::vector<index_t> sizes = x.sizes().vec();
  const std::size_t first = sizes.size() - along.size();
  const index_t outer = c10::multiply_integers(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(first));
  for (std::size_t i = 0; i < along.size(); ++i) sizes[first + i] = along[i].rows();
  const at::Tensor y = at::empty(sizes, x.options());
  if (x.numel() == 0 || y.numel() == 0) return y.zero_();
  const index_t reads = x.numel() / outer, writes = y.numel() / outer;
  at::parallel_for(0, outer, 1 + at::internal::GRAIN_SIZE / (1 + writes), [&](index_t begin, index_t end) {
    std::vector<Real> between[2];
    for (index_t o = begin; o < end; ++o) {
      const Real* from = x.const_data_ptr<Real>() + o * reads;
      index_t before = reads, behind = 1;
      for (std::size_t i = along.size(); i-- > 0;) {
        before /= along[i].columns();
        Real* to = y.mutable_data_ptr<Real>() + o * writes;
        if (i > 0) {
          between[i % 2].resize(static_cast<std::size_t>(before * along[i].rows() * behind));
          to = between[i % 2].data();
        }
        along[i].apply(from, to, before, behind);
        behind *= along[i].rows();
        from = to;
      }
    }
  });
  return y;
}

template <class Real>
at::Tensor combined(matrices<Real> along, const at::Tensor& x);

/// The gradient: the transposed matrices, itself differentiable.
template <class Real>
class combined_backward final : public torch::autograd::Node {
 public:
  explicit combined_backward(matrices<Real> along) : along_(std::move(along)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    if (!gradients[0].defined()) return {at::Tensor()};
    matrices<Real> back;
    for (const weighted_rows<Real>& one : along_) back.push_back(one.transposed());
    return {combined(std::move(back), gradients[0])};
  }
  std::string name() const override { return "tessera::combined"; }

 private:
  matrices<Real> along_;
};

/// The last dimensions of x, each by its matrix.
template <class Real>
at::Tensor combined(matrices<Real> along, const at::Tensor& x) {
  if (x._fw_grad(0).defined()) throw error(refusal{code::forward_mode});
  const at::Tensor y = product(along, x);
  if (c10::GradMode::is_enabled() && x.requires_grad()) record(y, x, make_node<combined_backward<Real>>(std::move(along)));
  return y;
}

}  // namespace tessera::detail
