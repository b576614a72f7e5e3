#pragma once

#include <tessera/comm/host_exchange.hpp>
#include <tessera/comm/mpi_call.hpp>
#include <tessera/comm/mpi_pieces.hpp>
#include <tessera/comm/mpi_transport.hpp>
#include <tessera/comm/mpi_wait.hpp>

#include <atomic>
#include <deque>

namespace tessera {

/// An exchange among processes: boxes go where they belong, and a Fold combines terms in rounds, each while the next is on its way.
///
/// Of a large box only the place travels to a worker of the same node, who reads it where it lies and answers when it has.
class mpi_exchange final : public host_exchange {
 public:
  mpi_exchange(mpi_transport& carrier, exchange_plan bound, std::shared_ptr<const void> held)
      : host_exchange(carrier.all_near(bound) ? std::move(bound) : detail::in_pieces(std::move(bound), carrier.options_.smallest_piece), carrier.rank(), std::move(held)),
        carrier_(carrier),
        begun_(carrier.waiting_.begun(plan().id)),
        rounds_(detail::rounds_of(plan())) {
    tag_ = carrier_.tag_of(plan().id);
    for (const leg& l : plan().receives) {
      if (!carrier_.reads(plan(), l)) continue;
      box_vector begin = l.here;
      for (index_t& b : begin) b = 0;
      read_.push_back({l.extents, {begin, l.here}});
    }
    if (!plan().agreed()) return;
    carrier_.used_.insert(tag_);
    carrier_.waiting_.bind(plan().id);
  }
  ~mpi_exchange() override {
    std::erase(carrier_.going_on_, this);
    if (plan().agreed()) carrier_.used_.erase(tag_);
    if (!plan().agrees()) carrier_.waiting_.forget(plan().id);
  }

 private:
  using clock = mpi_transport::clock;
  using letter = mpi_call::letter;

  static mpi_call& mine(exchange_call& call) { return static_cast<mpi_call&>(call); }

  std::unique_ptr<exchange_call> make_call() override { return std::make_unique<mpi_call>(plan(), rounds_, carrier_.rank()); }

  void post(exchange_call& call) override {
    mpi_call& c = mine(call);
    const int me = carrier_.rank();
    // A look at the clock costs a twentieth of a small call.
    if (++carrier_.posts_ % 16 == 0 && clock::now() > carrier_.next_look_) carrier_.listen();
    if (carrier_.ended()) throw error(refusal{code::worker_lost, me, me}, launch_ended);
    refuse_if_given_up(c);
    ++begun_;
    c.describe(plan(), [&](const leg& l) { return carrier_.reads(plan(), l); });
    c.borrow(carrier_.spare_);
    c.look_again();
    c.posted = true;
    c.rounds_begun = c.rounds_taken = 0;
    c.taken.assign(c.taken.size(), false);
    if (open_.empty()) begin_rounds(c);
    if (!goes_by_itself(c)) {
      if (open_.empty()) carrier_.going_on_.push_back(this);
      open_.push_back(&c);
    }
    for (std::size_t i = 0; i < c.sends.size(); ++i) {
      const letter& x = c.sends[i];
      if (x.read) {
        show(c, i);
        continue;
      }
      if (x.beside && plan().sends[i].peer != me) copy_rows(x.rows, bytes_of(plan().element), c.in.data + x.lies, c.beside.data() + x.travels.offset);
      begin(c, plan().sends[i], x, c.in.data, c.requests[c.receives.size() + i], &MPI_Isend, &MPI_Send_init);
    }
  }

  // A worker that gave up a call begins none and ends none.
  void refuse_if_given_up(const mpi_call& c) {
    const int me = carrier_.rank();
    if (carrier_.stopped_) carrier_.waiting_.fail(refusal{code::call_given_up, me}, told(me, text_of(c.does)));
  }

