#pragma once

#include <tessera/comm/exchange/host_exchange.hpp>
#include <tessera/comm/message/message_wait.hpp>
#include <tessera/comm/mpi/call.hpp>
#include <tessera/comm/mpi/pieces.hpp>
#include <tessera/comm/mpi/transport.hpp>

#include <deque>

namespace tessera {

namespace engine {

/// An exchange among processes: boxes go where they belong, and a Fold combines terms in rounds, each while the next is
/// on its way.
///
/// Workers of one node take their boxes from where the tensors of the others lie; to and from all others they are
/// messages.
class mpi_exchange final : public host_exchange {
 public:
  mpi_exchange(mpi_transport& carrier, exchange_plan bound, std::shared_ptr<const void> keeper)
      : host_exchange(all_on_node(carrier, bound)
                          ? std::move(bound)
                          : detail::in_pieces(std::move(bound), carrier.options_.smallest_piece),
                      carrier.rank(), std::move(keeper)),
        carrier_(carrier),
        begun_(carrier.detector_.begun(plan().id)),
        rounds_(detail::rounds_of(plan())) {
    tag_ = carrier_.tag_of(plan().id);
    for (const std::vector<box_transfer>* transfers : {&plan().sends, &plan().receives})
      for (const box_transfer& l : *transfers) sends_messages_ = sends_messages_ || travels(l.peer);
    if (!plan().offers.empty() && plan().offers[plan().index_of(carrier_.rank())] != 0)
      peers_ = std::make_unique<detail::node_peers>(carrier_.node_, plan(), carrier_.rank());
    if (peers_ && peers_->has_sources()) carrier_.with_sources_.push_back(this);
    if (!plan().agreed()) return;
    carrier_.used_.insert(tag_);
    carrier_.detector_.bind(plan());
  }
  ~mpi_exchange() override {
    std::erase(carrier_.going_on_, this);
    std::erase(carrier_.with_sources_, this);
    if (plan().agreed()) carrier_.used_.erase(tag_);
    if (!plan().agrees()) carrier_.detector_.let_go(plan());
    if (peers_ && !peers_->is_read()) carrier_.left_behind_.push_back(std::move(peers_));
  }

 private:
  friend mpi_transport;
  using clock = mpi_transport::clock;
  using letter = mpi_call::letter;

  static mpi_call& mine(exchange_call& call) { return static_cast<mpi_call&>(call); }

  static bool same_node(const mpi_transport& carrier, const exchange_plan& plan, int worker) {
    return detail::node_peers::share_slots(carrier.node_, plan, carrier.rank_, worker);
  }
  static bool all_on_node(const mpi_transport& carrier, const exchange_plan& plan) {
    return std::all_of(plan.workers.begin(), plan.workers.end(),
                       [&](int w) { return w == carrier.rank_ || same_node(carrier, plan, w); });
  }
  // Whether boxes to and from a worker are messages.
  bool travels(int worker) const { return worker != carrier_.rank() && !same_node(carrier_, plan(), worker); }

  std::unique_ptr<exchange_call> make_call() override { return std::make_unique<mpi_call>(plan(), rounds_); }

  void post(exchange_call& call) override {
    mpi_call& c = mine(call);
    const int me = carrier_.rank();
    // A look at the clock costs a twentieth of a small call.
    if (++carrier_.posts_ % 16 == 0 && clock::now() > carrier_.next_look_) carrier_.listen();
    if (carrier_.ended()) throw error(refusal{code::worker_lost, me, me}, launch_ended);
    carrier_.refuse_if_stopped(c.does);
    ++begun_;
    c.rounds_begun = c.rounds_taken = 0;
    c.all_came = !sends_messages_;
    if (sends_messages_) {
      c.describe(plan(), [this](int worker) { return travels(worker); });
      c.borrow(carrier_.spare_);
      c.look_again();
    }
    c.posted = true;
    if (peers_) peers_->show(c.shows, c);
    if (open_.empty() || !sends_messages_) begin_rounds(c);
    if (!goes_by_itself(c)) {
      if (open_.empty()) carrier_.going_on_.push_back(this);
      open_.push_back(&c);
    }
    for (std::size_t i = 0; i < c.sends.size(); ++i) {
      const letter& x = c.sends[i];
      if (x.beside) copy_rows(x.rows, bytes_of(plan().element), c.in.data + x.lies, c.beside.data() + x.travels.offset);
      begin(c, plan().sends[i], x, c.in.data, c.requests[c.receives.size() + i], &MPI_Isend, &MPI_Send_init);
    }
  }

