#pragma once

#include <tessera/comm/exchange/agreement.hpp>
#include <tessera/comm/nccl/device.hpp>
#include <tessera/comm/nccl/launch_order.hpp>

#include <cstring>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

namespace tessera::engine {

/// Requests to NCCL during its life go to the device together.
class nccl_group {
 public:
  nccl_group() { detail::throw_if_failed(ncclGroupStart(), "beginning a group"); }
  nccl_group(const nccl_group&) = delete;
  nccl_group& operator=(const nccl_group&) = delete;
  ~nccl_group() {
    if (open_) static_cast<void>(ncclGroupEnd());
  }
  void end() {
    open_ = false;
    detail::throw_if_failed(ncclGroupEnd(), "ending a group");
  }

 private:
  bool open_ = true;
};

/// A communicator of NCCL: some workers, a stream of this one's for what they exchange, and the order in which they do.
class nccl_communicator {
 public:
  /// Goes on with other things until done(), or throws.
  using wait = std::function<void(const std::function<bool()>& done, const char* does)>;

  /// Made by all of its workers together, who hear of its name from the first of them.
  nccl_communicator(const agreement& among, int rank, wait until) : workers(among.workers()), until_(std::move(until)) {
    constexpr std::size_t words = sizeof(ncclUniqueId) / sizeof(std::uint64_t);
    static_assert(sizeof(ncclUniqueId) % sizeof(std::uint64_t) == 0);
    ncclUniqueId name{};
    if (rank == workers.front()) detail::throw_if_failed(ncclGetUniqueId(&name), "naming a communicator");
    std::vector<std::uint64_t> mine(words);
    std::memcpy(mine.data(), &name, sizeof name);
    const std::vector<std::uint64_t> all =
        among.gather(std::move(mine), "meeting over NCCL", {.why = purpose::agreement, .name = making});
    std::memcpy(&name, all.data(), sizeof name);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;  // a worker that waits for others hears of those that ended
    try {
      detail::throw_if_failed(
          ncclCommInitRankConfig(&handle_, static_cast<int>(workers.size()), name, index_of(rank), &config), making);
      settle(making);
    } catch (...) {
      abort();
      throw;
    }
  }
  nccl_communicator(const nccl_communicator&) = delete;
  nccl_communicator& operator=(const nccl_communicator&) = delete;
  ~nccl_communicator() {
    if (std::uncaught_exceptions() > 0) abort();
    end();
  }

  /// Ends it, as all its workers do: what was handed to the device goes to its end first, unless it never will.
  void end() noexcept {
    if (handle_ == nullptr) return;
    try {
      until_([this] { return cudaStreamQuery(stream.get()) != cudaErrorNotReady; }, ending);
      detail::throw_if_failed(ncclCommFinalize(handle_), ending);
      settle(ending);
      static_cast<void>(ncclCommDestroy(std::exchange(handle_, nullptr)));
    } catch (...) {
      abort();
    }
  }

  ncclComm_t get() const { return handle_; }
  int index_of(int rank) const {
    return static_cast<int>(std::find(workers.begin(), workers.end(), rank) - workers.begin());
  }

  /// Whether nothing went wrong, and NCCL does nothing on the host any more.
  bool settled() const {
    ncclResult_t status = ncclSuccess;
    if (handle_ == nullptr) return true;
    detail::throw_if_failed(ncclCommGetAsyncError(handle_, &status), "asking a communicator");
    if (status != ncclSuccess && status != ncclInProgress)
      throw error(refusal{code::device_failed, status},
                  fmt::format("{}: {}", ncclGetErrorString(status), ncclGetLastError(handle_)));
    return status == ncclSuccess;
  }
  void settle(const char* does) const {
    if (!settled()) until_([this] { return settled(); }, does);
  }

  /// Ends whatever it does on the device, and itself.
  void abort() noexcept {
    if (handle_ != nullptr) static_cast<void>(ncclCommAbort(std::exchange(handle_, nullptr)));
  }

  const std::vector<int> workers;
  const device_stream stream;
  launch_order order;

 private:
  static constexpr const char* making = "making a communicator";
  static constexpr const char* ending = "ending a communicator";

  wait until_;
  ncclComm_t handle_ = nullptr;
};

}  // namespace tessera::engine