  // Tells a reader where its box lies, and waits for the answer that it was read.
  void show(mpi_call& c, std::size_t i) {
    const leg& l = plan().sends[i];
    detail::box_place& where = c.place_of(c.sends[i]);
    where = carrier_.node_.place_of(c.in.part(l.here, l.extents), c.copies);
    insist(MPI_Irecv(nullptr, 0, MPI_BYTE, l.peer, tag_, carrier_.answers_, &c.requests[c.receives.size() + i]), c, l.peer);
    std::atomic_thread_fence(std::memory_order_release);
    MPI_Request told = MPI_REQUEST_NULL;  // it stays readable until the answer comes
    insist(MPI_Isend(&where, sizeof where, MPI_BYTE, l.peer, tag_, carrier_.world_, &told), c, l.peer);
    MPI_Request_free(&told);
  }
  // Where the box lies that a message told of.
  strided shown(mpi_call& c, std::size_t i) {
    const int peer = plan().receives[i].peer;
    int done = 0;
    int came = 0;
    MPI_Status status;
    MPI_Request_get_status(c.requests[i], &done, &status);
    MPI_Get_count(&status, MPI_BYTE, &came);
    const strided there = carrier_.node_.see(peer, c.place_of(c.receives[i]));
    if (came != static_cast<int>(sizeof(detail::box_place)) || there.data == nullptr) insist(MPI_ERR_TRUNCATE, c, peer);
    std::atomic_thread_fence(std::memory_order_acquire);
    return there;
  }
  void answer(const mpi_call& c, int peer) {
    MPI_Request said = MPI_REQUEST_NULL;
    insist(MPI_Isend(nullptr, 0, MPI_BYTE, peer, tag_, carrier_.answers_, &said), c, peer);
    MPI_Request_free(&said);
  }
  // Takes the boxes of a Move that are read and were not yet.
  void read_boxes(mpi_call& c) {
    auto next = read_.begin();
    for (std::size_t i = 0; i < c.receives.size(); ++i) {
      if (!c.receives[i].read) continue;
      matching_boxes& part = *next++;
      if (c.taken[i] || !c.is_done(i)) continue;
      take(part, shown(c, i), c.out);
      c.taken[i] = true;
      answer(c, plan().receives[i].peer);
    }
  }

  // Boxes of one sender come in the order in which they are received, so a call begins to receive when all before it have begun the last.
  bool go_on() {
    while (!open_.empty() && go_on(*open_.front())) open_.pop_front();
    return open_.empty();
  }
  // Takes rounds that have come and begins others; whether the call goes on by itself.
  bool go_on(mpi_call& c) {
    for (begin_rounds(c); !goes_by_itself(c) && has_come(c); begin_rounds(c)) take_round(c);
    if (!plan().fold && c.rounds_taken < rounds_) read_boxes(c);
    return goes_by_itself(c);
  }
  // The last round has begun, and nobody waits for an answer.
  bool goes_by_itself(const mpi_call& c) const { return (read_.empty() ? c.rounds_begun : c.rounds_taken) == rounds_; }
  void begin_rounds(mpi_call& c) {
    for (; c.rounds_begun < std::min(rounds_, c.rounds_taken + mpi_call::at_once); ++c.rounds_begun)
      for (std::size_t i = c.rounds_begun; i < c.receives.size(); i += rounds_)
        begin(c, plan().receives[i], c.receives[i], c.out.data, c.requests[i], &MPI_Irecv, &MPI_Recv_init);
  }
  // The next round.
  bool has_come(const mpi_call& c) const {
    for (std::size_t i = c.rounds_taken; i < c.receives.size(); i += rounds_)
      if (!c.is_done(i)) return false;
    return true;
  }
  // Whether a call has begun to receive all. Those of other calls are waited for elsewhere, so all of them go on.
  bool receives_all(const mpi_call& c) {
    std::erase_if(carrier_.going_on_, [](mpi_exchange* e) { return e->go_on(); });
    return goes_by_itself(c);
  }

  template <class Call>
  void begin(mpi_call& c, const leg& l, const letter& x, std::byte* tensor, MPI_Request& request, Call anew, Call to_keep) {
    if (l.peer == carrier_.rank()) return;
    const bool keep = c.again && x.keeps;
    if (request == MPI_REQUEST_NULL) {
      std::byte* const from = x.beside ? c.beside.data() : tensor;
      insist((keep ? to_keep : anew)(from + x.travels.offset, x.travels.count, x.travels.type(), l.peer, tag_, carrier_.world_, &request), c, l.peer);
    }
    if (keep) insist(MPI_Start(&request), c, l.peer);
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
    refuse_if_given_up(c);
    if (!receives_all(c)) return false;
    while (c.rounds_taken < rounds_ && has_come(c)) take_round(c);
    return c.rounds_taken == rounds_;
  }

  void complete(exchange_call& call) override {
    mpi_call& c = mine(call);
    refuse_if_given_up(c);
    if (!all_done(c)) wait(c);
    while (c.rounds_taken < rounds_) take_round(c);
    c.posted = false;
    c.give_back(carrier_.spare_);
  }

