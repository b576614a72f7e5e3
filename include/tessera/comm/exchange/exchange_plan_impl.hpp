#pragma once

#include <tessera/comm/exchange/exchange_plan.hpp>

namespace tessera {

namespace detail {

inline engine::box_vector sizes_held(const holding& held) {
  engine::box_vector e;
  for (const intervals& i : held) e.push(size_of(i));
  return e;
}
inline engine::box_vector begin_of(const box& where, const holding& in) {
  engine::box_vector at;
  for (int d = 0; d < where.count; ++d) at.push(position(in[d], where[d].lo));
  return at;
}
inline engine::box_transfer transfer_of(int peer, const box& where, const holding& own, const cutting& peers) {
  engine::box_transfer l{peer, begin_of(where, own), begin_of(where, peers.held_by(peer)), {}};
  for (const interval& i : where) l.extents.push(i.size());
  return l;
}

// Boxes of a product that lie end to end go as one, and so do those that come of it. The pieces of a zigzag lie side by
// side in the tensors of its workers.
inline void join_ends(std::vector<engine::box_transfer>& transfers) {
  std::size_t before = 0;
  do {
    before = transfers.size();
    std::vector<engine::box_transfer> all;
    for (const engine::box_transfer& l : transfers) {
      const auto met = std::find_if(all.begin(), all.end(), [&](const engine::box_transfer& k) {
        return k.ends_at(l) >= 0 || l.ends_at(k) >= 0;
      });
      if (met == all.end()) {
        all.push_back(l);
        continue;
      }
      const bool behind = met->ends_at(l) >= 0;
      const engine::box_transfer& first = behind ? *met : l;
      const int along = first.ends_at(behind ? l : *met);
      const index_t length = met->extents[along] + l.extents[along];
      if (!behind) *met = l;
      met->extents[along] = length;
    }
    transfers = std::move(all);
  } while (transfers.size() < before);
}

}  // namespace detail

namespace engine {

TESSERA_INLINE exchange_plan::exchange_plan(const phase& p, int rank, tessera::element e, const call_context& context)
    : element(e), fold(p.adds()), with(p.with()), moves(p.from(), p.to()) {
  check(check_combine(with, e));
  key = key_of(p, e, context);
  if (context.order != 0) order = context.hash();
  const phase_plan plan(p);
  const cutting& source = plan.before();
  const cutting& target = plan.after();
  const holding had = source.held_by(rank);
  const holding has = target.held_by(rank);
  in = detail::sizes_held(had);
  out = detail::sizes_held(has);
  plan.sends(rank, [&](const message& m) { sends.push_back(detail::transfer_of(m.to, m.where, had, target)); });
  plan.receives(rank, [&](const message& m) { receives.push_back(detail::transfer_of(m.from, m.where, has, source)); });
  if (p.is_product()) {
    detail::join_ends(sends);
    detail::join_ends(receives);
  }
  if (fold) order_by_coordinate(source.of.mesh);
  for (const box_transfer& l : receives) {
    if (l.peer == rank) continue;
    brings.bytes += count_of(l.extents) * bytes_of(e);
    ++brings.messages;
  }
  if (fold) cells = cells_of(receives);
  index_t filled = 0;
  if (fold)
    for (const term_cell& c : cells) filled += count_of(c.extents);
  else
    for (const box_transfer& l : receives) filled += count_of(l.extents);
  covered = filled >= count_of(out);
  find_workers(plan, rank);
}

TESSERA_INLINE std::uint64_t exchange_plan::key_of(const phase& p, tessera::element e, const call_context& context) {
  fingerprint f;
  f << static_cast<index_t>(fingerprint_of(p, e)) << static_cast<index_t>(context.hash());
  return f.value();
}

TESSERA_INLINE exchange_plan exchange_plan::gathering(const std::vector<int>& workers, int rank, index_t n,
                                                      std::uint64_t key) {
  exchange_plan p;
  p.id = p.key = key | agreement;
  p.element = element::int64;
  p.workers = workers;
  p.in.push(n);
  p.out.push(n * static_cast<index_t>(workers.size()));
  index_t row = 0;
  for (const int w : workers) {
    box_transfer l{w, {}, {}, p.in};
    l.here.push(row++ * n);
    l.there.push(0);
    p.receives.push_back(l);
    std::swap(l.here[0], l.there[0]);
    l.there[0] = n * (std::find(workers.begin(), workers.end(), rank) - workers.begin());
    p.sends.push_back(l);
  }
  return p;
}

TESSERA_INLINE void exchange_plan::order_by_coordinate(const mesh_value& senders) {
  const auto number = [&](const box_transfer& l) {
    coordinates c;
    senders.locate(l.peer, c);
    return senders.number(c);
  };
  std::stable_sort(receives.begin(), receives.end(),
                   [&](const box_transfer& a, const box_transfer& b) { return number(a) < number(b); });
}

// All that hold something, where anything is carried between workers and this one is among them.
TESSERA_INLINE void exchange_plan::find_workers(const phase_plan& plan, int rank) {
  workers = {rank};
  if (!plan.carries() || (plan.before().elements_of(rank) == 0 && plan.after().elements_of(rank) == 0)) return;
  for (const cutting* side : {&plan.before(), &plan.after()}) {
    const mesh_value& m = side->of.mesh;
    for (int i = 0; i < m.size(); ++i)
      if (const int r = m.rank(m.at(i)); side->elements_of(r) > 0) workers.push_back(r);
  }
  std::sort(workers.begin(), workers.end());
  workers.erase(std::unique(workers.begin(), workers.end()), workers.end());
}

}  // namespace engine

}  // namespace tessera
