#pragma once

#include <tessera/comm/exchange/bound_exchange.hpp>
#include <tessera/comm/exchange/buffered_copy.hpp>
#include <tessera/comm/node/node_map.hpp>
#include <tessera/comm/node/shared_slot.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace tessera::detail {

/// The workers of an exchange that run on this one's node: each shows where its tensor lies, and its readers take their
/// boxes from there.
///
/// Boxes of one worker are taken in the order of its calls. Reads are optimistic: a reader that finds a copy shown
/// after it has read reads that copy. So a tensor is copied only for a late reader, and no reader announces itself.
class node_peers {
 public:
  node_peers(const node_map& node, const exchange_plan& plan, int rank)
      : heap_(node.heap()),
        me_(plan.index_of(rank)),
        copy_(plan, [&](int worker) { return share_slots(node, plan, rank, worker); }) {
    const auto slot_of = [&](int worker) {
      return peer_slot(node.heap_of(worker), plan.offers[plan.index_of(worker)], plan.workers.size());
    };
    for (const box_transfer& l : plan.receives) {
      source_of_.push_back(none);
      if (!share_slots(node, plan, rank, l.peer)) continue;
      auto known = std::find_if(sources_.begin(), sources_.end(), [&](const source& s) { return s.worker == l.peer; });
      if (known == sources_.end())
        known = sources_.insert(sources_.end(), {l.peer, plan.index_of(l.peer), slot_of(l.peer), {}});
      source_of_.back() = static_cast<std::size_t>(known - sources_.begin());
      known->boxes.push_back({l.extents, {l.there, l.here}});
    }
    for (const box_transfer& l : plan.sends)
      if (share_slots(node, plan, rank, l.peer) &&
          std::none_of(readers_.begin(), readers_.end(), [&](const reader& r) { return r.worker == l.peer; }))
        readers_.push_back({l.peer, slot_of(l.peer)});
    slot_ = std::make_unique<shared_slot>(heap_, plan.offers[me_], plan.workers.size());
  }
  node_peers(const node_peers&) = delete;
  node_peers& operator=(const node_peers&) = delete;

  /// Whether two workers read what the other shows: both offered a slot when they agreed on the plan.
  static bool share_slots(const node_map& node, const exchange_plan& plan, int rank, int worker) {
    const auto offers = [&](int w) { return plan.offers[plan.index_of(w)] != 0; };
    return worker != rank && !plan.offers.empty() && node.same_node(rank, worker) && offers(rank) && offers(worker);
  }

  bool is_source(std::size_t receive) const { return source_of_[receive] != none; }
  bool has_sources() const { return !sources_.empty(); }
  bool has_readers() const { return !readers_.empty(); }

  /// A call that was begun: what it shows of it, and how often its end was asked for.
  struct shown {
    shared_slot::entry* entry = nullptr;
    unsigned asked = 0;
  };

  /// A tensor outside every heap is copied into one.
  void show(shown& s, const exchange_call& c) {
    if (readers_.empty()) return;
    s = {&slot_->fresh([this](const shared_slot::entry& p) { return is_free(p); })};
    s.entry->busy = true;
    if (heap_.holds(c.in.data)) slot_->show(*s.entry, c.sequence, c.in);
    else show_copy(*s.entry, c);
  }
  /// Whether the tensor of a call may be changed: all have read it, or its copy is shown. The copy is made once this
  /// was asked `looks` times.
  bool let_end(shown& s, const exchange_call& c, unsigned looks) {
    if (readers_.empty() || is_read(c.sequence)) return true;
    if (copy_.ahead() == 0 || (c.sequence >= copy_.ahead() && !is_read(c.sequence - copy_.ahead()))) return false;
    if (s.entry->copied) return true;
    if (s.asked++ < looks) return false;
    show_copy(*s.entry, c);
    return true;
  }
  void end(shown& s) {
    if (s.entry == nullptr) return;
    s.entry->busy = false;
    if (copy_.ahead() == 0) s.entry->memory.reset();
    s.entry = nullptr;
  }
  /// Who has not read the call that this one waits for in the end of another: how many calls before.
  template <class Each>
  void each_behind(const exchange_call& c, Each&& each) const {
    const std::uint64_t ahead = copy_.ahead();
    if (c.sequence < ahead) return;
    for (const reader& r : readers_)
      if (!r.slot.took(me_, c.sequence - ahead)) each(r.worker, ahead);
  }
  /// A call that will not end: its readers have until then to come, and afterwards nobody reads its tensor.
  void give_up(shown& s, const exchange_call& c, std::chrono::steady_clock::time_point until) noexcept {
    if (s.entry == nullptr) return;
    try {
      for (bool is_shown = s.entry->used && s.entry->call == c.sequence; is_shown && !let_end(s, c, 0);
           std::this_thread::yield())
        if (std::chrono::steady_clock::now() > until) {
          slot_->hide(*s.entry);
          is_shown = false;
        }
    } catch (const std::exception&) {  // no memory for a copy
      slot_->hide(*s.entry);
    }
    end(s);
  }

