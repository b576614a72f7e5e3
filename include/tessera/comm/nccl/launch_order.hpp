#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tessera::engine {

/// A call in the order of a communicator.
struct ordered_call {
  std::uint64_t id = 0;     ///< of its exchange
  std::uint64_t begun = 0;  ///< this worker began so many calls of the communicator with it,
  /// and the worker that began it last so many; 0 as long as one has not, as far as this worker knows
  std::uint64_t last = 0;
};

/// The order in which a worker hands the calls of a communicator to its device. NCCL matches calls by this order alone,
/// so it is the same on all workers.
///
/// Calls are ordered by (last, id), which all their workers know alike. Where all begin them in one order that is this
/// order, and a call may go as soon as all have begun it. (The agreement on a largest number is Skeen's; Birman and
/// Joseph 1987.)
class launch_order {
 public:
  void begin(ordered_call& call, std::uint64_t id) {
    call = {id, ++begun_, 0};
    pending_.push_back(&call);
  }
  void remove(const ordered_call& call) { std::erase(pending_, &call); }

  const std::vector<ordered_call*>& pending() const { return pending_; }

  /// The first of those whose number is known.
  ordered_call* first() const {
    ordered_call* first = nullptr;
    for (ordered_call* c : pending_)
      if (c->last != 0 && (first == nullptr || before(*c, *first))) first = c;
    return first;
  }
  /// A call that may come before a known one, and whose number is not known.
  ordered_call* undecided(const ordered_call& known) const {
    for (ordered_call* c : pending_)
      if (c->last == 0 && (c->begun < known.last || (c->begun == known.last && c->id < known.id))) return c;
    return nullptr;
  }
  /// Whether this worker must begin others before a known call may go.
  bool needs_more(const ordered_call& known) const { return known.last > begun_; }

  /// The call that goes next, as soon as that is certain.
  ordered_call* next() const {
    ordered_call* const c = first();
    return c != nullptr && !needs_more(*c) && undecided(*c) == nullptr ? c : nullptr;
  }

 private:
  static bool before(const ordered_call& a, const ordered_call& b) {
    return a.last < b.last || (a.last == b.last && a.id < b.id);
  }

  std::uint64_t begun_ = 0;
  std::vector<ordered_call*> pending_;
};

}  // namespace tessera::engine
