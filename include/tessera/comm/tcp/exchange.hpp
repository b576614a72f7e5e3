#pragma once

#include <tessera/comm/exchange/host_exchange.hpp>
#include <tessera/comm/tcp/call.hpp>
#include <tessera/comm/tcp/transport.hpp>

#include <algorithm>
#include <cstring>
#include <deque>

namespace tessera::engine {

/// An exchange over connections: what comes is read to where it belongs as soon as its call has begun, whichever call
/// its worker waits in.
class tcp_exchange final : public host_exchange {
 public:
  tcp_exchange(tcp_transport& carrier, exchange_plan bound, std::shared_ptr<const void> keeper)
      : host_exchange(std::move(bound), carrier.rank(), std::move(keeper)),
        carrier_(carrier),
        channel_(carrier.channel_of(plan().id)),
        begun_(carrier.detector_.begun(plan().id)) {
    sends_ = ends_of(plan().sends, true);
    receives_ = ends_of(plan().receives, false);
    for (const end& s : sends_)
      if (s.peer != carrier_.rank() &&
          std::find(channel_.readers.begin(), channel_.readers.end(), s.peer) == channel_.readers.end())
        channel_.readers.push_back(s.peer);
    channel_.bound = this;
    channel_.does = text_of({.moves = &plan().moves, .element = plan().element});
    if (plan().agreed()) carrier_.detector_.bind(plan());
  }
  ~tcp_exchange() override {
    if (plan().agrees()) return;  // which ends with its transport
    carrier_.detector_.let_go(plan());
    channel_.bound = nullptr;
    channel_.gone = true;
    carrier_.drop_if_done(plan().id, channel_);
  }

 private:
  friend class tcp_transport;
  using frame = detail::tcp_frame;

  // bytes of a box that goes before its reader has begun,
  static constexpr std::size_t largest_ahead = std::size_t{1} << 15;
  static constexpr std::uint64_t most_ahead = 3;  // and how many calls before

  /// The box of a transfer at this worker's end.
  struct end {
    int peer;
    std::uint32_t number;  // among the boxes between the two
    std::size_t bytes;
    matching_boxes part;  // between the tensor and memory without gaps
    box_vector packed;    // the strides there
  };

  static tcp_call& mine(exchange_call& call) { return static_cast<tcp_call&>(call); }

  std::vector<end> ends_of(const std::vector<box_transfer>& transfers, bool sent) const {
    std::vector<end> all;
    for (const box_transfer& l : transfers) {
      const auto number = std::count_if(all.begin(), all.end(), [&](const end& other) { return other.peer == l.peer; });
      box_vector begin = l.here;
      for (index_t& b : begin) b = 0;
      const region packed = region{nullptr, plan().element, l.extents, l.extents}.packed_at(nullptr);
      std::vector<box_vector> begins{sent ? l.here : begin, sent ? begin : l.here};
      all.push_back({l.peer,
                     static_cast<std::uint32_t>(number),
                     static_cast<std::size_t>(packed.bytes()),
                     {l.extents, std::move(begins)},
                     packed.strides});
    }
    return all;
  }

  std::unique_ptr<exchange_call> make_call() override { return std::make_unique<tcp_call>(); }

  void post(exchange_call& call) override {
    tcp_call& c = mine(call);
    const int me = carrier_.rank();
    if (tcp_transport::clock::now() > carrier_.next_look_) carrier_.listen();
    if (carrier_.ended()) throw error(refusal{code::worker_lost, me, me}, launch_ended);
    carrier_.refuse_if_stopped(c.does);
    channel_.calls = ++begun_;
    c.here.assign(receives_.size(), false);
    c.terms.resize(plan().fold ? receives_.size() : 0);
    c.gone.assign(sends_.size(), false);
    c.packed.resize(sends_.size());
    c.missing = static_cast<std::size_t>(
        std::count_if(receives_.begin(), receives_.end(), [me](const end& r) { return r.peer != me; }));
    c.unsent = static_cast<std::size_t>(
        std::count_if(sends_.begin(), sends_.end(), [me](const end& s) { return s.peer != me; }));
    c.added = !plan().fold;
    open_.push_back(&c);
    begin_with_peers(c);
    for (detail::tcp_channel::early_box& b : std::exchange(channel_.early, {})) receive_box(b.from, b.frame, &b.bytes);
  }

