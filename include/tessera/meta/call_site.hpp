#pragma once

#include <tessera/meta/namespaces.hpp>

namespace tessera {

/// A place in the user's program, as std::source_location is, which clang has from 15 on: a defaulted argument of every
/// function that communicates.
struct call_site {
  const char* file = nullptr;
  int line = 0;

  static constexpr call_site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace tessera
