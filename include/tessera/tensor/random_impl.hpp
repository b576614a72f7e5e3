#pragma once

#include <tessera/tensor/box/grain_size.hpp>
#include <tessera/tensor/random.hpp>

#include <ATen/Parallel.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tessera {

namespace detail {

/// Draws from one distribution by numbers in [0, 1): by inversion, in the tail where shares are small and exact.
class inversion {
 public:
  explicit inversion(const initial_value& v)
      : v_(v), mirrored_(v.is == initial_value::law::normal && v.lowest > v.mean) {
    if (v.is != initial_value::law::normal || v.spread == 0) return;
    const double ends[]{normal_share(standard(mirrored_ ? v.highest : v.lowest)),
                        normal_share(standard(mirrored_ ? v.lowest : v.highest))};
    first_ = ends[0];
    share_ = ends[1] - ends[0];
  }

  double operator()(double u) const {
    if (v_.is == initial_value::law::uniform) {
      const double half = v_.highest / 2 - v_.lowest / 2;
      return std::clamp(v_.lowest + half + half * (2 * u - 1), v_.lowest, std::nextafter(v_.highest, v_.lowest));
    }
    if (v_.spread == 0) return v_.mean;
    const double z = normal_quantile(std::clamp(first_ + u * share_, 0x1.0p-54 * share_, 1 - 0x1.0p-53));
    return std::clamp(v_.mean + v_.spread * (mirrored_ ? -z : z), v_.lowest, v_.highest);
  }

 private:
  double standard(double x) const { return (mirrored_ ? v_.mean - x : x - v_.mean) / v_.spread; }

  initial_value v_;
  bool mirrored_;
  double first_ = 0;
  double share_ = 1;
};

/// The law of a weight whose variance is scale / fan: uniform in ±√(3 scale)/√fan, or of that standard deviation.
inline initial_value resolved(initial_value v, const layout& x) {
  if (v.over == init::fan::none) return v;
  const double root = std::sqrt(fan_of(v, x));
  if (v.is == initial_value::law::normal) v.spread = std::sqrt(v.scale) / root;
  else v = init::uniform(-std::sqrt(3 * v.scale) / root, std::sqrt(3 * v.scale) / root);
  v.over = init::fan::none;
  return v;
}

/// Normal numbers by position, rows made orthogonal one after the other (columns where they are fewer): twice, which is
/// enough (Kahan and Parlett). Sums are plain loops, so that they round alike wherever they run.
inline std::vector<double> orthogonal_whole(index_t rows, index_t columns, double gain, std::uint64_t stream) {
  const bool tall = rows > columns;
  const index_t count = tall ? columns : rows;
  const index_t length = tall ? rows : columns;
  const inversion normal(init::normal());
  std::vector<double> vectors(static_cast<std::size_t>(count * length));
  const auto position = [&](index_t i, index_t k) { return tall ? k * columns + i : i * columns + k; };
  for (index_t i = 0; i < count; ++i)
    for (index_t k = 0; k < length; ++k)
      vectors[static_cast<std::size_t>(i * length + k)] =
          normal(uniform_at(stream, static_cast<std::uint64_t>(position(i, k))));
  for (index_t i = 0; i < count; ++i) {
    double* v = &vectors[static_cast<std::size_t>(i * length)];
    const auto along = [&](const double* w) { return std::inner_product(v, v + length, w, 0.0); };
    for (int again = 0; again < 2; ++again)
      for (index_t j = 0; j < i; ++j) {
        const double* w = &vectors[static_cast<std::size_t>(j * length)];
        const double part = along(w);
        for (index_t k = 0; k < length; ++k) v[k] -= part * w[k];
      }
    const double norm = std::sqrt(along(v));
    for (index_t k = 0; k < length; ++k) v[k] /= norm;
  }
  std::vector<double> whole(vectors.size());
  for (index_t i = 0; i < count; ++i)
    for (index_t k = 0; k < length; ++k)
      whole[static_cast<std::size_t>(position(i, k))] = gain * vectors[static_cast<std::size_t>(i * length + k)];
  return whole;
}

/// Normal numbers by position; in each column those whose second number is smallest are zero.
inline std::vector<double> sparse_whole(index_t rows, index_t columns, const initial_value& v, std::uint64_t stream) {
  const inversion normal(init::normal(v.mean, v.spread));
  const std::uint64_t other = mixed(stream);
  const auto zeros = static_cast<std::ptrdiff_t>(std::ceil(v.scale * static_cast<double>(rows)));
  std::vector<double> whole(static_cast<std::size_t>(rows * columns));
  for (std::size_t k = 0; k < whole.size(); ++k) whole[k] = normal(uniform_at(stream, k));
  std::vector<index_t> order(static_cast<std::size_t>(rows));
  for (index_t c = 0; c < columns; ++c) {
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](index_t r) {
      return std::make_pair(uniform_at(other, static_cast<std::uint64_t>(r * columns + c)), r);
    };
    std::sort(order.begin(), order.end(), [&](index_t a, index_t b) { return key(a) < key(b); });
    std::for_each(order.begin(), order.begin() + zeros,
                  [&](index_t r) { whole[static_cast<std::size_t>(r * columns + c)] = 0; });
  }
  return whole;
}

