#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::detail {

/// A worker that has to begin the call which another waits in, or to take one of so many calls before.
struct dependency {
  int peer = 0;
  bool offers_else = false;  ///< it has shown or sent what no call takes
  bool reads = false;
  std::uint64_t behind = 0;
};

/// The workers that a call needs, each once, in the order of first need.
class dependencies {
 public:
  dependencies(std::vector<dependency> all = {}) : all_(std::move(all)) {}

  /// Adds a worker unless it is there; offers_else(worker) is asked then.
  template <class OffersElse>
  void add(int peer, const OffersElse& offers_else, bool reads = false, std::uint64_t behind = 0) {
    if (std::none_of(all_.begin(), all_.end(), [peer](const dependency& n) { return n.peer == peer; }))
      all_.push_back({peer, offers_else(peer), reads, behind});
  }
  void add(int peer) {
    add(peer, [](int) { return false; });
  }

  bool empty() const { return all_.empty(); }
  const dependency& front() const { return all_.front(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<dependency> all_;
};

}  // namespace tessera::detail
