#pragma once

#include <tessera/comm/hub.hpp>
#include <tessera/comm/patience.hpp>

#include <memory>
#include <utility>

namespace tessera {

class in_process_exchange;

/// The transport of one worker thread.
class in_process final : public transport {
 public:
  in_process(std::shared_ptr<hub> meeting, int rank) : hub_(std::move(meeting)), rank_(rank) {}

  transport_traits traits() const override { return {"in-process", true, false}; }
  int rank() const override { return rank_; }
  int size() const override { return hub_->size(); }
  bool ended() const override { return hub_->ended(rank_); }
  std::optional<error> failure() const override { return hub_->failure(); }

  inline std::shared_ptr<bound_exchange> bind(exchange_plan plan) override;

 private:
  friend class in_process_exchange;

  std::shared_ptr<hub> hub_;
  int rank_;
  std::vector<std::pair<in_process_exchange*, exchange_call*>> under_way_;  // who waits goes on with the others as well
};

/// An exchange among threads: each shows where its tensor lies, and readers take what they need of it.
class in_process_exchange final : public bound_exchange {
 public:
  in_process_exchange(in_process& carrier, exchange_plan bound, std::shared_ptr<const void> held)
      : bound_exchange(std::move(bound), carrier.rank(), std::move(held)), carrier_(carrier), hub_(carrier.hub_), rank_(carrier.rank()) {
    const std::vector<int>& workers = plan().workers;
    const auto place = [&](int rank) { return static_cast<int>(std::find(workers.begin(), workers.end(), rank) - workers.begin()); };
    me_ = static_cast<std::size_t>(place(rank_));
    std::vector<int> senders;
    for (int i = 0; i < static_cast<int>(plan().receives.size()); ++i) {
      const int peer = plan().receives[static_cast<std::size_t>(i)].peer;
      places_.push_back(static_cast<std::size_t>(place(peer)));
      if (peer == rank_) continue;
      auto known = std::find_if(sources_.begin(), sources_.end(), [&](const source& s) { return s.rank == peer; });
      if (known == sources_.end()) {
        senders.push_back(place(peer));
        known = sources_.insert(sources_.end(), {peer, static_cast<std::size_t>(place(peer)), {}});
      }
      known->boxes.push_back(i);
    }
    for (const leg& l : plan().sends)
      if (l.peer != rank_ && std::find(readers_.begin(), readers_.end(), place(l.peer)) == readers_.end()) readers_.push_back(place(l.peer));
    among_ = hub_->meet(plan(), me_, senders, readers_);
  }

 private:
  /// A worker whose boxes this one takes.
  struct source {
    int rank;
    std::size_t place;
    std::vector<int> boxes;
  };
  struct in_process_call final : exchange_call {
    detail::shown_call* shown = nullptr;
    std::vector<bool> taken;  // from each source
    std::size_t missing = 0;  // sources whose boxes were not taken
    std::size_t read = 0;     // readers in turn that have taken theirs
    std::vector<region> shown_by;
  };

  static in_process_call& mine(exchange_call& call) { return static_cast<in_process_call&>(call); }
  detail::exchange_member& member(std::size_t place) const { return among_->members[place]; }

  std::unique_ptr<exchange_call> make_call() override { return std::make_unique<in_process_call>(); }

  void post(exchange_call& call) override {
    in_process_call& c = mine(call);
    hub_->begin(rank_, c.does);
    c.taken.assign(sources_.size(), false);
    c.missing = sources_.size();
    c.read = 0;
    c.shown = &member(me_).calls.fresh(c.sequence);
    c.shown->busy = true;
    c.shown->data = c.in.data;
    for (int d = 0; d < c.in.strides.count; ++d) c.shown->strides[d] = c.in.strides[d];
    c.shown->begun.store(c.sequence + 1, std::memory_order_release);
    carrier_.under_way_.push_back({this, &call});
    if (plan().fold && sources_.empty()) add_up(c);
  }