/// This worker's box of value(position, index) at each global index, in double.
template <class Value>
at::Tensor box_of_values(const layout& x, int rank, Value&& value) {
  const holding held = held_by(x, rank);
  at::Tensor values = at::empty(sizes_of(held), at::kDouble);
  double* out = values.data_ptr<double>();
  global_index at;
  at.resize(held.count);
  global_index index = at;
  for (index_t k = 0; k < values.numel(); ++k) {
    std::uint64_t position = 0;
    for (int d = 0; d < held.count; ++d) {
      index[d] = element_at(held[d], at[d]);
      position = position * static_cast<std::uint64_t>(x.dims[d].extent) + static_cast<std::uint64_t>(index[d]);
    }
    out[k] = value(position, index);
    for (int d = held.count - 1; d >= 0 && ++at[d] == values.size(d); --d) at[d] = 0;
  }
  return values;
}

/// Fills a box with draw(to, n, at) of its runs, `at` being where in the stream they begin.
template <class Element, class Draw>
at::Tensor box_of_draws(const box_runs& runs, std::uint64_t stream, at::ScalarType e, const Draw& draw) {
  at::Tensor box = empty_box(sizes_of(runs.held()), e);
  Element* const to = box.data_ptr<Element>();
  at::parallel_for(0, box.numel(), tessera::detail::grain_size, [&](index_t begin, index_t end) {
    runs.each(begin, end, [&](index_t first, index_t n, std::uint64_t position) {
      draw(to + first, n, stream + (position + 1) * step_of_draws);
    });
  });
  return box;
}

/// So many of 2^53 as numbers below a share are below.
inline std::uint64_t share_of_draws(double share) { return static_cast<std::uint64_t>(std::ceil(share * 0x1p53)); }

/// A whole number of 64 bits for LibTorch, which has none without a sign: sums and products wrap around alike.
inline index_t wrapped(std::uint64_t bits) { return static_cast<index_t>(bits); }

/// `mixed` of each of them, where they lie.
inline at::Tensor mixed(at::Tensor z) {
  const auto shifted = [&](int by) {
    return at::bitwise_right_shift(z, by).bitwise_and_(wrapped(~std::uint64_t{0} >> by));
  };
  z = at::bitwise_xor(z, shifted(30)).mul_(wrapped(0xbf58476d1ce4e5b9u));
  z.bitwise_xor_(shifted(27)).mul_(wrapped(0x94d049bb133111ebu));
  return z.bitwise_xor_(shifted(31));
}

TESSERA_INLINE drawn_numbers::drawn_numbers(const at::Tensor& key, const at::Tensor& draw) {
  const auto number = [](const at::Tensor& one) { return static_cast<std::uint64_t>(*one.data_ptr<index_t>()); };
  if (key.is_cpu()) stream_ = bits_at(number(key), number(draw));
  else there_ = mixed(at::add(draw, 1).mul_(wrapped(step_of_draws)).add_(key));
}

/// The first 53 bits of each number, as whole numbers on the device. The place in the stream is a sum over dimensions
/// of what each global index adds.
TESSERA_INLINE at::Tensor drawn_numbers::on_device(const box_runs& runs) const {
  at::Tensor positions = at::add(there_, wrapped(step_of_draws));
  for (int d = 0; d < runs.held().count; ++d) {
    std::vector<at::Tensor> parts;
    for (const interval& part : runs.held()[d])
      parts.push_back(at::arange(part.lo, part.lo + part.size(), positions.options()));
    if (parts.empty()) parts.push_back(at::arange(0, 0, positions.options()));
    std::vector<index_t> sizes(static_cast<std::size_t>(runs.held().count), 1);
    const at::Tensor along = parts.size() == 1 ? parts[0] : at::cat(parts);
    sizes[static_cast<std::size_t>(d)] = along.numel();
    positions = positions + along.mul_(wrapped(static_cast<std::uint64_t>(runs.behind(d)) * step_of_draws)).view(sizes);
  }
  return at::bitwise_right_shift(mixed(positions), 11).bitwise_and_(wrapped(~std::uint64_t{0} >> 11));
}

