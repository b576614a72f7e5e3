#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace tessera::nn::engine {

/// A thread that does what it is given, in order. What it has not begun when it is told to forget, or ends, it never
/// does.
template <class Result>
class background_thread {
 public:
  background_thread() : thread_([this] { run(); }) {}
  background_thread(const background_thread&) = delete;
  background_thread& operator=(const background_thread&) = delete;
  ~background_thread() {
    {
      const std::lock_guard lock(mutex_);
      tasks_.clear();
      ends_ = true;
    }
    wakes_.notify_one();
    thread_.join();
  }

  /// What f() gives, or throws, when its turn has come.
  template <class F>
  std::future<Result> begin(F f) {
    std::packaged_task<Result()> task(std::move(f));
    std::future<Result> result = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wakes_.notify_one();
    return result;
  }

  void forget() {
    const std::lock_guard lock(mutex_);
    tasks_.clear();
  }

 private:
  void run() {
    for (std::unique_lock lock(mutex_);;) {
      wakes_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
      if (ends_) return;
      std::packaged_task<Result()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = {};  // what it holds goes here, not under the lock
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<std::packaged_task<Result()>> tasks_;
  bool ends_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tessera::nn::engine
