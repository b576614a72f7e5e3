#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace tessera::engine {

/// Where memory comes from, in whole pages that nobody has touched.
struct page_source {
  static constexpr std::size_t page = 4096;

  virtual std::byte* allocate(std::size_t bytes) = 0;  ///< nullptr where there is no more
  virtual void deallocate(std::byte* pages, std::size_t bytes) = 0;

 protected:
  ~page_source() = default;
};

/// Pages that only this process sees.
struct private_pages final : page_source {
  std::byte* allocate(std::size_t bytes) override {
    void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
  }
  void deallocate(std::byte* pages, std::size_t bytes) override { munmap(pages, bytes); }
};

}  // namespace tessera::engine
