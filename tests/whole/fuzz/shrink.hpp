#pragma once
// Makes a case that fails smaller, one thing at a time, while it still fails: one of any kind that says its layouts
// (`layouts_of`) and what else there is to make simpler (`each_simpler_option`).

#include "fuzz_case.hpp"

namespace tessera::testing::fuzz {

using namespace engine;

namespace detail {

/// Takes an axis out of a layout: what it cut is whole along it, and only its coordinate 0 is left.
inline void drop_axis(layout& x, int axis) {
  x.set_placement(axis, {});
  x.mesh = without_axis(x.mesh, axis, 0);
  for (int i = axis; i + 1 < x.placements.count; ++i) x.placements[i] = x.placements[i + 1];
  --x.placements.count;
}

inline void drop_dimension(layout& x, int dim) {
  for (axis_placement& r : x.placements) {
    if (r.kind != placement::cut) continue;
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
  axis_placement& r = x.placements[axis];
  if (r.kind == placement::on) r.coordinate = std::min(r.coordinate, extent - 1);
  if (r.kind == placement::cut) x.dims[r.dimension].balance(x.dims[r.dimension].grain());
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

/// Calls take(case) for every case whose layouts are simpler in one thing, the boldest first.
template <class Case, class With>
void each_simpler_layout(const Case& c, const With& with) {
  const auto now = layouts_of(c);
  const std::size_t count = now.size();
  // Calls change(layout) for all layouts together, then for each alone, as far as they are concerned.
  const auto together = [&](auto&& concerns, auto&& change) {
    with([&](Case& s) {
      for (layout* x : layouts_of(s))
        if (concerns(*x)) change(*x);
    });
  };
  const auto each = [&](auto&& concerns, auto&& change) {
    together(concerns, change);
    for (std::size_t i = 0; i < count && count > 1; ++i)
      with([&](Case& s) {
        if (layout& x = *layouts_of(s)[i]; concerns(x)) change(x);
      });
  };
  const auto all = [](const layout&) { return true; };
  int most_dims = 0;
  std::vector<text> names;
  for (const layout* x : now) {
    most_dims = std::max(most_dims, x->dims.count);
    for (const axis_value& a : x->mesh.axes)
      if (std::find(names.begin(), names.end(), a.name) == names.end()) names.push_back(a.name);
  }
  for (int d = 0; d < most_dims; ++d)
    together([d](const layout& x) { return d < x.dims.count; }, [d](layout& x) { drop_dimension(x, d); });
  for (const text& name : names)
    each([&](const layout& x) { return x.mesh.find(name) >= 0; }, [&](layout& x) { drop_axis(x, x.mesh.find(name)); });
  each(all, [](layout& x) { x.mesh = row_major(x.mesh, 0); });
  for (const layout* one : now)
    for (index_t first : below(one->mesh.first, 0))
      each([&](const layout& x) { return x.mesh.first > first; },
           [&](layout& x) { x.mesh = row_major(x.mesh, static_cast<int>(first)); });
  for (const text& name : names) {
    const auto extent = [&](const layout& x) {
      return x.mesh.find(name) >= 0 ? x.mesh.axes[x.mesh.find(name)].extent : 1;
    };
    int most = 1;
    for (const layout* x : now) most = std::max(most, extent(*x));
    for (index_t n : below(most, 1))
      each([&](const layout& x) { return extent(x) > n; },
           [&](layout& x) { set_axis_extent(x, x.mesh.find(name), static_cast<int>(n)); });
  }
  for (int d = 0; d < most_dims; ++d) {
    index_t most = 0;
    for (const layout* x : now)
      if (d < x->dims.count) most = std::max(most, x->dims[d].extent);
    for (index_t n : below(most, 0))
      each([&](const layout& x) { return d < x.dims.count && x.dims[d].extent > n; },
           [&](layout& x) {
             x.dims[d].extent = n;
             fit_bounds(x, d);
           });
  }
  for (std::size_t i = 0; i < count; ++i) {
    const layout& x = *now[i];
    const auto here = [&](auto&& change) { with([&](Case& s) { change(*layouts_of(s)[i]); }); };
    for (int d = 0; d < x.dims.count; ++d) {
      const auto dim = [&](auto&& change) {
        here([&](layout& s) {
          change(s.dims[d]);
          fit_bounds(s, d);
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
        for (int k = 1; k < x.part_count(d); ++k)
          for (index_t n : below(was.bounds[k], was.bounds[k - 1]))
            dim([&](dimension& one) {
              std::vector<index_t> bounds(one.bounds, one.bounds + x.part_count(d) + 1);
              bounds[static_cast<std::size_t>(k)] = n;
              one.bounds = kept(bounds);
            });
      if (was.zigzag) dim([](dimension& k) { k.zigzag = false; });
      for (index_t n : below(was.turned, 0)) dim([&](dimension& k) { k.turned = static_cast<int>(n); });
      for (index_t n : below(was.grain(), 1)) dim([&](dimension& k) { k.set_grain(n); });
    }
    for (int a = 0; a < x.placements.count; ++a) {
      const axis_placement& r = x.placements[a];
      if (r.kind != placement::replicate) here([&](layout& s) { s.set_placement(a, {}); });
      if (r.joined) here([&](layout& s) { s.placements[a].joined = false; });
      if (r.coordinate > 0) here([&](layout& s) { s.placements[a].coordinate = 0; });
    }
    here([&](layout& s) {
      for (axis_placement& r : s.placements) r.with = combine::sum;
    });
  }
}

}  // namespace detail

/// The smallest case that still fails: everything that is simpler in one thing does not. `fails` refuses what has no
/// meaning.
template <class Case, class Fails>
Case shrunk(Case c, Fails&& fails, int most_tries = 5000) {
  for (bool smaller = true; smaller && most_tries > 0;) {
    smaller = false;
    const std::string now = text_of(c);
    std::optional<Case> next;
    const auto with = [&](auto&& change) {
      if (next || most_tries <= 0) return;
      Case s = c;
      change(s);
      if (text_of(s) == now) return;
      --most_tries;
      if (fails(s)) next = std::move(s);
    };
    detail::each_simpler_layout(c, with);
    each_simpler_option(c, with);
    if (next) {
      c = *next;
      smaller = true;
    }
  }
  return c;
}

}  // namespace tessera::testing::fuzz
