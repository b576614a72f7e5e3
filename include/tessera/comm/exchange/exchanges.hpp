#pragma once

#include <tessera/comm/exchange/agreement.hpp>

#include <unordered_map>

namespace tessera::engine {

/// The exchanges of a team, each bound on its first use.
///
/// A set of workers keeps at most `most` exchanges. With one more, its workers forget together the one that the first
/// of them has not used for longest.
class exchanges {
 public:
  explicit exchanges(transport& carrier, std::size_t most = 1024) : carrier_(carrier), most_(most) {}

  std::shared_ptr<bound_exchange> bound(const phase& p, element e, const call_context& context) {
    auto& known = bound_[exchange_plan::key_of(p, e, context)];
    if (!known) known = bind(p, e, context);
    return known;
  }

 private:
  std::shared_ptr<bound_exchange> bind(const phase& p, element e, const call_context& context) {
    exchange_plan plan(p, carrier_.rank(), e, context);
    fingerprint workers;
    for (const int w : plan.workers) workers << w;
    auto& alike = by_workers_[workers.value()];
    const auto oldest = std::min_element(alike.begin(), alike.end(),
                                         [](const auto& a, const auto& b) { return a->last_used < b->last_used; });
    const std::uint64_t goes =
        agreement::assign_id(carrier_, plan, alike.size() < most_ ? 0 : (*oldest)->plan().id, context);
    std::erase_if(alike, [&](const auto& x) {
      if (x->plan().id != goes) return false;
      x->retired = true;
      bound_.erase(x->plan().key);
      return true;
    });
    return alike.emplace_back(carrier_.bind(std::move(plan)));
  }

  transport& carrier_;
  std::size_t most_;
  std::unordered_map<std::uint64_t, std::shared_ptr<bound_exchange>> bound_;  // by key
  std::unordered_map<std::uint64_t, std::vector<std::shared_ptr<bound_exchange>>> by_workers_;
};

}  // namespace tessera::engine
