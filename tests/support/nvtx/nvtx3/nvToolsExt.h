#pragma once
// NVTX's ranges as a test sees them: the same C functions, which write down what each thread names.

#include <cstdint>
#include <string>
#include <vector>

using nvtxRangeId_t = std::uint64_t;

namespace tessera::testing {

/// What a thread's ranges were, in order: "+ name" and "-" of those that nest, "> name" and "< number" of others.
inline std::vector<std::string>& named_ranges() {
  thread_local std::vector<std::string> all;
  return all;
}

}  // namespace tessera::testing

inline int nvtxRangePushA(const char* name) {
  tessera::testing::named_ranges().push_back(std::string("+ ") + name);
  return 0;
}
inline int nvtxRangePop() {
  tessera::testing::named_ranges().push_back("-");
  return 0;
}
inline nvtxRangeId_t nvtxRangeStartA(const char* name) {
  tessera::testing::named_ranges().push_back(std::string("> ") + name);
  return tessera::testing::named_ranges().size();
}
inline void nvtxRangeEnd(nvtxRangeId_t range) {
  tessera::testing::named_ranges().push_back("< " + std::to_string(range));
}
