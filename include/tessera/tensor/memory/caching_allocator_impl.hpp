#pragma once

#include <tessera/comm/memory/shared_heap.hpp>
#include <tessera/tensor/memory/caching_allocator.hpp>

#include <c10/core/CPUAllocator.h>

#include <set>

namespace tessera {

struct caching_allocator::state {
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

  static void deallocate(void* data) {
    c10::profiledCPUMemoryReporter().Delete(data);
    engine::block_cache::deallocate(data);
  }

  pages from;
  engine::block_cache blocks{from};
  std::mutex mutex;
  std::multiset<std::size_t> caps;  // of the launches that run
  c10::Allocator* before = nullptr;
};

TESSERA_INLINE caching_allocator::caching_allocator() : my_(*new state) {}

TESSERA_INLINE caching_allocator& caching_allocator::of_process() {
  static auto* const one = new caching_allocator;
  return *one;
}

TESSERA_INLINE engine::memory_use caching_allocator::use() const { return my_.blocks.use(); }

TESSERA_INLINE void caching_allocator::trim() { my_.blocks.trim(); }

TESSERA_INLINE c10::DataPtr caching_allocator::allocate(std::size_t bytes) {
  void* const data = my_.blocks.allocate(bytes);
  c10::profiledCPUMemoryReporter().New(data, bytes);
  return {data, data, &state::deallocate, c10::Device(c10::DeviceType::CPU)};
}

TESSERA_INLINE c10::DeleterFnPtr caching_allocator::raw_deleter() const { return &state::deallocate; }

TESSERA_INLINE void caching_allocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  default_copy_data(to, from, bytes);
}

TESSERA_INLINE caching_allocator::service::service(const launch_options& options)
    : cap_(options.memory_cap), on_(options.caches_memory) {
  if (!on_) return;
  if (engine::shares_memory(options)) engine::shared_heap::of_process().open();
  of_process().begin(cap_);
}

TESSERA_INLINE caching_allocator::service::~service() {
  if (on_) of_process().end(cap_);
}

TESSERA_INLINE void caching_allocator::begin(std::size_t cap) {
  std::lock_guard lock(my_.mutex);
  if (my_.caps.empty()) {
    my_.before = c10::GetCPUAllocator();
    c10::SetCPUAllocator(this);
    my_.blocks.restart_peak();
  }
  my_.caps.insert(cap);
  my_.blocks.limit(*my_.caps.begin());
}

TESSERA_INLINE void caching_allocator::end(std::size_t cap) {
  std::lock_guard lock(my_.mutex);
  my_.caps.erase(my_.caps.find(cap));
  if (my_.caps.empty()) {
    if (c10::GetCPUAllocator() == this) c10::SetCPUAllocator(my_.before);
    my_.blocks.limit(engine::no_memory_cap);
    my_.blocks.trim();
  } else {
    my_.blocks.limit(*my_.caps.begin());
  }
}

}  // namespace tessera