  /// Receives are cancelled; what a peer does not take within a few seconds stays allocated until the job ends.
  void withdraw(std::unique_ptr<exchange_call> call) noexcept override {
    carrier_.stopped_ = true;
    carrier_.fault = error(refusal{code::call_given_up, carrier_.rank()});
    mpi_call& c = mine(*call);
    open_.clear();
    if (!c.posted) return;
    for (std::size_t i = 0; i < plan().receives.size(); ++i)
      if (!c.is_done(i)) MPI_Cancel(&c.requests[i]);
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

  // Puts the boxes of the next round that came beside the tensor where they belong.
  void take_round(mpi_call& c) {
    const std::vector<leg>& legs = plan().receives;
    const std::size_t round = c.rounds_taken++;
    for (std::size_t i = round; i < plan().cells.size(); i += rounds_)
      fold_cell(i, c, [&](std::size_t term) -> strided {
        const letter& x = c.receives[term];
        if (x.read) return shown(c, term);
        if (legs[term].peer != carrier_.rank()) return {c.beside.data() + x.travels.offset, x.packed.begin()};
        return {c.in.part(legs[term].there, legs[term].extents).data, c.in.strides.begin()};
      });
    if (plan().fold) {
      for (std::size_t i = round; i < legs.size(); i += rounds_)
        if (c.receives[i].read) answer(c, legs[i].peer);
      return;
    }
    read_boxes(c);
    for (std::size_t i = 0; i < legs.size(); ++i)
      if (const letter& x = c.receives[i]; x.beside && !x.read && legs[i].peer != carrier_.rank())
        copy_rows(x.rows, bytes_of(plan().element), c.beside.data() + x.travels.offset, c.out.data + x.lies);
  }
  bool all_done(mpi_call& c) {
    if (!receives_all(c)) return false;
    int done = 0;
    const int status = c.test(done);
    if (done == 0 && status == MPI_SUCCESS) return false;
    for (std::size_t i = 0; i < plan().receives.size(); ++i) {
      const leg& l = plan().receives[i];
      if (l.peer == carrier_.rank()) continue;
      if (status == MPI_ERR_IN_STATUS) insist(c.statuses[i].MPI_ERROR, c, l.peer);
      MPI_Count came = 0;
      MPI_Get_elements_x(&c.statuses[i], MPI_BYTE, &came);
      if (status == MPI_SUCCESS && came != (c.receives[i].read ? index_t{sizeof(detail::box_place)} : count_of(l.extents) * bytes_of(plan().element))) insist(MPI_ERR_TRUNCATE, c, l.peer);
    }
    insist(status, c, carrier_.rank());
    return true;
  }

  // Who has to begin the call: whose box has not come, and who has not taken one.
  std::vector<detail::waiting::need> needs(const mpi_call& c) const {
    std::vector<detail::waiting::need> all;
    const auto add = [&](const mpi_call& of, const std::vector<leg>& legs, std::size_t request) {
      for (const leg& l : legs) {
        const auto same = [&](const detail::waiting::need& n) { return n.peer == l.peer; };
        if (!of.is_done(request++) && std::none_of(all.begin(), all.end(), same)) all.push_back({l.peer, offers_else(l.peer)});
      }
    };
    add(open_.empty() ? c : *open_.front(), plan().receives, 0);
    add(c, plan().sends, plan().receives.size());
    return all;
  }
  // A box that is here and not received is one that no call takes, unless a call takes it later.
  bool offers_else(int peer) const {
    int here = 0;
    MPI_Status status;
    MPI_Iprobe(peer, MPI_ANY_TAG, carrier_.world_, &here, &status);
    const auto later = [&](const mpi_exchange* e) { return e->tag_ == status.MPI_TAG; };
    return here != 0 && std::none_of(carrier_.going_on_.begin(), carrier_.going_on_.end(), later);
  }
  // Never sleeps: messages on their way go on only while somebody asks for them.
  void wait(mpi_call& c) {
    detail::patience p(carrier_.crowded_, carrier_.rest_);
    std::optional<mpi_wait> here;
    while (!all_done(c)) {
      if (carrier_.meanwhile) carrier_.meanwhile();
      if (!p.pause() || p.waited() < mpi_transport::a_moment) continue;
      if (!here) here.emplace(carrier_, plan().id, c, [this, &c] { return needs(c); });
      here->look();
    }
  }

  mpi_transport& carrier_;
  std::uint64_t& begun_;  // calls
  std::vector<matching_boxes> read_;  // what is read, of a Move copied
  std::size_t rounds_;          // of each
  std::deque<mpi_call*> open_;  // that do not go by themselves
  int tag_ = 0;
};

inline std::shared_ptr<bound_exchange> mpi_transport::bind(exchange_plan plan) {
  auto held = held_by(plan);
  return std::make_shared<mpi_exchange>(*this, std::move(plan), std::move(held));
}

}  // namespace tessera
