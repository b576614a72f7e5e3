#pragma once

#include <tessera/comm/mpi_mailbox.hpp>
#include <tessera/comm/patience.hpp>
#include <tessera/comm/transport.hpp>
#include <tessera/comm/waiting.hpp>

#include <boost/mpi/environment.hpp>

#include <limits>
#include <thread>

namespace tessera {

class mpi_exchange;

/// One worker a process, over any MPI that was started by any launcher: raw buffers, never serialisation.
class mpi_transport final : public transport {
 public:
  /// Messages have at most so many tags, whatever more MPI has.
  explicit mpi_transport(const boost::mpi::communicator& world, std::uint64_t most_tags = std::numeric_limits<std::uint64_t>::max())
      : world_(world, boost::mpi::comm_duplicate),
        mailbox_(world),
        waiting_(
            world.rank(), world.size(), [this](int to, const detail::wait_message& m) { mailbox_.post(to, m); },
            [this] { return needs_(); }) {
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    int known = 0;
    int* highest = nullptr;
    MPI_Comm_get_attr(world_, MPI_TAG_UB, &highest, &known);
    if (known != 0) tags_ = static_cast<std::uint64_t>(*highest) - first_tag + 1;
    tags_ = std::min(tags_, most_tags);
    const boost::mpi::communicator here(node_of(world_), boost::mpi::comm_take_ownership);
    crowded_ = static_cast<unsigned>(here.size()) > std::max(1u, std::thread::hardware_concurrency());
  }

  static constexpr std::uint64_t agreement_tags = 1024;  ///< the first ones

  transport_traits traits() const override { return {"mpi", false, false}; }
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }

  bool ended() const override { return waiting_.ended(); }
  std::optional<error> failure() const override { return waiting_.failure(); }

  std::shared_ptr<bound_exchange> bind(exchange_plan plan) override;
  std::uint64_t free_id(std::uint64_t from) const override {
    while (used_.contains(tag_of(from))) ++from;
    return from;
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
  friend class mpi_exchange;

  using clock = std::chrono::steady_clock;
  static constexpr int first_tag = 1;
  static constexpr std::chrono::milliseconds a_while{200};       // after which a worker that waits asks
  static constexpr std::chrono::milliseconds for_readers{5000};  // of a call that is given up
  static constexpr std::chrono::milliseconds for_answers{2000};  // of all that hear: who gives none computes, or is stuck

  static MPI_Comm node_of(MPI_Comm world) {
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    return node;
  }

  // Agreements between two workers are made one after the other, so that two of them may share a tag; other exchanges have one each.
  int tag_of(std::uint64_t id) const {
    if ((id & exchange_plan::agreement) != 0) return first_tag + static_cast<int>(id % agreement_tags);
    return first_tag + static_cast<int>(agreement_tags + id % (tags_ - agreement_tags));
  }

  void listen() {
    next_look_ = clock::now() + a_while;
    read();
    if (waiting_.failure()) throw *waiting_.failure();
  }
  void read() {
    for (detail::wait_message m; mailbox_.next(m);) waiting_.hear(m);
  }

  // All receives of calls under way are posted, so a box that is here and not received is one that no call takes.
  bool offers_else(int peer) const {
    int here = 0;
    MPI_Iprobe(peer, MPI_ANY_TAG, world_, &here, MPI_STATUS_IGNORE);
    return here != 0;
  }

  boost::mpi::communicator world_;
  detail::mpi_mailbox<detail::wait_message> mailbox_;
  std::function<std::vector<detail::waiting::need>()> needs_;  // of the call that this worker waits in
  detail::waiting waiting_;
  clock::time_point next_look_;
  std::uint64_t tags_ = 30000;
  bool crowded_ = false;
  bool stopped_ = false;  // it gave up a call, and begins nothing more
  std::set<int> used_;  // tags
  std::vector<std::vector<std::byte>> spare_;  // memory beside the tensors, from calls that ended
  std::vector<std::unique_ptr<exchange_call>> given_up_;
};

/// An exchange among processes: a box that is contiguous travels in place, others are packed; terms of a Fold are kept beside each other
/// until all are there. Requests last as long as the memory that they are for.
class mpi_exchange final : public bound_exchange {
 public:
  mpi_exchange(mpi_transport& carrier, exchange_plan bound, std::shared_ptr<const void> held)
      : bound_exchange(std::move(bound), carrier.rank(), std::move(held)), carrier_(carrier), begun_(carrier.waiting_.begun(plan().id)) {
    tag_ = carrier_.tag_of(plan().id);
    if (plan().agrees()) return;
    carrier_.used_.insert(tag_);
    carrier_.waiting_.bind(plan().id);
  }
  ~mpi_exchange() override {
    if (plan().agrees()) return;
    carrier_.used_.erase(tag_);
    carrier_.waiting_.forget(plan().id);
  }

