#pragma once

#include <tessera/meta/integer.hpp>
#include <tessera/tensor/element_type.hpp>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera::detail {

/// A box as rows of neighbours in memory. Its groups have a number for each row, or for each column; so have its parameters, by the same or by columns.
struct row_form {
  index_t rows = 0;
  index_t columns = 0;
  bool groups_along = false;      ///< a number for each column
  bool parameters_along = false;

  index_t numbers() const { return groups_along ? columns : rows; }
  double elements_of_a_line() const { return static_cast<double>(groups_along ? rows : columns); }
};

/// What normalised elements are made by, a number for each row or column: (x − origin) · scale + shift. A mean that is much larger than deviations has
/// more digits than an element: the origin has the first ones, the shift the others.
struct standard {
  at::Tensor origin;
  at::Tensor scale;
  at::Tensor shift;
};

/// So many neighbours as one instruction takes on any machine.
template <class Real>
struct lanes_of {
  typedef Real type __attribute__((vector_size(16)));
};
template <class Real>
using lanes = typename lanes_of<Real>::type;
template <class Real>
inline constexpr index_t lane_count = 16 / static_cast<index_t>(sizeof(Real));

/// A number that all elements of a row have.
template <class Real>
struct same_number {
  Real value;
};
template <bool Along, class Real>
auto in_row(const Real* numbers, index_t row, Real none) {
  if constexpr (Along) return numbers;
  else return same_number<Real>{numbers == nullptr ? none : numbers[row]};
}

/// Elements from the i-th on, as V, which may be lanes of wider numbers than they are.
template <class V, class Real>
V read(const Real* at, index_t i) {
  if constexpr (std::is_arithmetic_v<V>) {
    return static_cast<V>(at[i]);
  } else {
    typedef Real stored __attribute__((vector_size(sizeof(V) / sizeof(V{}[0]) * sizeof(Real))));
    stored v;
    std::memcpy(&v, at + i, sizeof v);
    return __builtin_convertvector(v, V);
  }
}
template <class V, class Real>
V read(same_number<Real> x, index_t) {
  return x.value - V{};
}
template <class V, class Real>
void write(Real* at, index_t i, V v) {
  std::memcpy(at + i, &v, sizeof v);
}

inline constexpr index_t lanes_at_once = 4;

/// Calls of(zero, i, k) for the elements i of a row: zero is of the type of lanes, the k-th of several that take turns, or of what is left at the end.
template <class Real, class Of>
void each_lanes(index_t begin, index_t end, const Of& of) {
  index_t i = begin;
  for (; i + lanes_at_once * lane_count<Real> <= end; i += lanes_at_once * lane_count<Real>)
    for (index_t k = 0; k < lanes_at_once; ++k) of(lanes<Real>{}, i + k * lane_count<Real>, k);
  for (; i < end; ++i) of(Real{}, i, index_t{0});
}

// How many terms are added in their own type before their sum goes to the others in double.
inline constexpr index_t terms_at_once = 16;

/// Adds what `terms` gives of each element of a row: two terms to those of columns, and the same by its third number to `all`.
template <bool OfRows, bool OfColumns, class Real, class Terms>
void add_row(index_t n, const Terms& terms, double (&all)[2], Real* columns) {
  constexpr index_t piece = terms_at_once * lanes_at_once * lane_count<Real>;
  for (index_t first = 0; first < n; first += piece) {
    lanes<Real> sums[2][lanes_at_once]{};
    each_lanes<Real>(first, std::min(n, first + piece), [&](auto zero, index_t i, index_t k) {
      using V = decltype(zero);
      const auto [a, b, by] = terms(zero, i);
      if constexpr (OfColumns) {
        write(columns, i, read<V>(columns, i) + a);
        write(columns, n + i, read<V>(columns, n + i) + b);
      }
      if constexpr (OfRows && std::is_same_v<V, Real>) {
        all[0] += a * by;
        all[1] += b * by;
      } else if constexpr (OfRows) {
        sums[0][k] += a * by;
        sums[1][k] += b * by;
      }
    });
    for (int t = 0; t < 2 && OfRows; ++t) {
      const lanes<Real> of_piece = (sums[t][0] + sums[t][1]) + (sums[t][2] + sums[t][3]);
      for (index_t l = 0; l < lane_count<Real>; ++l) all[t] += of_piece[l];
    }
  }
}

