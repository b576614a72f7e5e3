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
  exchange_plan(const phase& p, int rank, tessera::element e, const call_context& context);

  /// The index of a worker among those that take part.
  std::size_t index_of(int worker) const {
    return static_cast<std::size_t>(std::find(workers.begin(), workers.end(), worker) - workers.begin());
  }

  static std::uint64_t key_of(const phase& p, tessera::element e, const call_context& context);

  /// Every worker's row of `n` numbers on all of them, by rank: what workers agree by.
  static exchange_plan gathering(const std::vector<int>& workers, int rank, index_t n, std::uint64_t key);

  /// Marks the ids of agreements, which nobody has to agree on.
  static constexpr std::uint64_t agreement = std::uint64_t{1} << 63;
  bool agrees() const { return (id & agreement) != 0; }
  /// Whether its id is one that workers agreed on: a worker alone carries nothing.
  bool agreed() const { return !agrees() && workers.size() > 1; }

 private:
  void order_by_coordinate(const mesh_value& senders);
  void find_workers(const phase_plan& plan, int rank);
};

}  // namespace tessera::engine

#ifndef TESSERA_COMPILED
#include <tessera/comm/exchange/exchange_plan_impl.hpp>
#endif