 private:
  using clock = mpi_transport::clock;
  static constexpr index_t largest_piece = index_t{1} << 30;      // MPI counts are int
  static constexpr std::size_t largest_kept = std::size_t{1} << 16;  // memory beside the tensors that a call keeps for the next one

  /// A message of a call, in pieces; they last while its box lies at one place.
  struct letter {
    region box;               // in the tensor
    std::byte* at = nullptr;  // there if it is contiguous, else in the call's own memory
    std::size_t first = 0;  // of the call's requests
    std::size_t pieces = 1;
  };
  struct mpi_call final : exchange_call {
    std::vector<std::byte> staging;
    bool staging_lent = false;  // by the transport, for this call alone
    region staged_in;           // the memory of the call before
    region staged_out;
    std::vector<letter> receives;  // as the plan has them
    std::vector<letter> sends;
    std::vector<MPI_Request> requests;
    std::vector<MPI_Status> statuses;
    bool posted = false;
    bool delivered = false;

    ~mpi_call() override {
      for (MPI_Request& r : requests)
        if (r != MPI_REQUEST_NULL) MPI_Request_free(&r);
    }
  };

  static mpi_call& mine(exchange_call& call) { return static_cast<mpi_call&>(call); }
  static index_t padded(index_t bytes) { return (bytes + 63) / 64 * 64; }
  index_t bytes_of_leg(const leg& l) const { return count_of(l.extents) * bytes_of(plan().element); }

  std::unique_ptr<exchange_call> make_call() override {
    auto call = std::make_unique<mpi_call>();
    const auto add = [&](const std::vector<leg>& legs, std::vector<letter>& mail) {
      for (const leg& l : legs) {
        letter& x = mail.emplace_back();
        x.first = call->requests.size();
        x.pieces = l.peer == carrier_.rank() ? 0 : static_cast<std::size_t>(std::max<index_t>(1, (bytes_of_leg(l) + largest_piece - 1) / largest_piece));
        call->requests.insert(call->requests.end(), x.pieces, MPI_REQUEST_NULL);
      }
    };
    add(plan().receives, call->receives);
    add(plan().sends, call->sends);
    call->statuses.resize(call->requests.size());
    return call;
  }

  void post(exchange_call& call) override {
    mpi_call& c = mine(call);
    const int me = carrier_.rank();
    if (clock::now() > carrier_.next_look_) carrier_.listen();
    if (carrier_.ended()) throw error(refusal{code::worker_lost, me, me}, launch_ended);
    if (carrier_.stopped_) carrier_.waiting_.fail(refusal{code::call_given_up, me}, told(me, text_of(c.does)));
    ++begun_;
    stage(c);
    c.posted = true;
    c.delivered = false;
    for (std::size_t i = 0; i < c.receives.size(); ++i) begin(c, c.receives[i], plan().receives[i], &MPI_Recv_init);
    for (std::size_t i = 0; i < c.sends.size(); ++i) {
      const letter& x = c.sends[i];
      if (x.pieces == 0) continue;
      if (x.at != x.box.data) copy(x.box, x.box.packed_at(x.at));
      begin(c, c.sends[i], plan().sends[i], &MPI_Send_init);
    }
  }