/// What a normalisation does with a box of contiguous elements, each in one pass over memory.
template <class Real>
class normalised_rows {
 public:
  explicit normalised_rows(const row_form& form) : form_(form) {}

  /// The mean of each row or column and the squares from it; where they are not centred, the sum and the squares. Distances from the first element are
  /// added up, in double: that element is among those which are squared, so no more than the digits of their count is lost.
  at::Tensor moments(const at::Tensor& of, bool centred) const {
    const Real* const x = data(tessera::detail::on_host(of));
    std::vector<double> origins(static_cast<std::size_t>(form_.numbers()));
    for (std::size_t i = 0; i < origins.size() && centred && of.numel() > 0; ++i) origins[i] = static_cast<double>(x[form_.groups_along ? i : i * static_cast<std::size_t>(form_.columns)]);
    const at::Tensor all = with_form([&](auto groups, auto) {
      return sums<!decltype(groups)::value, decltype(groups)::value, double>([&](index_t r) {
        return [row = row_of(x, r), origin = in_row<decltype(groups)::value>(origins.data(), r, 0.0)](auto zero, index_t i) {
          using V = decltype(zero);
          const V d = read<V>(row, i) - read<V>(origin, i);
          return std::array<V, 3>{d, d * d, 1.0 - V{}};
        };
      })[decltype(groups)::value];
    });
    if (!centred || of.numel() == 0) return all;
    const at::Tensor means = all[0] / form_.elements_of_a_line();
    all[1] -= all[0] * means;
    all[0] = means + at::from_blob(origins.data(), means.sizes(), all.options());
    return all;
  }

  /// The result: standardised elements by weight and bias, which may be undefined.
  at::Tensor result(const at::Tensor& of, const standard& by, const at::Tensor& weight, const at::Tensor& bias) const {
    const at::Tensor y = at::empty_like(of);
    const Real* const x = data(tessera::detail::on_host(of));
    Real* const to = y.mutable_data_ptr<Real>();
    with_form([&](auto groups, auto parameters) {
      each_row([&](index_t r) {
        const auto standardised = in<decltype(groups)::value>(by, x, r);
        const auto w = in_row<decltype(parameters)::value>(data(weight), r, Real{1});
        const auto b = in_row<decltype(parameters)::value>(data(bias), r, Real{0});
        each_lanes<Real>(0, form_.columns, [=, row = to + r * form_.columns](auto zero, index_t i, index_t) {
          using V = decltype(zero);
          write(row, i, standardised(zero, i) * read<V>(w, i) + read<V>(b, i));
        });
      });
    });
    return y;
  }

  /// The sums over each row and over each column of the result's gradient and of its products with what was standardised, as far as groups and parameters
  /// need them: {of rows, of columns}. Where groups are rows and parameters columns, the gradient is multiplied by the weight for rows.
  std::array<at::Tensor, 2> products(const at::Tensor& of, const at::Tensor& gradient, const standard& by, const at::Tensor& weight) const {
    const Real* const x = data(tessera::detail::on_host(of));
    const Real* const g = data(gradient);
    return with_form([&](auto groups, auto parameters) {
      constexpr bool weighted = decltype(parameters)::value && !decltype(groups)::value;
      return sums<!decltype(groups)::value, decltype(parameters)::value, Real>([&](index_t r) {
        return [standardised = in<decltype(groups)::value>(by, x, r), row = row_of(g, r), w = in_row<weighted>(weighted ? data(weight) : nullptr, 0, Real{1})](auto zero, index_t i) {
          using V = decltype(zero);
          const V d = read<V>(row, i);
          return std::array<V, 3>{d, d * standardised(zero, i), read<V>(w, i)};
        };
      });
    });
  }

