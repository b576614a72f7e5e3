#pragma once

#include <tessera/nn/kernel/line_groups.hpp>

#include <ATen/Parallel.h>
#include <tessera/tensor/box/aten.hpp>
#include <tessera/tensor/box/grain_size.hpp>

namespace tessera::detail {

/// The work of a normalisation on a box of contiguous elements, each in one pass over memory.
template <class Real>
class normalised_rows {
 public:
  explicit normalised_rows(const row_shape& shape) : shape_(shape) {}

  /// The mean of each row or column and, behind the means, the squared distances from it; without centring, the sum and
  /// the squares. Distances from the first element are summed in double. That element is among the squared ones, so no
  /// more than the digits of their count is lost.
  at::Tensor moments(const at::Tensor& of, bool centred) const {
    row_operands<Real> operands{.shape = shape_, .x = data(of)};
    std::vector<Real> origins(static_cast<std::size_t>(shape_.numbers()));
    for (std::size_t i = 0; i < origins.size() && centred && of.numel() > 0; ++i)
      origins[i] = operands.x[shape_.groups_along ? i : i * static_cast<std::size_t>(shape_.columns)];
    operands.origin = origins.data();
    const at::Tensor all =
        sums(loops_.moments, operands, !shape_.groups_along, shape_.groups_along)[shape_.groups_along];
    if (!centred || of.numel() == 0) return all;
    double* const means = all.mutable_data_ptr<double>();
    double* const squares = means + origins.size();
    for (std::size_t i = 0; i < origins.size(); ++i) {
      const double mean = means[i] / shape_.elements_of_a_line();
      squares[i] -= means[i] * mean;
      means[i] = static_cast<double>(origins[i]) + mean;
    }
    return all;
  }

  /// The result: standardised elements by weight and bias, which may be undefined.
  at::Tensor result(const at::Tensor& of, const standard& by, const at::Tensor& weight, const at::Tensor& bias) const {
    row_operands<Real> operands = standardised(of, by, weight);
    operands.bias = data(bias);
    return elements(loops_.result, operands, of);
  }

  /// The sums over each row and each column of the gradient, and of its products with the standardised elements: {of
  /// rows, of columns}. Only those that groups and parameters need are made; sums of products stand behind those of the
  /// gradient. Where groups are rows and parameters columns, the gradient is multiplied by the weight for rows.
  std::array<at::Tensor, 2> products(const at::Tensor& of, const at::Tensor& gradient, const standard& by,
                                     const at::Tensor& weight) const {
    row_operands<Real> operands = standardised(of, by, weight);
    operands.gradient = data(gradient);
    return sums(loops_.products, operands, !shape_.groups_along, shape_.parameters_along);
  }

  /// The gradient of x: gradient · weight · scale + standardised · slope + offset.
  at::Tensor gradient(const at::Tensor& of, const at::Tensor& result, const standard& by, const at::Tensor& weight,
                      const at::Tensor& slope, const at::Tensor& offset) const {
    row_operands<Real> operands = standardised(of, by, weight);
    operands.gradient = data(result);
    operands.slope = data(slope);
    operands.offset = data(offset);
    return elements(loops_.gradient, operands, of);
  }

 private:
  static const Real* data(const at::Tensor& x) { return x.defined() ? x.const_data_ptr<Real>() : nullptr; }

  row_operands<Real> standardised(const at::Tensor& of, const standard& by, const at::Tensor& weight) const {
    return {.shape = shape_,
            .x = data(of),
            .origin = data(by.origin),
            .scale = data(by.scale),
            .shift = data(by.shift),
            .weight = data(weight)};
  }
  at::Tensor elements(typename row_loops<Real>::elements loop, const row_operands<Real>& operands,
                      const at::Tensor& like) const {
    const at::Tensor made = at::empty_like(like);
    Real* const to = made.mutable_data_ptr<Real>();
    at::parallel_for(0, shape_.rows, 1 + tessera::detail::grain_size / (1 + shape_.columns),
                     [&](index_t begin, index_t end) { loop(operands, begin, end, to); });
    return made;
  }
  /// Sums of rows and of columns. Rows are shared out, and each share has its own sums of columns, which are added in
  /// order.
  std::array<at::Tensor, 2> sums(typename row_loops<Real>::sums loop, const row_operands<Real>& operands, bool of_rows,
                                 bool of_columns) const {
    const index_t shares =
        std::clamp<index_t>(shape_.elements() / tessera::detail::grain_size, 1, at::get_num_threads());
    const at::Tensor rows = zeros(2, of_rows ? shape_.rows : 0),
                     columns = zeros(2 * shares, of_columns ? shape_.columns : 0);
    double* const to_rows = rows.mutable_data_ptr<double>();
    double* const to_columns = columns.mutable_data_ptr<double>();
    const index_t two = 2 * columns.size(1);
    at::parallel_for(0, shape_.elements() > 0 ? shares : 0, 1, [&](index_t first, index_t last) {
      for (index_t share = first; share < last; ++share)
        loop(operands, shape_.rows * share / shares, shape_.rows * (share + 1) / shares, to_rows,
             of_columns ? to_columns + share * two : nullptr);
    });
    for (index_t share = 1; share < shares; ++share)
      for (index_t i = 0; i < two; ++i) to_columns[i] += to_columns[share * two + i];
    return {rows, columns};
  }
  static at::Tensor zeros(index_t lines, index_t n) {
    const at::Tensor made = empty_box({lines, n}, at::kDouble);
    std::fill_n(made.mutable_data_ptr<double>(), lines * n, 0.0);
    return made;
  }

  row_shape shape_;
  const row_loops<Real>& loops_ = loops_here<Real>();
};

}  // namespace tessera::detail
