#pragma once

#include <tessera/comm/exchange/transport.hpp>
#include <tessera/comm/launch/rendezvous.hpp>
#include <tessera/comm/tcp/socket.hpp>

#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <sstream>

namespace tessera::detail {

/// Connects every two workers of a launch. Each listens, publishes its address by the rendezvous, calls the workers of
/// lower rank and is called by the others.
///
/// Caller and called show each other a secret that the called worker made for this launch. So a stranger at the port is
/// sent away, and one that says nothing delays nobody.
class tcp_meeting {
 public:
  tcp_meeting(const launch_environment& started, const rendezvous& meet, std::chrono::seconds limit)
      : me_(started.rank), limit_(limit) {
    try {
      tcp_socket listens = listen_at(address_of(started));
      std::ostringstream mine;
      mine << listening_.host() << ' ' << listening_.port() << ' ' << std::hex << word_;
      read(meet(started, mine.str(), limit), started.world);
      connect(listens);
    } catch (const error&) {
      throw;
    } catch (const std::exception& e) {
      throw error(refusal{code::not_connected, me_}, e.what());
    }
  }

  /// The connections to the others, by rank.
  std::vector<tcp_socket> connections() && { return std::move(connected_); }
  /// How many workers have this one's address.
  int on_machine() const { return on_machine_; }

 private:
  using clock = std::chrono::steady_clock;

  /// The first message of either side of a connection.
  struct greeting {
    std::uint64_t begins = 0x31617265'73736574;  // "tessera1"
    std::uint64_t word = 0;                      // the reader's
    std::int64_t rank = 0;                       // the sender's
  };
  /// A connection whose other end has not shown that it is a worker.
  struct candidate {
    tcp_socket socket;
    int rank = -1;  // if this worker called it
    bool greeted = false;
    greeting says{};
    std::size_t heard = 0;  // bytes of it
  };
  struct peer_address {
    tcp_address at;
    std::uint64_t word = 0;
  };

  [[noreturn]] static void fail(const std::string& action, int status) {
    throw std::runtime_error(fmt::format("{}: {}", action, std::strerror(status)));
  }

  // This worker's own, by which it reaches the first one.
  static tcp_address address_of(const launch_environment& started) {
    constexpr int any = 1;  // a route has no port, but an address of the system's has one
    tcp_address there(started.address, started.port.value_or(any), SOCK_DGRAM);
    const tcp_socket probe(::socket(there.family(), SOCK_DGRAM, 0));
    tcp_address here;
    if (::connect(probe.get(), there.get(), there.size) != 0 || ::getsockname(probe.get(), here.get(), &here.size) != 0)
      fail(started.address, errno);
    return here.is_loopback() && started.local_world < started.world ? another(here) : here;
  }
  // A host may know its own name as an address that no other host reaches.
  static tcp_address another(tcp_address here) {
    ifaddrs* found = nullptr;
    if (::getifaddrs(&found) != 0) return here;
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(found, &::freeifaddrs);
    for (const ifaddrs* i = found; i != nullptr; i = i->ifa_next)
      if (i->ifa_addr != nullptr && i->ifa_addr->sa_family == here.family() && (i->ifa_flags & IFF_LOOPBACK) == 0 &&
          (i->ifa_flags & IFF_UP) != 0) {
        std::memcpy(&here.where, i->ifa_addr, here.size);
        break;
      }
    return here;
  }

  tcp_socket listen_at(tcp_address here) {
    if (here.family() == AF_INET) reinterpret_cast<sockaddr_in&>(here.where).sin_port = 0;
    else reinterpret_cast<sockaddr_in6&>(here.where).sin6_port = 0;
    tcp_socket s(::socket(here.family(), SOCK_STREAM, 0));
    if (s.get() < 0 || ::bind(s.get(), here.get(), here.size) != 0 || ::listen(s.get(), SOMAXCONN) != 0 ||
        ::getsockname(s.get(), here.get(), &here.size) != 0)
      fail("listening at " + here.host(), errno);
    listening_ = here;
    std::random_device roll;
    word_ = std::uint64_t{roll()} << 32 | roll();
    return s;
  }

