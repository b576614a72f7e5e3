#pragma once

#include <tessera/tensor/box/grain_size.hpp>
#include <tessera/tensor/change/change.hpp>

#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

namespace tessera::detail {

/// A sparse matrix that acts along one dimension of a tensor: y[…, i, …] = Σ weight · x[…, from, …] over the entries of
/// row i.
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
        t.entries_[next[static_cast<std::size_t>(entries_[k].from)]++] = {static_cast<std::int32_t>(i),
                                                                          entries_[k].weight};
    return t;
  }

  /// f(row, which of its entries, from, weight) of all entries, row by row.
  template <class F>
  void each_entry(const F& f) const {
    std::size_t k = 0;
    for (index_t i = 0; i < rows(); ++i)
      for (const std::size_t first = k; k < ends_[static_cast<std::size_t>(i) + 1]; ++k)
        f(i, k - first, index_t{entries_[k].from}, entries_[k].weight);
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
        if (first && w == 1) std::copy(row, row + inner, y);
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

/// The product, without a record for backward: of all other indices one after the other, so that what lies between
/// stays in the cache.
template <class Real>
at::Tensor product_along(const matrices<Real>& along, const at::Tensor& given) {
  const at::Tensor x = given.contiguous();
  std::vector<index_t> sizes = x.sizes().vec();
  const std::size_t first = sizes.size() - along.size();
  const index_t outer = c10::multiply_integers(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(first));
  for (std::size_t i = 0; i < along.size(); ++i) sizes[first + i] = along[i].rows();
  const at::Tensor y = at::empty(sizes, x.options());
  if (x.numel() == 0 || y.numel() == 0) return y.zero_();
  const index_t reads = x.numel() / outer, writes = y.numel() / outer;
  at::parallel_for(0, outer, 1 + tessera::detail::grain_size / (1 + writes), [&](index_t begin, index_t end) {
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

/// A sparse matrix for tensors that lie anywhere, by LibTorch's functions: of all rows the first entries, then the
/// second ones, and so on.
class row_taps {
 public:
  template <class Real>
  row_taps(const weighted_rows<Real>& of, c10::Device device) : rows_(of.rows()) {
    struct list {
      std::vector<index_t> rows, from;
      std::vector<Real> weights;
    };
    std::vector<list> lists;
    of.each_entry([&](index_t row, std::size_t nth, index_t from, Real weight) {
      if (nth == lists.size()) lists.emplace_back();
      lists[nth].rows.push_back(row);
      lists[nth].from.push_back(from);
      lists[nth].weights.push_back(weight);
    });
    const auto there = [&](const auto& numbers) { return at::tensor(numbers).to(device); };
    for (const list& l : lists)
      taps_.push_back({static_cast<index_t>(l.rows.size()) == rows_ ? at::Tensor() : there(l.rows), there(l.from),
                       there(l.weights)});
  }

  /// The product along a dimension. No element is written twice by one function, so its terms have one order.
  at::Tensor apply(const at::Tensor& x, index_t dimension) const {
    std::vector<index_t> sizes = x.sizes().vec(), along(sizes.size(), 1);
    sizes[static_cast<std::size_t>(dimension)] = rows_;
    along[static_cast<std::size_t>(dimension)] = -1;
    at::Tensor y = at::zeros(sizes, x.options());
    for (const tap& t : taps_) {
      const at::Tensor terms = x.index_select(dimension, t.from).mul_(t.weights.view(along));
      if (t.rows.defined()) y.index_add_(dimension, t.rows, terms);
      else y.add_(terms);
    }
    return y;
  }

 private:
  struct tap {
    at::Tensor rows;  ///< undefined if all have one
    at::Tensor from;
    at::Tensor weights;
  };
  index_t rows_;
  std::vector<tap> taps_;
};

/// Matrices and their transposes, made ready for the device where tensors lie.
template <class Real>
class combining {
 public:
  combining(matrices<Real> along, c10::Device device) : there_(std::move(along)) {
    for (const weighted_rows<Real>& one : there_) back_.push_back(one.transposed());
    if (device.is_cpu()) return;
    for (const weighted_rows<Real>& one : there_) taps_there_.emplace_back(one, device);
    for (const weighted_rows<Real>& one : back_) taps_back_.emplace_back(one, device);
  }

  /// The product with the matrices or with their transposes, without a record for backward.
  at::Tensor of(const at::Tensor& x, bool back) const {
    if (x.device().is_cpu()) return product_along(back ? back_ : there_, x);
    const std::vector<row_taps>& all = back ? taps_back_ : taps_there_;
    at::Tensor y = x;
    for (std::size_t i = all.size(); i-- > 0;) y = all[i].apply(y, x.dim() - static_cast<index_t>(all.size() - i));
    return y;
  }

 private:
  matrices<Real> there_, back_;
  std::vector<row_taps> taps_there_, taps_back_;
};

template <class Real>
at::Tensor combined(const std::shared_ptr<const combining<Real>>& by, const at::Tensor& x, bool back = false);

/// The gradient: the transposed matrices, itself differentiable.
template <class Real>
class combined_backward final : public torch::autograd::Node {
 public:
  combined_backward(std::shared_ptr<const combining<Real>> by, bool back) : by_(std::move(by)), back_(back) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    return {gradients[0].defined() ? combined(by_, gradients[0], !back_) : at::Tensor()};
  }
  std::string name() const override { return "tessera::combined"; }

 private:
  std::shared_ptr<const combining<Real>> by_;
  bool back_;
};

/// The last dimensions of x, each by its matrix, or by the transposed one.
template <class Real>
at::Tensor combined(const std::shared_ptr<const combining<Real>>& by, const at::Tensor& x, bool back) {
  if (x._fw_grad(0).defined()) throw error(refusal{code::forward_mode});
  const at::Tensor y = [&] {
    const c10::AutoGradMode no_record(false);
    return by->of(x, back);
  }();
  if (c10::GradMode::is_enabled() && x.requires_grad()) record(y, x, make_node<combined_backward<Real>>(by, back));
  return y;
}

}  // namespace tessera::detail
