#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace tessera::engine {

/// Counts the memory of this worker's tensors while it lives, in bytes as they are asked for: LibTorch's own report,
/// whichever allocator serves it. Earlier memory is not counted, nor that of another thread.
class memory_count {
 public:
  memory_count() : guard_(c10::DebugInfoKind::PROFILER_STATE, report_) {}

  std::int64_t now() const { return report_->now; }
  std::int64_t peak() const { return report_->peak; }  ///< the most since `restart_peak`
  void restart_peak() { report_->peak = report_->now; }

 private:
  struct report final : c10::MemoryReportingInfoBase {
    std::int64_t now = 0;
    std::int64_t peak = 0;

    void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
      now += bytes;
      peak = std::max(peak, now);
    }
    bool memoryProfilingEnabled() const override { return true; }
  };

  std::shared_ptr<report> report_ = std::make_shared<report>();
  c10::DebugInfoGuard guard_;
};

}  // namespace tessera::engine
