#pragma once

#include <tessera/comm/exchange/bound_exchange.hpp>

#include <cstddef>
#include <vector>

namespace tessera::engine {

/// A call over connections: which of its boxes are where they belong.
struct tcp_call final : exchange_call {
  std::vector<bool> here;                      ///< by receive
  std::vector<std::vector<std::byte>> terms;   ///< of a Fold, until all are there
  std::size_t missing = 0;                     ///< receives that are not here
  bool added = false;                          ///< the terms are combined, or there are none
  std::vector<bool> gone;                      ///< by send: the connection has it
  std::vector<std::vector<std::byte>> packed;  ///< large boxes with gaps
  std::size_t unsent = 0;                      ///< sends of which something lies in the tensor, or beside it
};

}  // namespace tessera::engine
