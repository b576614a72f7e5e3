#pragma once

#include <tessera/comm/in_flight.hpp>
#include <tessera/plan/fingerprint.hpp>

#include <memory>

namespace tessera {

/// A Move or Fold bound to one worker: its boxes, found once and used for every call.
class exchange {
 public:
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;
  exchange(const step& s, int rank, element e) : element_(e), fingerprint_(fingerprint_of(s, e)), moves_(s.from, s.to), with_(s.with) {
    check(check_combine(s.with, e));
    const transfer plan = s.plan();
    fold_ = s.what == map::fold;
    const holding in = (fold_ ? plan.target() : plan.source()).held_by(rank);
    const holding out = (fold_ ? plan.source() : plan.target()).held_by(rank);
    in_ = extents_of(in);
    out_ = extents_of(out);
    plan.sends(rank, [&](const message& m) { sends_.push_back(place(m.to, m.where, in)); });
    plan.receives(rank, [&](const message& m) { receives_.push_back(place(m.from, m.where, out)); });
    if (fold_) order_by_coordinate(plan);
  }

  const static_vector<index_t, max_dimensions>& input_extents() const { return in_; }
  const static_vector<index_t, max_dimensions>& output_extents() const { return out_; }

  /// Whether the output is to be filled with the neutral element before: a Fold combines into it.
  bool fold() const { return fold_; }
  combine with() const { return with_; }

  /// Begins a call: boxes of `in` are on their way, `out` must not be read before `finish`. Both outlive what is returned. What
  /// the call is for is compared with the others'.
  in_flight start(transport& carrier, const region& in, const region& out, const activity& what = {}) {
    std::unique_ptr<exchange_call> call = idle_.empty() ? fresh_call() : std::move(idle_.back());
    if (!idle_.empty()) idle_.pop_back();
    for (std::size_t i = 0; i < sends_.size(); ++i) aim(call->sends[i].where, sends_[i], in);
    region into = out;
    if (rounds()) {
      call->rounded = out;
      call->sums = into = widened(*call, out);
      convert(out, into);
    }
    for (std::size_t i = 0; i < receives_.size(); ++i) aim(call->receives[i].where, receives_[i], into);
    call->does = what;
    call->does.element = element_;
    if (call->does.moves == nullptr) call->does.moves = &moves_;
    call->fingerprint = fingerprint_ ^ what.hash();
    call->got = {};
    return {carrier, std::move(call)};
  }

  /// Ends a call: all boxes have arrived and all readers have read. Returns what was received.
  received finish(transport& carrier, in_flight&& call) {
    carrier.finish(*call.call_);
    if (rounds()) convert(call.call_->sums, call.call_->rounded);
    idle_.push_back(std::move(call.call_));
    return idle_.back()->got;
  }

 private:
  // A box of this worker's own tensor: where it begins and how far it goes.
  struct leg {
    int peer = 0;
    static_vector<index_t, max_dimensions> offset;
    static_vector<index_t, max_dimensions> extents;
  };

  static static_vector<index_t, max_dimensions> extents_of(const holding& held) {
    static_vector<index_t, max_dimensions> e;
    for (const intervals& i : held) e.push(size_of(i));
    return e;
  }
  static leg place(int peer, const box& where, const holding& own) {
    leg l;
    l.peer = peer;
    for (int d = 0; d < where.count; ++d) {
      l.extents.push(where[d].size());
      l.offset.push(position(own[d], where[d].lo));
    }
    return l;
  }

  // Terms are added in the order of the senders' coordinates, on every worker and every transport alike.
  void order_by_coordinate(const transfer& plan) {
    const mesh_value& senders = plan.target().of.mesh;
    const auto number = [&](int rank) {
      coordinates c;
      senders.locate(rank, c);
      return senders.number(c);
    };
    for (std::size_t i = 1; i < receives_.size(); ++i)
      for (std::size_t j = i; j > 0 && number(receives_[j].peer) < number(receives_[j - 1].peer); --j)
        std::swap(receives_[j], receives_[j - 1]);
  }

  std::unique_ptr<exchange_call> fresh_call() const {
    auto call = std::make_unique<exchange_call>();
    call->accumulates = fold_;
    call->with = with_;
    for (const leg& l : sends_) call->sends.push_back({l.peer, {nullptr, element_, l.extents, {}}, element_});
    for (const leg& l : receives_) call->receives.push_back({l.peer, {nullptr, element_, l.extents, {}}, element_});
    return call;
  }

  // Three terms and more are combined in the next wider type and rounded once; two are rounded once anyway.
  bool rounds() const { return fold_ && receives_.size() > 2 && sums_in(element_) != element_; }
  region widened(exchange_call& call, const region& out) const {
    region r = out;
    r.element = sums_in(element_);
    call.wide.resize(static_cast<std::size_t>(r.bytes()));
    return r.packed_at(call.wide.data());
  }

  static void aim(region& r, const leg& l, const region& whole) {
    index_t offset = 0;
    for (int d = 0; d < l.offset.count; ++d) offset += l.offset[d] * whole.strides[d];
    r.data = whole.data + offset * bytes_of(whole.element);
    r.element = whole.element;
    r.strides = whole.strides;
  }

  element element_;
  std::uint64_t fingerprint_;
  movement moves_;
  combine with_;
  bool fold_ = false;
  static_vector<index_t, max_dimensions> in_;
  static_vector<index_t, max_dimensions> out_;
  std::vector<leg> sends_;
  std::vector<leg> receives_;
  std::vector<std::unique_ptr<exchange_call>> idle_;  // slots for calls in flight
};

}  // namespace tessera
