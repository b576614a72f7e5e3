#pragma once

#include <tessera/comm/transport.hpp>

#include <boost/mpi/communicator.hpp>
#include <boost/mpi/environment.hpp>

#include <algorithm>
#include <optional>
#include <thread>

namespace tessera {

/// One worker a process, over any MPI that was started by any launcher: raw buffers, never serialisation.
///
/// A box that is contiguous travels in place; others are packed, and unpacked in the order of the receives.
class mpi_transport final : public transport {
 public:
  explicit mpi_transport(boost::mpi::communicator world) : world_(std::move(world), boost::mpi::comm_duplicate) {
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    left_.resize(static_cast<std::size_t>(world_.size()), false);
  }

  transport_traits traits() const override { return {"mpi", false, false}; }
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }

  void start(exchange_call& call) override {
    const int me = rank();
    index_t bytes = 0;
    for (const parcel& p : call.sends)
      if (p.peer != me && !p.where.contiguous()) bytes += padded(p.where.bytes());
    for (const parcel& p : call.receives)
      if (p.peer != me && unpacked(call, p)) bytes += padded(p.where.bytes());
    if (static_cast<index_t>(call.staging.size()) < bytes) call.staging.resize(static_cast<std::size_t>(bytes));
    requests_of(call).clear();
    std::byte* free = call.staging.data();
    for (const parcel& p : call.receives) {
      if (p.peer == me) continue;
      std::byte* at = p.where.data;
      if (unpacked(call, p)) {
        at = free;
        free += padded(p.where.bytes());
      }
      in_pieces(at, p.where.bytes(), [&](std::byte* piece, int n) {
        push(call, [&](MPI_Request* r) { return MPI_Irecv(piece, n, MPI_BYTE, p.peer, tag(call), world_, r); });
      });
    }
    for (const parcel& p : call.sends) {
      if (p.peer == me) continue;
      std::byte* at = p.where.data;
      if (!p.where.contiguous()) {
        at = free;
        free += padded(p.where.bytes());
        copy(p.where, p.where.packed_at(at));
      }
      in_pieces(at, p.where.bytes(), [&](std::byte* piece, int n) {
        push(call, [&](MPI_Request* r) { return MPI_Isend(piece, n, MPI_BYTE, p.peer, tag(call), world_, r); });
      });
    }
  }

  void finish(exchange_call& call) override {
    wait(call);
    const int me = rank();
    const std::byte* next = call.staging.data();
    int own = 0;
    for (const parcel& p : call.receives) {
      if (p.peer == me) {
        detail::deliver(call, *detail::own_parcel(call, me, own++), p.where);
        continue;
      }
      call.got.bytes += p.where.bytes();
      ++call.got.messages;
      if (!unpacked(call, p)) continue;
      detail::deliver(call, p.where.packed_at(const_cast<std::byte*>(next)), p.where);
      next += padded(p.where.bytes());
    }
  }

  /// Tells all others that this worker's program ended, and waits until they have ended too.
  void leave() {
    std::vector<MPI_Request> gone(static_cast<std::size_t>(size()), MPI_REQUEST_NULL);
    for (int r = 0; r < size(); ++r)
      if (r != rank()) MPI_Isend(nullptr, 0, MPI_BYTE, r, goodbye, world_, &gone[static_cast<std::size_t>(r)]);
    const auto until = clock::now() + time_limit;
    while (!everybody_left()) {
      hear_goodbyes();
      if (clock::now() > until) break;
      std::this_thread::yield();
    }
    MPI_Waitall(static_cast<int>(gone.size()), gone.data(), MPI_STATUSES_IGNORE);
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr int goodbye = 1;
  static constexpr std::chrono::seconds patience{5};            // for a box that comes behind other messages
  static constexpr std::chrono::milliseconds settling{500};     // for a long box that a worker sent before it ended
  static constexpr index_t largest_piece = index_t{1} << 30;  // MPI counts are int
  using requests = std::vector<MPI_Request>;

  static requests& requests_of(exchange_call& call) {
    if (!call.pending) call.pending = std::make_shared<requests>();
    return *static_cast<requests*>(call.pending.get());
  }

  static index_t pieces(const parcel& p) { return std::max<index_t>(1, (p.where.bytes() + largest_piece - 1) / largest_piece); }
  static index_t padded(index_t bytes) { return (bytes + 63) / 64 * 64; }
  static int tag(const exchange_call& call) { return 2 + static_cast<int>(call.fingerprint % 30000); }
  static bool unpacked(const exchange_call& call, const parcel& p) { return call.accumulates || !p.where.contiguous(); }

  template <class Each>
  static void in_pieces(std::byte* at, index_t bytes, Each&& each) {
    do {
      const index_t n = std::min(bytes, largest_piece);
      each(at, static_cast<int>(n));
      at += n;
      bytes -= n;
    } while (bytes > 0);
  }

  template <class Begin>
  void push(exchange_call& call, Begin&& begin) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (begin(&request) != MPI_SUCCESS) throw error(refusal{code::worker_lost, rank(), -1});
    requests_of(call).push_back(request);
  }

