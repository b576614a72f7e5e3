#pragma once
// Partitions of the file as meshes and layouts: grids over lists of world ranks.

#include "phrases.hpp"

#include <tessera/comm/base/error.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

namespace conformance {

/// Keeps lists that layouts point to for as long as the program runs; equal lists are kept once.
template <class T>
const T* kept(const std::vector<T>& list) {
  static std::deque<std::vector<T>> all;
  for (const auto& known : all)
    if (known == list) return known.data();
  return all.emplace_back(list).data();
}

/// The name of the i-th axis of a grid: "x0", "w1".
inline text axis_name(char grid, std::size_t i) {
  static std::map<std::string, text> names;
  const auto known = names.try_emplace(fmt::format("{}{}", grid, i)).first;
  known->second = text(known->first.data(), static_cast<int>(known->first.size()));
  return known->second;
}

inline index_t volume_of(const integers& of) {
  return std::accumulate(of.begin(), of.end(), index_t{1}, std::multiplies<>());
}

/// A grid of these extents over these world ranks, row-major; an affine placement where the ranks are in equal
/// steps.
inline mesh_value grid_over(const std::vector<int>& ranks, const integers& shape, char name) {
  for (int r : ranks)
    if (r < 0 || r >= most_workers) throw unbuilt(fmt::format("a worker {} of at most {}", r, most_workers));
  if (static_cast<index_t>(ranks.size()) != volume_of(shape))
    throw unbuilt(fmt::format("a grid of {} workers over {} ranks", volume_of(shape), ranks.size()));
  mesh_value m;
  for (std::size_t i = 0; i < shape.size(); ++i) m.axes.push({axis_name(name, i), static_cast<int>(shape[i]), 1});
  m = row_major(m, ranks[0]);
  const int step = ranks.size() > 1 ? ranks[1] - ranks[0] : 1;
  for (auto& a : m.axes) a.stride *= step;
  for (std::size_t k = 0; k < ranks.size(); ++k)
    if (m.rank(m.at(static_cast<int>(k))) != ranks[k]) {
      m = row_major(m, 0, kept(ranks));
      break;
    }
  check(check(m));
  return m;
}

/// The partition `name` of a case: its shape and its ranks, the first ones of the world unless said.
inline mesh_value grid_of(values& given, const std::string& name, char letter) {
  const integers shape = given.list(name + "_shape");
  for (index_t n : shape)
    if (n > most_workers || volume_of(shape) > most_workers)
      throw unbuilt(fmt::format("more than {} workers", most_workers));
  std::vector<int> ranks(static_cast<std::size_t>(volume_of(shape)));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (given.has(name + "_ranks"))
    for (ranks.clear(); index_t r : ranks_named(given, name + "_ranks")) ranks.push_back(static_cast<int>(r));
  return grid_over(ranks, shape, letter);
}

/// All axes of a mesh replicate, all dimensions whole.
inline layout whole(const mesh_value& mesh, const integers& shape) {
  layout x;
  x.mesh = mesh;
  x.placements.resize(mesh.axes.count);
  for (index_t n : shape) x.dims.push(uncut(n));
  return x;
}

/// Axis i of the grid cuts dimension i; a grid of more axes has as many dimensions, of extent 1.
inline layout blocks_over(const mesh_value& mesh, integers shape) {
  while (static_cast<int>(shape.size()) < mesh.axes.count) shape.push_back(1);
  layout x = whole(mesh, shape);
  for (int a = 0; a < mesh.axes.count; ++a) x.cut_by(a, a);
  return x;
}

/// The same where index 0 of every axis takes the whole remainder.
inline layout heavy_first(layout x) {
  for (int a = 0; a < x.mesh.axes.count; ++a) {
    const index_t p = x.mesh.axes[a].extent;
    const index_t n = x.dims[a].extent;
    integers bounds{0};
    for (index_t k = 0; k < p; ++k) bounds.push_back(bounds.back() + n / p + (k == 0 ? n % p : 0));
    x.dims[a].bounds = kept(bounds);
  }
  return x;
}

/// How many workers have to run for a mesh to fit.
inline int world_of(const mesh_value& m) {
  int last = 0;
  for (int i = 0; i < m.size(); ++i) last = std::max(last, m.rank(m.at(i)));
  return last + 1;
}

/// The worker whose box a worker has a copy of: the one at coordinate 0 of every axis along which there are copies.
inline int first_copy(const layout& x, int rank) {
  coordinates at;
  if (!x.mesh.locate(rank, at)) return rank;
  for (int a = 0; a < at.count; ++a)
    if (x.placements[a].kind == placement::replicate || x.placements[a].kind == placement::invariant) at[a] = 0;
  return x.mesh.rank(at);
}

/// The extents of a box, one for each dimension.
inline integers extents_of(const box& b) {
  integers n;
  for (const engine::interval& i : b) n.push_back(i.size());
  return n;
}

}  // namespace conformance
