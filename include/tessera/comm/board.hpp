#pragma once

#include <tessera/comm/transport.hpp>

#include <algorithm>
#include <deque>
#include <optional>

namespace tessera::detail {

/// What the workers of one process offer each other and what they still take: the calls under way, and for each pair of workers
/// the boxes that one put up for the other. The hub guards it.
class board {
 public:
  /// How far a call is.
  struct progress {
    int unread = 0;           // its boxes that were not yet read
    std::size_t next = 0;     // the first receive that was not taken
    std::vector<bool> taken;  // of its receives
  };
  struct offer {
    std::uint64_t fingerprint = 0;
    const region* where = nullptr;
    progress* of = nullptr;
  };
  /// A receive that can be done now: of which call, which, and where its box stands in the channel.
  struct box_here {
    exchange_call* call = nullptr;
    std::size_t receive = 0;
    std::size_t place = 0;
  };

  explicit board(int size) : calls_(static_cast<std::size_t>(size)), channels_(calls_.size() * calls_.size()) {}

  int size() const { return static_cast<int>(calls_.size()); }

  /// Puts up a call's boxes.
  void begin(int me, exchange_call& call) {
    if (!call.pending) call.pending = std::make_shared<progress>();
    progress& p = progress_of(call);
    p.unread = 0;
    p.next = 0;
    p.taken.assign(call.receives.size(), false);
    calls_[static_cast<std::size_t>(me)].push_back(&call);
    for (const parcel& sent : call.sends) {
      if (sent.peer == me) continue;
      channel(me, sent.peer).push_back({call.fingerprint, &sent.where, &p});
      ++p.unread;
    }
  }

  static bool ended(const exchange_call& call) {
    return progress_of(call).next == call.receives.size() && progress_of(call).unread == 0;
  }

  /// Forgets a call and what of it is still up; false when it is not under way.
  bool end(int me, exchange_call& call) {
    if (std::erase(calls_[static_cast<std::size_t>(me)], &call) == 0) return false;
    if (progress_of(call).unread > 0)
      for (const parcel& sent : call.sends)
        std::erase_if(channel(me, sent.peer), [&](const offer& o) { return o.of == &progress_of(call); });
    return true;
  }

  /// A receive that a worker can do now, of its call `first` if it has one; its call is null if there is none.
  box_here next_box(int me, exchange_call& first) {
    if (const box_here b = next_box_of(me, first); b.call != nullptr) return b;
    for (exchange_call* call : calls_[static_cast<std::size_t>(me)])
      if (const box_here b = next_box_of(me, *call); b.call != nullptr) return b;
    return {};
  }

  /// Takes down the box of a receive. One of the worker's own is its k-th box to itself.
  offer take(int me, const box_here& next) {
    exchange_call& call = *next.call;
    const int peer = call.receives[next.receive].peer;
    progress& p = progress_of(call);
    p.taken[next.receive] = true;
    while (p.next < p.taken.size() && p.taken[p.next]) ++p.next;
    if (peer == me) {
      int before = 0;
      for (std::size_t i = 0; i < next.receive; ++i) before += call.receives[i].peer == me;
      return {call.fingerprint, own_parcel(call, me, before), nullptr};
    }
    auto& offers = channel(peer, me);
    const offer box = offers[next.place];
    offers.erase(offers.begin() + static_cast<std::ptrdiff_t>(next.place));
    return box;
  }

  /// Calls need(peer) for every worker that must begin or end another call before a call of w can end.
  template <class Need>
  void each_need(int w, exchange_call& call, Need&& need) {
    for (std::size_t i = progress_of(call).next; i < call.receives.size(); ++i)
      if (const int peer = call.receives[i].peer; !progress_of(call).taken[i] && peer != w && !place_of(w, call, i)) need(peer);
    for (const parcel& sent : call.sends) {
      std::ptrdiff_t earlier = 0;
      for (const offer& o : channel(w, sent.peer)) {
        if (o.where == &sent.where) each_need_of_reader(sent.peer, w, o, earlier, need);
        earlier += o.fingerprint == call.fingerprint;
      }
    }
  }

