#pragma once

#include <tessera/comm/team.hpp>
#include <tessera/nn/network/executor.hpp>

#include <fmt/core.h>

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif

namespace tessera::nn {

/// Names the layers and the verbs of a network for Nsight Systems, as NVTX ranges, while it lives.
///
///   const ts::nn::nvtx_ranges named(net);
///
/// A layer's range is "encoder.2 conv" or "encoder.2 conv backward". An exchange's is "all_gather 12x6 float": it
/// lies beside layers' ranges, from its start until it has arrived. It lives on the worker's thread, and observes in
/// place of another observer. Where the compiler finds no nvtx3 of a CUDA toolkit nothing is named (`recorded`).
class nvtx_ranges {
 public:
#if __has_include(<nvtx3/nvToolsExt.h>)
  static constexpr bool recorded = true;

  explicit nvtx_ranges(nn::engine::executor& of)
      : of_(of), team_(of.team()), before_(team_->watch), layers_(std::make_shared<layer_ranges>()) {
    of_.observe(layers_);
    team_->watch = {started, finished, this};
  }
  ~nvtx_ranges() {
    team_->watch = before_;
    layers_->ends();
    of_.observe(nullptr);
    for (const auto& [exchange, ranges] : open_)
      for (const nvtxRangeId_t range : ranges) nvtxRangeEnd(range);
  }
#else
  static constexpr bool recorded = false;

  explicit nvtx_ranges(nn::engine::executor&) {}
  ~nvtx_ranges() = default;
#endif
  nvtx_ranges(const nvtx_ranges&) = delete;
  nvtx_ranges& operator=(const nvtx_ranges&) = delete;

#if __has_include(<nvtx3/nvToolsExt.h>)
 private:
  class layer_ranges final : public layer_observer {
   public:
    void entered(const layer_visit& v) override {
      if (ended_) return;
      std::string words = v.path.empty() ? v.name : v.path + " " + v.name;
      if (v.direction == purpose::backward) words += " backward";
      nvtxRangePushA(words.c_str());
      ++open_;
    }
    void left(const layer_visit&) override {
      if (open_ == 0) return;
      nvtxRangePop();
      --open_;
    }
    // A graph may outlive the ranges.
    void ends() {
      ended_ = true;
      for (; open_ > 0; --open_) nvtxRangePop();
    }

   private:
    int open_ = 0;
    bool ended_ = false;
  };

  static std::string words_of(const phase& p, element e) {
    std::string words = tessera::engine::name_of(tessera::engine::verb_between(p.from(), p.to()));
    const char* between = " ";
    for (const tessera::engine::dimension& d : p.to().dims) {
      words += fmt::format("{}{}", between, d.extent);
      between = "x";
    }
    return words + " " + tessera::engine::name_of(e);
  }
  // Exchanges that follow each other on one phase arrive in their order.
  static void started(void* self, const phase& p, element e) {
    auto& own = *static_cast<nvtx_ranges*>(self);
    own.open_[&p].push_back(nvtxRangeStartA(words_of(p, e).c_str()));
    if (own.before_.exchange_started != nullptr) own.before_.exchange_started(own.before_.self, p, e);
  }
  static void finished(void* self, const phase& p, element e, const tessera::engine::received& got) {
    auto& own = *static_cast<nvtx_ranges*>(self);
    if (std::deque<nvtxRangeId_t>& ranges = own.open_[&p]; !ranges.empty()) {
      nvtxRangeEnd(ranges.front());
      ranges.pop_front();
    }
    if (own.before_.exchange_finished != nullptr) own.before_.exchange_finished(own.before_.self, p, e, got);
  }

  nn::engine::executor& of_;
  team_handle team_;
  tessera::engine::observer before_;
  std::shared_ptr<layer_ranges> layers_;
  std::unordered_map<const phase*, std::deque<nvtxRangeId_t>> open_;
#endif
};

}  // namespace tessera::nn
