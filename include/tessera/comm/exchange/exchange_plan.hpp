#pragma once

#include <tessera/comm/base/call_context.hpp>
#include <tessera/comm/base/error.hpp>
#include <tessera/comm/box/term_cell.hpp>
#include <tessera/plan/fingerprint.hpp>

#include <utility>
#include <vector>

namespace tessera::engine {

/// The count of what arrived at a worker from others.
struct received {
  index_t bytes = 0;
  index_t messages = 0;
};

/// A phase as one worker sees it, found once: what a transport binds.
struct exchange_plan {
  std::uint64_t id = 0;     ///< its workers agree on it; no other plan of two of them has it
  std::uint64_t key = 0;    ///< what is alike on all its workers: plan, element, purpose
  std::uint64_t order = 0;  ///< of calls that begin in one order for themselves; else 0, that of all others
  tessera::element element = tessera::element::float32;
  bool fold = false;  ///< receives are combined, not copied
  combine with = combine::sum;
  movement moves;
  std::vector<int> workers;  ///< who takes part, this worker included; by rank
  /// what the transport of each of them told the others of the plan (`transport::offer`)
  std::vector<std::uint64_t> offers;
  std::vector<box_transfer> sends;
  std::vector<box_transfer>
      receives;                  ///< of terms by coordinate of the sender, so that every transport adds in one order
  std::vector<term_cell> cells;  ///< of an output where terms are added
  box_vector in;
  box_vector out;
  bool covered = true;  ///< every element of the output is received
  received brings;

  exchange_plan() = default;
  exchange_plan(const phase& p, int rank, tessera::element e, const call_context& context)
      : element(e), fold(p.adds()), with(p.with()), moves(p.from(), p.to()) {
    check(check_combine(with, e));
    key = key_of(p, e, context);
    if (context.order != 0) order = context.hash();
    const phase_plan plan(p);
    const cutting& source = plan.before();
    const cutting& target = plan.after();
    const holding had = source.held_by(rank);
    const holding has = target.held_by(rank);
    in = extents_of(had);
    out = extents_of(has);
    plan.sends(rank, [&](const message& m) { sends.push_back(transfer_of(m.to, m.where, had, target)); });
    plan.receives(rank, [&](const message& m) { receives.push_back(transfer_of(m.from, m.where, has, source)); });
    if (p.is_product()) {
      join(sends);
      join(receives);
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

  /// The index of a worker among those that take part.
  std::size_t index_of(int worker) const {
    return static_cast<std::size_t>(std::find(workers.begin(), workers.end(), worker) - workers.begin());
  }

  static std::uint64_t key_of(const phase& p, tessera::element e, const call_context& context) {
    fingerprint f;
    f << static_cast<index_t>(fingerprint_of(p, e)) << static_cast<index_t>(context.hash());
    return f.value();
  }

  /// Every worker's row of `n` numbers on all of them, by rank: what workers agree by.
  static exchange_plan gathering(const std::vector<int>& workers, int rank, index_t n, std::uint64_t key) {
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

  /// Marks the ids of agreements, which nobody has to agree on.
  static constexpr std::uint64_t agreement = std::uint64_t{1} << 63;
  bool agrees() const { return (id & agreement) != 0; }
  /// Whether its id is one that workers agreed on: a worker alone carries nothing.
  bool agreed() const { return !agrees() && workers.size() > 1; }

 private:
  static box_vector extents_of(const holding& held) {
    box_vector e;
    for (const intervals& i : held) e.push(size_of(i));
    return e;
  }
  static box_vector begin_of(const box& where, const holding& in) {
    box_vector at;
    for (int d = 0; d < where.count; ++d) at.push(position(in[d], where[d].lo));
    return at;
  }
  static box_transfer transfer_of(int peer, const box& where, const holding& own, const cutting& peers) {
    box_transfer l{peer, begin_of(where, own), begin_of(where, peers.held_by(peer)), {}};
    for (const interval& i : where) l.extents.push(i.size());
    return l;
  }

  // Boxes of a product that lie end to end go as one.
  static void join(std::vector<box_transfer>& transfers) {
    std::vector<box_transfer> all;
    for (const box_transfer& l : transfers) {
      const auto before =
          std::find_if(all.begin(), all.end(), [&](const box_transfer& k) { return k.ends_at(l) >= 0; });
      if (before == all.end()) all.push_back(l);
      else before->extents[before->ends_at(l)] += l.extents[before->ends_at(l)];
    }
    transfers = std::move(all);
  }

  void order_by_coordinate(const mesh_value& senders) {
    const auto number = [&](const box_transfer& l) {
      coordinates c;
      senders.locate(l.peer, c);
      return senders.number(c);
    };
    std::stable_sort(receives.begin(), receives.end(),
                     [&](const box_transfer& a, const box_transfer& b) { return number(a) < number(b); });
  }

  // All that hold something, where anything is carried between workers and this one is among them.
  void find_workers(const phase_plan& plan, int rank) {
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
};

}  // namespace tessera::engine
