#pragma once

#include <tessera/comm/message/message_transport.hpp>
#include <tessera/comm/message/message_wait.hpp>
#include <tessera/comm/tcp/channel.hpp>
#include <tessera/comm/tcp/connection.hpp>
#include <tessera/comm/tcp/meeting.hpp>
#include <tessera/comm/wait/spin_wait.hpp>

#include <poll.h>

#include <cstring>
#include <unordered_map>

namespace tessera::engine {

class tcp_exchange;

/// One worker a process, with a connection to every other one: for processes that have no MPI.
///
/// A worker that begins a call tells all workers whose boxes it takes or that take its boxes. A small box goes at once,
/// up to three calls ahead of its reader. A large one goes when the reader has begun the call, and is read straight to
/// its place.
class tcp_transport final : public message_transport {
 public:
  tcp_transport(const launch_environment& started, const rendezvous& meet, std::chrono::seconds limit)
      : tcp_transport(started, detail::tcp_meeting(started, meet, limit)) {
    configure({.time_limit = limit});
  }

  transport_traits traits() const override { return {"tcp", false}; }

  inline std::shared_ptr<bound_exchange> bind(exchange_plan plan) override;

  /// Waits until others have taken what was sent ahead of them, and have ended too.
  void leave() {
    for (auto c = unread(); c != channels_.end(); c = unread()) wait_for_readers(c->first, c->second);
    message_transport::leave();
    hang_up();
  }

  /// Closes the connections when the others have what was said last, or after some seconds.
  void hang_up() {
    detector_.excuse();
    for (const auto until = clock::now() + for_answers; clock::now() < until;
         std::this_thread::sleep_for(std::chrono::microseconds(200))) {
      bool more = false;
      for (detail::tcp_connection& connection : connections_) more = connection.hang_up() || more;
      if (!more) return;
    }
  }

 private:
  friend class tcp_exchange;
  using channels = std::unordered_map<std::uint64_t, detail::tcp_channel>;

  tcp_transport(const launch_environment& started, detail::tcp_meeting&& met)
      : message_transport(started.rank, started.world),
        crowded_(static_cast<unsigned>(met.on_machine()) > std::max(1u, std::thread::hardware_concurrency())) {
    for (detail::tcp_socket& s : std::move(met).connections()) {
      connections_.emplace_back(std::move(s));
      polled_.push_back({connections_.back().get(), POLLIN, 0});
    }
  }

  detail::tcp_channel& channel_of(std::uint64_t exchange) {
    const auto known = channels_.find(exchange);
    return known != channels_.end() ? known->second
                                    : channels_.try_emplace(exchange, detector_.begun(exchange)).first->second;
  }
  void drop_if_done(std::uint64_t exchange, const detail::tcp_channel& channel) {
    if (channel.is_done()) channels_.erase(exchange);
  }

  detail::tcp_connection& connection_to(int worker) { return connections_[static_cast<std::size_t>(worker)]; }

  void tell(int to, const detail::wait_message& m) override {
    connection_to(to).send({.kind = detail::tcp_frame::message, .bytes = sizeof(m)},
                           [&](std::byte* at) { std::memcpy(at, &m, sizeof(m)); });
  }
  void read() override { go_on({}); }

  // Reads and writes what can be, after so long a pause at most where that is nothing.
  void go_on(std::chrono::milliseconds pause) {
    for (std::size_t r = 0; r < connections_.size(); ++r) {
      if (connections_[r].ended()) polled_[r].fd = -1;
      polled_[r].events = static_cast<short>(connections_[r].has_to_write() ? POLLIN | POLLOUT : POLLIN);
    }
    if (::poll(polled_.data(), polled_.size(), static_cast<int>(pause.count())) <= 0) return;
    for (std::size_t r = 0; r < connections_.size(); ++r) {
      if (polled_[r].fd < 0 || polled_[r].revents == 0) continue;
      const int from = static_cast<int>(r);
      connections_[r].write();
      connections_[r].read([&](const detail::tcp_frame& f) { return destination_of(from, f); },
                           [&](const detail::tcp_frame& f, std::vector<std::byte>* beside) { hear(from, f, beside); });
      if (connections_[r].ended()) detector_.lose(from);
    }
  }

  inline detail::tcp_connection::destination destination_of(int from, const detail::tcp_frame& f);
  inline void hear(int from, const detail::tcp_frame& f, std::vector<std::byte>* beside);

  // Whether a worker has offered a box that none of this one's calls takes.
  bool is_offered_else(int by) const {
    return std::any_of(channels_.begin(), channels_.end(), [by](const auto& c) {
      const auto found = c.second.others.find(by);
      return found != c.second.others.end() && found->second.offered > c.second.calls;
    });
  }

  channels::iterator unread() {
    return std::find_if(channels_.begin(), channels_.end(), [](const auto& c) { return !c.second.is_read(); });
  }
  void wait_for_readers(std::uint64_t exchange, const detail::tcp_channel& channel) {
    exchange_call last;
    last.sequence = channel.calls - 1;
    const std::string does = channel.does;
    last.does.name = does.c_str();
    const auto left = [this, exchange] {
      detail::dependencies all;
      if (const auto found = channels_.find(exchange); found != channels_.end())
        for (const int r : found->second.readers)
          if (found->second.begun_by(r) < found->second.calls) all.add(r);
      return all;
    };
    wait([&] { return left().empty(); }, exchange, last, left);
  }

  // Goes on with all calls under way until done().
  template <class Done>
  void wait(Done&& done, std::uint64_t exchange, const exchange_call& call, message_wait::dependencies dependencies) {
    detail::spin_wait p(crowded_, detail::spin_wait::rest::none);
    message_wait here(*this, exchange, call, std::move(dependencies));
    while (!done()) {
      if (meanwhile) meanwhile();
      go_on(p.pause() ? a_moment : std::chrono::milliseconds{});
      here.look();
    }
  }

  bool crowded_;
  std::vector<detail::tcp_connection> connections_;  // by rank
  std::vector<pollfd> polled_;
  channels channels_;  // by the exchange's id
};

}  // namespace tessera::engine
