#pragma once

#include <tessera/comm/environment.hpp>
#include <tessera/comm/transport.hpp>

#include <optional>

namespace tessera {

/// The device of a worker among those that its process sees: the chosen one, else its local rank mod their number. Workers that are threads see
/// the devices of one process, and there the local rank is the rank.
inline int worker_device(const transport& host, int devices, std::optional<int> chosen) {
  if (devices == 0) throw error(refusal{code::no_device, host.rank()});
  if (host.traits().shares_memory) return chosen.value_or(host.rank() % devices);
  return read_environment({.devices = devices, .device = chosen}).device;
}

}  // namespace tessera
