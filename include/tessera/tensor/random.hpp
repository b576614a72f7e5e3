#pragma once

#include <tessera/meta/text.hpp>
#include <tessera/tensor/tensor.hpp>

#include <string>
#include <string_view>

namespace tessera {

/// The seed of everything random in a network: numbers are drawn by (seed, path, global index).
///
/// Two networks of one seed begin with equal weights. A path tells them apart, and stands before the keys of their parameters:
/// those of `net{team, seed{7}.at("encoder")}` are "encoder.0.weight" and so on, as in a serial model with a part of that name.
struct seed {
  std::uint64_t value = 0;
  std::string path{};

  /// The same seed for the part of this name.
  seed at(std::string_view part) const { return {value, key(part)}; }
  /// What a name within the path is called outside of it.
  std::string key(std::string_view name) const { return path.empty() ? std::string(name) : path + '.' + std::string(name); }
};
template <>
inline constexpr kind kind_of<seed> = kind::seed;

namespace detail {

constexpr std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// A number in [0, 1) for one element of one stream: the same wherever and whenever it is asked for (splitmix64,
/// Steele, Lea and Flood 2014).
constexpr double uniform_at(std::uint64_t stream, std::uint64_t position) {
  return static_cast<double>(mixed(stream + (position + 1) * 0x9e3779b97f4a7c15u) >> 11) * 0x1.0p-53;
}

inline std::uint64_t stream_of(const seed& s, std::string_view name) {
  const std::string path = s.key(name);
  return mixed(s.value ^ mixed(text(path.data(), static_cast<int>(path.size())).hash));
}

}  // namespace detail

/// Uniform numbers in [−bound, bound) for this worker's box, keyed by (seed, path, global index): the same bits on any partition.
inline at::Tensor uniform(const layout& x, element e, int rank, const seed& s, std::string_view name, double bound) {
  check(check_known(x));
  const holding held = held_by(x, rank);
  at::Tensor values = at::empty(detail::sizes_of(held), at::kDouble);
  const std::uint64_t stream = detail::stream_of(s, name);
  double* out = values.data_ptr<double>();
  static_vector<index_t, max_dimensions> at;
  at.resize(held.count);
  for (index_t k = 0; k < values.numel(); ++k) {
    std::uint64_t position = 0;
    for (int d = 0; d < held.count; ++d)
      position = position * static_cast<std::uint64_t>(x.dims[d].extent) + static_cast<std::uint64_t>(element_at(held[d], at[d]));
    out[k] = bound * (2 * detail::uniform_at(stream, position) - 1);
    for (int d = held.count - 1; d >= 0 && ++at[d] == values.size(d); --d) at[d] = 0;
  }
  return values.to(detail::scalar_type(e));
}

}  // namespace tessera
