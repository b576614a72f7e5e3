#pragma once

#include <tessera/operation/plan/initial_value.hpp>
#include <tessera/tensor/distribute.hpp>
#include <tessera/tensor/random/box_runs.hpp>
#include <tessera/tensor/random/draw_loops.hpp>

#include <cmath>
#include <string>
#include <string_view>

namespace tessera {

/// The seed of everything random in a network: numbers are drawn by (seed, path, global index).
///
/// Two networks of one seed begin with equal weights. A path tells them apart and precedes the keys of their
/// parameters, as in a serial model with a part of that name. `net{team, seed{7}.at("encoder")}` has the parameter
/// "encoder.0.weight".
struct seed {
  std::uint64_t value = 0;
  std::string path{};

  /// The same seed for the part of this name.
  seed at(std::string_view part) const { return {value, key(part)}; }
  /// The full name of a name within the path.
  std::string key(std::string_view name) const {
    return path.empty() ? std::string(name) : path + '.' + std::string(name);
  }
};
template <>
inline constexpr kind engine::kind_of<seed> = kind::seed;

namespace detail {

constexpr std::uint64_t mixed(std::uint64_t z) { return of_any_machine::mixed(z); }

/// The bits of one element of one stream: the same wherever and whenever they are asked for.
constexpr std::uint64_t bits_at(std::uint64_t stream, std::uint64_t position) {
  return mixed(stream + (position + 1) * step_of_draws);
}

/// The number in [0, 1) that the first 53 of them are.
constexpr double uniform_at(std::uint64_t stream, std::uint64_t position) {
  return static_cast<double>(bits_at(stream, position) >> 11) * 0x1.0p-53;
}

inline std::uint64_t stream_of(const seed& s, std::string_view name) {
  const std::string path = s.key(name);
  return mixed(s.value ^ mixed(text(path.data(), static_cast<int>(path.size())).hash));
}

/// The share of normal numbers below x.
inline double normal_share(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

/// Its inverse on (0, 1): Abramowitz and Stegun 26.2.23 is off by less than 4.5e-4, and a step of Halley's cubes that.
inline double normal_quantile(double share) {
  if (share > 0.5) return -normal_quantile(1 - share);
  const double t = std::sqrt(-2 * std::log(share));
  double x = ((0.010328 * t + 0.802853) * t + 2.515517) / (((0.001308 * t + 0.189269) * t + 1.432788) * t + 1) - t;
  for (int step = 0; step < 2; ++step) {
    const double off = (normal_share(x) - share) * std::sqrt(2 * 3.14159265358979323846) * std::exp(x * x / 2);
    x -= off / (1 + x * off / 2);
  }
  return x;
}

/// The numbers of one draw in [0, 1), by key, number of earlier draws and global index. Their bits are the same on any
/// partition, host and device.
class drawn_numbers {
 public:
  /// `key` and `draw` are tensors of one whole number, where the numbers will lie; nobody waits for those of a device.
  drawn_numbers(const at::Tensor& key, const at::Tensor& draw);

  /// This worker's box of them, in double.
  at::Tensor uniform(const layout& x, int rank) const;
  /// Whether each of them is below a share.
  at::Tensor below(const layout& x, int rank, double share) const { return below(box_runs(x, rank), share); }
  at::Tensor below(const box_runs& box, double share) const;

 private:
  at::Tensor on_device(const box_runs& box) const;

  std::uint64_t stream_ = 0;
  at::Tensor there_;  ///< the stream, on a device
};

/// This worker's box of a tensor that begins so.
at::Tensor initial_box(const initial_value& v, const layout& x, element e, int rank, const seed& s,
                       std::string_view name);

template <class T, class Team, class... Bindings>
struct begins {
  static constexpr refusal value =
      first_of(check_kinds<kind::call, kind::tensor, T>(0), check_kinds<kind::call, kind::team, Team>(1),
               check_kinds<kind::call, kind::binding, Bindings...>(5));
};

}  // namespace detail

/// A tensor that begins with these values, keyed by (seed, path, global index): the same bits on any partition. Nothing
/// moves. They are drawn in double and rounded to the element; of terms the first has them, the others what adds
/// nothing.
tensor<dyn> initial(const team_handle& team, const layout& x, element e, const initial_value& v, const seed& s,
                    std::string_view name);

/// The same on a type: `initial<T>(team, init::normal(0, 0.02), seed{7}, "noise", bind<batch>(64))`.
template <class T = void, class Team, class... Bindings>
auto initial(const Team& team, const initial_value& v, const seed& s, std::string_view name,
             const Bindings&... bindings) {
  using verdict = engine::verdict_of<detail::begins<T, Team, Bindings...>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok)
    return T(
        initial(team.state(), detail::bound_all(value_of<T>.layout, bindings...), value_of<T>.element, v, s, name));
  else return detail::refused_like<detail::as_tensor<T>>();
}

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/random_impl.hpp>
#endif
