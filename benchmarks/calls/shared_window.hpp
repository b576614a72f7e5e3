#pragma once
// The floor: inputs in a window that the processes of a node share, read where they lie between two meetings. No
// library, no messages.

#include "raw_mpi.hpp"

#include <atomic>
#include <new>
#include <thread>

namespace calls {

/// A verb on matrices that lie in an MPI window of shared memory: boxes are copied by who reads them, and of sums each
/// worker adds its band. Its outputs are reused, or fresh at every call.
class shared_window {
 public:
  explicit shared_window(matrices& m, bool fresh = false)
      : m_(m),
        fresh_(fresh),
        fresh_out_(m.out.size()),
        whole_(m.of.what == verb::all_reduce || m.of.what == verb::sum_reduce) {
    if (whole_) band_ = m.of.band(m.rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node_);
    void* mine = nullptr;
    const auto bytes = static_cast<MPI_Aint>(sizeof(meetings) +
                                             (m.in.size() + static_cast<std::size_t>(band_.count())) * sizeof(double));
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, node_, &mine, &window_);
    new (mine) meetings;
    std::copy(m.in.begin(), m.in.end(), values(mine));
    for (int r = 0; r < m.of.workers; ++r) {
      MPI_Aint size = 0;
      int unit = 0;
      void* theirs = nullptr;
      MPI_Win_shared_query(window_, r, &size, &unit, &theirs);
      all_.push_back(theirs);
    }
    crowded_ = static_cast<unsigned>(m.of.workers) > std::thread::hardware_concurrency();
    MPI_Barrier(node_);
  }
  shared_window(const shared_window&) = delete;
  shared_window& operator=(const shared_window&) = delete;
  ~shared_window() {
    MPI_Win_free(&window_);
    MPI_Comm_free(&node_);
  }

  /// What the last call with fresh outputs brought.
  const double* brought() const { return fresh_out_.now(); }

  void operator()() {
    out_ = fresh_ ? fresh_out_.next() : m_.out.data();
    meet();
    if (whole_) add(band_, band_of(m_.rank));
    else if (m_.of.adds()) add(m_.of.gets(m_.rank), out_);
    else
      for (int r = 0; r < m_.of.workers; ++r) read(m_.of.holds(r), values(all_[static_cast<std::size_t>(r)]));
    meet();
    if (!whole_) return;
    for (int r = 0; r < m_.of.workers; ++r) read(m_.of.band(r), band_of(r));
  }

 private:
  /// How often the workers met; of the first one's window.
  struct alignas(64) meetings {
    std::atomic<int> come{0};
    std::atomic<int> met{0};
  };

  static double* values(void* window) {
    return reinterpret_cast<double*>(static_cast<std::byte*>(window) + sizeof(meetings));
  }
  double* band_of(int r) const { return values(all_[static_cast<std::size_t>(r)]) + m_.of.holds(r).count(); }

  void read(const rectangle& there, double* from) {
    const rectangle gets = m_.of.gets(m_.rank);
    const rectangle both = calls::meet(there, gets);
    if (both.count() == 0) return;
    copy({from + (both.top - there.top) * there.columns() + both.left - there.left, both.rows(), both.columns(),
          there.columns()},
         piece::of(both, gets, out_));
  }
  void add(const rectangle& band, double* to) const {
    std::vector<const double*> terms;
    for (void* const window : all_) terms.push_back(values(window) + band.top * band.columns());
    if (band.count() > 0) add_terms(terms, to, band.count());
  }
  void meet() {
    meetings& m = *static_cast<meetings*>(all_[0]);
    const int met = m.met.load(std::memory_order_acquire);
    if (m.come.fetch_add(1, std::memory_order_acq_rel) + 1 == m_.of.workers) {
      m.come.store(0, std::memory_order_relaxed);
      m.met.store(met + 1, std::memory_order_release);
      return;
    }
    while (m.met.load(std::memory_order_acquire) == met)
      if (crowded_) std::this_thread::yield();
  }

  matrices& m_;
  bool fresh_;
  fresh_output fresh_out_;
  double* out_ = nullptr;
  bool whole_;        // bands are added, and then read
  rectangle band_{};  // of this worker
  bool crowded_ = false;
  MPI_Comm node_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<void*> all_;  // windows, by worker
};

}  // namespace calls
