#pragma once

#include <tessera/generated/operation.hpp>
#include <tessera/topology/layout.hpp>

#include <limits>

namespace tessera {

namespace init {

/// The nonlinearity behind a weight, which says by how much the values of a layer that keeps variances are larger.
enum class nonlinearity : signed char { linear, sigmoid, tanh, relu, leaky_relu, selu };

/// By which number of terms a variance is divided: those of an output, those that an input goes into, or their mean.
enum class fan : signed char { none, in, out, mean };

}  // namespace init

/// How a tensor begins: values that follow from seed, path and global index alone, so any partition begins with the
/// same bits.
///
/// The functions of namespace `init` make them, named and meant as those of torch::nn::init. Fans are those of the
/// serial parameter. What is drawn of a complex one are both parts, each by the same law.
struct initial_value {
  enum class law : signed char { constant, uniform, normal, eye, dirac, orthogonal, sparse, listed };

  law is{};
  init::fan over{};  ///< variance is scale / fan, where there is one
  double scale = 0;
  index_t fan_in = 0;  ///< 0: of the tensor's own shape, as fan_out
  index_t fan_out = 0;
  index_t groups = 0;
  double mean = 0;         ///< a constant's value
  double spread = 0;       ///< a standard deviation; an orthogonal matrix's gain; how much of a sparse one is zero
  double lowest = 0;       ///< no value is below
  double highest = 0;      ///< nor above
  index_t zeros_from = 0;  ///< zeros in place of these of the first dimension
  index_t zeros_to = 0;
  const double* list = nullptr;  ///< listed: the values in row-major order, which whoever made it keeps
  index_t count = 0;

