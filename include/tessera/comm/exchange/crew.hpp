#pragma once

#include <tessera/comm/base/checks.hpp>
#include <tessera/comm/exchange/agreement.hpp>

#include <algorithm>
#include <cstddef>

namespace tessera::engine {

/// Workers that do the same in one order: those of a mesh, or those that a change leads between. They agree, and each
/// counts what all of them do.
class crew {
 public:
  crew(transport& carrier, std::vector<int> ranks) : carrier_(carrier), among_(carrier, std::move(ranks)) {}

  const std::vector<int>& ranks() const { return among_.workers(); }
  /// Whether this worker is one of several.
  bool takes_part() const { return ranks().size() > 1 && has(carrier_.rank()); }
  bool has(int rank) const { return std::find(ranks().begin(), ranks().end(), rank) != ranks().end(); }
  std::size_t index_of(int rank) const {
    return static_cast<std::size_t>(std::find(ranks().begin(), ranks().end(), rank) - ranks().begin());
  }

  const agreement& among() const { return among_; }

  /// The number of the next change of layout between them.
  std::uint64_t next_change() { return ++changes_; }
  /// The number of the next tensor that they bring in.
  std::uint64_t next_entry() { return ++entries_; }
  visits entered;         ///< tensors that they brought in, by line
  visits began_backward;  ///< by line

 private:
  transport& carrier_;
  agreement among_;
  std::uint64_t changes_ = 0;
  std::uint64_t entries_ = 0;
};

}  // namespace tessera::engine
