#pragma once

#include <tessera/comm/transport.hpp>
#include <tessera/tensor/store_rendezvous.hpp>

#ifdef USE_DISTRIBUTED  // as LibTorch says
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#endif

#include <algorithm>
#include <cstdlib>

namespace tessera {

#ifdef USE_DISTRIBUTED
namespace detail {

inline std::string variable(const char* name, const char* otherwise) {
  const char* const said = std::getenv(name);
  return said == nullptr ? otherwise : said;
}

// The process keeps it, as later launches meet there too, and others may ask when this one has what it wants.
inline c10d::TCPStore& store_of_process(const launch_environment& started, std::chrono::milliseconds limit) {
  static auto* const store = [&] {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(started.port);
    options.isServer = started.rank == 0 && variable("TORCHELASTIC_USE_AGENT_STORE", "") != "True";
    options.waitWorkers = false;
    options.multiTenant = true;  // LibTorch's own process groups may be served there as well
    options.timeout = limit;
    return new c10d::TCPStore(started.address, options);
  }();
  return *store;
}

}  // namespace detail

TESSERA_INLINE std::vector<std::string> store_rendezvous(const launch_environment& started, const std::string& mine, std::chrono::seconds limit) {
  using std::chrono::milliseconds;
  static int launches = 0;
  const std::string place = fmt::format("tessera/{}/{}/{}/", detail::variable("TORCHELASTIC_RUN_ID", "job"), detail::variable("TORCHELASTIC_RESTART_COUNT", "0"), launches++);
  const auto until = detail::deadline_after(limit);
  const auto left = [&] { return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now())); };
  std::vector<std::string> all;
  try {
    c10d::TCPStore& store = detail::store_of_process(started, left());
    store.setTimeout(left());
    store.set(place + std::to_string(started.rank), {mine.begin(), mine.end()});
    for (int r = 0; r < started.world; ++r) {
      store.setTimeout(left());
      const std::vector<std::uint8_t> text = store.get(place + std::to_string(r));
      all.emplace_back(text.begin(), text.end());
    }
  } catch (const c10::Error& e) {
    const std::string where = fmt::format("{}:{}: {}", started.address, started.port, e.what_without_backtrace());
    const auto missing = static_cast<index_t>(all.size());
    if (std::chrono::steady_clock::now() >= until) throw error(refusal{code::time_limit, started.rank, missing, limit.count()}, where);
    throw error(refusal{code::not_connected, started.rank}, where);
  }
  return all;
}
#else
TESSERA_INLINE std::vector<std::string> store_rendezvous(const launch_environment&, const std::string&, std::chrono::seconds) {
  throw error(refusal{code::store_missing});
}
#endif

}  // namespace tessera