  // Takes rounds that have come and begins others. Boxes of one sender come in the order of its receives. So a call
  // begins to receive once all earlier calls have begun their last round.
  bool go_on() {
    bool first = true;
    const auto goes = [&](mpi_call* c) {
      if (first) begin_rounds(*c);
      for (; !goes_by_itself(*c) && has_come(*c) && take_round(*c);)
        if (first) begin_rounds(*c);
      first = first && c->rounds_begun == rounds_;
      return goes_by_itself(*c);
    };
    std::erase_if(open_, goes);
    return open_.empty();
  }
  // The last round has begun, and nobody waits until this worker has read.
  bool goes_by_itself(const mpi_call& c) const {
    return (peers_ && peers_->has_sources() ? c.rounds_taken : c.rounds_begun) == rounds_;
  }
  void begin_rounds(mpi_call& c) {
    for (; c.rounds_begun < std::min(rounds_, c.rounds_taken + mpi_call::at_once); ++c.rounds_begun)
      for (std::size_t i = c.rounds_begun; i < c.receives.size(); i += rounds_)
        begin(c, plan().receives[i], c.receives[i], c.out.data, c.requests[i], &MPI_Irecv, &MPI_Recv_init);
  }
  // The next round.
  bool has_come(mpi_call& c) {
    const bool read = !peers_ || (plan().fold ? peers_->begun(c) : peers_->pull(c));
    if (!read || c.rounds_taken >= c.rounds_begun) return false;
    for (std::size_t i = c.rounds_taken; i < c.receives.size() && !c.all_came; i += rounds_)
      if (!c.is_done(i)) return false;
    return true;
  }
  // Whether all rounds of a call have begun. Those of other calls are waited for elsewhere, so all of them go on.
  bool receives_all(const mpi_call& c) {
    std::erase_if(carrier_.going_on_, [](mpi_exchange* e) { return e->go_on(); });
    return c.rounds_begun == rounds_;
  }

  template <class Call>
  void begin(mpi_call& c, const box_transfer& l, const letter& x, std::byte* tensor, MPI_Request& request, Call anew,
             Call to_keep) {
    if (x.travels.count == 0) return;
    const bool keep = c.again && x.keeps;
    if (request == MPI_REQUEST_NULL) {
      std::byte* const from = x.beside ? c.beside.data() : tensor;
      throw_if_failed((keep ? to_keep : anew)(from + x.travels.offset, x.travels.count, x.travels.type(), l.peer, tag_,
                                              carrier_.world_, &request),
                      c, l.peer);
    }
    if (keep) throw_if_failed(MPI_Start(&request), c, l.peer);
  }
  // What MPI cannot do with a worker is told in its words.
  void throw_if_failed(int status, const mpi_call& c, int peer) const {
    if (status == MPI_SUCCESS) return;
    int kind = MPI_ERR_OTHER;
    char says[MPI_MAX_ERROR_STRING]{};
    int length = 0;
    MPI_Error_class(status, &kind);
    MPI_Error_string(status, says, &length);
    const reason& why =
        kind == MPI_ERR_TRUNCATE || kind == MPI_ERR_IN_STATUS ? code::workers_disagree : code::worker_lost;
    carrier_.detector_.fail(refusal{why, carrier_.rank(), peer},
                            worker_text(carrier_.rank(), text_of(c.does)) + "; " + says);
  }

  bool arrived(exchange_call& call) override {
    mpi_call& c = mine(call);
    carrier_.refuse_if_stopped(c.does);
    return receives_all(c) && take_rounds(c);
  }
  bool take_rounds(mpi_call& c) {
    while (c.rounds_taken < rounds_ && has_come(c) && take_round(c)) {
    }
    return c.rounds_taken == rounds_;
  }

  void complete(exchange_call& call) override {
    mpi_call& c = mine(call);
    carrier_.refuse_if_stopped(c.does);
    if (!all_done(c)) wait(c);
    c.posted = false;
    if (!open_.empty()) {  // its last boxes may have come while nobody went on with it
      std::erase(open_, &c);
      if (open_.empty()) std::erase(carrier_.going_on_, this);
    }
    if (peers_) peers_->end(c.shows);
    c.give_back(carrier_.spare_);
  }

  /// Receives are cancelled; what a peer does not take within a few seconds stays allocated until the job ends.
  void withdraw(std::unique_ptr<exchange_call> call) noexcept override {
    carrier_.stopped_ = true;
    carrier_.fail_with(error(refusal{code::call_given_up, carrier_.rank()}));
    mpi_call& c = mine(*call);
    open_.clear();
    if (!c.posted) return;
    const auto until =
        clock::now() + (carrier_.detector_.failure() ? mpi_transport::a_while : mpi_transport::for_readers);
    if (peers_) peers_->give_up(c.shows, c, until);
    for (std::size_t i = 0; i < plan().receives.size(); ++i)
      if (!c.is_done(i)) MPI_Cancel(&c.requests[i]);
    int done = 0;
    while (c.test(done) == MPI_SUCCESS && done == 0) {
      if (clock::now() > until) {
        carrier_.given_up_.push_back(std::move(call));
        return;
      }
      std::this_thread::yield();
    }
  }