  /// The gradient of x: gradient · weight · scale + standardised · slope + offset.
  at::Tensor gradient(const at::Tensor& of, const at::Tensor& result, const standard& by, const at::Tensor& weight, const at::Tensor& slope, const at::Tensor& offset) const {
    const at::Tensor dx = at::empty_like(of);
    const Real* const x = data(tessera::detail::on_host(of));
    const Real* const g = data(result);
    Real* const to = dx.mutable_data_ptr<Real>();
    with_form([&](auto groups, auto parameters) {
      each_row([&](index_t r) {
        const auto standardised = in<decltype(groups)::value>(by, x, r);
        const auto w = in_row<decltype(parameters)::value>(data(weight), r, Real{1});
        const auto number = [&](const at::Tensor& t) { return in_row<decltype(groups)::value>(data(t), r, Real{0}); };
        each_lanes<Real>(0, form_.columns, [=, from = row_of(g, r), row = to + r * form_.columns, scale = number(by.scale), a = number(slope), b = number(offset)](auto zero, index_t i, index_t) {
          using V = decltype(zero);
          write(row, i, read<V>(from, i) * read<V>(w, i) * read<V>(scale, i) + (standardised(zero, i) * read<V>(a, i) + read<V>(b, i)));
        });
      });
    });
    return dx;
  }

 private:
  static const Real* data(const at::Tensor& x) { return x.defined() ? x.const_data_ptr<Real>() : nullptr; }
  const Real* row_of(const Real* x, index_t r) const { return x + r * form_.columns; }

  /// Which numbers are of columns, as types.
  template <class F>
  auto with_form(const F& f) const {
    using no = std::false_type;
    using yes = std::true_type;
    if (form_.groups_along) return f(yes{}, yes{});
    return form_.parameters_along ? f(no{}, yes{}) : f(no{}, no{});
  }
  /// The elements of a row from the mean, in deviations.
  template <bool Along>
  auto in(const standard& by, const Real* x, index_t r) const {
    const auto number = [&](const at::Tensor& t) { return in_row<Along>(data(t), r, Real{0}); };
    return [row = row_of(x, r), origin = number(by.origin), scale = number(by.scale), shift = number(by.shift)](auto zero, index_t i) {
      using V = decltype(zero);
      return (read<V>(row, i) - read<V>(origin, i)) * read<V>(scale, i) + read<V>(shift, i);
    };
  }
  index_t elements() const { return form_.rows * form_.columns; }
  template <class Each>
  void each_row(const Each& each) const {
    at::parallel_for(0, form_.rows, 1 + at::internal::GRAIN_SIZE / (1 + form_.columns), [&](index_t begin, index_t end) {
      for (index_t r = begin; r < end; ++r) each(r);
    });
  }
  /// Sums of rows and of columns. Rows are shared out, and each share has its own sums of columns, which are added in order.
  template <bool OfRows, bool OfColumns, class Sum, class Terms>
  std::array<at::Tensor, 2> sums(const Terms& terms) const {
    const index_t shares = std::clamp<index_t>(elements() / at::internal::GRAIN_SIZE, 1, at::get_num_threads());
    const index_t width = OfColumns ? 2 * form_.columns : 0;
    const at::Tensor of_rows = at::zeros({2, OfRows ? form_.rows : 0}, at::kDouble);
    const at::Tensor of_columns = at::zeros({shares, width}, at::kDouble);
    double* const rows = of_rows.mutable_data_ptr<double>();
    double* const columns = of_columns.mutable_data_ptr<double>();
    at::parallel_for(0, elements() > 0 ? shares : 0, 1, [&](index_t first, index_t last) {
      for (index_t share = first; share < last; ++share) {
        std::vector<Sum> added(static_cast<std::size_t>(width));
        const index_t end = form_.rows * (share + 1) / shares;
        for (index_t begin = form_.rows * share / shares; begin < end; begin += terms_at_once) {
          for (index_t r = begin; r < std::min(end, begin + terms_at_once); ++r) {
            double of_row[2]{};
            add_row<OfRows, OfColumns, Sum>(form_.columns, terms(r), of_row, added.data());
            for (int t = 0; t < 2 && OfRows; ++t) rows[t * form_.rows + r] = of_row[t];
          }
          for (index_t i = 0; i < width; ++i) columns[share * width + i] += static_cast<double>(std::exchange(added[static_cast<std::size_t>(i)], Sum{}));
        }
      }
    });
    return {of_rows, of_columns.sum(0).view({2, -1})};
  }

  row_form form_;
};

}  // namespace tessera::detail
