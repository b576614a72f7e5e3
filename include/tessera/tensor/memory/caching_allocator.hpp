#pragma once

#include <tessera/comm/memory/shared_heap.hpp>
#include <tessera/comm/workers.hpp>

#include <c10/core/CPUAllocator.h>

#include <set>

namespace tessera {

/// LibTorch's memory on the CPU while a launch runs: what one tensor gives back the next one takes, without a page
/// fault.
///
/// There is one in a process and it never ends, so a tensor may outlive its launch and be freed by any thread.
/// LibTorch's own allocator is back when the last launch has ended. One that the program set with a priority of its own
/// stays.
class caching_allocator final : public c10::Allocator {
 public:
  static caching_allocator& of_process() {
    static auto* const one = new caching_allocator;
    return *one;
  }

  /// The bytes that tensors use and that are kept for them; the peak is that of the launch.
  engine::memory_use use() const { return blocks_.use(); }
  /// Gives what no tensor uses back to the system.
  void trim() { blocks_.trim(); }

  c10::DataPtr allocate(std::size_t bytes) override {
    void* const data = blocks_.allocate(bytes);
    c10::profiledCPUMemoryReporter().New(data, bytes);
    return {data, data, &deallocate, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &deallocate; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  /// Serves LibTorch while it lives. Of several launches at once the smallest cap holds.
  class service {
   public:
    explicit service(const launch_options& options) : cap_(options.memory_cap), on_(options.caches_memory) {
      if (!on_) return;
      if (engine::shares_memory(options)) engine::shared_heap::of_process().open();
      of_process().begin(cap_);
    }
    service(const service&) = delete;
    service& operator=(const service&) = delete;
    ~service() {
      if (on_) of_process().end(cap_);
    }

   private:
    std::size_t cap_;
    bool on_;
  };

 private:
  caching_allocator() = default;

  static void deallocate(void* data) {
    c10::profiledCPUMemoryReporter().Delete(data);
    engine::block_cache::deallocate(data);
  }
  void begin(std::size_t cap) {
    std::lock_guard lock(mutex_);
    if (caps_.empty()) {
      before_ = c10::GetCPUAllocator();
      c10::SetCPUAllocator(this);
      blocks_.restart_peak();
    }
    caps_.insert(cap);
    blocks_.limit(*caps_.begin());
  }
  void end(std::size_t cap) {
    std::lock_guard lock(mutex_);
    caps_.erase(caps_.find(cap));
    if (caps_.empty()) {
      if (c10::GetCPUAllocator() == this) c10::SetCPUAllocator(before_);
      blocks_.limit(engine::no_memory_cap);
      blocks_.trim();
    } else {
      blocks_.limit(*caps_.begin());
    }
  }

  /// Those that the node's processes see, from when they are there.
  struct pages final : engine::page_source {
    std::byte* allocate(std::size_t bytes) override {
      return seen.is_open() ? seen.allocate(bytes) : own.allocate(bytes);
    }
    void deallocate(std::byte* at, std::size_t bytes) override {
      seen.holds(at) ? seen.deallocate(at, bytes) : own.deallocate(at, bytes);
    }

    engine::private_pages own;
    engine::shared_heap& seen = engine::shared_heap::of_process();
  };

  pages pages_;
  engine::block_cache blocks_{pages_};
  std::mutex mutex_;
  std::multiset<std::size_t> caps_;  // of the launches that run
  c10::Allocator* before_ = nullptr;
};

}  // namespace tessera
