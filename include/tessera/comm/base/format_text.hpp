#pragma once

#include <tessera/meta/text.hpp>

#include <fmt/core.h>

/// Prints a text, the name of an axis or of an extent: `fmt::print("{}", mesh.axes[0].name)`.
template <>
struct fmt::formatter<tessera::text> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const tessera::text& t, Context& to) const {
    return fmt::formatter<fmt::string_view>::format({t.data, static_cast<std::size_t>(t.size)}, to);
  }
};
