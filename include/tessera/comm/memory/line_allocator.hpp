#pragma once

#include <tessera/comm/memory/pages.hpp>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tessera::engine {

/// Hands out runs of cache lines from pages that serve nothing else and are never freed. A run that was given back is
/// handed out again as the same run.
///
/// So a late reader of a run that was given back finds memory of the same kind. One thread asks.
class line_allocator {
 public:
  static constexpr std::size_t line_bytes = 64;

  explicit line_allocator(page_source& source) : source_(source) {}

  /// So many in a row, zero when they are new; nullptr where there are no more pages.
  std::byte* allocate(std::size_t lines) {
    ++allocations_;
    std::vector<std::byte*>& free = free_[lines];
    if (!free.empty()) {
      std::byte* const at = free.back();
      free.pop_back();
      return at;
    }
    if (left_ < lines * line_bytes) {
      const std::size_t bytes = (lines * line_bytes + chunk - 1) / chunk * chunk;
      at_ = source_.allocate(bytes);
      left_ = at_ == nullptr ? 0 : bytes;
      if (at_ == nullptr) return nullptr;
    }
    left_ -= lines * line_bytes;
    return std::exchange(at_, at_ + lines * line_bytes);
  }
  void deallocate(std::byte* at, std::size_t lines) { free_[lines].push_back(at); }

  /// How many runs were ever taken.
  std::uint64_t allocations() const { return allocations_; }

 private:
  static constexpr std::size_t chunk = 16 * page_source::page;

  page_source& source_;
  std::byte* at_ = nullptr;  // what no run has been cut from yet
  std::size_t left_ = 0;
  std::map<std::size_t, std::vector<std::byte*>> free_;  // runs, by length
  std::uint64_t allocations_ = 0;
};

}  // namespace tessera::engine
