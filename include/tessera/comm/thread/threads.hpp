#pragma once

#include <tessera/comm/launch/exit_guard.hpp>
#include <tessera/comm/thread/in_process.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

namespace tessera::detail {

/// Workers that are threads of this process: none begins before all are there, and none is waited for without end.
class worker_threads {
 public:
  worker_threads(std::chrono::seconds limit, std::shared_ptr<thread_rendezvous> meeting)
      : limit_(limit), meeting_(std::move(meeting)), running_(static_cast<std::size_t>(meeting_->size()), false) {}

  /// Runs work(rank) in a thread for each worker; false if the system has not as many threads.
  ///
  /// The process ends when one worker has ended and the others make no progress for the time limit: nothing else stops
  /// a thread. After an error that is about a worker which is stuck it ends at once.
  template <class Work>
  bool run(Work&& work) {
    std::vector<std::thread> threads;
    try {
      for (int r = 0; r < meeting_->size(); ++r)
        threads.emplace_back([&, r] {
          if (!may_begin()) return;
          work(r);
          std::lock_guard lock(mutex_);
          running_[static_cast<std::size_t>(r)] = false;
          changed_.notify_all();
        });
    } catch (const std::system_error&) {
      made_ = static_cast<int>(threads.size());
    }
    const bool all = made_ < 0;
    {
      std::lock_guard lock(mutex_);
      state_ = all ? state::begun : state::called_off;
      if (all) running_.assign(running_.size(), true);
      changed_.notify_all();
    }
    watch();
    for (auto& t : threads) t.join();
    return all;
  }

  /// How many threads the system gave, where it has not enough.
  int made() const { return made_; }

 private:
  enum class state { waiting, begun, called_off };

  bool may_begin() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return state_ != state::waiting; });
    return state_ == state::begun;
  }
  int count() const { return static_cast<int>(std::count(running_.begin(), running_.end(), true)); }

  // Returns when no worker runs.
  void watch() {
    std::unique_lock lock(mutex_);
    const int size = static_cast<int>(running_.size());
    changed_.wait(lock, [&] { return count() < size; });
    auto until = deadline();
    for (std::uint64_t calls = 0; count() > 0;) {
      const int before = count();
      changed_.wait_for(lock, std::chrono::milliseconds(200));
      if (count() < before || meeting_->calls() != calls) until = deadline();
      calls = meeting_->calls();
      if (std::chrono::steady_clock::now() > until && count() > 0) end_with_the_stuck();
    }
  }
  // Those that wait meet their own time limit before.
  std::chrono::steady_clock::time_point deadline() const {
    return deadline_after(told_already() ? std::chrono::seconds(1) : limit_) + std::chrono::seconds(1);
  }
  bool told_already() const {
    const std::optional<error> met = meeting_->failure();
    return met && met->is(code::time_limit);
  }
  void end_with_the_stuck() const {
    const auto stuck = static_cast<int>(std::find(running_.begin(), running_.end(), true) - running_.begin());
    const auto ended = static_cast<int>(std::find(running_.begin(), running_.end(), false) - running_.begin());
    if (!told_already())
      report_failure("launch", error(refusal{code::time_limit, ended, stuck, limit_.count()},
                                     worker_text(ended, has_ended) + "; " + worker_text(stuck, in_no_call)));
    end_process();
  }

  std::chrono::seconds limit_;
  std::shared_ptr<thread_rendezvous> meeting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  state state_ = state::waiting;
  std::vector<bool> running_;
  int made_ = -1;
};

}  // namespace tessera::detail
