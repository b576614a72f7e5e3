#pragma once

#include <chrono>
#include <thread>

namespace tessera::detail {

/// How a worker waits: it looks again at once for some microseconds, then lets others go first, then sleeps between looks, for an
/// eighth of what it has waited and a millisecond at most. Where workers are more than cores, others go first from the beginning.
class patience {
 public:
  using clock = std::chrono::steady_clock;

  explicit patience(bool crowded, bool sleeps = true) : looks_(crowded ? spinning : 0), sleeps_(sleeps) {}

  /// Waits a little; whether it is time to look at more than what is waited for.
  bool pause() {
    if (looks_ < spinning) {
      ++looks_;
      relax();
      return false;
    }
    if (++looks_ % 16 != 0) {
      std::this_thread::yield();
      return false;
    }
    const auto now = clock::now();
    if (since_ == clock::time_point{}) since_ = now;
    waited_ = now - since_;
    if (sleeps_ && waited_ > std::chrono::milliseconds(1)) {
      std::this_thread::sleep_for(std::min<clock::duration>(waited_ / 8, std::chrono::milliseconds(1)));
      looks_ = spinning + 15;  // the next pause looks around again
    } else {
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
  bool sleeps_;
  clock::time_point since_{};
  clock::duration waited_{};
};

}  // namespace tessera::detail
