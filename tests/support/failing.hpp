#pragma once
// Small transfers in which some worker fails, and the codes that the others end in.

#include "tests/support/by_sockets.hpp"

namespace tessera::testing {

using namespace engine;

inline constexpr const char* lost = "tessera.agree.lost";
inline constexpr const char* disagree = "tessera.agree.fingerprint";
inline constexpr const char* ring = "tessera.agree.deadlock";
inline constexpr const char* late = "tessera.agree.time";

inline mesh_value line(int size) {
  mesh_value m;
  m.axes.push({text{"a"}, size, 1});
  return row_major(m);
}

/// n numbers, cut over the line or whole on every worker.
inline layout numbers_over(const mesh_value& mesh, index_t n, bool cut) {
  layout x;
  x.mesh = mesh;
  x.placements.resize(1);
  x.dims.resize(1);
  x.dims[0].extent = n;
  if (cut) x.cut_by(0, 0);
  return x;
}

inline step gathering(int size, index_t n) {
  return {map::move, numbers_over(line(size), n, true), numbers_over(line(size), n, false), combine::sum};
}

inline region memory_of(std::vector<double>& data, const static_vector<index_t, max_dimensions>& extents) {
  region r{reinterpret_cast<std::byte*>(data.data()), element::float64, extents, extents};
  return r.packed_at(r.data);
}

/// Runs one transfer of zeros; true when it came to an end.
inline bool run(const std::shared_ptr<bound_exchange>& e) {
  index_t in = 1;
  index_t out = 1;
  for (index_t n : e->input_extents()) in *= n;
  for (index_t n : e->output_extents()) out *= n;
  std::vector<double> x(static_cast<std::size_t>(in + 1));
  std::vector<double> y(static_cast<std::size_t>(out + 1));
  e->start(memory_of(x, e->input_extents()), memory_of(y, e->output_extents())).finish();
  return true;
}

inline bool run(transport& carrier, const step& s) { return run(bind_exchange(carrier, s, element::float64)); }

/// One number from one worker to another, of a world of any size.
inline step sending(int from, int to, index_t n = 1) {
  mesh_value a = line(1);
  a.first = from;
  mesh_value b = line(1);
  b.first = to;
  return {map::move, numbers_over(a, n, false), numbers_over(b, n, false), combine::sum};
}

inline int count_of(const std::vector<std::string>& codes, const std::string& code) {
  int n = 0;
  for (const auto& c : codes) n += c == code;
  return n;
}

struct pair_axis : axis<2> {};

}  // namespace tessera::testing
