#pragma once

#include <tessera/comm/exchange/exchanges.hpp>

namespace tessera::engine {

TESSERA_INLINE std::shared_ptr<bound_exchange> exchanges::bound(const phase& p, element e,
                                                                const call_context& context) {
  auto& known = bound_[exchange_plan::key_of(p, e, context)];
  if (!known) known = bind(p, e, context);
  return known;
}

TESSERA_INLINE std::shared_ptr<bound_exchange> exchanges::bind(const phase& p, element e, const call_context& context) {
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

}  // namespace tessera::engine