  // Sends what may go; whoever gets no box is told that the call began.
  void begin_with_peers(tcp_call& c) {
    std::vector<int> known{carrier_.rank()};
    const auto is_known = [&](int peer) { return std::find(known.begin(), known.end(), peer) != known.end(); };
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      const int peer = sends_[i].peer;
      if (peer == carrier_.rank()) continue;
      if (!may_go(c, sends_[i])) carrier_.connection_to(peer).send({frame::offered, 0, plan().id, c.sequence});
      else send(c, i);
      if (!is_known(peer)) known.push_back(peer);
    }
    for (const end& r : receives_) {
      if (is_known(r.peer)) continue;
      carrier_.connection_to(r.peer).send({frame::begun, 0, plan().id, c.sequence});
      known.push_back(r.peer);
    }
  }
  bool may_go(const tcp_call& c, const end& s) const {
    return channel_.begun_by(s.peer) + (s.bytes > largest_ahead ? 0 : most_ahead) > c.sequence;
  }
  void send(tcp_call& c, std::size_t i) {
    end& s = sends_[i];
    const frame f{frame::box, s.number, plan().id, c.sequence, s.bytes};
    const auto pack = [&](std::byte* at) {
      s.part.copy({c.in.data, c.in.strides.begin()}, {at, plan().element, {}, s.packed});
    };
    c.gone[i] = true;
    if (s.bytes <= largest_ahead) {
      carrier_.connection_to(s.peer).send(f, pack);
      --c.unsent;
      return;
    }
    const region lies = c.in.part(plan().sends[i].here, plan().sends[i].extents);
    if (!lies.contiguous()) {
      c.packed[i].resize(s.bytes);
      pack(c.packed[i].data());
    }
    carrier_.connection_to(s.peer).send_from(f, lies.contiguous() ? lies.data : c.packed[i].data(), c.unsent);
  }
  // Sends what waited for a reader.
  void send_more(int to) {
    for (tcp_call* c : open_)
      for (std::size_t i = 0; i < sends_.size() && c->unsent > 0; ++i)
        if (sends_[i].peer == to && !c->gone[i] && may_go(*c, sends_[i])) send(*c, i);
  }

  tcp_call* call_of(const frame& f) const {
    const auto found =
        std::find_if(open_.begin(), open_.end(), [&](const tcp_call* c) { return c->sequence == f.sequence; });
    return found == open_.end() ? nullptr : *found;
  }
  std::size_t receive_of(int from, const frame& f) const {
    const auto found = std::find_if(receives_.begin(), receives_.end(),
                                    [&](const end& r) { return r.peer == from && r.number == f.box_transfer; });
    return static_cast<std::size_t>(found - receives_.begin());
  }

  // Where a box is read to: its place in the output, if it has no gaps there, or a term's.
  detail::tcp_connection::destination destination_of(int from, const frame& f) {
    tcp_call* const c = call_of(f);
    const std::size_t i = receive_of(from, f);
    if (c == nullptr || i == receives_.size() || f.bytes != receives_[i].bytes) return {};
    if (plan().fold) {
      c->terms[i].resize(f.bytes);
      return {c->terms[i].data(), c};
    }
    const region lies = c->out.part(plan().receives[i].here, plan().receives[i].extents);
    if (!lies.contiguous()) return {};
    return {lies.data, c};
  }
  // A box is where it belongs, or beside.
  void receive_box(int from, const frame& f, std::vector<std::byte>* beside) {
    tcp_call* const c = call_of(f);
    if (c == nullptr) {
      if (f.sequence >= begun_) channel_.early.push_back({from, f, std::move(*beside)});
      return;
    }
    const std::size_t i = receive_of(from, f);
    if (i == receives_.size() || f.bytes != receives_[i].bytes)
      return carrier_.detector_.stop(error(refusal{code::workers_disagree, carrier_.rank(), from},
                                           worker_text(carrier_.rank(), text_of(c->does)) + "; " +
                                               worker_text(from, fmt::format("sends {} bytes", f.bytes))));
    if (beside != nullptr && plan().fold) c->terms[i] = std::move(*beside);
    else if (beside != nullptr) receives_[i].part.copy({beside->data(), receives_[i].packed.begin()}, c->out);
    c->here[i] = true;
    --c->missing;
  }