  // Puts the boxes of the next round where they belong; false if one of them cannot be read any more.
  bool take_round(mpi_call& c) {
    const std::vector<box_transfer>& transfers = plan().receives;
    const std::size_t round = c.rounds_taken;
    const auto term = [&](std::size_t i) -> strided {
      if (peers_ && peers_->is_source(i)) return peers_->term(i, transfers[i], bytes_of(plan().element));
      if (transfers[i].peer == carrier_.rank())
        return {c.in.part(transfers[i].there, transfers[i].extents).data, c.in.strides.begin()};
      return {c.beside.data() + c.receives[i].travels.offset, c.receives[i].packed.begin()};
    };
    const auto combine = [&] {
      for (std::size_t i = round; i < plan().cells.size(); i += rounds_) combine_cell(i, c, term);
    };
    if (plan().fold && peers_ && !peers_->read(c, combine)) return false;
    if (plan().fold && !peers_) combine();
    if (++c.rounds_taken == rounds_ && plan().fold && peers_) peers_->took_all();
    if (plan().fold) return true;
    for (const letter& x : c.receives)
      if (x.beside)
        copy_rows(x.rows, bytes_of(plan().element), c.beside.data() + x.travels.offset, c.out.data + x.lies);
    return true;
  }
  bool all_done(mpi_call& c) {
    return receives_all(c) && all_came(c) && take_rounds(c) &&
           (!peers_ || peers_->let_end(c.shows, c, carrier_.crowded_ ? 0 : looks_before_copies));
  }
  bool all_came(mpi_call& c) {
    if (c.all_came) return true;
    int done = 0;
    const int status = c.test(done);
    if (done == 0 && status == MPI_SUCCESS) return false;
    for (std::size_t i = 0; i < plan().receives.size(); ++i) {
      const box_transfer& l = plan().receives[i];
      if (c.receives[i].travels.count == 0) continue;
      if (status == MPI_ERR_IN_STATUS) throw_if_failed(c.statuses[i].MPI_ERROR, c, l.peer);
      MPI_Count came = 0;
      MPI_Get_elements_x(&c.statuses[i], MPI_BYTE, &came);
      if (status == MPI_SUCCESS && came != count_of(l.extents) * bytes_of(plan().element))
        throw_if_failed(MPI_ERR_TRUNCATE, c, l.peer);
    }
    throw_if_failed(status, c, carrier_.rank());
    return c.all_came = true;
  }

  using dependencies = detail::dependencies;
  // Whom a call needs (mpi_needs.hpp): to begin it; to take one, too; and of a Fold that this worker began, to give its
  // terms.
  dependencies missing(const mpi_call& c) const;
  dependencies needed(const mpi_call& c) const;
  dependencies missing(std::uint64_t sequence) const;
  void add(dependencies& all, int worker, bool reads = false, std::uint64_t behind = 0) const;
  void add_messages(dependencies& all, const mpi_call& c, const std::vector<box_transfer>& transfers,
                    std::size_t request, bool reads) const;
  bool offers_else(int peer) const;

  // Never sleeps: messages on their way go on only while somebody asks for them, and a reader of memory tells nobody
  // that he has come.
  void wait(mpi_call& c) {
    detail::spin_wait p(carrier_.crowded_, sends_messages_ ? carrier_.rest_ : detail::spin_wait::rest::yield);
    std::optional<message_wait> here;
    while (!all_done(c)) {
      if (carrier_.meanwhile) carrier_.meanwhile();
      if (!p.pause()) continue;
      if (p.waited() < mpi_transport::a_moment) continue;
      if (!here) here.emplace(carrier_, plan().id, c, [this, &c] { return needed(c); });
      here->look();
    }
  }

  // So often a call asks at its end whether all have read: about a microsecond.
  static constexpr unsigned looks_before_copies = 100;

  mpi_transport& carrier_;
  std::uint64_t& begun_;                       // calls
  std::size_t rounds_;                         // of each
  std::deque<mpi_call*> open_;                 // that do not go by themselves
  std::unique_ptr<detail::node_peers> peers_;  // where there are any
  bool sends_messages_ = false;                // or receives some
  int tag_ = 0;
};

}  // namespace engine

inline std::shared_ptr<engine::bound_exchange> mpi_transport::bind(engine::exchange_plan plan) {
  auto keeper = keep_alive(plan);
  std::erase_if(left_behind_, [](const auto& n) { return n->is_read(); });
  return std::make_shared<engine::mpi_exchange>(*this, std::move(plan), std::move(keeper));
}

}  // namespace tessera

#include <tessera/comm/mpi/exchange_impl.hpp>
