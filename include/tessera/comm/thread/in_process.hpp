#pragma once

#include <tessera/comm/exchange/buffered_copy.hpp>
#include <tessera/comm/exchange/host_exchange.hpp>
#include <tessera/comm/thread/thread_rendezvous.hpp>
#include <tessera/comm/wait/spin_wait.hpp>

#include <list>
#include <memory>
#include <utility>

namespace tessera::engine {

class in_process_exchange;

/// The transport of one worker thread.
class in_process final : public transport {
 public:
  in_process(std::shared_ptr<thread_rendezvous> meeting, int rank) : rendezvous_(std::move(meeting)), rank_(rank) {}

  transport_traits traits() const override { return {"in-process", true}; }
  int rank() const override { return rank_; }
  int size() const override { return rendezvous_->size(); }
  bool ended() const override { return rendezvous_->ended(rank_); }
  std::optional<error> failure() const override { return rendezvous_->failure(); }
  void listen() override { rendezvous_->stop_if_failed(rank_); }

  inline std::shared_ptr<bound_exchange> bind(exchange_plan plan) override;

  /// This worker's program ended: it waits until others have taken what it sent ahead of them; who still waits for it
  /// is told.
  void leave() {
    for (const sent_ahead& s : sent_ahead_)
      if (!s.is_read())
        wait([&] { return s.is_read(); }, {s.among.get(), s.me, s.calls() - 1, 0, {}}, [&] { return s.does; });
    rendezvous_->leave(rank_);
  }

 private:
  friend class in_process_exchange;

  /// An exchange whose calls may end before others have taken anything: they may come when it is gone.
  struct sent_ahead {
    std::shared_ptr<detail::shared_exchange> among;
    std::size_t me;
    std::string does;

    std::uint64_t calls() const { return among->members[me].calls.count(); }
    bool is_read() const { return calls() == 0 || among->is_read(me, calls() - 1); }
  };

  // Whether the worker may go on, which may() throws if not: a program that was stopped before has caught that.
  template <class May>
  void throw_if_stopped(May&& may) {
    const bool again = rendezvous_->stopped(rank_);
    try {
      may();
    } catch (const error& e) {
      if (again && went_on) went_on(e);
      throw;
    }
  }
  // Goes on with all calls under way until done(); the others are told the call, and what it does.
  template <class Done, class Does>
  void wait(Done&& done, detail::waited_call call, Does&& does);

  std::shared_ptr<thread_rendezvous> rendezvous_;
  int rank_;
  std::vector<std::pair<in_process_exchange*, exchange_call*>> under_way_;
  std::list<sent_ahead> sent_ahead_;
};

/// An exchange among threads. Each shows where its tensor lies, or a copy of a small one, and readers take what they
/// need of it.
class in_process_exchange final : public host_exchange {
 public:
  in_process_exchange(in_process& carrier, exchange_plan bound, std::shared_ptr<const void> keeper)
      : host_exchange(std::move(bound), carrier.rank(), std::move(keeper)),
        carrier_(carrier),
        rendezvous_(carrier.rendezvous_),
        rank_(carrier.rank()),
        copy_(plan(), [this](int worker) { return worker != rank_; }) {
    const auto index = [&](int rank) { return static_cast<int>(plan().index_of(rank)); };
    me_ = plan().index_of(rank_);
    std::vector<int> senders;
    for (const box_transfer& l : plan().receives) {
      indices_.push_back(plan().index_of(l.peer));
      if (l.peer == rank_) continue;
      auto known = std::find_if(sources_.begin(), sources_.end(), [&](const source& s) { return s.rank == l.peer; });
      if (known == sources_.end()) {
        senders.push_back(index(l.peer));
        known = sources_.insert(sources_.end(), {l.peer, plan().index_of(l.peer), {}});
      }
      known->boxes.push_back({l.extents, {l.there, l.here}});
    }
    std::vector<int> readers;
    for (const box_transfer& l : plan().sends)
      if (l.peer != rank_ && std::find(readers.begin(), readers.end(), index(l.peer)) == readers.end())
        readers.push_back(index(l.peer));
    among_ = rendezvous_->meet(plan(), me_, senders, readers);
    if (copy_.ahead() == 0 || plan().agrees()) return;  // what agrees is needed by all
    const call_context does{.moves = &plan().moves, .element = plan().element};
    sent_ahead_ = carrier_.sent_ahead_.insert(carrier_.sent_ahead_.end(), {among_, me_, text_of(does)});
  }
  ~in_process_exchange() override {
    if (sent_ahead_ && (*sent_ahead_)->is_read()) carrier_.sent_ahead_.erase(*sent_ahead_);
  }

