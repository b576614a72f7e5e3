#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::engine {

/// The choice of layers that a table lists, and their order.
struct listing {
  int depth = std::numeric_limits<int>::max();  ///< most names in a path, whose numbers do not count
  std::int64_t least_bytes = 0;
  bool by_bytes = false;  ///< largest first, else as they come
  bool by_time = false;   ///< slowest first, of what took time
  std::size_t most = std::numeric_limits<std::size_t>::max();
};

/// The longest beginning of a path with so many names: of "layers.0.attention" with one name "layers.0".
inline std::string scope_within(std::string_view path, int depth) {
  for (std::size_t from = 0; from < path.size();) {
    const std::size_t end = std::min(path.find('.', from), path.size());
    const std::string_view part = path.substr(from, end - from);
    const bool number = part.find_first_not_of("0123456789") == part.npos;
    if (!number && depth-- == 0) return std::string(path.substr(0, from == 0 ? 0 : from - 1));
    from = end + 1;
  }
  return std::string(path);
}

/// Those of layers, each with a `path` and `bytes`, that a table lists.
template <class Layer>
std::vector<Layer> listed(std::vector<Layer> all, const listing& how) {
  const auto unlisted = [&](const Layer& one) {
    return one.bytes < how.least_bytes || scope_within(one.path, how.depth) != one.path;
  };
  all.erase(std::remove_if(all.begin(), all.end(), unlisted), all.end());
  if (how.by_bytes)
    std::stable_sort(all.begin(), all.end(), [](const Layer& a, const Layer& b) { return a.bytes > b.bytes; });
  if constexpr (requires(const Layer& one) { one.time(); })
    if (how.by_time)
      std::stable_sort(all.begin(), all.end(), [](const Layer& a, const Layer& b) { return a.time() > b.time(); });
  if (all.size() > how.most) all.erase(all.begin() + static_cast<std::ptrdiff_t>(how.most), all.end());
  return all;
}

}  // namespace tessera::engine