  friend constexpr bool operator==(const initial_value&, const initial_value&) = default;
};

namespace init {

/// One value everywhere.
constexpr initial_value constant(double value) {
  initial_value v;
  v.mean = value;
  return v;
}
/// 0 everywhere.
constexpr initial_value zeros() { return constant(0); }
/// 1 everywhere.
constexpr initial_value ones() { return constant(1); }

/// These values, in row-major order; the list lives as long as what is made of it.
constexpr initial_value listed(const double* list, index_t count) {
  initial_value v;
  v.is = initial_value::law::listed;
  v.list = list;
  v.count = count;
  return v;
}
template <std::size_t Count>
constexpr initial_value listed(const double (&list)[Count]) {
  return listed(list, static_cast<index_t>(Count));
}

/// Uniform in [a, b).
constexpr initial_value uniform(double a = 0, double b = 1) {
  initial_value v;
  v.is = initial_value::law::uniform;
  v.lowest = a;
  v.highest = b;
  return v;
}

/// Normal numbers of which those outside [a, b] are drawn again.
constexpr initial_value truncated_normal(double mean = 0, double std = 1, double a = -2, double b = 2) {
  initial_value v = uniform(a, b);
  v.is = initial_value::law::normal;
  v.mean = mean;
  v.spread = std;
  return v;
}
constexpr initial_value normal(double mean = 0, double std = 1) {
  constexpr double everywhere = std::numeric_limits<double>::infinity();
  return truncated_normal(mean, std, -everywhere, everywhere);
}

/// The same values, but for zeros in the rows [from, to).
constexpr initial_value with_zeros(initial_value v, index_t from, index_t to) {
  v.zeros_from = from;
  v.zeros_to = to;
  return v;
}

/// The square of LibTorch's calculate_gain, -1 for a nonlinearity that has none; `slope` is a leaky_relu's.
constexpr double squared_gain(nonlinearity of, double slope = 0.01) {
  switch (of) {
    case nonlinearity::linear:
    case nonlinearity::sigmoid: return 1;
    case nonlinearity::tanh: return 25.0 / 9;
    case nonlinearity::relu: return 2;
    case nonlinearity::leaky_relu: return 2 / (1 + slope * slope);
    case nonlinearity::selu: return 9.0 / 16;
  }
  return -1;
}

/// The same law with the variance scale / fan.
constexpr initial_value scaled(initial_value v, fan over, double scale) {
  v.over = over;
  v.scale = scale;
  return v;
}

/// Glorot and Bengio 2010: variance gain² / mean fan; a nonlinearity names its gain.
constexpr initial_value xavier_uniform(double gain = 1) { return scaled(uniform(), fan::mean, gain * gain); }
constexpr initial_value xavier_normal(double gain = 1) { return scaled(normal(), fan::mean, gain * gain); }
constexpr initial_value xavier_uniform(nonlinearity of, double slope = 0.01) {
  return scaled(uniform(), fan::mean, squared_gain(of, slope));
}
constexpr initial_value xavier_normal(nonlinearity of, double slope = 0.01) {
  return scaled(normal(), fan::mean, squared_gain(of, slope));
}

/// He et al. 2015: variance gain² / fan, with the gain of a leaky_relu of slope `a` unless another nonlinearity is
/// named.
constexpr initial_value kaiming_uniform(double a = 0, fan over = fan::in, nonlinearity of = nonlinearity::leaky_relu) {
  return scaled(uniform(), over, squared_gain(of, a));
}
constexpr initial_value kaiming_normal(double a = 0, fan over = fan::in, nonlinearity of = nonlinearity::leaky_relu) {
  return scaled(normal(), over, squared_gain(of, a));
}

/// LibTorch's default for weights and biases: uniform in ±1/√fan_in, which is kaiming_uniform with a = √5; without
/// terms zeros.
constexpr initial_value usual(index_t fan_in) {
  if (fan_in == 0) return zeros();
  initial_value v = scaled(uniform(), fan::in, 1.0 / 3);
  v.fan_in = fan_in;
  return v;
}

/// The identity matrix, of two dimensions: 1 on the diagonal, 0 elsewhere.
constexpr initial_value eye() {
  initial_value v;
  v.is = initial_value::law::eye;
  return v;
}

/// A convolution that hands its inputs on, within each group.
constexpr initial_value dirac(index_t groups = 1) {
  initial_value v;
  v.is = initial_value::law::dirac;
  v.groups = groups;
  return v;
}

/// Rows, or columns where they are fewer, that are orthogonal and as long as the gain (Saxe et al. 2013). Every worker
/// makes the whole.
constexpr initial_value orthogonal(double gain = 1) {
  initial_value v = normal();
  v.is = initial_value::law::orthogonal;
  v.spread = gain;
  return v;
}

/// Normal numbers, of which this share of each column is zero (Martens 2010). Every worker makes the whole.
constexpr initial_value sparse(double sparsity, double std = 0.01) {
  initial_value v = normal(0, std);
  v.is = initial_value::law::sparse;
  v.scale = sparsity;
  return v;
}

}  // namespace init

namespace detail {

/// How many elements of a weight meet one of an output and one of an input: those behind its first two dimensions.
constexpr index_t receptive_field(const layout& x) {
  index_t n = 1;
  for (int d = 2; d < x.dims.count; ++d) n = capped_product(n, x.dims[d].extent);
  return n;
}

/// The fan that a variance is divided by, of the serial parameter where the value names it, else of this weight.
constexpr double fan_of(const initial_value& v, const layout& x) {
  const auto or_own = [&](index_t given, int d) {
    return static_cast<double>(given > 0 ? given : capped_product(x.dims[d].extent, receptive_field(x)));
  };
  if (v.over == init::fan::in) return or_own(v.fan_in, 1);
  if (v.over == init::fan::out) return or_own(v.fan_out, 0);
  return (or_own(v.fan_in, 1) + or_own(v.fan_out, 0)) / 2;
}

constexpr bool finite(double v) { return v - v == 0; }

constexpr bool names_fans(const initial_value& v) {
  const bool in = v.over == init::fan::in || v.over == init::fan::mean;
  const bool out = v.over == init::fan::out || v.over == init::fan::mean;
  return (!in || v.fan_in > 0) && (!out || v.fan_out > 0);
}

// What share of normal numbers lies beyond so many standard deviations is hardly a double.
inline constexpr double reach_of_normal = 30;

}  // namespace detail

namespace engine {

/// Refuses an initial value that means nothing, or not for a tensor of these dimensions.
constexpr refusal check(const initial_value& v, const layout& x) {
  using law = initial_value::law;
  const int dims = x.dims.count;
  if (v.is == law::listed) {
    index_t wanted = 1;
    for (const dimension& d : x.dims) wanted = detail::capped_product(wanted, d.extent);
    return v.count == wanted ? refusal{} : refusal{code::initial_of_other_count, wanted, v.count};
  }
  const bool wants_matrix = v.is == law::orthogonal || (v.over != init::fan::none && !detail::names_fans(v));
  if ((wants_matrix && dims < 2) || ((v.is == law::eye || v.is == law::sparse) && dims != 2) ||
      (v.is == law::dirac && (dims < 3 || dims > 5)))
    return refusal{code::initial_of_other_dimensions, dims};
  if (v.is == law::dirac && (v.groups < 1 || x.dims[0].extent % v.groups != 0))
    return refusal{code::initial_groups_do_not_divide, x.dims[0].extent, v.groups};
  if (v.over != init::fan::none) {
    if (v.scale < 0) return refusal{code::nonlinearity_has_no_gain};
    return detail::finite(v.scale) ? refusal{} : refusal{code::initial_spread_wrong};
  }
  if (v.is == law::uniform && !(detail::finite(v.lowest) && detail::finite(v.highest) && v.lowest < v.highest))
    return refusal{code::initial_ends_wrong};
  if (v.is == law::orthogonal) return detail::finite(v.spread) ? refusal{} : refusal{code::initial_spread_wrong};
  if (v.is != law::normal && v.is != law::sparse) return {};
  if (!detail::finite(v.mean) || !detail::finite(v.spread) || v.spread < 0) return refusal{code::initial_spread_wrong};
  if (v.is == law::sparse) return v.scale >= 0 && v.scale <= 1 ? refusal{} : refusal{code::initial_ends_wrong};
  const bool reached = v.spread == 0 ? v.lowest <= v.mean && v.mean <= v.highest
                                     : v.lowest - v.mean < detail::reach_of_normal * v.spread &&
                                           v.mean - v.highest < detail::reach_of_normal * v.spread;
  return v.lowest < v.highest && reached ? refusal{} : refusal{code::initial_ends_wrong};
}

}  // namespace engine

}  // namespace tessera