 private:
  friend class in_process;

  /// A worker whose boxes this one takes.
  struct source {
    int rank;
    std::size_t index;
    std::vector<matching_boxes> boxes;
  };
  struct in_process_call final : exchange_call {
    detail::shown_call* shown = nullptr;
    std::vector<bool> taken;  // from each source
    std::size_t missing = 0;  // sources whose boxes were not taken
    bool read = false;        // by all readers whom this call waits for
  };

  static in_process_call& mine(exchange_call& call) { return static_cast<in_process_call&>(call); }
  detail::exchange_member& member(std::size_t index) const { return among_->members[index]; }

  std::unique_ptr<exchange_call> make_call() override { return std::make_unique<in_process_call>(); }

  void post(exchange_call& call) override {
    in_process_call& c = mine(call);
    carrier_.throw_if_stopped([&] { rendezvous_->begin(rank_, c.does); });
    c.taken.assign(sources_.size(), false);
    c.missing = sources_.size();
    c.read = false;
    c.shown = &member(me_).calls.fresh(c.sequence, [&](const detail::shown_call& of) { return is_free(of); });
    c.shown->busy = true;
    show(*c.shown, c.in);
    c.shown->begun.store(c.sequence + 1, std::memory_order_release);
    carrier_.under_way_.push_back({this, &call});
    if (plan().fold && sources_.empty()) add_up(c);
  }

  // A call that ended is shown until its readers have read.
  bool is_free(const detail::shown_call& of) const {
    const std::uint64_t begun = of.begun.load(std::memory_order_relaxed);
    return !of.busy && (begun == 0 || among_->is_read(me_, begun - 1));
  }
  // The tensor itself, or, where it is small, a copy of what others read of it.
  void show(detail::shown_call& where, const region& tensor) {
    const auto is = [&](const region& r) {
      where.data = r.data;
      std::copy(r.strides.begin(), r.strides.end(), where.strides);
    };
    if (copy_.ahead() == 0) return is(tensor);
    where.copy.resize(static_cast<std::size_t>(tensor.bytes()));
    const region copy = tensor.packed_at(where.copy.data());
    copy_.copy(tensor, copy);
    is(copy);
  }

  bool arrived(exchange_call& call) override {
    in_process_call& c = mine(call);
    if (c.missing == 0) return true;
    if (plan().fold) {
      for (const source& s : sources_)
        if (!member(s.index).calls.begun(c.sequence)) return false;
      add_up(c);
      return c.missing == 0;
    }
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      source& s = sources_[i];
      if (c.taken[i] || !member(s.index).calls.begun(c.sequence)) continue;
      const strided shown = member(s.index).calls.of(c.sequence).where();
      const bool open = rendezvous_->read_from(rank_, std::span(&s, 1), [&] {
        for (matching_boxes& part : s.boxes) part.copy(shown, c.out);
      });
      if (!open) continue;
      c.taken[i] = true;
      --c.missing;
      took_from(s, c);
    }
    return c.missing == 0;
  }