  /// Whether a worker whose call awaits a box of a peer is offered one that none of its calls takes.
  bool offers_something_else(int peer, int w, const exchange_call& call) {
    const auto awaited = [&](const parcel& p) { return p.peer == peer; };
    if (std::none_of(call.receives.begin(), call.receives.end(), awaited)) return false;
    for (const offer& o : channel(peer, w))
      if (!wants(w, peer, o.fingerprint)) return true;
    return false;
  }

 private:
  std::deque<offer>& channel(int from, int to) { return channels_[static_cast<std::size_t>(from * size() + to)]; }
  static progress& progress_of(const exchange_call& call) { return *static_cast<progress*>(call.pending.get()); }

  // Where the k-th offer of a fingerprint stands in a channel, or the channel's size.
  static std::size_t find(const std::deque<offer>& offers, std::uint64_t fingerprint, std::ptrdiff_t k) {
    std::size_t i = 0;
    for (; i < offers.size(); ++i)
      if (offers[i].fingerprint == fingerprint && k-- == 0) break;
    return i;
  }

  // Calls visit(call, receive) for the boxes of one fingerprint that a worker's calls still take from a peer, as they come.
  template <class Visit>
  void each_wanted(int w, int peer, std::uint64_t fingerprint, Visit&& visit) {
    for (exchange_call* call : calls_[static_cast<std::size_t>(w)]) {
      if (call->fingerprint != fingerprint) continue;
      for (std::size_t i = progress_of(*call).next; i < call->receives.size(); ++i)
        if (call->receives[i].peer == peer && !progress_of(*call).taken[i]) visit(*call, i);
    }
  }

  // Where the box of a receive stands in its channel: behind those of earlier receives that mean the same.
  std::optional<std::size_t> place_of(int w, const exchange_call& call, std::size_t receive) {
    const int peer = call.receives[receive].peer;
    const auto& offers = channel(peer, w);
    if (offers.empty()) return {};
    std::ptrdiff_t earlier = 0;
    bool reached = false;
    each_wanted(w, peer, call.fingerprint, [&](const exchange_call& other, std::size_t i) {
      reached = reached || (&other == &call && i == receive);
      earlier += !reached;
    });
    const std::size_t place = find(offers, call.fingerprint, earlier);
    if (place == offers.size()) return {};
    return place;
  }

  // Terms are added in the order of the receives, copies are taken as they come.
  static std::size_t end_of_takeable(const exchange_call& call) {
    return call.accumulates ? std::min(progress_of(call).next + 1, call.receives.size()) : call.receives.size();
  }

  box_here next_box_of(int me, exchange_call& call) {
    const progress& p = progress_of(call);
    for (std::size_t i = p.next; i < end_of_takeable(call); ++i) {
      if (p.taken[i]) continue;
      const int peer = call.receives[i].peer;
      if (peer == me) return {&call, i, 0};
      if (const auto place = place_of(me, call, i)) return {&call, i, *place};
    }
    return {};
  }

  // The reader of an offer has to begin its call, or it has to add another worker's term before.
  template <class Need>
  void each_need_of_reader(int reader, int w, const offer& o, std::ptrdiff_t place, Need& need) {
    bool begun = false;
    each_wanted(reader, w, o.fingerprint, [&](exchange_call& theirs, std::size_t) {
      if (place-- != 0) return;
      begun = true;
      if (next_box_of(reader, theirs).call == nullptr) need(theirs.receives[progress_of(theirs).next].peer);
    });
    if (!begun) need(reader);
  }

  bool wants(int w, int peer, std::uint64_t fingerprint) {
    bool any = false;
    each_wanted(w, peer, fingerprint, [&](exchange_call&, std::size_t) { any = true; });
    return any;
  }

  std::vector<std::vector<exchange_call*>> calls_;  // of each worker those under way, in the order they began
  std::vector<std::deque<offer>> channels_;
};

}  // namespace tessera::detail
