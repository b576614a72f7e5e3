#pragma once
// Verbs as they are written by hand for NCCL.

#include "device_verb.hpp"

namespace gpu {

/// A communicator of all workers, whose calls return when the device has them, and a stream of it.
class raw_nccl {
 public:
  raw_nccl(transport& host, int rank, int size) : rank_(rank), size_(size) {
    std::vector<int> workers;
    for (int r = 0; r < size; ++r) workers.push_back(r);
    ncclUniqueId name{};
    if (rank == 0) tessera::detail::throw_if_failed(ncclGetUniqueId(&name), "naming a communicator");
    std::vector<std::uint64_t> words(sizeof name / sizeof(std::uint64_t));
    std::memcpy(words.data(), &name, sizeof name);
    const std::vector<std::uint64_t> all =
        agreement(host, workers)
            .gather(words, "meeting over NCCL", {.why = purpose::agreement, .name = "meeting over NCCL"});
    std::memcpy(&name, all.data(), sizeof name);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    tessera::detail::throw_if_failed(ncclCommInitRankConfig(&own_, size, name, rank, &config), "making a communicator");
  }
  raw_nccl(const raw_nccl&) = delete;
  raw_nccl& operator=(const raw_nccl&) = delete;
  ~raw_nccl() { static_cast<void>(ncclCommDestroy(own_)); }

  /// The verb, called once; a call for which NCCL has no name is a group of sends and receives.
  void operator()(const problem& p) const {
    const float* const in = p.in.data();
    float* const out = p.out.data();
    const auto has = static_cast<std::size_t>(count_of(p.in.where().extents));
    const auto gets = static_cast<std::size_t>(count_of(p.out.where().extents));
    const auto n = static_cast<std::size_t>(size_);
    switch (p.of.is) {
      case verb::all_reduce: return asked(ncclAllReduce(in, out, has, ncclFloat32, ncclSum, own_, on_.get()));
      case verb::all_gather: return asked(ncclAllGather(in, out, has, ncclFloat32, own_, on_.get()));
      case verb::reduce_scatter: return asked(ncclReduceScatter(in, out, gets, ncclFloat32, ncclSum, own_, on_.get()));
      case verb::broadcast: return asked(ncclBroadcast(in, out, gets, ncclFloat32, 0, own_, on_.get()));
      case verb::sum_reduce: return asked(ncclReduce(in, out, has, ncclFloat32, ncclSum, 0, own_, on_.get()));
      case verb::all_to_all: {
        nccl_group together;
        for (int r = 0; r < size_; ++r)
          swap(in + static_cast<std::size_t>(r) * (has / n), out + static_cast<std::size_t>(r) * (gets / n), has / n,
               r);
        return together.end();
      }
      default: {  // a halo: the row before comes first
        const std::size_t before = rank_ > 0 ? has : 0;
        tessera::detail::throw_if_failed(
            cudaMemcpyAsync(out + before, in, has * sizeof(float), cudaMemcpyDeviceToDevice, on_.get()), "copying");
        nccl_group together;
        if (rank_ > 0) swap(in, out, has, rank_ - 1);
        if (rank_ + 1 < size_) swap(in, out + before + has, has, rank_ + 1);
        together.end();
      }
    }
  }

  void wait() const { tessera::detail::throw_if_failed(cudaStreamSynchronize(on_.get()), "waiting for the device"); }

 private:
  static void asked(ncclResult_t status) { tessera::detail::throw_if_failed(status, "a collective"); }
  void swap(const float* from, float* to, std::size_t count, int with) const {
    tessera::detail::throw_if_failed(ncclSend(from, count, ncclFloat32, with, own_, on_.get()), "sending");
    tessera::detail::throw_if_failed(ncclRecv(to, count, ncclFloat32, with, own_, on_.get()), "receiving");
  }

  int rank_;
  int size_;
  device_stream on_;
  ncclComm_t own_ = nullptr;
};

}  // namespace gpu
