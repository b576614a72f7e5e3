#pragma once
// Workers of one process that have connections between them, as processes without MPI have.

#include "in_workers.hpp"

#include <tessera/comm/tcp/exchange.hpp>

#include <condition_variable>
#include <mutex>

namespace tessera::testing {

using namespace engine;

/// Where threads meet as processes do by a store; `disturb` is called when all have handed in their texts, before any
/// gets them.
class in_memory_store {
 public:
  explicit in_memory_store(int size, std::function<void(const std::vector<std::string>&)> disturb = {})
      : texts_(static_cast<std::size_t>(size)), disturb_(std::move(disturb)) {}

  std::vector<std::string> gather(int rank, const std::string& mine) {
    std::unique_lock lock(mutex_);
    texts_[static_cast<std::size_t>(rank)] = mine;
    if (++met_ == texts_.size()) {
      if (disturb_) disturb_(texts_);
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return met_ >= texts_.size(); });
    return texts_;
  }

 private:
  std::vector<std::string> texts_;
  std::function<void(const std::vector<std::string>&)> disturb_;
  std::size_t met_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// One of so many workers of this machine.
inline launch_environment started_as(int rank, int world) {
  return {.by = launcher::torchrun,
          .rank = rank,
          .world = world,
          .local_rank = rank,
          .local_world = world,
          .address = "127.0.0.1",
          .port = 29500};
}

/// Workers that share nothing.
class by_sockets {
 public:
  static constexpr bool ends_alone = false;
  static constexpr std::chrono::milliseconds too_late{5000};  // those that wait ask once more

  explicit by_sockets(int size, std::optional<bool> = {}) : store_(size), size_(size) {}

  std::shared_ptr<tcp_transport> worker(int rank, std::chrono::seconds limit) {
    const auto meet = [this](const launch_environment& started, const std::string& mine, std::chrono::seconds) {
      return store_.gather(started.rank, mine);
    };
    return std::make_shared<tcp_transport>(started_as(rank, size_), meet, limit);
  }
  void abandon(tcp_transport& worker, const error& why) {
    worker.abandon(why);
    worker.hang_up();
  }

 private:
  in_memory_store store_;
  int size_;
};

}  // namespace tessera::testing