  void complete(exchange_call& call) override {
    carrier_.throw_if_stopped([&] { rendezvous_->refuse_if_given_up(rank_, call.does); });
    if (!ended(call))
      carrier_.wait([&] { return ended(call); }, {among_.get(), me_, call.sequence, copy_.ahead(), {}},
                    [&] { return text_of(call.does); });
    forget(call);
  }

  void withdraw(std::unique_ptr<exchange_call> call) noexcept override {
    rendezvous_->close(rank_);
    carrier_.fail_with(error(refusal{code::call_given_up, rank_}));
    if (mine(*call).shown != nullptr) forget(*call);
  }

  // Whether all has come, and this worker is not too many calls ahead of its readers.
  bool ended(exchange_call& call) {
    in_process_call& c = mine(call);
    if (!arrived(call)) return false;
    c.read = c.read || c.sequence < copy_.ahead() || among_->is_read(me_, c.sequence - copy_.ahead());
    return c.read;
  }

  void forget(exchange_call& call) {
    in_process_call& c = mine(call);
    c.shown->busy = false;
    c.shown = nullptr;
    std::erase_if(carrier_.under_way_, [&](const auto& other) { return other.second == &call; });
  }

  void took_from(const source& s, in_process_call& c) {
    c.shown->taken(s.index).store(c.sequence + 1, std::memory_order_release);
  }

  // Combines the terms of all sources, when all have begun.
  void add_up(in_process_call& c) {
    shown_.assign(plan().workers.size(), {c.in.data, c.in.strides.begin()});
    for (const source& s : sources_) shown_[s.index] = member(s.index).calls.of(c.sequence).where();
    const auto add = [&] {
      combine_terms(c, [&](std::size_t i) {
        strided term = shown_[indices_[i]];
        const box_vector& begin = plan().receives[i].there;
        for (int d = 0; d < begin.count; ++d) term.data += begin[d] * term.strides[d] * bytes_of(plan().element);
        return term;
      });
    };
    if (!rendezvous_->read_from(rank_, sources_, add)) return;
    c.missing = 0;
    for (const source& s : sources_) took_from(s, c);
  }

  in_process& carrier_;
  std::shared_ptr<thread_rendezvous> rendezvous_;
  int rank_;
  std::size_t me_ = 0;
  std::vector<source> sources_;
  std::vector<std::size_t> indices_;  // of who sends each receive
  std::vector<strided> shown_;        // by index, while terms are combined
  detail::buffered_copy copy_;
  std::optional<std::list<in_process::sent_ahead>::iterator> sent_ahead_;
  std::shared_ptr<detail::shared_exchange> among_;
};

template <class Done, class Does>
void in_process::wait(Done&& done, detail::waited_call call, Does&& does) {
  detail::spin_wait p(rendezvous_->crowded);
  std::optional<detail::spin_wait::clock::time_point> until;
  auto next_look = std::chrono::milliseconds(20);
  struct waiting_here {
    thread_rendezvous& meeting;
    int rank;
    bool known = false;
    ~waiting_here() {
      if (known) meeting.go_on(rank);
    }
  } here{*rendezvous_, rank_};
  while (true) {
    const bool look = p.pause();
    if (done()) break;
    for (const auto& [exchange, other] : under_way_) exchange->arrived(*other);
    if (meanwhile) meanwhile();
    if (!look) continue;
    rendezvous_->stop_if_failed(rank_);
    if (p.waited() > next_look) {
      next_look += std::chrono::milliseconds(100);
      here.known = true;
      call.does = does();
      rendezvous_->wait(rank_, call);
    }
    if (!until) until = detail::deadline_after(settings().time_limit);
    if (detail::spin_wait::clock::now() > *until) rendezvous_->late(rank_, settings().time_limit);
  }
}

inline std::shared_ptr<bound_exchange> in_process::bind(exchange_plan plan) {
  auto keeper = keep_alive(plan);
  return std::make_shared<in_process_exchange>(*this, std::move(plan), std::move(keeper));
}

}  // namespace tessera::engine