  /// Pulls the boxes of a Move from those that have begun it; whether all are there.
  bool pull(const exchange_call& c) {
    bool all = true;
    for (source& s : sources_) {
      while (s.taken == c.sequence && see(s, c.sequence)) {
        for (matching_boxes& box : s.boxes) box.copy(s.at, c.out);
        if (is_shown(s)) took(s);
      }
      all = all && s.taken > c.sequence;
    }
    return all;
  }

  /// Whether all have begun a Fold, so that their terms can be read.
  bool begun(const exchange_call& c) {
    return std::all_of(sources_.begin(), sources_.end(),
                       [&](source& s) { return s.taken == c.sequence && see(s, c.sequence); });
  }
  /// Calls combine() when all have begun, until what it read is what they show; false where one does not.
  template <class Combine>
  bool read(const exchange_call& c, Combine&& combine) {
    while (begun(c)) {
      combine();
      if (std::all_of(sources_.begin(), sources_.end(), is_shown)) return true;
    }
    return false;
  }
  /// Where the box of a receive lies, meanwhile.
  strided term(std::size_t receive, const box_transfer& l, index_t size) const {
    strided at = sources_[source_of_[receive]].at;
    for (int d = 0; d < l.there.count; ++d) at.data += l.there[d] * at.strides[d] * size;
    return at;
  }
  /// All terms of a call were read for the last time.
  void took_all() {
    for (source& s : sources_) took(s);
  }

  /// The workers that have not begun a call.
  template <class Each>
  void each_missing(const exchange_call& c, Each&& each) const {
    for (const source& s : sources_)
      if (s.taken <= c.sequence && s.slot.find(c.sequence) == nullptr) each(s.worker);
  }
  /// Whether a worker shows a call of this number.
  bool shows(int worker, std::uint64_t call) const {
    return std::any_of(sources_.begin(), sources_.end(),
                       [&](const source& s) { return s.worker == worker && s.slot.find(call) != nullptr; });
  }

  /// Whether readers are done with all that is shown.
  bool is_read() const {
    return std::all_of(slot_->entries().begin(), slot_->entries().end(),
                       [this](const shared_slot::entry& p) { return is_free(p); });
  }
  /// A shown tensor stays as long as the process.
  void stay() { static_cast<void>(slot_.release()); }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  struct source {
    int worker;
    std::size_t index;
    peer_slot slot;
    std::vector<matching_boxes> boxes;
    std::uint64_t taken = 0;              // calls
    const shown_tensor* shown = nullptr;  // of the call that is read,
    std::uint64_t begun = 0;              // in which form,
    strided at{};                         // and where it lies
  };
  struct reader {
    int worker;
    peer_slot slot;
  };

  bool is_read(std::uint64_t call) const {
    return std::all_of(readers_.begin(), readers_.end(), [&](const reader& r) { return r.slot.took(me_, call); });
  }
  bool is_free(const shared_slot::entry& p) const { return !p.busy && (!p.used || is_read(p.call)); }
  void show_copy(shared_slot::entry& p, const exchange_call& c) {
    slot_->show_copy(p, c.sequence, c.in, [&](const region& to) { copy_.copy(c.in, to); });
  }

  static bool see(source& s, std::uint64_t call) {
    s.shown = s.slot.find(call);
    if (s.shown == nullptr) return false;
    s.begun = s.shown->begun.load(std::memory_order_acquire);
    s.at = s.slot.where(*s.shown, s.begun);
    return s.begun / 2 == call + 1;
  }
  // Whether what was read is still what it shows.
  static bool is_shown(const source& s) {
    std::atomic_thread_fence(std::memory_order_acquire);
    return s.shown->begun.load(std::memory_order_acquire) == s.begun;
  }
  void took(source& s) { slot_->say_taken(s.index, ++s.taken); }

  shared_heap& heap_;
  std::size_t me_;
  buffered_copy copy_;
  std::vector<source> sources_;
  std::vector<std::size_t> source_of_;  // by receive
  std::vector<reader> readers_;
  std::unique_ptr<shared_slot> slot_;
};

}  // namespace tessera::detail
