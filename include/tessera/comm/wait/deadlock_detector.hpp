#pragma once

#include <tessera/comm/exchange/bound_exchange.hpp>
#include <tessera/comm/wait/begun_calls.hpp>
#include <tessera/comm/wait/dependencies.hpp>
#include <tessera/comm/wait/wait_message.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tessera::detail {

/// How workers that share no memory find out that they wait for ever: by edge chasing (Chandy, Misra and Haas 1983).
///
/// A worker that has waited for a while asks those that it needs to begin its call. A worker that began the call only
/// answers whom it waits for, and sends nothing on: its own box is on its way. If it must also take the call, once it
/// has all terms, it sends the question on to the workers whose terms are missing. A worker that computes reads the
/// question when it waits itself, so it may compute as long as it likes. A worker that waits sends the question on to
/// those that it needs in turn. A question that comes back to its asker went round a ring of workers that wait for each
/// other. No other worker could have moved them meanwhile, so all stop. The last that began to wait in a ring finds all
/// the others waiting, so one question a wait is enough.
class deadlock_detector {
 public:
  using post = std::function<void(int to, const wait_message&)>;
  using now_needed = std::function<dependencies()>;
  using terms = std::function<dependencies(std::uint64_t exchange, std::uint64_t sequence)>;

  /// now() says whom the call needs that this worker waits in, and missing(exchange, call) whose terms it lacks of one
  /// that it began.
  deadlock_detector(int me, int size, post send, now_needed now, terms missing)
      : me_(me),
        send_(std::move(send)),
        needs_(std::move(now)),
        missing_(std::move(missing)),
        left_(static_cast<std::size_t>(size), false),
        heard_(left_.size(), 0),
        silent_(left_) {}

  /// Of exchanges: how many of its calls the worker began; it is bound; the worker lets it go (`begun_calls`).
  std::uint64_t& begun(std::uint64_t exchange) { return begun_.of(exchange); }
  void bind(const exchange_plan& plan) { begun_.bind(plan); }
  void let_go(const exchange_plan& plan) { begun_.let_go(plan); }

  /// From now on the worker waits in a call; then again it does not.
  void enter(std::uint64_t exchange, const exchange_call& call) {
    exchange_ = exchange;
    call_ = &call;
    passed_.clear();
    for (const wait_message& q : std::exchange(unread_, {})) hear(q);
  }
  void leave() {
    call_ = nullptr;
    asked_ = 0;
  }
  /// The worker's present work, in words for others.
  std::string doing() const { return call_ != nullptr ? text_of(call_->does) : ended_ ? has_ended : in_no_call; }

  /// Asks those that the call needs, which is what finds a ring, and who is stuck.
  void ask() {
    asked_ = ++questions_;
    waits_for_.clear();
    wait_message m = about_this_wait();
    m.kind = wait_message::question;
    m.first = me_;
    m.asked = asked_;
    to_each_need(m);
  }

  /// The worker behind which this one waits, as far as those that wait answered: it computes, or is stuck.
  int behind() const {
    const dependencies open = needs_();
    if (open.empty()) return me_;
    for (const dependency& n : open)
      if (!waits_for_.contains(n.peer)) return n.peer;
    int w = open.front().peer;
    for (std::size_t i = 0; i < left_.size() && waits_for_.contains(w); ++i) w = waits_for_.at(w);
    return w;
  }

  /// The worker's program ended: it begins nothing more.
  void end() {
    ended_ = true;
    to_all(message(wait_message::goodbye));
    for (const wait_message& q : std::exchange(unread_, {})) hear(q);
  }
  bool ended() const { return ended_; }

  /// The first worker whose program did not end, -1 if there is none.
  int still_runs() const {
    for (int r = 0; r < static_cast<int>(left_.size()); ++r)
      if (r != me_ && !left_[at(r)]) return r;
    return -1;
  }
  /// Asks a worker for a sign of life, unless it still owes one; how many came of it.
  void hail(int worker) {
    if (hailed_.insert(worker).second) send_(worker, message(wait_message::hail));
  }
  std::uint64_t heard_of(int worker) const { return heard_[at(worker)]; }

  /// The error that all stop with, and whether another worker says it: of those that met one together the lowest does.
  /// Until each lower one has heard of it, or met its own, nobody knows which that is.
  const std::optional<error>& failure() const { return failure_; }
  bool failed_elsewhere() const { return elsewhere_; }
  bool settled() const {
    return elsewhere_ || std::all_of(silent_.begin(), silent_.begin() + me_, [](bool s) { return s; });
  }

  /// Whether the first worker that told an error has stopped, or another one has said it.
  bool is_reported() const { return reported_ || (teller_ >= 0 && silent_[at(teller_)]); }
  /// Says another's error in its place, unless somebody has.
  bool say() {
    if (reported_) return false;
    to_all(message(wait_message::reported));
    return reported_ = true;
  }

  /// Stops all workers with an error, unless one stopped them before.
  void stop(const error& why) {
    if (failure_) return;
    failure_ = why;
    wait_message m = message(wait_message::failure);
    m.error_text = why.packed();
    to_all(m);
  }
  [[noreturn]] void fail(const error& why) {
    stop(why);
    throw *failure_;
  }
  [[noreturn]] void fail(const refusal& why, const std::string& where) { fail(error(why, where)); }

