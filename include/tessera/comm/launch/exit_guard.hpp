#pragma once

#include <tessera/comm/base/error.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::detail {

/// Prints what went wrong, in one piece.
inline void report_failure(std::string_view who, const std::exception& what) {
  const std::string line = fmt::format("tessera: {}: {}\n", who, what.what());
  std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

/// Ends the process whatever its threads do.
inline void end_process() {
  std::fflush(nullptr);
  std::_Exit(EXIT_FAILURE);
}

/// While it lives, a call of std::exit by this worker is an error and ends all of them: the others would wait for it.
class exit_guard {
 public:
  exit_guard(std::string who, int rank, void (*end)())
      : who_(std::move(who)), rank_(rank), end_(end), outer_(std::exchange(mine(), this)) {
    ++guarded();
    [[maybe_unused]] static const int once = std::atexit([] {
      if (guarded() == 0) return;
      if (const exit_guard* g = mine()) g->say();
      report_failure("a thread that is no worker", error(refusal{code::worker_lost}, called_exit));
      end_process();
    });
  }
  exit_guard(const exit_guard&) = delete;
  exit_guard& operator=(const exit_guard&) = delete;
  ~exit_guard() {
    --guarded();
    mine() = outer_;
  }

 private:
  static constexpr const char* called_exit = "it called exit";

  void say() const {
    report_failure(who_, error(refusal{code::worker_lost, rank_, rank_}, called_exit));
    end_();
  }
  static const exit_guard*& mine() {  // a plain pointer: destructors of this thread have run when exit asks
    thread_local const exit_guard* guard = nullptr;
    return guard;
  }
  static std::atomic<int>& guarded() {
    static std::atomic<int> workers{0};
    return workers;
  }

  std::string who_;
  int rank_;
  void (*end_)();
  const exit_guard* outer_;
};

}  // namespace tessera::detail
