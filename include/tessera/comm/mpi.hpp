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
    int known = 0;
    int* highest = nullptr;
    MPI_Comm_get_attr(world_, MPI_TAG_UB, &highest, &known);
    if (known != 0) tags_ = static_cast<std::uint64_t>(*highest) - first_tag + 1;
  }

  transport_traits traits() const override { return {"mpi", false, false}; }
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }

  void start(exchange_call& call) override {
    const int me = rank();
    if (gave_up_) throw error(refusal{code::call_given_up, me});
    index_t bytes = 0;
    for (const parcel& p : call.sends)
      if (p.peer != me && !p.where.contiguous()) bytes += padded(p.bytes());
    for (const parcel& p : call.receives)
      if (p.peer != me && unpacked(call, p)) bytes += padded(p.bytes());
    if (static_cast<index_t>(call.staging.size()) < bytes) call.staging.resize(static_cast<std::size_t>(bytes));
    requests_of(call).clear();
    std::byte* free = call.staging.data();
    for (const parcel& p : call.receives) {
      if (p.peer == me) continue;
      std::byte* at = p.where.data;
      if (unpacked(call, p)) {
        at = free;
        free += padded(p.bytes());
      }
      in_pieces(at, p.bytes(), [&](std::byte* piece, int n) {
        push(call, [&](MPI_Request* r) { return MPI_Irecv(piece, n, MPI_BYTE, p.peer, tag(call), world_, r); });
      });
    }
    for (const parcel& p : call.sends) {
      if (p.peer == me) continue;
      std::byte* at = p.where.data;
      if (!p.where.contiguous()) {
        at = free;
        free += padded(p.bytes());
        copy(p.where, p.packed_at(at));
      }
      in_pieces(at, p.bytes(), [&](std::byte* piece, int n) {
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
      call.got.bytes += p.bytes();
      ++call.got.messages;
      if (!unpacked(call, p)) continue;
      detail::deliver(call, p.packed_at(const_cast<std::byte*>(next)), p.where);
      next += padded(p.bytes());
    }
  }

  /// Receives are cancelled; what a peer does not take within a few seconds stays allocated until the job ends.
  void withdraw(std::unique_ptr<exchange_call> call) noexcept override {
    gave_up_ = true;
    if (!call->pending) return;
    requests& open = requests_of(*call);
    std::size_t received = 0;
    for (const parcel& p : call->receives)
      if (p.peer != rank()) received += static_cast<std::size_t>(pieces(p));
    for (std::size_t i = 0; i < std::min(received, open.size()); ++i)
      if (open[i] != MPI_REQUEST_NULL) MPI_Cancel(&open[i]);
    const auto until = clock::now() + patience;
    int done = 0;
    while (MPI_Testall(static_cast<int>(open.size()), open.data(), &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS && done == 0) {
      if (clock::now() > until) {
        given_up_.push_back(std::move(call));
        return;
      }
      std::this_thread::yield();
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
  static constexpr int first_tag = 2;
  static constexpr std::chrono::seconds patience{5};            // for a box that comes behind other messages
  static constexpr std::chrono::milliseconds settling{500};     // for a long box that a worker sent before it ended
  static constexpr index_t largest_piece = index_t{1} << 30;  // MPI counts are int
  using requests = std::vector<MPI_Request>;

  static requests& requests_of(exchange_call& call) {
    if (!call.pending) call.pending = std::make_shared<requests>();
    return *static_cast<requests*>(call.pending.get());
  }

  static index_t pieces(const parcel& p) { return std::max<index_t>(1, (p.bytes() + largest_piece - 1) / largest_piece); }
  static index_t padded(index_t bytes) { return (bytes + 63) / 64 * 64; }
  int tag(const exchange_call& call) const { return first_tag + static_cast<int>(call.fingerprint % tags_); }
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
    disagrees_since_.reset();
    lost_since_.reset();
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
    const int peer = first_open(call, open, &exchange_call::receives);
    int other = 0;
    MPI_Status status;
    if (peer >= 0) MPI_Iprobe(peer, MPI_ANY_TAG, world_, &other, &status);
    if (other == 0 || status.MPI_TAG == tag(call) || status.MPI_TAG == goodbye) {
      disagrees_since_.reset();
    } else if (!disagrees_since_) {
      disagrees_since_ = clock::now();
    } else if (clock::now() - *disagrees_since_ > patience) {
      throw error(refusal{code::workers_disagree, rank(), peer});
    }
  }

  // A peer whose program ended sends and takes nothing more: what it owed before its goodbye has arrived by the next test.
  void look_for_the_lost(const exchange_call& call, requests& open) {
    hear_goodbyes();
    all_done(open);
    const auto gone = [&](int peer) { return left_[static_cast<std::size_t>(peer)]; };
    int lost = first_open(call, open, &exchange_call::receives, gone);
    if (lost < 0) lost = first_open(call, open, &exchange_call::sends, gone);
    if (lost < 0)
      lost_since_.reset();
    else if (!lost_since_)
      lost_since_ = clock::now();
    else if (clock::now() - *lost_since_ > settling)
      throw error(refusal{code::worker_lost, rank(), lost});
  }

  static bool anybody(int) { return true; }

  // The first peer, of those asked for, whose box has not come or has not been taken.
  template <class Asked = bool (&)(int)>
  int first_open(const exchange_call& call, const requests& open, std::vector<parcel> exchange_call::* legs, Asked&& asked = anybody) const {
    std::size_t i = 0;
    for (auto all : {&exchange_call::receives, &exchange_call::sends})
      for (const parcel& p : call.*all) {
        if (p.peer == rank()) continue;
        for (index_t piece = 0; piece < pieces(p); ++piece, ++i)
          if (all == legs && open[i] != MPI_REQUEST_NULL && asked(p.peer)) return p.peer;
      }
    return -1;
  }

  int missing(const exchange_call& call, const requests& open) const {
    const int sender = first_open(call, open, &exchange_call::receives);
    return sender >= 0 ? sender : first_open(call, open, &exchange_call::sends);
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
  std::uint64_t tags_ = 30000;
  std::optional<clock::time_point> disagrees_since_;
  std::optional<clock::time_point> lost_since_;
  bool gave_up_ = false;
  std::vector<std::unique_ptr<exchange_call>> given_up_;
};

}  // namespace tessera
