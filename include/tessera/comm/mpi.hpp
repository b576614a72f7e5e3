#pragma once

#include <tessera/comm/mpi_mailbox.hpp>
#include <tessera/comm/waiting.hpp>

#include <boost/mpi/environment.hpp>

#include <thread>

namespace tessera {

/// One worker a process, over any MPI that was started by any launcher: raw buffers, never serialisation.
///
/// A box that is contiguous travels in place; others are packed, and unpacked in the order of the receives.
class mpi_transport final : public transport {
 public:
  explicit mpi_transport(const boost::mpi::communicator& world)
      : world_(world, boost::mpi::comm_duplicate),
        mailbox_(world),
        waiting_(
            world.rank(), world.size(), [this](int to, const detail::wait_message& m) { mailbox_.post(to, m); },
            [this] { return needs(); }) {
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    int known = 0;
    int* highest = nullptr;
    MPI_Comm_get_attr(world_, MPI_TAG_UB, &highest, &known);
    if (known != 0) tags_ = static_cast<std::uint64_t>(*highest) - first_tag + 1;
  }

  transport_traits traits() const override { return {"mpi", false, false}; }
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }

  bool ended() const override { return waiting_.ended(); }
  std::optional<error> failure() const override { return waiting_.failure(); }

  void start(exchange_call& call) override {
    const int me = rank();
    if (clock::now() > next_look_) listen();
    if (ended()) throw error(refusal{code::worker_lost, me, me}, launch_ended);
    if (gave_up_) waiting_.fail(refusal{code::call_given_up, me}, told(me, text_of(call.does)));
    waiting_.begin(call);
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
        push(call, p.peer, [&](MPI_Request* r) { return MPI_Irecv(piece, n, MPI_BYTE, p.peer, tag(call), world_, r); });
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
        push(call, p.peer, [&](MPI_Request* r) { return MPI_Isend(piece, n, MPI_BYTE, p.peer, tag(call), world_, r); });
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
    const auto until = clock::now() + (waiting_.failure() ? a_while : for_readers);
    int done = 0;
    while (MPI_Testall(static_cast<int>(open.size()), open.data(), &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS && done == 0) {
      if (clock::now() > until) {
        given_up_.push_back(std::move(call));
        return;
      }
      std::this_thread::yield();
    }
  }

  /// This worker's program threw: all others stop with the same error. Whether this one is to say it; a lower worker that
  /// computes and hears nothing is not waited for any longer than some seconds.
  bool abandon(const error& why) {
    read();
    if (!waiting_.failure()) waiting_.stop(why);
    for (const auto until = clock::now() + for_answers; !waiting_.settled() && clock::now() < until; read())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return !waiting_.failed_elsewhere();
  }

  /// Tells all others that this worker's program ended, and waits until they have ended too: one that stays silent is stuck.
  void leave() {
    waiting_.end();
    int watched = -1;
    std::uint64_t heard = 0;
    auto until = detail::deadline_after(time_limit);
    auto next_hail = clock::now();
    for (int other; (other = waiting_.still_runs()) >= 0; listen()) {
      if (other != watched || waiting_.heard_of(other) != heard) {
        watched = other;
        heard = waiting_.heard_of(other);
        until = detail::deadline_after(time_limit);
      }
      if (clock::now() > until)
        waiting_.fail(refusal{code::time_limit, rank(), other, time_limit.count()}, told(rank(), has_ended) + "; " + told(other, in_no_call));
      if (clock::now() > next_hail) {
        next_hail = clock::now() + a_while;
        waiting_.hail(other);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr int first_tag = 1;
  static constexpr std::chrono::milliseconds a_while{200};       // after which a worker that waits asks
  static constexpr std::chrono::milliseconds for_readers{5000};  // of a call that is given up
  static constexpr std::chrono::milliseconds for_answers{2000};  // of all that hear: who gives none computes, or is stuck
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

  // Calls visit(peer, request) for each request of a call that was started.
  template <class Visit>
  void each_request(exchange_call& call, Visit&& visit) const {
    auto next = requests_of(call).begin();
    for (const auto* legs : {&call.receives, &call.sends})
      for (const parcel& p : *legs)
        for (index_t piece = 0; p.peer != rank() && piece < pieces(p); ++piece) visit(p.peer, *next++);
  }

  template <class Begin>
  void push(exchange_call& call, int peer, Begin&& begin) {
    MPI_Request request = MPI_REQUEST_NULL;
    insist(begin(&request), call, peer);
    requests_of(call).push_back(request);
  }
  // What MPI cannot do with a worker is told in its words.
  void insist(int status, const exchange_call& call, int peer) {
    if (status == MPI_SUCCESS) return;
    int kind = MPI_ERR_OTHER;
    char says[MPI_MAX_ERROR_STRING]{};
    int length = 0;
    MPI_Error_class(status, &kind);
    MPI_Error_string(status, says, &length);
    const code why = kind == MPI_ERR_TRUNCATE ? code::workers_disagree : code::worker_lost;
    waiting_.fail(refusal{why, rank(), peer}, told(rank(), text_of(call.does)) + "; " + says);
  }

  // Yields while it waits: workers may be more than cores, and then spinning costs milliseconds.
  void wait(exchange_call& call) {
    for (int round = 0; round < 64; ++round, std::this_thread::yield())
      if (all_done(call)) return requests_of(call).clear();
    waited_in_ = &call;
    waiting_.enter(call);
    wait_long(call);
    waiting_.leave();
    waited_in_ = nullptr;
    requests_of(call).clear();
  }
  void wait_long(exchange_call& call) {
    const auto until = detail::deadline_after(time_limit);
    auto next_question = clock::now() + a_while;
    auto next_look = clock::now();
    std::optional<clock::time_point> last;
    for (; !all_done(call); std::this_thread::yield()) {  // which takes long on a busy machine
      const auto now = clock::now();
      if (now < next_look) continue;
      next_look = now + std::chrono::milliseconds(1);
      listen();
      if (now > until && !last) {  // those that only wait answer once more
        last = now + for_answers;
        waiting_.ask();
      } else if (last && now > *last) {
        const int stuck = waiting_.behind();
        waiting_.fail(refusal{code::time_limit, rank(), stuck, time_limit.count()},
                      told(rank(), text_of(call.does)) + "; " + told(stuck, in_no_call));
      } else if (!last && now > next_question) {
        next_question = clock::time_point::max();
        waiting_.ask();
      }
    }
  }

  void listen() {
    next_look_ = clock::now() + a_while;
    read();
    if (waiting_.failure()) throw *waiting_.failure();
  }
  void read() {
    for (detail::wait_message m; mailbox_.next(m);) waiting_.hear(m);
  }

  // Who has to begin the call that this worker waits in: whose box has not come, and who has not taken one.
  std::vector<detail::waiting::need> needs() {
    std::vector<detail::waiting::need> all;
    each_request(*waited_in_, [&](int peer, const MPI_Request& r) {
      const auto same = [&](const detail::waiting::need& n) { return n.peer == peer; };
      if (r != MPI_REQUEST_NULL && std::none_of(all.begin(), all.end(), same)) all.push_back({peer, offers_else(peer)});
    });
    return all;
  }
  // All receives of calls under way are posted, so a box that is here and not received is one that no call takes.
  bool offers_else(int peer) const {
    int here = 0;
    MPI_Iprobe(peer, MPI_ANY_TAG, world_, &here, MPI_STATUS_IGNORE);
    return here != 0;
  }

  // Tests each request by itself: one that is done becomes null, so `needs` knows which are not.
  bool all_done(exchange_call& call) {
    bool all = true;
    each_request(call, [&](int peer, MPI_Request& r) {
      if (r == MPI_REQUEST_NULL) return;
      int done = 0;
      insist(MPI_Test(&r, &done, MPI_STATUS_IGNORE), call, peer);
      all = all && done != 0;
    });
    return all;
  }

  boost::mpi::communicator world_;
  detail::mpi_mailbox<detail::wait_message> mailbox_;
  detail::waiting waiting_;
  exchange_call* waited_in_ = nullptr;
  clock::time_point next_look_;
  std::uint64_t tags_ = 30000;
  bool gave_up_ = false;
  std::vector<std::unique_ptr<exchange_call>> given_up_;
};

}  // namespace tessera