  /// Nothing more can come of a worker: its process died. This is no error if both programs ended, or if it stops with
  /// another's error that is on its way.
  void lose(int worker) {
    const bool excused = silent_[at(worker)] || (ended_ && left_[at(worker)]);
    silent_[at(worker)] = true;
    if (!failure_ && !excused)
      stop(error(refusal{code::worker_lost, me_, worker},
                 worker_text(me_, doing()) + "; " + worker_text(worker, has_died)));
  }
  /// Tells all that this worker stops, where it does so with another's error: then those that see it go have not lost
  /// it.
  void excuse() const {
    if (elsewhere_) to_all(message(wait_message::silent));
  }

  /// Reads what another worker tells.
  void hear(const wait_message& m) {
    if (failure_ && m.kind < wait_message::failure) return;
    ++heard_[at(m.from)];
    switch (m.kind) {
      case wait_message::question: return hear_question(m);
      case wait_message::answer:
        hailed_.erase(m.from);
        if (m.asked == asked_ && m.waits_for >= 0) waits_for_[m.from] = m.waits_for;
        return;
      case wait_message::never:
        if (call_ != nullptr && m.exchange == exchange_ && m.sequence <= call_->sequence)
          fail(refusal{code::worker_lost, me_, m.from},
               worker_text(me_, text_of(call_->does)) + "; " + worker_text(m.from, has_ended));
        return;
      case wait_message::hail: return send_(m.from, message(wait_message::answer));
      case wait_message::goodbye: left_[at(m.from)] = true; return;
      case wait_message::failure:
        if (failure_ && m.from > me_) return;
        elsewhere_ = true;
        if (teller_ < 0) teller_ = m.from;  // also of what this one met itself, as the lower of them says it
        if (failure_) return;
        failure_ = error::unpacked(m.error_text.view());
        return send_(m.from, message(wait_message::silent));
      case wait_message::silent: silent_[at(m.from)] = true; return;
      case wait_message::reported: reported_ = true;
    }
  }

 private:
  static std::size_t at(int worker) { return static_cast<std::size_t>(worker); }

  wait_message message(wait_message::kinds kind) const {
    wait_message m;
    m.kind = kind;
    m.from = me_;
    return m;
  }
  void to_all(const wait_message& m) const {
    for (int r = 0; r < static_cast<int>(left_.size()); ++r)
      if (r != me_) send_(r, m);
  }
  wait_message about_this_wait() const {
    wait_message m = message(wait_message::question);
    m.exchange = exchange_;
    m.sequence = call_->sequence;
    m.does = text_of(call_->does);
    return m;
  }
  void to_each_need(wait_message m) {
    for (const dependency& n : needs_()) {
      m.offered_else = n.offers_else;
      m.reads = n.reads;
      m.sequence = call_->sequence - n.behind;
      send_(n.peer, m);
    }
  }

  // Tells who asked first whom this worker waits for, if it does.
  void answer(const wait_message& q, const dependencies& open) {
    if (open.empty() || q.first == me_) return;
    wait_message m = message(wait_message::answer);
    m.asked = q.asked;
    m.waits_for = open.front().peer;
    send_(q.first, m);
  }

  void hear_question(const wait_message& q) {
    const auto waits_for = [this] { return call_ == nullptr ? dependencies() : needs_(); };
    if (begun_.begins(q.exchange, q.sequence)) {
      const dependencies lacks = q.reads ? missing_(q.exchange, q.sequence) : dependencies();
      wait_message on = q;
      on.reads = false;
      for (const dependency& n : lacks) {
        on.offered_else = n.offers_else && call_ != nullptr;
        send_(n.peer, on);
      }
      return answer(q, lacks.empty() ? waits_for() : lacks);
    }
    if (ended_) {
      wait_message m = q;
      m.kind = wait_message::never;
      m.from = me_;
      return send_(q.from, m);
    }
    if (call_ == nullptr || q.reads) {  // it computes, or may wait in another call when it has begun this one
      std::erase_if(unread_, [&](const wait_message& old) { return old.from == q.from && old.first == q.first; });
      unread_.push_back(q);
    }
    if (call_ == nullptr) return;
    wait_message on = about_this_wait();
    on.first = q.first;
    on.asked = q.asked;
    on.disagreement = q.disagreement || q.offered_else;
    on.error_text = q.error_text.view();
    if (on.error_text.view().empty() || on.disagreement != q.disagreement) {
      const reason& found = on.disagreement ? code::workers_disagree : code::workers_wait_in_a_ring;
      on.error_text = error(refusal{found, q.from, me_},
                            worker_text(q.from, q.does.view()) + "; " + worker_text(me_, on.does.view()))
                          .packed();
    }
    if (q.first == me_) {
      if (q.asked == asked_) fail(error::unpacked(on.error_text.view()));
      return;
    }
    answer(q, waits_for());
    if (passed_.insert({q.first, q.asked}).second) to_each_need(on);
  }

  int me_;
  post send_;
  now_needed needs_;
  terms missing_;
  begun_calls begun_;
  std::uint64_t exchange_ = 0;           // that it waits in,
  const exchange_call* call_ = nullptr;  // and which call of it
  std::uint64_t questions_ = 0;
  std::uint64_t asked_ = 0;                         // the question of this wait
  std::map<int, int> waits_for_;                    // what was answered to it
  std::set<std::pair<int, std::uint64_t>> passed_;  // questions of others that were sent on in this wait
  std::vector<wait_message> unread_;                // questions that came while it computed
  std::vector<bool> left_;
  std::vector<std::uint64_t> heard_;  // messages of each worker
  std::set<int> hailed_;              // asked whether they are alive, not answered yet
  bool ended_ = false;
  std::optional<error> failure_;
  bool elsewhere_ = false;
  int teller_ = -1;           // who told it
  bool reported_ = false;     // by one who only heard of it
  std::vector<bool> silent_;  // who stops with another's error
};

}  // namespace tessera::detail