TESSERA_INLINE at::Tensor drawn_numbers::uniform(const layout& x, int rank) const {
  const box_runs box(x, rank);
  if (there_.defined()) return on_device(box).to(at::kDouble).mul_(0x1p-53);
  return box_of_draws<double>(box, stream_, at::kDouble, draw_loops_here().uniform);
}

TESSERA_INLINE at::Tensor drawn_numbers::below(const box_runs& box, double share) const {
  const std::uint64_t most = share_of_draws(share);
  if (there_.defined()) return at::lt(on_device(box), wrapped(most));
  const auto run = [most, below = draw_loops_here().below](bool* to, index_t n, std::uint64_t at) {
    below(to, n, at, most);
  };
  return box_of_draws<bool>(box, stream_, at::kBool, run);
}

/// Whether a dirac weight hands an input on here: the output's own within its group, in the middle of the kernel.
inline bool hands_on(const layout& x, const global_index& index, index_t groups) {
  bool does = index[0] % (x.dims[0].extent / groups) == index[1];
  for (int d = 2; d < index.count; ++d) does = does && index[d] == x.dims[d].extent / 2;
  return does;
}

/// Refuses a constant that is none of an integer element, as a fraction is none.
inline refusal check_constant(double value, element e) {
  if (has_cotangent(e)) return {};
  const at::Tensor kept = at::full({}, value, at::kDouble).to(scalar_type_of(e)).to(at::kDouble);
  return kept.item<double>() == value ? refusal{} : refusal{code::number_does_not_fit, static_cast<int>(e)};
}

TESSERA_INLINE at::Tensor initial_box(const initial_value& given, const layout& x, element e, int rank, const seed& s,
                                      std::string_view name) {
  using law = initial_value::law;
  tessera::engine::check(first_of(check_known(x), tessera::engine::check(given, x)), s.key(name));
  const initial_value v = resolved(given, x);
  const std::uint64_t stream = stream_of(s, name);
  const auto box = [&](auto&& value) {
    const auto or_zero = [&](std::uint64_t k, const global_index& i) {
      return given.zeros_from <= i[0] && i[0] < given.zeros_to ? 0.0 : value(k, i);
    };
    return box_of_values(x, rank, or_zero).to(scalar_type_of(e));
  };
  switch (v.is) {
    case law::constant:
      tessera::engine::check(check_constant(v.mean, e), s.key(name));
      if (given.zeros_from == given.zeros_to) return at::full(sizes_of(held_by(x, rank)), v.mean, scalar_type_of(e));
      return box([&](std::uint64_t, const global_index&) { return v.mean; });
    case law::listed:
      for (index_t i = 0; i < v.count; ++i) tessera::engine::check(check_constant(v.list[i], e), s.key(name));
      return box([&](std::uint64_t k, const global_index&) { return v.list[k]; });
    case law::eye: return box([](std::uint64_t, const global_index& i) { return i[0] == i[1] ? 1.0 : 0.0; });
    case law::dirac:
      return box([&](std::uint64_t, const global_index& i) { return hands_on(x, i, v.groups) ? 1.0 : 0.0; });
    case law::uniform:
    case law::normal: {
      const auto drawn = [&](std::uint64_t from) {
        return box(
            [from, draw = inversion(v)](std::uint64_t k, const global_index&) { return draw(uniform_at(from, k)); });
      };
      const at::Tensor re = drawn(stream);
      if (!is_complex(e)) return re;
      return at::complex(at::real(re), at::real(drawn(stream_of(s, std::string(name) + ".imag"))));
    }
    case law::orthogonal:
    case law::sparse: break;
  }
  const index_t rows = x.dims[0].extent;
  const index_t columns = x.dims[1].extent * receptive_field(x);
  const std::vector<double> whole =
      v.is == law::sparse ? sparse_whole(rows, columns, v, stream) : orthogonal_whole(rows, columns, v.spread, stream);
  return box([&](std::uint64_t k, const global_index&) { return whole[k]; });
}

}  // namespace detail

TESSERA_INLINE tensor<dyn> initial(const team_handle& team, const layout& x, element e, const initial_value& v,
                                   const seed& s, std::string_view name) {
  const at::Tensor drawn = detail::initial_box(v, x, e, team->rank(), s, name).to(device_of(*team));
  return detail::first_term(detail::tensor_of(team, x, e, drawn, detail::next_lineage(*team, x.mesh)));
}

}  // namespace tessera
