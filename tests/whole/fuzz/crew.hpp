#pragma once
// Threads for thousands of small worlds.

#include <tessera/meta/namespaces.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::testing::fuzz {

using namespace engine;

/// Threads that stay for the next world: to start them takes longer than most cases.
class crew {
 public:
  crew() = default;
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;
  ~crew() {
    {
      const std::lock_guard lock(mutex_);
      closes_ = true;
    }
    begun_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  void run(int size, const std::function<void(int)>& f) {
    std::unique_lock lock(mutex_);
    int left = size;
    for (int r = 0; r < size; ++r) jobs_.push_back({&f, r, &left});
    for (; idle_ < jobs_.size(); ++idle_) threads_.emplace_back([this] { work(); });
    begun_.notify_all();
    finished_.wait(lock, [&] { return left == 0; });
  }

 private:
  struct job {
    const std::function<void(int)>* f;
    int rank;
    int* left;
  };

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      begun_.wait(lock, [&] { return closes_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      const job now = jobs_.front();
      jobs_.pop_front();
      --idle_;
      lock.unlock();
      (*now.f)(now.rank);
      lock.lock();
      ++idle_;
      if (--*now.left == 0) finished_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable begun_, finished_;
  std::deque<job> jobs_;
  std::size_t idle_ = 0;  // threads without a job, those that have not come to ask for one too
  std::vector<std::thread> threads_;
  bool closes_ = false;
};

/// Runs the workers of a world in threads that stay for the next one.
inline void in_kept_threads(int size, const std::function<void(int)>& f) {
  static crew all;
  all.run(size, f);
}

}  // namespace tessera::testing::fuzz
