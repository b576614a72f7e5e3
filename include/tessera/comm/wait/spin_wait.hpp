#pragma once

#include <chrono>
#include <thread>

namespace tessera::detail {

/// How a worker waits: it looks again at once for some microseconds, then yields, then sleeps between looks. A sleep
/// lasts an eighth of the time waited, at most a millisecond. Where workers are more than cores, others go first from
/// the beginning.
class spin_wait {
 public:
  using clock = std::chrono::steady_clock;

  /// Its rest when it has looked for a while: none, where the check itself lets others go first.
  enum class rest { none, yield, sleep };

  explicit spin_wait(bool crowded, rest between = rest::sleep) : looks_(crowded ? spinning : 0), rest_(between) {}

  /// Waits a little; whether it is time to look at more than what is waited for.
  bool pause() {
    if (looks_ < spinning) {
      ++looks_;
      if (rest_ != rest::none) relax();
      return false;
    }
    if (++looks_ % 16 != 0) {
      if (rest_ != rest::none) std::this_thread::yield();
      return false;
    }
    const auto now = clock::now();
    if (since_ == clock::time_point{}) since_ = now;
    waited_ = now - since_;
    if (rest_ == rest::sleep && waited_ > std::chrono::milliseconds(1)) {
      std::this_thread::sleep_for(std::min<clock::duration>(waited_ / 8, std::chrono::milliseconds(1)));
      looks_ = spinning + 15;  // the next pause looks around again
    } else if (rest_ != rest::none) {
      std::this_thread::yield();
    }
    return true;
  }

  /// How long, when it last looked around.
  clock::duration waited() const { return waited_; }

 private:
  static constexpr unsigned spinning = 300;

  static void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  unsigned looks_;
  rest rest_;
  clock::time_point since_{};
  clock::duration waited_{};
};

}  // namespace tessera::detail