  // Finds where each message lies, unless all memory is that of the call before.
  void stage(mpi_call& c) {
    const auto same_memory = [](const region& a, const region& b) { return a.data == b.data && a.strides == b.strides; };
    if (same_memory(c.in, c.staged_in) && same_memory(c.out, c.staged_out) && !c.staging_lent) return;
    c.staged_in = c.in;
    c.staged_out = c.out;
    index_t bytes = 0;
    const auto place = [&](const std::vector<leg>& legs, std::vector<letter>& mail, const region& whole, bool in_place, auto&& keep) {
      for (std::size_t i = 0; i < legs.size(); ++i) {
        if (mail[i].pieces == 0) continue;
        mail[i].box = whole.part(legs[i].here, legs[i].extents);
        if (in_place && mail[i].box.contiguous()) {
          keep(mail[i], mail[i].box.data);
        } else {
          keep(mail[i], c.staging.data() + bytes);
          bytes += padded(bytes_of_leg(legs[i]));
        }
      }
    };
    const auto all = [&](auto&& keep) {
      bytes = 0;
      place(plan().receives, c.receives, c.out, !plan().fold, keep);
      place(plan().sends, c.sends, c.in, true, keep);
    };
    all([](letter&, std::byte*) {});
    c.staging_lent = static_cast<std::size_t>(bytes) > largest_kept;
    if (c.staging.size() < static_cast<std::size_t>(bytes)) {
      if (static_cast<std::size_t>(bytes) > largest_kept && !carrier_.spare_.empty()) {
        c.staging = std::move(carrier_.spare_.back());
        carrier_.spare_.pop_back();
      }
      if (c.staging.size() < static_cast<std::size_t>(bytes)) c.staging.resize(static_cast<std::size_t>(bytes));
    }
    all([&](letter& x, std::byte* at) {
      if (x.at == at) return;
      for (std::size_t p = x.first; p < x.first + x.pieces; ++p)
        if (c.requests[p] != MPI_REQUEST_NULL) MPI_Request_free(&c.requests[p]);
      x.at = at;
    });
  }

  template <class Make>
  void begin(mpi_call& c, letter& x, const leg& l, Make make) {
    index_t left = bytes_of_leg(l);
    std::byte* at = x.at;
    for (std::size_t p = x.first; p < x.first + x.pieces; ++p) {
      const index_t n = std::min(left, largest_piece);
      if (c.requests[p] == MPI_REQUEST_NULL) insist(make(at, static_cast<int>(n), MPI_BYTE, l.peer, tag_, carrier_.world_, &c.requests[p]), c, l.peer);
      insist(MPI_Start(&c.requests[p]), c, l.peer);
      at += n;
      left -= n;
    }
  }
  // What MPI cannot do with a worker is told in its words.
  void insist(int status, const mpi_call& c, int peer) const {
    if (status == MPI_SUCCESS) return;
    int kind = MPI_ERR_OTHER;
    char says[MPI_MAX_ERROR_STRING]{};
    int length = 0;
    MPI_Error_class(status, &kind);
    MPI_Error_string(status, says, &length);
    const code why = kind == MPI_ERR_TRUNCATE || kind == MPI_ERR_IN_STATUS ? code::workers_disagree : code::worker_lost;
    carrier_.waiting_.fail(refusal{why, carrier_.rank(), peer}, told(carrier_.rank(), text_of(c.does)) + "; " + says);
  }

  bool arrived(exchange_call& call) override {
    mpi_call& c = mine(call);
    for (const letter& x : c.receives)
      if (!came(c, x)) return false;
    deliver(c);
    return true;
  }

  void complete(exchange_call& call) override {
    mpi_call& c = mine(call);
    if (!all_done(c)) wait(c);
    deliver(c);
    c.posted = false;
    if (c.staging_lent) carrier_.spare_.push_back(std::move(c.staging));
  }

  /// Receives are cancelled; what a peer does not take within a few seconds stays allocated until the job ends.
  void withdraw(std::unique_ptr<exchange_call> call) noexcept override {
    carrier_.stopped_ = true;
    carrier_.fault = error(refusal{code::call_given_up, carrier_.rank()});
    mpi_call& c = mine(*call);
    if (!c.posted) return;
    for (const letter& x : c.receives)
      for (std::size_t p = x.first; p < x.first + x.pieces; ++p)
        if (!is_done(c.requests[p])) MPI_Cancel(&c.requests[p]);
    const auto until = clock::now() + (carrier_.waiting_.failure() ? mpi_transport::a_while : mpi_transport::for_readers);
    int done = 0;
    while (test(c, done) == MPI_SUCCESS && done == 0) {
      if (clock::now() > until) {
        carrier_.given_up_.push_back(std::move(call));
        return;
      }
      std::this_thread::yield();
    }
  }

