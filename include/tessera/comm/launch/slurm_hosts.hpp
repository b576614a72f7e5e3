#pragma once

#include <string>
#include <string_view>

namespace tessera::engine {

/// The first host of a list as SLURM writes it: "a[03-04,7],b" is a03, a04, a7 and b; "r[1-2]n[01-03]" begins with
/// r1n01.
inline std::string first_host(std::string_view list) {
  std::string host;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const std::size_t end = list.find(']', i);
    host += list.substr(i + 1, list.find_first_of("-,]", i) - i - 1);
    if (end == std::string_view::npos) break;
    i = end;
  }
  return host;
}

}  // namespace tessera::engine
