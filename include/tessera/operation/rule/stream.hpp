#pragma once

#include <tessera/operation/rule/reach_count.hpp>
#include <tessera/operation/rule/signature.hpp>
#include <tessera/operation/rule/stream_reach.hpp>
#include <tessera/topology/element.hpp>

namespace tessera::engine {

/// The same operation whose parts do not come one after another.
constexpr signature not_streamed(const signature& op) {
  signature s = op;
  s.special.resize(0);
  for (const treated& t : op.special)
    if (t.how != treatment::streamed) s.special.push(t);
  return s;
}

/// The dimension of an operand whose parts come one after another, since axes cut it; −1 of one that is here.
constexpr int brought_dimension(const signature& op, int o, const layout& x) {
  const char letter = op.streams();
  const int d = letter == 0 ? -1 : index_of(op.operands[o], letter);
  if (d < 0 || d >= x.dims.count) return -1;
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::cut && x.placements[a].dimension == d && x.mesh.axes[a].extent > 1) return d;
  return -1;
}

/// An operand as the rules count it: all parts of a dimension at every worker that has one.
constexpr layout brought(layout x, int dim) {
  x.dims[dim].balance(1);
  for (axis_placement& r : x.placements)
    if (r.kind == placement::cut && r.dimension == dim) r = {};
  return x;
}

/// The result whose parts go to their owners: axes along which it has terms cut this dimension, the first outermost.
constexpr layout sent(layout y, int dim) {
  for (int a = 0; a < y.placements.count; ++a)
    if (y.placements[a].kind == placement::partial && y.placements[a].with == combine::sum) y.cut_by(dim, a);
  return y;
}

/// How the parts of a change come one after another, or go.
struct streamed_parts {
  int dim = -1;             ///< which dimension is cut, before them or behind; −1: all is moved at once
  index_t asked = 0;        ///< how many indices of a part at once, 0 for what the library takes
  bool goes = false;        ///< terms of the result, to their owners
  stream_reach reach = {};  ///< which rows of what comes a worker reads
  bool copies = false;      ///< a step copies what comes, in an order of its own

  constexpr bool streams() const { return dim >= 0; }
};

/// The bytes of one index of a dimension that the largest worker holds.
constexpr index_t bytes_of_row(const layout& x, int dim, element e) {
  index_t n = bytes_of(e);
  for (int d = 0; d < x.dims.count; ++d)
    if (d != dim) n = detail::capped_product(n, parts(x, d).largest());
  return n;
}

/// As many indices of a part as were asked for, or as fit into 4 MiB; not more than the longest part has.
constexpr index_t rows_at_once(const layout& cut, int dim, element e, index_t asked) {
  constexpr index_t room = index_t{4} << 20;
  const index_t fit = asked > 0 ? asked : room / detail::larger(1, bytes_of_row(cut, dim, e));
  return detail::larger(1, detail::smaller(fit, parts(cut, dim).largest()));
}

/// On how many lines of workers the parts of a dimension lie, but for those that hold nothing.
constexpr index_t lines_of(const layout& cut, int dim) {
  index_t lines = cut.mesh.size() / parts(cut, dim).count();
  for (int d = 0; d < cut.dims.count; ++d) {
    const parts other(cut, d);
    index_t held = 0;
    for (int k = 0; d != dim && k < other.count(); ++k) held += size_of(other.held(k)) > 0;
    if (d != dim) lines = lines / other.count() * held;
  }
  return lines;
}

}  // namespace tessera::engine