  bool arrived(exchange_call& call) override {
    in_process_call& c = mine(call);
    if (c.missing == 0) return true;
    if (plan().fold) {
      for (const source& s : sources_)
        if (!member(s.place).calls.begun(c.sequence)) return false;
      add_up(c);
      return c.missing == 0;
    }
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const source& s = sources_[i];
      if (c.taken[i] || !member(s.place).calls.begun(c.sequence)) continue;
      const region theirs = shown_by(s, c);
      const bool open = hub_->read_from(rank_, std::span(&s, 1), [&] {
        for (const int b : s.boxes) {
          const leg& l = plan().receives[static_cast<std::size_t>(b)];
          copy(theirs.part(l.there, l.extents), c.out.part(l.here, l.extents));
        }
      });
      if (!open) continue;
      c.taken[i] = true;
      --c.missing;
      took_from(s, c);
    }
    return c.missing == 0;
  }

  void complete(exchange_call& call) override {
    if (!ended(call)) wait(call);
    forget(call);
  }

  void withdraw(std::unique_ptr<exchange_call> call) noexcept override {
    hub_->close(rank_);
    carrier_.fault = error(refusal{code::call_given_up, rank_});
    if (mine(*call).shown != nullptr) forget(*call);
  }

  bool ended(exchange_call& call) {
    in_process_call& c = mine(call);
    if (!arrived(call)) return false;
    while (c.read < readers_.size() && member(static_cast<std::size_t>(readers_[c.read])).calls.taken(c.sequence, me_)) ++c.read;
    return c.read == readers_.size();
  }

  void forget(exchange_call& call) {
    in_process_call& c = mine(call);
    c.shown->busy = false;
    c.shown = nullptr;
    std::erase_if(carrier_.under_way_, [&](const auto& other) { return other.second == &call; });
  }

  void wait(exchange_call& call) {
    detail::patience p(hub_->crowded);
    std::optional<detail::patience::clock::time_point> until;
    auto next_look = std::chrono::milliseconds(20);
    struct waiting_here {
      hub& meeting;
      int rank;
      bool known = false;
      ~waiting_here() {
        if (known) meeting.go_on(rank);
      }
    } here{*hub_, rank_};
    while (true) {
      const bool look = p.pause();
      if (ended(call)) break;
      for (const auto& [exchange, other] : carrier_.under_way_)
        if (other != &call) exchange->arrived(*other);
      if (!look) continue;
      hub_->stop_if_failed(rank_);
      if (p.waited() > next_look) {
        next_look += std::chrono::milliseconds(100);
        here.known = true;
        hub_->wait(rank_, {among_.get(), me_, call.sequence, text_of(call.does)});
      }
      if (!until) until = detail::deadline_after(carrier_.time_limit);
      if (detail::patience::clock::now() > *until) hub_->late(rank_, carrier_.time_limit);
    }
  }

  // The tensor that a source shows for a call.
  region shown_by(const source& s, const in_process_call& c) const {
    const detail::shown_call& shown = member(s.place).calls.of(c.sequence);
    region r{shown.data, plan().element, {}, {}};
    r.strides.resize(plan().in.count);
    for (int d = 0; d < r.strides.count; ++d) r.strides[d] = shown.strides[d];
    return r;
  }
  void took_from(const source& s, in_process_call& c) { c.shown->taken(s.place).store(c.sequence + 1, std::memory_order_release); }

  // Combines the terms of all sources, when all have begun.
  void add_up(in_process_call& c) {
    c.shown_by.assign(plan().workers.size(), c.in);
    for (const source& s : sources_) c.shown_by[s.place] = shown_by(s, c);
    const auto add = [&] {
      fold(c, [&](int i) {
        const leg& l = plan().receives[static_cast<std::size_t>(i)];
        return c.shown_by[places_[static_cast<std::size_t>(i)]].part(l.there, l.extents);
      });
    };
    if (!hub_->read_from(rank_, sources_, add)) return;
    c.missing = 0;
    for (const source& s : sources_) took_from(s, c);
  }

  in_process& carrier_;
  std::shared_ptr<hub> hub_;
  int rank_;
  std::size_t me_ = 0;
  std::vector<source> sources_;
  std::vector<int> readers_;          // by place
  std::vector<std::size_t> places_;   // of who sends each receive
  std::shared_ptr<detail::shared_exchange> among_;
};

inline std::shared_ptr<bound_exchange> in_process::bind(exchange_plan plan) {
  auto held = held_by(plan);
  return std::make_shared<in_process_exchange>(*this, std::move(plan), std::move(held));
}

}  // namespace tessera
