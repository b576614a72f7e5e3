#pragma once

#include <tessera/comm/mpi_call.hpp>
#include <tessera/comm/mpi_transport.hpp>
#include <tessera/comm/patience.hpp>

namespace tessera {

/// An exchange among processes: Moves put boxes where they belong as they end, Folds combine when all terms are there.
class mpi_exchange final : public bound_exchange {
 public:
  mpi_exchange(mpi_transport& carrier, exchange_plan bound, std::shared_ptr<const void> held)
      : bound_exchange(std::move(bound), carrier.rank(), std::move(held)), carrier_(carrier), begun_(carrier.waiting_.begun(plan().id)) {
    tag_ = carrier_.tag_of(plan().id);
    if (!plan().agreed()) return;
    carrier_.used_.insert(tag_);
    carrier_.waiting_.bind(plan().id);
  }
  ~mpi_exchange() override {
    if (plan().agreed()) carrier_.used_.erase(tag_);
    if (!plan().agrees()) carrier_.waiting_.forget(plan().id);
  }

 private:
  using clock = mpi_transport::clock;
  using letter = mpi_call::letter;

  static mpi_call& mine(exchange_call& call) { return static_cast<mpi_call&>(call); }
  index_t bytes_of_leg(const leg& l) const { return mpi_call::bytes_of_leg(plan(), l); }

  std::unique_ptr<exchange_call> make_call() override { return std::make_unique<mpi_call>(plan(), carrier_.rank()); }

  void post(exchange_call& call) override {
    mpi_call& c = mine(call);
    const int me = carrier_.rank();
    if (clock::now() > carrier_.next_look_) carrier_.listen();
    if (carrier_.ended()) throw error(refusal{code::worker_lost, me, me}, launch_ended);
    if (carrier_.stopped_) carrier_.waiting_.fail(refusal{code::call_given_up, me}, told(me, text_of(c.does)));
    ++begun_;
    c.stage(plan(), carrier_.spare_);
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

  template <class Make>
  void begin(mpi_call& c, letter& x, const leg& l, Make make) {
    index_t left = bytes_of_leg(l);
    std::byte* at = x.at;
    for (std::size_t p = x.first; p < x.first + x.pieces; ++p) {
      const index_t n = std::min(left, mpi_call::largest_piece);
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
    const reason& why = kind == MPI_ERR_TRUNCATE || kind == MPI_ERR_IN_STATUS ? code::workers_disagree : code::worker_lost;
    carrier_.waiting_.fail(refusal{why, carrier_.rank(), peer}, told(carrier_.rank(), text_of(c.does)) + "; " + says);
  }

  bool arrived(exchange_call& call) override {
    mpi_call& c = mine(call);
    for (const letter& x : c.receives)
      if (!c.came(x)) return false;
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
        if (!mpi_call::is_done(c.requests[p])) MPI_Cancel(&c.requests[p]);
    const auto until = clock::now() + (carrier_.waiting_.failure() ? mpi_transport::a_while : mpi_transport::for_readers);
    int done = 0;
    while (c.test(done) == MPI_SUCCESS && done == 0) {
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
  bool all_done(mpi_call& c) {
    int done = 0;
    const int status = c.test(done);
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
        if (!c.came(mail[i]) && std::none_of(all.begin(), all.end(), same)) all.push_back({legs[i].peer, carrier_.offers_else(legs[i].peer)});
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
