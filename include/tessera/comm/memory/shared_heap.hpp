#pragma once

#include <tessera/comm/memory/block_cache.hpp>
#include <tessera/comm/memory/line_allocator.hpp>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace tessera::engine {

/// Memory of a process that the other processes of its node read: one mapping of an unnamed file, whose pages are
/// allocated when touched.
///
/// Nothing is left of it when its process ends, however that ends, and no size of /dev/shm bounds it. Its pages are not
/// those of a process that is forked: both would write to one tensor.
class shared_heap final : public page_source {
 public:
  shared_heap() = default;
  shared_heap(const shared_heap&) = delete;
  shared_heap& operator=(const shared_heap&) = delete;
  ~shared_heap() {
    copies_.trim();
    if (begin_ != nullptr) munmap(begin_, bytes_);
    if (file_ >= 0) close(file_);
  }

  /// The process's own, which never ends: tensors may outlive their launch.
  static shared_heap& of_process() {
    static auto* const one = new shared_heap;
    return *one;
  }

  /// Makes the mapping, once, with room for so many bytes or as many as a file may have. If it cannot, `why` says what
  /// refused.
  void open(std::size_t room = usual_room()) {
    if (is_open()) return;
    rlimit file{};
    // one byte more would be a signal
    if (getrlimit(RLIMIT_FSIZE, &file) == 0) room = std::min<std::size_t>(room, file.rlim_cur);
    room = room / page * page;
    if (room < smallest_room) return refuse("ulimit -f", EFBIG);
    if (file_ < 0) file_ = memfd_create("tessera", MFD_CLOEXEC);
    if (file_ < 0) return refuse("memfd_create", errno);
    if (ftruncate(file_, static_cast<off_t>(room)) != 0) return refuse("ftruncate", errno);
    void* const pages = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
    if (pages == MAP_FAILED) return refuse("mmap", errno);
    madvise(pages, room, MADV_DONTFORK);
    why_.clear();
    begin_ = static_cast<std::byte*>(pages);
    bytes_ = room;
    free_.emplace(page, room - page);
    *new (begin_) std::uint64_t = address().mark;
  }
  bool is_open() const { return begin_ != nullptr; }
  const std::string& why() const { return why_; }

  /// Where another process finds it, and a mark by which it knows that it did: it begins with it.
  struct card {
    std::uint64_t mark = 0;
    std::uint64_t bytes = 0;
    int process = 0;
    int file = -1;
  };
  card address() const { return {mark_, bytes_, static_cast<int>(getpid()), file_}; }

  bool holds(const std::byte* at) const { return begin_ <= at && at < begin_ + bytes_; }
  std::uint64_t offset_of(const std::byte* at) const { return static_cast<std::uint64_t>(at - begin_); }
  std::byte* at(std::uint64_t offset) const { return begin_ + offset; }

  /// For copies of what lies elsewhere.
  block_cache& copies() { return copies_; }
  /// For slots.
  line_allocator& lines() { return lines_; }

  std::byte* allocate(std::size_t bytes) override {
    std::lock_guard lock(mutex_);
    const auto room = std::find_if(free_.begin(), free_.end(), [&](const auto& f) { return f.second >= bytes; });
    if (room == free_.end()) return nullptr;
    const auto [at, size] = *room;
    free_.erase(room);
    if (size > bytes) free_.emplace(at + bytes, size - bytes);
    return begin_ + at;
  }
  void deallocate(std::byte* pages, std::size_t bytes) override {
    madvise(pages, bytes, MADV_REMOVE);
    std::lock_guard lock(mutex_);
    auto here = free_.emplace(offset_of(pages), bytes).first;
    if (const auto behind = std::next(here); behind != free_.end() && here->first + here->second == behind->first) {
      here->second += behind->second;
      free_.erase(behind);
    }
    if (here == free_.begin()) return;
    if (const auto before = std::prev(here); before->first + before->second == here->first) {
      before->second += here->second;
      free_.erase(here);
    }
  }

 private:
  static constexpr std::size_t smallest_room = std::size_t{1} << 20;

  // Addresses, not memory: twice what the machine has, so that gaps between tensors never fill it, where all processes
  // can map that.
  static std::size_t usual_room() {
    const auto memory =
        static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return std::min(2 * memory, (std::size_t{1} << 46) / std::max(1u, std::thread::hardware_concurrency()));
  }
  void refuse(const char* call, int number) { why_ = std::string(call) + ": " + std::strerror(number); }

  const std::uint64_t mark_ = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) ^
                              static_cast<std::uint64_t>(getpid()) << 40;
  int file_ = -1;
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
  std::string why_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;  // where ranges begin that nobody has, and their bytes
  block_cache copies_{*this};
  line_allocator lines_{*this};
};

}  // namespace tessera::engine
