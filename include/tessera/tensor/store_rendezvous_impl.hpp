#pragma once

#include <tessera/comm/exchange/transport.hpp>
#include <tessera/comm/tcp/socket.hpp>
#include <tessera/tensor/store_rendezvous.hpp>

#ifdef USE_DISTRIBUTED  // as LibTorch says
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#endif

#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace tessera {

#ifdef USE_DISTRIBUTED
namespace detail {

inline std::string variable(const char* name, const char* otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : given;
}

inline std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point until) {
  using std::chrono::milliseconds;
  constexpr milliseconds most = std::chrono::hours(24);  // LibTorch does not count to a month
  return std::clamp(std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now()), milliseconds(1),
                    most);
}

// Waits until somebody listens there: LibTorch would print what it sees of each attempt.
inline void wait_for_store(const launch_environment& started, std::chrono::steady_clock::time_point until) {
  const tcp_address there(started.address, *started.port);
  while (true) {
    const tcp_socket line(::socket(there.family(), SOCK_STREAM, 0));
    ::connect(line.get(), there.get(), there.size);
    pollfd called{line.get(), POLLOUT, 0};
    ::poll(&called, 1, static_cast<int>(std::min(left_until(until), std::chrono::milliseconds(1000)).count()));
    const int status = called.revents == 0 ? ETIMEDOUT : line.met();
    if (status == 0) return;
    if (std::chrono::steady_clock::now() >= until) throw std::runtime_error(std::strerror(status));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// The process keeps it, as later launches meet there too, and others may ask when this one has what it wants.
inline c10d::TCPStore& store_of_process(const launch_environment& started,
                                        std::chrono::steady_clock::time_point until) {
  static auto* const store = [&] {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(*started.port);
    options.isServer = started.rank == 0 && variable("TORCHELASTIC_USE_AGENT_STORE", "") != "True";
    if (!options.isServer) wait_for_store(started, until);
    options.waitWorkers = false;
    options.multiTenant = true;  // LibTorch's own process groups may be served there as well
    options.timeout = left_until(until);
    return new c10d::TCPStore(started.address, options);
  }();
  return *store;
}

}  // namespace detail

namespace engine {

TESSERA_INLINE std::vector<std::string> store_rendezvous(const launch_environment& started, const std::string& mine,
                                                         std::chrono::seconds limit) {
  if (!started.port) throw error(refusal{code::nowhere_to_meet, started.world}, "no port");
  static int launches = 0;
  const std::string job = detail::variable("TORCHELASTIC_RUN_ID", "job"),
                    attempt = detail::variable("TORCHELASTIC_RESTART_COUNT", "0");
  const std::string prefix = fmt::format("tessera/{}/{}/{}/", job, attempt, launches++);
  const auto until = detail::deadline_after(limit);
  std::vector<std::string> all;
  const auto fail = [&](const char* why) {
    const std::string where = fmt::format("{}:{}: {}", started.address, *started.port, why);
    const auto missing = static_cast<index_t>(all.size());
    if (std::chrono::steady_clock::now() >= until)
      throw error(refusal{code::time_limit, started.rank, missing, limit.count()}, where);
    throw error(refusal{code::not_connected, started.rank}, where);
  };
  try {
    c10d::TCPStore& store = detail::store_of_process(started, until);
    store.setTimeout(detail::left_until(until));
    store.set(prefix + std::to_string(started.rank), {mine.begin(), mine.end()});
    for (int r = 0; r < started.world; ++r) {
      store.setTimeout(detail::left_until(until));
      const std::vector<std::uint8_t> text = store.get(prefix + std::to_string(r));
      all.emplace_back(text.begin(), text.end());
    }
  } catch (const c10::Error& e) {
    fail(e.what_without_backtrace());
  } catch (const std::runtime_error& e) {
    fail(e.what());
  }
  return all;
}

}  // namespace engine
#else
namespace engine {

TESSERA_INLINE std::vector<std::string> store_rendezvous(const launch_environment&, const std::string&,
                                                         std::chrono::seconds) {
  throw error(refusal{code::store_missing});
}

}  // namespace engine
#endif

}  // namespace tessera