  // Yields while it waits: workers may be more than cores, and then spinning costs milliseconds.
  void wait(exchange_call& call) {
    const auto until = clock::now() + time_limit;
    requests& open = requests_of(call);
    for (int round = 0; !all_done(open); ++round) {
      if (round % 64 == 63) {
        look_for_the_lost(call, open);
        look_for_disagreement(call, open);
        if (clock::now() > until) throw error(refusal{code::time_limit, rank(), missing(call, open), time_limit.count()});
      }
      std::this_thread::yield();
    }
    open.clear();
  }

  // Tests each request by itself: one that is done becomes null, so `missing` knows which are not.
  bool all_done(requests& open) {
    bool all = true;
    for (MPI_Request& r : open) {
      if (r == MPI_REQUEST_NULL) continue;
      int done = 0;
      if (MPI_Test(&r, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) throw error(refusal{code::workers_disagree, rank(), -1});
      all = all && done != 0;
    }
    return all;
  }

  // A peer that sends something else and not what is awaited means another operation; a long transfer may still be under way,
  // so it gets some time.
  void look_for_disagreement(const exchange_call& call, const requests& open) {
    const int peer = missing(call, open);
    int other = 0;
    MPI_Status status;
    if (peer >= 0) MPI_Iprobe(peer, MPI_ANY_TAG, world_, &other, &status);
    if (other == 0 || status.MPI_TAG == tag(call) || status.MPI_TAG == goodbye) {
      disagrees_since_ = {};
    } else if (disagrees_since_ == clock::time_point{}) {
      disagrees_since_ = clock::now();
    } else if (clock::now() - disagrees_since_ > patience) {
      throw error(refusal{code::workers_disagree, rank(), peer});
    }
  }

  // A peer whose program ended sends nothing more: what it owed before its goodbye has arrived by the next test.
  void look_for_the_lost(const exchange_call& call, requests& open) {
    hear_goodbyes();
    all_done(open);
    std::size_t i = 0;
    for (const parcel& p : call.receives) {
      if (p.peer == rank()) continue;
      for (index_t piece = 0; piece < pieces(p); ++piece, ++i)
        if (open[i] != MPI_REQUEST_NULL && left_[static_cast<std::size_t>(p.peer)]) {
          if (!lost_since_) lost_since_ = clock::now();
          if (clock::now() - *lost_since_ > settling) throw error(refusal{code::worker_lost, rank(), p.peer});
          return;
        }
    }
    lost_since_.reset();
  }

  // The peer of the first box that has not come.
  int missing(const exchange_call& call, const requests& open) const {
    std::size_t i = 0;
    for (const parcel& p : call.receives) {
      if (p.peer == rank()) continue;
      for (index_t piece = 0; piece < pieces(p); ++piece, ++i)
        if (open[i] != MPI_REQUEST_NULL) return p.peer;
    }
    return -1;
  }

  void hear_goodbyes() {
    for (int r = 0; r < size(); ++r) {
      int waiting = 0;
      if (left_[static_cast<std::size_t>(r)] || r == rank()) continue;
      MPI_Iprobe(r, goodbye, world_, &waiting, MPI_STATUS_IGNORE);
      if (waiting == 0) continue;
      MPI_Recv(nullptr, 0, MPI_BYTE, r, goodbye, world_, MPI_STATUS_IGNORE);
      left_[static_cast<std::size_t>(r)] = true;
    }
  }

  bool everybody_left() const {
    for (int r = 0; r < size(); ++r)
      if (r != rank() && !left_[static_cast<std::size_t>(r)]) return false;
    return true;
  }

  boost::mpi::communicator world_;
  std::vector<bool> left_;
  clock::time_point disagrees_since_{};
  std::optional<clock::time_point> lost_since_;
};

}  // namespace tessera
