#pragma once
// The workers of a benchmark: a batch takes from when its first worker begins until its last one ends, and they meet
// before each without sleeping, as MPI's do: who wakes another one up gives it a late start.

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace calls {

/// When a worker began a batch and ended it, in seconds of the machine's clock.
struct span {
  double began, ended;
};

/// The workers of one run, threads or processes: how they meet without sleeping, and how they see one another's times.
class crew {
 public:
  crew(int workers, bool processes)
      : processes_(processes), workers_(workers), spans_(static_cast<std::size_t>(workers)) {}

  void meet() {
    if (processes_) {
      MPI_Barrier(MPI_COMM_WORLD);
      return;
    }
    const int meeting = meetings_.load();
    if (come_.fetch_add(1) + 1 == workers_) {
      come_.store(0);
      meetings_.store(meeting + 1);
    }
    while (meetings_.load() == meeting) std::this_thread::yield();
  }

  /// How long each batch took, from its first worker's beginning to its last one's end.
  std::vector<double> lengths(int rank, const std::vector<span>& mine) {
    std::vector<double> firsts, lasts;
    for (const span& s : mine) {
      firsts.push_back(s.began);
      lasts.push_back(s.ended);
    }
    if (processes_) {
      MPI_Allreduce(MPI_IN_PLACE, firsts.data(), static_cast<int>(firsts.size()), MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
      MPI_Allreduce(MPI_IN_PLACE, lasts.data(), static_cast<int>(lasts.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    } else {
      spans_[static_cast<std::size_t>(rank)] = mine;
      meet();
      for (const auto& other : spans_)
        for (std::size_t i = 0; i < mine.size(); ++i) {
          firsts[i] = std::min(firsts[i], other[i].began);
          lasts[i] = std::max(lasts[i], other[i].ended);
        }
      meet();
    }
    std::vector<double> took;
    std::transform(lasts.begin(), lasts.end(), firsts.begin(), std::back_inserter(took), std::minus<>());
    return took;
  }

 private:
  bool processes_;
  int workers_;
  std::atomic<int> come_{0};
  std::atomic<int> meetings_{0};
  std::vector<std::vector<span>> spans_;
};

}  // namespace calls
