#pragma once

#include <tessera/comm/base/checks.hpp>
#include <tessera/comm/exchange/bound_exchange.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>

namespace tessera {

namespace engine {

/// Where tensors lie: on the host, or on a device of a kind that LibTorch numbers, one of those that the process sees.
struct tensor_device {
  int kind = 0;
  int index = -1;
};

/// The capabilities of a transport, as data.
struct transport_traits {
  const char* name;
  bool shares_memory;       ///< receivers read the sender's box themselves: no staging
  tensor_device tensors{};  ///< where the tensors lie that it serves
};

/// The settings of a launch, the same on all of its workers.
struct transport_settings {
  std::chrono::seconds time_limit{600};      ///< how long a worker waits for another one
  tessera::checks checks = checks::sampled;  ///< how often teams compare what workers do and hold
  /// the share of a worker's outputs up to which those whose windows read a halo come behind the others
  double edges_apart = 0;
};

/// Carries boxes between the workers of one launch; seen from one of them. Its exchanges keep it alive, so a
/// std::shared_ptr owns it.
class transport : public std::enable_shared_from_this<transport> {
 public:
  transport() = default;
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;
  virtual ~transport() = default;

  virtual transport_traits traits() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Makes ready for calls of a plan that its workers agreed on, all of them now (see `bind_exchange`).
  virtual std::shared_ptr<bound_exchange> bind(exchange_plan plan) = 0;

  /// The offer of this worker's transport for a plan, when workers agree on it; they have it in
  /// `exchange_plan::offers`.
  virtual std::uint64_t offer(const exchange_plan&) { return 0; }

  /// The transport for numbers in host memory between the same workers, by which they agree; a transport for a device
  /// has another one.
  virtual transport& host() { return *this; }
  /// Waits until the host may read what calls brought: those of tensors on a device end in the order of its stream.
  virtual void synchronise() {}
  /// Ends what all workers end together, when their programs are done: each calls it, and exchanges nothing afterwards.
  virtual void close() {}

  /// How many exchanges may be bound at once; of so many numbers in a row each has another place.
  virtual std::uint64_t most_exchanges() const { return ~std::uint64_t{0}; }
  /// The first number from this one on that a plan can have for its id on this worker; 0 if there is none.
  virtual std::uint64_t free_id(std::uint64_t from) const { return from; }

  /// Whether this worker's program ended: nothing can be carried any more.
  virtual bool ended() const = 0;

  /// The error that stopped the workers, if one did.
  virtual std::optional<error> failure() const = 0;

  /// Throws what stopped the workers, if anything did: for who waits outside of a call.
  virtual void listen() = 0;

  /// From now on the launch fails, with the first error that it is given.
  void fail_with(const error& why) {
    if (!fault) fault = why;
  }

  const transport_settings& settings() const { return settings_; }
  /// Takes other ones, on all workers, while none of them is in a call; a team keeps the checks that it was made with.
  void configure(const transport_settings& settings) { settings_ = settings; }

  std::optional<error> fault;  ///< the launch fails with it, even if the program goes on (`fail_with`)
  /// is told what stopped this worker, where its program calls again behind it
  std::function<void(const error&)> went_on;
  std::function<void()> meanwhile;  ///< what this worker goes on with while it waits in a call
  /// what workers do together when their programs ended well, before they leave
  std::deque<std::function<void()>> exit_hooks;

 protected:
  /// The handle that keeps an exchange's transport alive. Those of agreements keep nothing: the transport itself has
  /// them.
  std::shared_ptr<const void> keep_alive(const exchange_plan& plan) const {
    return plan.agrees() ? nullptr : shared_from_this();
  }
  /// Lets them go, where they need what a transport has.
  void forget_agreements() { agreements_.clear(); }

 private:
  friend class agreement;

  transport_settings settings_;
  std::map<std::uint64_t, std::shared_ptr<bound_exchange>> agreements_;
  std::uint64_t next_id_ = 1;  // of a plan that workers agree on
};

}  // namespace engine

namespace detail {

/// When a wait that begins now has lasted too long; a limit beyond a century is a century.
inline std::chrono::steady_clock::time_point deadline_after(std::chrono::seconds limit) {
  return std::chrono::steady_clock::now() + std::min<std::chrono::seconds>(limit, std::chrono::hours(24 * 36525));
}

}  // namespace detail
}  // namespace tessera
