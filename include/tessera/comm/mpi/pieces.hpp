#pragma once

#include <tessera/comm/exchange/exchange_plan.hpp>

#include <algorithm>
#include <utility>

namespace tessera::detail {

/// Cuts a box by its outermost extent: into at most 64 pieces of so many bytes or more. Both its ends find the same
/// ones.
inline void cut_into_pieces(const box_transfer& whole, index_t bytes, index_t smallest,
                            std::vector<box_transfer>& pieces) {
  const index_t wanted = std::min(index_t{64}, bytes / smallest);
  if (wanted < 2) return pieces.push_back(whole);
  int d = 0;
  while (d + 1 < whole.extents.count && whole.extents[d] == 1) ++d;
  const index_t n = whole.extents[d];
  const index_t each = (n + wanted - 1) / wanted;
  for (index_t i = 0; i < n; i += each) {
    box_transfer& piece = pieces.emplace_back(whole);
    piece.here[d] += i;
    piece.there[d] += i;
    piece.extents[d] = std::min(each, n - i);
  }
}

/// A Fold whose large terms travel in pieces.
inline exchange_plan in_pieces(exchange_plan plan, index_t smallest) {
  if (!plan.fold) return plan;
  for (std::vector<box_transfer>* transfers : {&plan.sends, &plan.receives}) {
    std::vector<box_transfer> pieces;
    for (const box_transfer& l : *transfers)
      cut_into_pieces(l, count_of(l.extents) * bytes_of(plan.element), smallest, pieces);
    *transfers = std::move(pieces);
  }
  plan.cells = cells_of(plan.receives);
  return plan;
}

/// How many rounds a Fold has. Where all terms are cut alike, each cell is a round: cell i of n adds the receives i, n
/// + i, 2n + i, ... Else there is one round.
inline std::size_t rounds_of(const exchange_plan& plan) {
  const std::size_t n = plan.cells.size();
  for (std::size_t c = 0; c < n; ++c) {
    const std::vector<int>& terms = plan.cells[c].terms;
    if (terms.size() < 2 || terms.size() * n != plan.receives.size()) return 1;
    for (std::size_t t = 0; t < terms.size(); ++t)
      if (terms[t] != static_cast<int>(t * n + c)) return 1;
  }
  return std::max<std::size_t>(1, n);
}

}  // namespace tessera::detail
