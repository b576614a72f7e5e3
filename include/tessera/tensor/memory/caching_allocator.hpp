#pragma once

#include <tessera/comm/memory/memory_use.hpp>
#include <tessera/comm/workers.hpp>

#include <c10/core/Allocator.h>

namespace tessera {

/// LibTorch's memory on the CPU while a launch runs: what one tensor gives back the next one takes, without a page
/// fault.
///
/// There is one in a process and it never ends, so a tensor may outlive its launch and be freed by any thread.
/// LibTorch's own allocator is back when the last launch has ended. One that the program set with a priority of its own
/// stays.
class caching_allocator final : public c10::Allocator {
 public:
  static caching_allocator& of_process();

  /// The bytes that tensors use and that are kept for them; the peak is that of the launch.
  engine::memory_use use() const;
  /// Gives what no tensor uses back to the system.
  void trim();

  TESSERA_INLINE c10::DataPtr allocate(std::size_t bytes) override;
  TESSERA_INLINE c10::DeleterFnPtr raw_deleter() const override;
  TESSERA_INLINE void copy_data(void* to, const void* from, std::size_t bytes) const override;

  /// Serves LibTorch while it lives. Of several launches at once the smallest cap holds.
  class service {
   public:
    explicit service(const launch_options& options);
    service(const service&) = delete;
    service& operator=(const service&) = delete;
    ~service();

   private:
    std::size_t cap_;
    bool on_;
  };

 private:
  struct state;

  caching_allocator();
  void begin(std::size_t cap);
  void end(std::size_t cap);

  state& my_;  // which never ends either
};

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/memory/caching_allocator_impl.hpp>
#endif
