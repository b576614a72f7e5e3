#pragma once

#include <tessera/inspect/svg.hpp>
#include <tessera/inspect/text.hpp>

#include <initializer_list>
#include <vector>

namespace tessera {

namespace engine {

/// One dimension along an edge of a picture: which of its elements are shown, over how many pixels.
struct edge_view {
  int dim = -1;  ///< -1: there is none, one row is drawn
  index_t lo = 0;
  index_t hi = 1;
  double size = 0;    ///< pixels
  bool known = true;  ///< false: the extent is dynamic and stands for any

  double at(index_t i) const { return static_cast<double>(i - lo) / static_cast<double>(hi - lo) * size; }
  interval shown(const interval& i) const { return overlap(i, {lo, hi}); }
};

/// The view of a tensor in a picture: at most two dimensions, and one index of each of the others.
struct view {
  edge_view rows;
  edge_view columns;
  std::vector<int> hidden;  ///< dimensions that are not drawn: index 0 of them is shown

  bool flat() const { return rows.dim < 0; }

  /// Whether intervals of every dimension hold the indices that are shown of those not drawn.
  bool shows(const holding& h) const {
    for (int d : hidden)
      if (position(h[d], 0) < 0) return false;
    return true;
  }
  bool shows(const box& b) const {
    for (int d : hidden)
      if (b[d].lo > 0 || b[d].hi <= 0) return false;
    return true;
  }
};

/// Gives a dynamic extent that nothing bound a grain for each interval, and lengths that are not known balanced ones:
/// to be drawn.
inline layout drawable(layout x) {
  for (int d = 0; d < x.dims.count; ++d) {
    dimension& dim = x.dims[d];
    if (dim.extent != dynamic && dim.bounds != learned) continue;
    if (dim.bounds != nullptr) dim.balance(dim.grain());
    if (dim.extent != dynamic) continue;
    dim.extent = dim.chunks(x.part_count(d)) * dim.grain();
    dim.tile();
  }
  return x;
}

}  // namespace engine

namespace detail {

inline bool is_cut(const layout& x, int d) { return x.levels(d) > 0 && x.part_count(d) > 1; }

/// Whether some dimension is what a window needs.
inline bool windowed(const layout& x) {
  for (const dimension& d : x.dims)
    if (d.kind != cover::tiled) return true;
  return false;
}

/// Whether parts overlap in what is drawn.
inline bool overlaps_drawn(const view& v, const layout& x) {
  for (const edge_view* e : {&v.rows, &v.columns})
    if (e->dim >= 0 && x.dims[e->dim].kind != cover::tiled) return true;
  return false;
}

// The elements of a dimension, or those of the first parts of the finest cut where there are too many parts to tell
// apart.
inline edge_view edge_of(const std::vector<const layout*>& all, int d, int most) {
  edge_view e;
  e.dim = d;
  e.hi = INT64_MAX;
  for (const layout* given : all) {
    e.known = e.known && given->dims[d].extent != dynamic;
    const layout x = without_windows(drawable(*given));
    const parts p(x, d);
    int filled = 0;
    index_t end = 0;  // of the first `most` parts that hold something
    for (int k = 0; k < p.count(); ++k)
      if (const interval held = p.held(k)[0]; !held.empty() && ++filled <= most) end = held.hi;
    e.hi = smaller(e.hi, filled <= 2 * most ? x.dims[d].extent : end);
  }
  e.hi = larger(e.hi, 1);
  return e;
}

}  // namespace detail

namespace engine {

/// Chooses what to draw of layouts of one tensor: the dimensions that are cut, those with more parts first; then the
/// largest.
///
/// `narrow` draws one dimension where only one is cut. Of a dimension with more than 2·`most` parts the first `most`
/// are drawn.
inline view choose_view(const std::vector<const layout*>& all, bool narrow, double widest = 360, double highest = 250,
                        int most = 12) {
  const layout& first = *all[0];
  std::vector<int> order;
  std::vector<index_t> weight;
  int cut = 0;
  for (int d = 0; d < first.dims.count; ++d) {
    index_t w = 0;
    for (const layout* x : all)
      if (detail::is_cut(*x, d) || x->dims[d].kind != cover::tiled)
        w = detail::larger(w, (index_t{1} << 40) + x->part_count(d));
    cut += w > 0;
    for (const layout* x : all) w = w > 0 ? w : x->dims[d].extent;
    weight.push_back(w);
    order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return weight[static_cast<std::size_t>(a)] > weight[static_cast<std::size_t>(b)];
  });
  std::size_t drawn = std::min<std::size_t>(2, order.size());
  if (narrow && cut == 1) drawn = 1;
  while (drawn > 1 && weight[static_cast<std::size_t>(order[drawn - 1])] == 1) --drawn;
  view v;
  v.hidden.assign(order.begin() + static_cast<long>(drawn), order.end());
  std::sort(v.hidden.begin(), v.hidden.end());
  std::sort(order.begin(), order.begin() + static_cast<long>(drawn));
  if (drawn > 0) v.columns = detail::edge_of(all, order[drawn - 1], most);
  if (drawn > 1) v.rows = detail::edge_of(all, order[0], most);
  const double cell =
      std::min({26.0, widest / static_cast<double>(v.columns.hi), highest / static_cast<double>(v.rows.hi)});
  v.columns.size = std::clamp(static_cast<double>(v.columns.hi) * cell, std::min(120.0, widest), widest);
  v.rows.size = v.flat() ? 34 : std::clamp(static_cast<double>(v.rows.hi) * cell, std::min(90.0, highest), highest);
  if (v.flat()) v.columns.size = std::clamp(static_cast<double>(v.columns.hi) * 26, 200.0, 1.4 * widest);
  return v;
}

/// Words for what a picture leaves out; empty when it shows everything.
inline std::string hidden_text(const view& v, const layout& x) {
  std::string s;
  for (int d : v.hidden) {
    const dimension& dim = x.dims[d];
    s += fmt::format("{}dimension {} ({}, {}){}", s.empty() ? "" : ", ", d, extent_text(dim), cover_text(x, d),
                     detail::is_cut(x, d) ? " at index 0" : "");
  }
  if (!s.empty()) s = "not drawn: " + s;
  std::string cut;
  for (const edge_view* e : {&v.rows, &v.columns}) {
    if (e->dim < 0) continue;
    if (!e->known || e->hi >= x.dims[e->dim].extent) continue;
    cut += fmt::format("{}{} of dimension {}", cut.empty() ? "drawn: " : ", ", text_of(interval{e->lo, e->hi}), e->dim);
  }
  return s + (s.empty() || cut.empty() ? "" : "; ") + cut;
}

}  // namespace engine

}  // namespace tessera
