#pragma once

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace tessera::detail {

/// The cores that this process may use, the threads of one beside each other; none where the system does not tell.
inline std::vector<int> usable_cores() {
  std::vector<int> cores;
#ifdef __linux__
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cores;
  std::vector<std::pair<int, int>> by_sibling;
  for (int c = 0; c < CPU_SETSIZE; ++c) {
    if (!CPU_ISSET(c, &mask)) continue;
    std::ifstream siblings("/sys/devices/system/cpu/cpu" + std::to_string(c) + "/topology/thread_siblings_list");
    int first = c;
    siblings >> first;
    by_sibling.emplace_back(first, c);
  }
  std::sort(by_sibling.begin(), by_sibling.end());
  for (const auto& [first, c] : by_sibling) cores.push_back(c);
#endif
  return cores;
}

/// Binds this thread, and those that it starts, to its worker's part of the cores: of n cores and p workers worker r
/// has ⌊rn/p⌋ … ⌊(r+1)n/p⌋ − 1. Workers that are more than cores go where they like.
///
/// Else the system may put two threads that wake each other on one core and leave another core idle. Each call between
/// them then takes two context switches. MPI launchers bind their processes for the same reason.
inline void bind_to_part(const std::vector<int>& cores, int worker, int workers) {
  const auto count = static_cast<int>(cores.size());
  if (workers < 2 || workers > count) return;
#ifdef __linux__
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (int c = worker * count / workers; c < (worker + 1) * count / workers; ++c)
    CPU_SET(cores[static_cast<std::size_t>(c)], &mask);
  sched_setaffinity(0, sizeof mask, &mask);
#else
  static_cast<void>(worker);
#endif
}

}  // namespace tessera::detail
