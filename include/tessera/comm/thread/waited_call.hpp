#pragma once

#include <tessera/comm/thread/shared_exchange.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera::detail {

/// A call that a worker waits in.
struct waited_call {
  const shared_exchange* among = nullptr;
  std::size_t index = 0;  ///< of the worker
  std::uint64_t number = 0;
  std::uint64_t ahead = 0;  ///< its readers need only have taken the call so many before
  std::string does;

  /// Calls need(peer) for every worker that must do something before the call can end. A call that can go on though its
  /// worker has not seen it yet needs nobody.
  template <class Need>
  void each_need(Need&& need) const {
    const auto& members = among->members;
    const auto each_late_source = [&](const exchange_member& m, std::uint64_t which) {
      for (const int s : m.sources)
        if (const auto& source = members[static_cast<std::size_t>(s)]; !source.calls.begun(which)) need(source.rank);
    };
    const exchange_member& mine = members[index];
    each_late_source(mine, number);
    if (number < ahead) return;
    const std::uint64_t given = number - ahead;
    for (const int r : mine.readers) {
      const auto& reader = members[static_cast<std::size_t>(r)];
      if (reader.calls.taken(given, index)) continue;
      if (!reader.calls.begun(given)) need(reader.rank);
      else if (reader.fold) each_late_source(reader, given);  // it adds all terms at once
    }
  }
};

}  // namespace tessera::detail
