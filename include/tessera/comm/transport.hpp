#pragma once

#include <tessera/comm/activity.hpp>
#include <tessera/comm/error.hpp>
#include <tessera/comm/region.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace tessera {

/// One box on its way to or from a world rank. Terms of a half type travel as that and are added to floats.
struct parcel {
  int peer = 0;
  region where;
  element travels_as = element::float32;

  index_t bytes() const { return where.count() * bytes_of(travels_as); }

  /// The box as it travels, packed somewhere.
  region packed_at(std::byte* there) const {
    region r = where.packed_at(there);
    r.element = travels_as;
    return r;
  }
};

/// What arrived at a worker, without what it takes from itself.
struct received {
  index_t bytes = 0;
  index_t messages = 0;
};

/// One call of an exchange: what this worker sends and receives, and what the transport keeps meanwhile.
///
/// Receives are taken in their order, so a Fold adds in the same order on every transport.
struct exchange_call {
  std::uint64_t fingerprint = 0;  ///< of plan, element type and purpose: equal on both ends of every parcel
  std::uint64_t sequence = 0;     ///< how many calls of this fingerprint the worker began before; kept by transports that need it
  activity does;                  ///< for whoever asks
  bool accumulates = false;       ///< receives are combined into their regions (Fold), not copied (Move)
  combine with = combine::sum;
  std::vector<parcel> sends;
  std::vector<parcel> receives;

  region rounded;               ///< where sums go that are made in a wider type
  region sums;                  ///< and where they are made
  std::vector<std::byte> wide;  ///< their memory

  received got;  ///< counted by the transport

  std::vector<std::byte> staging;  ///< belongs to the transport between start and finish, and is reused
  std::shared_ptr<void> pending;   ///< the transport's own, likewise
};

/// What a transport can do, as data.
struct transport_traits {
  const char* name;
  bool shares_memory;  ///< receivers read the sender's box themselves: no staging
  bool device;         ///< serves tensors on an accelerator
};

/// Carries boxes between the workers of one launch.
///
/// Calls that mean the same are begun in the same order on all workers; beyond that any number may be under way, and end in any
/// order. `finish` returns when this worker's boxes have arrived and its readers have read; nothing is computed here but copies
/// and combines.
class transport {
 public:
  transport() = default;
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;
  virtual ~transport() = default;

  virtual transport_traits traits() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void start(exchange_call& call) = 0;
  virtual void finish(exchange_call& call) = 0;

  /// Gives up a call that will not be finished: nobody reads or writes its boxes afterwards. It can be called for one whose
  /// start or finish threw.
  virtual void withdraw(std::unique_ptr<exchange_call> call) noexcept = 0;

  /// Whether this worker's program ended: nothing can be carried any more.
  virtual bool ended() const = 0;

  /// The error that stopped the workers, if one did.
  virtual std::optional<error> failure() const = 0;

  std::chrono::seconds time_limit{600};  ///< how long a worker waits for another one
  bool checked = false;                  ///< teams compare what workers do and hold at every operation
  std::optional<error> disagreement;     ///< what a comparison found: the launch fails, even if the program goes on
};

namespace detail {

/// When a wait that begins now has lasted too long; a limit beyond a century is a century.
inline std::chrono::steady_clock::time_point deadline_after(std::chrono::seconds limit) {
  return std::chrono::steady_clock::now() + std::min<std::chrono::seconds>(limit, std::chrono::hours(24 * 36525));
}

/// The region that this worker sends to itself as its k-th box to itself.
inline const region* own_parcel(const exchange_call& call, int rank, int k) {
  for (const parcel& p : call.sends)
    if (p.peer == rank && k-- == 0) return &p.where;
  return nullptr;
}

inline void deliver(const exchange_call& call, const region& from, const region& to) {
  if (call.accumulates)
    accumulate(from, to, call.with);
  else
    copy(from, to);
}

}  // namespace detail
}  // namespace tessera
