#pragma once

#include <tessera/comm/nccl/transport.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::engine {

/// A call between devices: on the host until all have begun it, then on a stream.
struct nccl_call final : exchange_call, ordered_call {
  /// A box on its way: from or to its place in the tensor, or, packed, memory beside it.
  struct letter {
    index_t lies = 0;     // in the tensor, in bytes
    index_t packed = -1;  // beside it
    std::size_t bytes = 0;
  };

  nccl_exchange* of = nullptr;
  std::uint64_t mine = 0;               // what this worker tells the others,
  std::vector<std::uint64_t> begun_by;  // and all tell it
  std::optional<in_flight> telling;
  device_event ready;  // the tensors, for the exchange,
  device_event done;   // and for who reads them
  bool launched = false;
  cudaStream_t current = nullptr;  // on which it was begun
  std::vector<letter> receives;    // as the plan has them
  std::vector<letter> sends;
  index_t bytes_beside = 0;

  bool is_described = false;
  box_vector strides_in;
  box_vector strides_out;
};

}  // namespace tessera::engine
