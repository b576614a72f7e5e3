#pragma once
// Makes a case that fails smaller, one thing at a time, while it still fails.

#include "fuzz_case.hpp"

namespace tessera::testing::fuzz {

namespace detail {

/// Takes an axis out of a layout: what it cut is whole along it, and only its coordinate 0 is left.
inline void drop_axis(layout& x, int axis) {
  x.set_meaning(axis, {});
  x.mesh = without_axis(x.mesh, axis, 0);
  for (int i = axis; i + 1 < x.roles.count; ++i) x.roles[i] = x.roles[i + 1];
  --x.roles.count;
}

inline void drop_dimension(layout& x, int dim) {
  for (axis_role& r : x.roles) {
    if (r.kind != role::cut) continue;
    if (r.dimension == dim) r = {};
    else if (r.dimension > dim) --r.dimension;
  }
  for (int i = dim; i + 1 < x.dims.count; ++i) x.dims[i] = x.dims[i + 1];
  --x.dims.count;
}

/// Explicit bounds as far as they still fit what is cut.
inline void fit_bounds(layout& x, int dim) {
  dimension& d = x.dims[dim];
  if (d.bounds == nullptr) return;
  const index_t units = tessera::detail::ceil_divide(d.kind == cover::tiled ? d.extent : d.outputs, d.grain());
  std::vector<index_t> bounds(d.bounds, d.bounds + x.part_count(dim) + 1);
  for (index_t& b : bounds) b = std::min(b, units);
  bounds.back() = units;
  d.bounds = kept(bounds);
}

inline void set_axis_extent(layout& x, int axis, int extent) {
  x.mesh.axes[axis].extent = extent;
  axis_role& r = x.roles[axis];
  if (r.kind == role::on) r.coordinate = std::min(r.coordinate, extent - 1);
  if (r.kind == role::cut) x.dims[r.dimension].balance(x.dims[r.dimension].grain());
}

/// Smaller numbers than n, the smallest first.
inline std::vector<index_t> below(index_t n, index_t least) {
  std::vector<index_t> all;
  for (index_t k : {least, least + 1, n / 2, n - 1})
    if (k >= least && k < n && std::find(all.begin(), all.end(), k) == all.end()) all.push_back(k);
  return all;
}

inline std::vector<index_t> nearer_to(index_t n, index_t goal) {
  std::vector<index_t> all;
  for (index_t k : {goal, goal + (n - goal) / 2, n > goal ? n - 1 : n + 1})
    if (n != goal && k != n && std::find(all.begin(), all.end(), k) == all.end()) all.push_back(k);
  return all;
}

/// Calls take(case) for every case that is simpler in one thing, the boldest first.
template <class Take>
void each_simpler(const fuzz_case& c, Take&& take) {
  layout fuzz_case::*const sides[]{&fuzz_case::from, &fuzz_case::to};
  const auto with = [&](auto&& change) {
    fuzz_case simpler = c;
    change(simpler);
    take(simpler);
  };
  for (int d = 0; d < c.from.dims.count; ++d)
    with([&](fuzz_case& s) {
      for (auto side : sides) drop_dimension(s.*side, d);
    });
  // Axes go from both meshes together, or from the one that has them.
  std::vector<text> names;
  for (auto side : sides)
    for (const axis_value& a : (c.*side).mesh.axes)
      if (std::find(names.begin(), names.end(), a.name) == names.end()) names.push_back(a.name);
  for (const text& name : names)
    with([&](fuzz_case& s) {
      for (auto side : sides)
        if (const int a = (s.*side).mesh.find(name); a >= 0) drop_axis(s.*side, a);
    });
  for (auto side : sides)
    for (int a = 0; a < (c.*side).mesh.axes.count; ++a) with([&](fuzz_case& s) { drop_axis(s.*side, a); });
  const auto placed = [](mesh_value& m, int first) { m = row_major(m, first); };
  with([&](fuzz_case& s) {
    for (auto side : sides) placed((s.*side).mesh, 0);
  });
  for (auto side : sides) with([&](fuzz_case& s) { placed((s.*side).mesh, 0); });
  for (auto side : sides)
    for (index_t first : below((c.*side).mesh.first, 0))
      with([&](fuzz_case& s) { placed((s.*side).mesh, static_cast<int>(first)); });
  for (const text& name : names) {
    int most = 1;
    for (auto side : sides)
      if (const int a = (c.*side).mesh.find(name); a >= 0) most = std::max(most, (c.*side).mesh.axes[a].extent);
    for (index_t n : below(most, 1)) {
      with([&](fuzz_case& s) {
        for (auto side : sides)
          if (const int a = (s.*side).mesh.find(name); a >= 0 && (s.*side).mesh.axes[a].extent > n) set_axis_extent(s.*side, a, static_cast<int>(n));
      });
      for (auto side : sides)
        with([&](fuzz_case& s) {
          if (const int a = (s.*side).mesh.find(name); a >= 0 && (s.*side).mesh.axes[a].extent > n) set_axis_extent(s.*side, a, static_cast<int>(n));
        });
    }
  }
  for (int d = 0; d < c.from.dims.count; ++d)
    for (index_t n : below(c.from.dims[d].extent, 0))
      with([&](fuzz_case& s) {
        for (auto side : sides) {
          (s.*side).dims[d].extent = n;
          fit_bounds(s.*side, d);
        }
      });
  for (auto side : sides) {
    const layout& x = c.*side;
    for (int d = 0; d < x.dims.count; ++d) {
      const auto dim = [&](auto&& change) {
        with([&](fuzz_case& s) {
          change((s.*side).dims[d]);
          fit_bounds(s.*side, d);
        });
      };
      const dimension& was = x.dims[d];
      if (was.kind != cover::tiled) {
        dim([](dimension& k) { k.tile(); });
        dim([](dimension& k) { k.needs.edge = boundary::zero; });
        dim([](dimension& k) { k.needs.unreached_before = k.needs.unreached_after = 0; });
        for (index_t n : below(was.outputs, 0)) dim([&](dimension& k) { k.outputs = n; });
        for (index_t n : below(was.needs.a, 1)) dim([&](dimension& k) { k.needs.a = n; });
        for (index_t n : below(was.needs.c, 1)) dim([&](dimension& k) { k.needs.c = n; });
        for (index_t n : nearer_to(was.needs.b, 0)) {
          dim([&](dimension& k) { k.needs.b = n; });
          dim([&](dimension& k) {
            k.needs.b2 += n - k.needs.b;
            k.needs.b = n;
          });
        }
        for (index_t n : below(was.needs.b2, was.needs.b)) dim([&](dimension& k) { k.needs.b2 = n; });
      }
      if (was.bounds != nullptr) dim([](dimension& k) { k.bounds = nullptr; });
      if (was.bounds != nullptr)  // equal parts, as far as they go
        for (int i = 1; i < x.part_count(d); ++i)
          for (index_t n : below(was.bounds[i], was.bounds[i - 1]))
            dim([&](dimension& k) {
              std::vector<index_t> bounds(k.bounds, k.bounds + x.part_count(d) + 1);
              bounds[static_cast<std::size_t>(i)] = n;
              k.bounds = kept(bounds);
            });
      for (index_t n : below(was.turned, 0)) dim([&](dimension& k) { k.turned = static_cast<int>(n); });
      for (index_t n : below(was.grain(), 1)) dim([&](dimension& k) { k.set_grain(n); });
    }
    for (int a = 0; a < x.roles.count; ++a) {
      const axis_role& r = x.roles[a];
      if (r.kind != role::replicate) with([&](fuzz_case& s) { (s.*side).set_meaning(a, {}); });
      if (r.joined) with([&](fuzz_case& s) { (s.*side).roles[a].joined = false; });
      if (r.coordinate > 0) with([&](fuzz_case& s) { (s.*side).roles[a].coordinate = 0; });
    }
    with([&](fuzz_case& s) {
      for (axis_role& r : (s.*side).roles) r.with = combine::sum;
    });
  }
  with([](fuzz_case& s) { s.element = "double"; });
  with([](fuzz_case& s) { s.memory = 0; });
  with([](fuzz_case& s) { s.salt = 1; });
}

}  // namespace detail

/// The smallest case that still fails: everything that is simpler in one thing does not. `fails` refuses what has no meaning.
template <class Fails>
fuzz_case shrunk(fuzz_case c, Fails&& fails, int most_tries = 5000) {
  for (bool smaller = true; smaller && most_tries > 0;) {
    smaller = false;
    const std::string now = text_of(c);
    std::optional<fuzz_case> next;
    detail::each_simpler(c, [&](const fuzz_case& s) {
      if (next || most_tries <= 0 || text_of(s) == now) return;
      --most_tries;
      if (fails(s)) next = s;
    });
    if (next) {
      c = *next;
      smaller = true;
    }
  }
  return c;
}

}  // namespace tessera::testing::fuzz