  // Whether all boxes are where they belong; terms are combined when all are there.
  bool has_all(tcp_call& c) {
    if (c.missing > 0) return false;
    if (std::exchange(c.added, true)) return true;
    combine_terms(c, [&](std::size_t i) -> strided {
      if (receives_[i].peer != carrier_.rank()) return {c.terms[i].data(), receives_[i].packed.begin()};
      return {c.in.part(plan().receives[i].there, plan().receives[i].extents).data, c.in.strides.begin()};
    });
    return true;
  }

  bool arrived(exchange_call& call) override {
    tcp_call& c = mine(call);
    carrier_.refuse_if_stopped(c.does);
    if (c.missing > 0) carrier_.read();
    return has_all(c);
  }

  void complete(exchange_call& call) override {
    tcp_call& c = mine(call);
    carrier_.refuse_if_stopped(c.does);
    const auto done = [&] { return has_all(c) && c.unsent == 0; };
    if (!done()) carrier_.wait(done, plan().id, c, [this, &c] { return dependencies(c); });
    std::erase(open_, &c);
    for (auto* memory : {&c.terms, &c.packed})
      for (std::vector<std::byte>& one : *memory)
        if (one.size() > largest_ahead) one = {};
  }

  // Those whose box has not come, and those that have not let one go.
  detail::dependencies dependencies(const tcp_call& c) const {
    detail::dependencies all;
    const auto add = [&](const std::vector<end>& ends, const std::vector<bool>& done) {
      for (std::size_t i = 0; i < ends.size(); ++i)
        if (ends[i].peer != carrier_.rank() && !done[i])
          all.add(ends[i].peer, [this](int peer) { return carrier_.is_offered_else(peer); });
    };
    add(receives_, c.here);
    add(sends_, c.gone);
    return all;
  }

  /// Bytes that come for it are dropped, and those of it that are on their way are copied.
  void withdraw(std::unique_ptr<exchange_call> call) noexcept override {
    carrier_.stopped_ = true;
    carrier_.fail_with(error(refusal{code::call_given_up, carrier_.rank()}));
    std::erase(open_, &mine(*call));
    for (detail::tcp_connection& connection : carrier_.connections_) {
      connection.let_go(mine(*call).unsent);
      connection.let_go(*call);
    }
  }

  tcp_transport& carrier_;
  detail::tcp_channel& channel_;
  std::uint64_t& begun_;  // calls
  std::vector<end> sends_;
  std::vector<end> receives_;
  std::deque<tcp_call*> open_;
};

inline std::shared_ptr<bound_exchange> tcp_transport::bind(exchange_plan plan) {
  auto keeper = keep_alive(plan);
  return std::make_shared<tcp_exchange>(*this, std::move(plan), std::move(keeper));
}

inline detail::tcp_connection::destination tcp_transport::destination_of(int from, const detail::tcp_frame& f) {
  if (f.kind != detail::tcp_frame::box) return {};
  const auto found = channels_.find(f.exchange);
  return found == channels_.end() || found->second.bound == nullptr ? detail::tcp_connection::destination{}
                                                                    : found->second.bound->destination_of(from, f);
}

inline void tcp_transport::hear(int from, const detail::tcp_frame& f, std::vector<std::byte>* beside) {
  if (f.kind == detail::tcp_frame::message) {
    detail::wait_message m;
    std::memcpy(&m, beside->data(), std::min(sizeof(m), beside->size()));
    try {
      detector_.hear(m);
    } catch (const error&) {  // which is kept, for whoever listens
    }
    return;
  }
  detail::tcp_channel& c = channel_of(f.exchange);
  detail::tcp_channel::progress& other = c.others[from];
  other.begun = std::max(other.begun, f.sequence + 1);
  if (f.kind != detail::tcp_frame::begun) other.offered = std::max(other.offered, f.sequence + 1);
  if (c.bound != nullptr) c.bound->send_more(from);
  if (f.kind == detail::tcp_frame::box) {
    if (c.bound != nullptr) c.bound->receive_box(from, f, beside);
    else if (!c.gone) c.early.push_back({from, f, std::move(*beside)});
  }
  drop_if_done(f.exchange, c);
}

}  // namespace tessera::engine
