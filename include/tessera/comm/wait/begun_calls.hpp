#pragma once

#include <tessera/comm/exchange/exchange_plan.hpp>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tessera::detail {

/// The calls that a worker began, counted by exchange.
///
/// An exchange that was let go is counted until its workers bind another one together: then its calls have ended, or
/// all began them.
class begun_calls {
 public:
  /// How many calls of an exchange the worker began.
  std::uint64_t& of(std::uint64_t exchange) { return begun_[exchange]; }

  /// Forgets the exchanges let go before whose workers bind this one, on which they agreed.
  void bind(const exchange_plan& plan) {
    bound_ = std::max(bound_, plan.id);
    std::erase_if(let_go_, [&](const let_go_exchange& e) {
      const bool of_these = std::includes(plan.workers.begin(), plan.workers.end(), e.workers.begin(), e.workers.end());
      if (of_these) begun_.erase(e.id);
      return of_these;
    });
  }
  /// This worker begins no more calls of an exchange; others may still wait in one.
  void let_go(const exchange_plan& plan) {
    if (plan.agreed()) let_go_.push_back({plan.id, plan.workers});
    else begun_.erase(plan.id);
  }

  /// Whether the worker began call `sequence` of an exchange; of a forgotten one it began all.
  bool begins(std::uint64_t exchange, std::uint64_t sequence) const {
    const auto found = begun_.find(exchange);
    return found == begun_.end() ? exchange <= bound_ : found->second > sequence;
  }

 private:
  struct let_go_exchange {
    std::uint64_t id;
    std::vector<int> workers;
  };

  std::unordered_map<std::uint64_t, std::uint64_t> begun_;
  std::vector<let_go_exchange> let_go_;
  std::uint64_t bound_ = 0;  // the largest id of an exchange: its workers' ids grow
};

}  // namespace tessera::detail
