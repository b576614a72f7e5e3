#pragma once

#include <tessera/plan/cutting.hpp>

namespace tessera::engine {

/// A linear map that moves data from one layout to another in one phase.
///
///  Move  copies a tiling T to any cover C: everybody gets what C says they hold
///  Fold  is its transpose: it adds every copy in C onto its owner in T
///
/// A Fold from C to T is the Move from T* to C* read backwards, so there is one plan and one proof for both.
enum class map : signed char { move, fold };

/// One box on its way between two workers.
struct message {
  int from = 0;  ///< world rank
  int to = 0;    ///< world rank
  box where;     ///< in global indices

  friend constexpr bool operator==(const message&, const message&) = default;
};

/// The plan of a Move or a Fold: who sends which box to whom, by closed form and for one worker at a time.
///
/// `receives(r)` and `sends(r)` walk the messages of a world rank, its own box included; what sends(s) gives with to =
/// r is what receives(r) gives with from = s.
class transfer {
 public:
  constexpr transfer() = default;
  constexpr transfer(map kind, const layout& from, const layout& to)
      : kind_(kind),
        source_(kind == map::move ? from : cotangent(to)),
        target_(kind == map::move ? to : cotangent(from)),
        aligned_(source_.of.mesh == target_.of.mesh) {
    for (int a = 0; a < source_.of.mesh.axes.count; ++a) {
      const int b = target_.of.mesh.find(source_.of.mesh.axes[a].name);
      const bool alike = b >= 0 && target_.of.mesh.axes[b].extent == source_.of.mesh.axes[a].extent;
      twin_.push(alike ? b : -1);
    }
  }

  constexpr map kind() const { return kind_; }
  constexpr const cutting& source() const { return source_; }  ///< of the Move that is read, forwards or backwards
  constexpr const cutting& target() const { return target_; }
  constexpr bool aligned() const { return aligned_; }  ///< both sides lie on the same mesh

  /// Calls visit(message) for every box that arrives at a world rank, by coordinate of the sender.
  template <class Visit>
  constexpr void receives(int rank, Visit&& visit) const {
    if (kind_ == map::move) pulls(rank, visit);
    else pushes(rank, [&](const message& m) { visit(message{m.to, m.from, m.where}); });
  }

  /// Calls visit(message) for every box that leaves a world rank, by coordinate of the receiver.
  template <class Visit>
  constexpr void sends(int rank, Visit&& visit) const {
    if (kind_ == map::move) pushes(rank, visit);
    else pulls(rank, [&](const message& m) { visit(message{m.to, m.from, m.where}); });
  }

  /// The worker that a reader takes a tile from: itself, else the copy at its own coordinates, else copies take turns.
  constexpr int copy_for(int reader, const coordinates& at, const coordinates& tile) const {
    const layout& s = source_.of;
    if (!aligned_) {
      coordinates own;
      if (source_.locate(reader, own)) {
        bool holds = true;
        for (int a = 0; a < s.placements.count && holds; ++a)
          holds = s.placements[a].kind != placement::cut || own[a] == tile[a];
        if (holds) return reader;
      }
    }
    coordinates chosen = tile;
    int turn = reader_number(at);
    for (int a = s.placements.count - 1; a >= 0; --a) {
      const placement kind = s.placements[a].kind;
      if (kind == placement::cut) continue;
      if (kind == placement::on) {
        chosen[a] = s.placements[a].coordinate;
      } else if (twin_[a] >= 0) {
        chosen[a] = at[twin_[a]];
      } else {
        chosen[a] = turn % s.mesh.axes[a].extent;
        turn /= s.mesh.axes[a].extent;
      }
    }
    return s.mesh.rank(chosen);
  }

 private:
  // Readers take turns by their number among the axes that the source does not have.
  constexpr int reader_number(const coordinates& at) const {
    const mesh_value& m = target_.of.mesh;
    int n = 0;
    for (int b = 0; b < m.axes.count; ++b) {
      bool shared = false;
      for (int twin : twin_) shared = shared || twin == b;
      if (!shared) n = n * m.axes[b].extent + at[b];
    }
    return n;
  }

  // Walks the product over dimensions of (part of `other`, overlap with `mine`): the one overlap computation.
  template <class Visit>
  static constexpr void overlaps(const cutting& mine, const coordinates& at, const cutting& other, int dim,
                                 coordinates& found, box& where, Visit& visit) {
    if (dim == mine.dims.count) {
      visit(found, where);
      return;
    }
    for (const interval& wanted : mine.held(dim, at)) {
      for (const auto& near : other.dims[dim].touching(wanted))
        for (int k = near.first; k < near.last; ++k)
          for (const interval& theirs : other.dims[dim].held(k)) {
            where[dim] = overlap(wanted, theirs);
            if (where[dim].empty()) continue;
            other.dims[dim].locate(k, found);
            overlaps(mine, at, other, dim + 1, found, where, visit);
          }
    }
  }

  // What a reader needs: every overlap of its box with a tile, from the copy that serves it.
  template <class Visit>
  constexpr void pulls(int rank, Visit&& visit) const {
    coordinates at;
    if (!target_.locate(rank, at)) return;
    coordinates tile;
    tile.resize(source_.of.mesh.axes.count);
    box where;
    where.resize(target_.dims.count);
    auto each = [&](const coordinates& found, const box& b) { visit(message{copy_for(rank, at, found), rank, b}); };
    overlaps(target_, at, source_, 0, tile, where, each);
  }

  // What a tile is needed for: every overlap with a reader's box, where this copy is the one that serves the reader.
  template <class Visit>
  constexpr void pushes(int rank, Visit&& visit) const {
    coordinates at;
    if (!source_.locate(rank, at)) return;
    coordinates reader;
    reader.resize(target_.of.mesh.axes.count);
    box where;
    where.resize(source_.dims.count);
    auto each = [&](const coordinates& found, const box& b) {
      coordinates who = found;
      copies(0, rank, at, who, b, visit);
    };
    overlaps(source_, at, target_, 0, reader, where, each);
  }

  template <class Visit>
  constexpr void copies(int axis, int rank, const coordinates& at, coordinates& who, const box& b, Visit& visit) const {
    const layout& t = target_.of;
    if (axis == t.mesh.axes.count) {
      const int reader = t.mesh.rank(who);
      if (copy_for(reader, who, at) == rank) visit(message{rank, reader, b});
      return;
    }
    if (t.placements[axis].kind == placement::cut) {
      copies(axis + 1, rank, at, who, b, visit);
    } else if (t.placements[axis].kind == placement::on) {
      who[axis] = t.placements[axis].coordinate;
      copies(axis + 1, rank, at, who, b, visit);
    } else {
      const bool pinned = aligned_ && source_.of.placements[axis].kind != placement::cut &&
                          source_.of.placements[axis].kind != placement::on;
      const int first = pinned ? at[axis] : 0;
      const int last = pinned ? at[axis] + 1 : t.mesh.axes[axis].extent;
      for (who[axis] = first; who[axis] < last; ++who[axis]) copies(axis + 1, rank, at, who, b, visit);
    }
  }

  map kind_ = map::move;
  cutting source_;
  cutting target_;
  bool aligned_ = true;
  static_vector<int, max_axes> twin_;  // the target's axis that is this axis of the source, or -1
};

}  // namespace tessera::engine
