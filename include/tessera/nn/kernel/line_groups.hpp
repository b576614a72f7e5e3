#pragma once

#include <tessera/nn/kernel/row_loops.hpp>
#include <tessera/tensor/box/padded_box.hpp>

#include <c10/util/accumulate.h>

#include <cmath>

namespace tessera::detail {

/// Means of groups and squared distances from them, with a dimension of one element for each that a group has. Of a
/// part `squares` is their sum, of the whole their mean.
struct moments {
  at::Tensor mean;
  at::Tensor squares;
};

/// The map of normalised elements, a number for each row or column: (x − origin) · scale + shift. A mean that is much
/// larger than deviations has more digits than an element: the origin has the first ones, the shift the others.
struct standard {
  at::Tensor origin;
  at::Tensor scale;
  at::Tensor shift;
};

/// The lines of a worker's box on the host, its rows or columns, by their groups. Numbers of lines are summed from the
/// first line to the last; numbers of groups are handed to lines. Functions of LibTorch would take a microsecond each,
/// for a box of any size.
struct line_groups {
  /// A number for each group, or one that all have.
  struct counts {
    std::vector<double> all_or_one;
    double of(std::size_t g) const { return all_or_one[all_or_one.size() == 1 ? 0 : g]; }
  };

  row_shape shape;
  std::vector<index_t> group;    ///< of each line; empty where each is one
  std::vector<index_t> extents;  ///< of a number for each group
  counts here{{1}};              ///< elements of a group on this worker, 1 where it has none
  std::vector<counts> parts;     ///< elements of a group in each part; none where groups are not cut
  /// numbers that a part sends of each group: the sum of squares from its mean, and that mean
  index_t sent = 1;
  double all = 1;  ///< elements of a group on all workers

  std::size_t lines() const { return static_cast<std::size_t>(shape.numbers()); }
  std::size_t groups() const { return static_cast<std::size_t>(c10::multiply_integers(extents)); }

  /// So many numbers for each group.
  at::Tensor numbers(index_t each) const {
    std::vector<index_t> sizes{each};
    sizes.insert(sizes.end(), extents.begin(), extents.end());
    return empty_box(sizes, at::kDouble);
  }

  /// The numbers that this worker sends, from the means of lines and the squares about them.
  at::Tensor part(const at::Tensor& of_lines) const {
    const double per_line = shape.elements_of_a_line();
    const double* const means = of_lines.const_data_ptr<double>();
    const double* const squares = means + lines();
    const at::Tensor made = numbers(sent);
    double* const sum = made.mutable_data_ptr<double>();
    std::fill_n(sum, made.numel(), 0.0);
    const std::size_t n = groups();
    double* const mean = sum + n;
    for (std::size_t i = 0; i < lines() && sent == 2; ++i) mean[at(i)] += means[i];
    for (std::size_t g = 0; g < n && sent == 2; ++g) mean[g] = mean[g] * per_line / here.of(g);
    for (std::size_t i = 0; i < lines(); ++i) {
      const double away = sent == 2 ? means[i] - mean[at(i)] : 0;
      sum[at(i)] += squares[i] + per_line * away * away;
    }
    return made;
  }

  /// The moments of all workers' elements, of what all parts sent; zeros where this worker has none of it.
  moments whole(const at::Tensor& sent_by_all) const {
    const moments m{empty_box(extents, at::kDouble), empty_box(extents, at::kDouble)};
    double* const mean = m.mean.mutable_data_ptr<double>();
    double* const squares = m.squares.mutable_data_ptr<double>();
    const at::Tensor numbers = sent_by_all.contiguous();
    const double* const known = numbers.numel() == 0 ? nullptr : numbers.const_data_ptr<double>();
    const std::size_t n = groups(), each = static_cast<std::size_t>(sent) * n;
    for (std::size_t g = 0; g < n; ++g) {
      mean[g] = squares[g] = 0;
      if (known == nullptr) continue;
      if (parts.empty()) {
        squares[g] = known[g] / all;
        if (sent == 2) mean[g] = known[n + g];
        continue;
      }
      for (std::size_t k = 0; k < parts.size() && sent == 2; ++k) mean[g] += parts[k].of(g) * known[k * each + n + g];
      mean[g] /= all;
      for (std::size_t k = 0; k < parts.size(); ++k) {
        const double* const part = known + k * each + g;
        const double away = sent == 2 ? part[n] - mean[g] : 0;
        squares[g] += part[0] + parts[k].of(g) * away * away;
      }
      squares[g] /= all;
    }
    return m;
  }

  /// 1 / √(squares + eps).
  at::Tensor scale(const at::Tensor& squares, double eps) const {
    const at::Tensor made = empty_box(extents, at::kDouble);
    const double* const from = squares.const_data_ptr<double>();
    std::transform(from, from + groups(), made.mutable_data_ptr<double>(),
                   [&](double s) { return 1 / std::sqrt(s + eps); });
    return made;
  }

  template <class Real>
  standard standardising(const at::Tensor& mean, const at::Tensor& scale) const {
    const standard by{of_lines<Real>(), of_lines<Real>(), of_lines<Real>()};
    const double* const means = mean.const_data_ptr<double>();
    const double* const scales = scale.const_data_ptr<double>();
    Real* const to[]{by.origin.mutable_data_ptr<Real>(), by.scale.mutable_data_ptr<Real>(),
                     by.shift.mutable_data_ptr<Real>()};
    for (std::size_t i = 0; i < lines(); ++i) {
      const double m = means[at(i)], s = scales[at(i)];
      to[0][i] = static_cast<Real>(m);
      to[1][i] = static_cast<Real>(s);
      to[2][i] = static_cast<Real>((static_cast<double>(to[0][i]) - m) * s);
    }
    return by;
  }

  /// The sums over groups of what lines have, by a weight for each line where there is one, added to `sums`.
  template <class Real>
  void add_up(const double* of_lines, const Real* weights, double* sums) const {
    for (std::size_t i = 0; i < lines(); ++i)
      sums[at(i)] += weights == nullptr ? of_lines[i] : of_lines[i] * static_cast<double>(weights[i]);
  }

  /// For each line what its group has, times `by` of the group.
  template <class Real>
  at::Tensor handed_out(const double* numbers, const double* by) const {
    const at::Tensor made = of_lines<Real>();
    Real* const to = made.mutable_data_ptr<Real>();
    for (std::size_t i = 0; i < lines(); ++i) to[i] = static_cast<Real>(numbers[at(i)] * by[at(i)]);
    return made;
  }

  /// Room for a number for each line.
  template <class Real>
  at::Tensor of_lines() const {
    return empty_box({shape.numbers()}, c10::CppTypeToScalarType<Real>::value);
  }

 private:
  std::size_t at(std::size_t line) const { return group.empty() ? line : static_cast<std::size_t>(group[line]); }
};

}  // namespace tessera::detail
