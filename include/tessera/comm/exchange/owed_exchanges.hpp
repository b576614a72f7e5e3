#pragma once

#include <algorithm>
#include <vector>

namespace tessera::engine {

class bound_exchange;

/// Something that a worker started, of several exchanges, each of which begins when the one before has arrived.
class owing {
 public:
  /// Whether it has exchanges to begin, or one of these.
  virtual bool owes() const = 0;
  virtual bool owes(const bound_exchange& one) const = 0;
  /// Begins those that it may: `before` have still to begin others.
  virtual void go_on(const std::vector<owing*>& before) = 0;
  /// Begins all, and waits for those before.
  virtual void begin_all() = 0;

 protected:
  ~owing() = default;
};

/// The exchanges that this thread's worker owes the others, in the order in which it started them.
///
/// Nothing goes on behind a worker's back, so a worker begins all that it owes before it waits for anything. Order
/// changes by their starts, and a change's exchanges by its parts: a worker that waits for exchange (i, k) has begun
/// all before it. So the least of what any worker waits for is begun by all, and arrives. Calls of one exchange are
/// begun in one order everywhere: of two started things the earlier one's first.
class owed_exchanges {
 public:
  static owed_exchanges& here() {
    thread_local owed_exchanges of_worker;
    return of_worker;
  }

  void add(owing& x) { all_.push_back(&x); }
  void remove(owing& x) { std::erase(all_, &x); }

  static bool owe(const std::vector<owing*>& some, const bound_exchange& one) {
    return std::any_of(some.begin(), some.end(), [&](const owing* x) { return x->owes(one); });
  }
  bool owes(const bound_exchange& one) const { return owe(all_, one); }

  /// Begins what it may without waiting.
  void go_on() {
    if (all_.empty() || waits_) return;
    std::vector<owing*> before;
    for (owing* const x : all_) {
      x->go_on(before);
      if (x->owes()) before.push_back(x);
    }
    all_ = before;
  }

  /// Begins all. Every wait calls it first.
  void begin_all() {
    if (all_.empty() || waits_) return;
    waits_ = true;
    struct until_left {
      bool& flag;
      ~until_left() { flag = false; }
    } const here{waits_};
    for (owing* const x : all_) x->begin_all();
    all_.clear();
  }

 private:
  std::vector<owing*> all_;
  bool waits_ = false;
};

}  // namespace tessera::engine
