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

  std::shared_ptr<bound_exchange> bound(const phase& p, element e, const call_context& context);

 private:
  std::shared_ptr<bound_exchange> bind(const phase& p, element e, const call_context& context);

  transport& carrier_;
  std::size_t most_;
  std::unordered_map<std::uint64_t, std::shared_ptr<bound_exchange>> bound_;  // by key
  std::unordered_map<std::uint64_t, std::vector<std::shared_ptr<bound_exchange>>> by_workers_;
};

}  // namespace tessera::engine

#ifndef TESSERA_COMPILED
#include <tessera/comm/exchange/exchanges_impl.hpp>
#endif