  // Where the others listen, from their texts.
  void read(const std::vector<std::string>& texts, int world) {
    if (static_cast<int>(texts.size()) != world)
      throw std::runtime_error(fmt::format("{} of {} workers met", texts.size(), world));
    for (const std::string& t : texts) {
      std::istringstream text(t);
      std::string host;
      int port = 0;
      peer_address p;
      if (!(text >> host >> port >> std::hex >> p.word))
        throw std::runtime_error("a worker says that it listens at " + t);
      p.at = tcp_address(host, port);
      on_machine_ += host == listening_.host();
      addresses_.push_back(p);
    }
    connected_.resize(addresses_.size());
  }

  void connect(const tcp_socket& listens) {
    for (int r = 0; r < me_; ++r) call(r);
    const auto until = deadline_after(limit_);
    for (int next; (next = missing()) >= 0;) {
      if (clock::now() > until)
        throw error(refusal{code::time_limit, me_, next, limit_.count()}, worker_text(me_, "connecting"));
      std::vector<pollfd> all{{listens.get(), POLLIN, 0}};
      for (const candidate& c : candidates_)
        all.push_back({c.socket.get(), static_cast<short>(c.rank >= 0 && !c.greeted ? POLLOUT : POLLIN), 0});
      ::poll(all.data(), all.size(), 100);
      for (std::size_t i = candidates_.size(); i-- > 0;)
        if (all[i + 1].revents != 0 && !goes_on(candidates_[i]))
          candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(i));
      if (all[0].revents == 0) continue;
      if (tcp_socket socket(::accept(listens.get(), nullptr, nullptr)); socket.get() >= 0)
        candidates_.push_back({std::move(socket)});
    }
  }
  int missing() const {
    for (int r = 0; r < static_cast<int>(connected_.size()); ++r)
      if (r != me_ && connected_[static_cast<std::size_t>(r)].get() < 0) return r;
    return -1;
  }

  void call(int rank) {
    const tcp_address& there = addresses_[static_cast<std::size_t>(rank)].at;
    tcp_socket socket(::socket(there.family(), SOCK_STREAM, 0));
    if (socket.get() < 0 || (::connect(socket.get(), there.get(), there.size) != 0 && errno != EINPROGRESS))
      lost(rank, errno);
    candidates_.push_back({std::move(socket), rank});
  }
  [[noreturn]] void lost(int rank, int status) const {
    throw error(refusal{code::worker_lost, me_, rank},
                worker_text(me_, "connecting") + "; " + worker_text(rank, std::strerror(status)));
  }

  // Speaks and listens; whether the candidate stays one.
  bool goes_on(candidate& c) {
    const bool called = c.rank >= 0;
    if (called && !c.greeted) {
      if (const int status = c.socket.met(); status != 0) lost(c.rank, status);
      greet(c);
      return true;
    }
    const std::ptrdiff_t n =
        c.socket.receive(reinterpret_cast<std::byte*>(&c.says) + c.heard, sizeof(greeting) - c.heard);
    c.heard += static_cast<std::size_t>(std::max<std::ptrdiff_t>(n, 0));
    if (n >= 0 && c.heard < sizeof(greeting)) return true;
    if (n < 0 || !is_worker(c)) {
      if (called) lost(c.rank, ECONNRESET);
      return false;
    }
    c.rank = static_cast<int>(c.says.rank);
    if (!called) greet(c);
    c.socket.hurry();
    connected_[static_cast<std::size_t>(c.rank)] = std::move(c.socket);
    return false;
  }
  bool is_worker(const candidate& c) const {
    const std::int64_t who = c.says.rank;
    if (c.says.begins != greeting{}.begins || c.says.word != word_) return false;
    if (c.rank >= 0) return who == c.rank;
    return who > me_ && who < static_cast<std::int64_t>(connected_.size()) &&
           connected_[static_cast<std::size_t>(who)].get() < 0;
  }
  void greet(candidate& c) const {
    greeting mine{.word = addresses_[static_cast<std::size_t>(c.rank)].word, .rank = me_};
    iovec all{&mine, sizeof(mine)};
    static_cast<void>(c.socket.send({&all, 1}));  // so little always finds room
    c.greeted = true;
  }

  int me_;
  std::chrono::seconds limit_;
  tcp_address listening_;
  std::uint64_t word_ = 0;
  int on_machine_ = 0;
  std::vector<peer_address> addresses_;
  std::vector<candidate> candidates_;
  std::vector<tcp_socket> connected_;
};

}  // namespace tessera::detail
