#pragma once

#ifdef __linux__
#include <sched.h>
#endif

#include <thread>
#include <vector>

namespace tessera::detail {

/// The cores that this process may use, in the system's order; none where the system does not tell.
inline std::vector<int> usable_cores() {
  std::vector<int> cores;
#ifdef __linux__
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cores;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &mask)) cores.push_back(c);
#endif
  return cores;
}

/// Binds this thread, and those that it starts, to its worker's part of the cores: of n cores and p workers worker r has
/// ⌊rn/p⌋ … ⌊(r+1)n/p⌋ − 1. Workers that are more than cores go where they like.
///
/// The system may put two threads that wake one another on one core and leave another one idle, where each call between them then
/// takes two switches of context; MPI launchers bind their processes for the same reason.
inline void bind_to_part(const std::vector<int>& cores, int worker, int workers) {
  const auto count = static_cast<int>(cores.size());
  if (workers < 2 || workers > count) return;
#ifdef __linux__
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (int c = worker * count / workers; c < (worker + 1) * count / workers; ++c) CPU_SET(cores[static_cast<std::size_t>(c)], &mask);
  sched_setaffinity(0, sizeof mask, &mask);
#else
  static_cast<void>(worker);
#endif
}

}  // namespace tessera::detail
