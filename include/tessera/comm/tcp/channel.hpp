#pragma once

#include <tessera/comm/tcp/connection.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace tessera {

namespace engine {

class tcp_exchange;

}  // namespace engine

namespace detail {

/// A worker's side of an exchange: others may begin calls before it is bound here, and when it is gone.
struct tcp_channel {
  /// A box that came before its call began.
  struct early_box {
    int from;
    tcp_frame frame;
    std::vector<std::byte> bytes;
  };
  /// How far another worker is, in calls.
  struct progress {
    std::uint64_t begun = 0;
    std::uint64_t offered = 0;  ///< with a box for this worker
  };

  explicit tcp_channel(std::uint64_t begun) : calls(begun) {}

  std::uint64_t calls;  ///< that this worker began
  tcp_exchange* bound = nullptr;
  bool gone = false;         ///< it was bound
  std::vector<int> readers;  ///< of its boxes
  std::map<int, progress> others;
  std::vector<early_box> early;
  std::string does;  ///< for whoever asks when it is gone

  std::uint64_t begun_by(int worker) const {
    const auto found = others.find(worker);
    return found == others.end() ? 0 : found->second.begun;
  }
  /// Whether all readers have begun the calls for which boxes are on their way.
  bool is_read() const {
    return std::all_of(readers.begin(), readers.end(), [this](int r) { return begun_by(r) >= calls; });
  }
  /// Whether nothing more comes of it: nobody began a call that this worker did not begin.
  bool is_done() const {
    return gone && is_read() &&
           std::all_of(others.begin(), others.end(), [this](const auto& o) { return o.second.begun <= calls; });
  }
};

}  // namespace detail
}  // namespace tessera