  // Puts what came where it belongs, once.
  void deliver(mpi_call& c) const {
    if (c.delivered) return;
    c.delivered = true;
    if (plan().fold) {
      fold(c, [&](int i) {
        const leg& l = plan().receives[static_cast<std::size_t>(i)];
        const letter& x = c.receives[static_cast<std::size_t>(i)];
        return x.pieces == 0 ? c.in.part(l.there, l.extents) : x.box.packed_at(x.at);
      });
      return;
    }
    for (const letter& x : c.receives)
      if (x.pieces > 0 && x.at != x.box.data) copy(x.box.packed_at(x.at), x.box);
  }
  // Whether a request that was started is done, or none was.
  static bool is_done(MPI_Request request) {
    int done = 1;
    if (request != MPI_REQUEST_NULL) MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }
  static bool came(const mpi_call& c, const letter& x) {
    for (std::size_t p = x.first; p < x.first + x.pieces; ++p)
      if (!is_done(c.requests[p])) return false;
    return true;
  }
  static int test(mpi_call& c, int& done) {
    return MPI_Testall(static_cast<int>(c.requests.size()), c.requests.data(), &done, c.statuses.data());
  }
  bool all_done(mpi_call& c) {
    int done = 0;
    const int status = test(c, done);
    if (done == 0 && status == MPI_SUCCESS) return false;
    for (std::size_t i = 0; i < c.receives.size(); ++i) {
      const leg& l = plan().receives[i];
      index_t came = 0;
      for (std::size_t p = c.receives[i].first; p < c.receives[i].first + c.receives[i].pieces; ++p) {
        if (status == MPI_ERR_IN_STATUS) insist(c.statuses[p].MPI_ERROR, c, l.peer);
        int n = 0;
        MPI_Get_count(&c.statuses[p], MPI_BYTE, &n);
        came += n;
      }
      if (status == MPI_SUCCESS && c.receives[i].pieces > 0 && came != bytes_of_leg(l)) insist(MPI_ERR_TRUNCATE, c, l.peer);
    }
    insist(status, c, carrier_.rank());
    return true;
  }

  // Who has to begin the call: whose box has not come, and who has not taken one.
  std::vector<detail::waiting::need> needs(const mpi_call& c) const {
    std::vector<detail::waiting::need> all;
    const auto add = [&](const std::vector<leg>& legs, const std::vector<letter>& mail) {
      for (std::size_t i = 0; i < legs.size(); ++i) {
        const auto same = [&](const detail::waiting::need& n) { return n.peer == legs[i].peer; };
        if (!came(c, mail[i]) && std::none_of(all.begin(), all.end(), same)) all.push_back({legs[i].peer, carrier_.offers_else(legs[i].peer)});
      }
    };
    add(plan().receives, c.receives);
    add(plan().sends, c.sends);
    return all;
  }
  // Never sleeps: messages on their way go on only while somebody asks for them.
  void wait(mpi_call& c) {
    detail::patience p(carrier_.crowded_, false);
    std::optional<waiting_here> here;
    while (!all_done(c)) {
      if (!p.pause()) continue;
      if (!here) here.emplace(*this, c);
      here->look();
    }
  }

  /// While it lives, the worker waits in a call long enough to be asked, and asks, for whom.
  class waiting_here {
   public:
    waiting_here(mpi_exchange& of, mpi_call& call) : of_(of), call_(call), carrier_(of.carrier_) {
      until_ = detail::deadline_after(carrier_.time_limit);
      next_question_ = clock::now() + mpi_transport::a_while;
      carrier_.needs_ = [this] { return of_.needs(call_); };
      carrier_.waiting_.enter(of_.plan().id, call_);
    }
    waiting_here(const waiting_here&) = delete;
    waiting_here& operator=(const waiting_here&) = delete;
    ~waiting_here() { carrier_.waiting_.leave(); }

    void look() {
      const auto now = clock::now();
      if (now < next_look_) return;
      next_look_ = now + std::chrono::milliseconds(1);
      carrier_.listen();
      if (now > until_ && !last_) {  // those that only wait answer once more
        last_ = now + mpi_transport::for_answers;
        carrier_.waiting_.ask();
      } else if (last_ && now > *last_) {
        const int stuck = carrier_.waiting_.behind();
        carrier_.waiting_.fail(refusal{code::time_limit, carrier_.rank(), stuck, carrier_.time_limit.count()},
                               told(carrier_.rank(), text_of(call_.does)) + "; " + told(stuck, in_no_call));
      } else if (!last_ && now > next_question_) {
        next_question_ = clock::time_point::max();
        carrier_.waiting_.ask();
      }
    }

   private:
    mpi_exchange& of_;
    mpi_call& call_;
    mpi_transport& carrier_;
    clock::time_point until_;
    clock::time_point next_look_;
    clock::time_point next_question_;
    std::optional<clock::time_point> last_;
  };

  mpi_transport& carrier_;
  std::uint64_t& begun_;  // calls
  int tag_ = 0;
};

inline std::shared_ptr<bound_exchange> mpi_transport::bind(exchange_plan plan) {
  auto held = held_by(plan);
  return std::make_shared<mpi_exchange>(*this, std::move(plan), std::move(held));
}

}  // namespace tessera
