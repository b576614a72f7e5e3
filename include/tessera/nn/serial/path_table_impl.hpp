#pragma once

#include <tessera/comm/base/error.hpp>
#include <tessera/generated/nn.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/nn/serial/path_table.hpp>

#include <algorithm>

namespace tessera::nn::engine {

/// The first part of a path, and what is behind it; the path "" has no part.
struct path_parts {
  std::string_view rest;
  bool empty = false;

  explicit path_parts(std::string_view path) : rest(path), empty(path.empty()) {}
  std::string_view next() {
    const std::size_t dot = rest.find('.');
    const std::string_view first = rest.substr(0, dot);
    empty = dot == rest.npos;
    rest = empty ? std::string_view() : rest.substr(dot + 1);
    return first;
  }
};

inline bool fits_parts(path_parts pattern, path_parts path) {
  while (!pattern.empty) {
    const std::string_view wanted = pattern.next();
    if (wanted == "**") {
      while (!fits_parts(pattern, path)) {
        if (path.empty) return false;
        path.next();
      }
      return true;
    }
    if (path.empty) return false;
    if (const std::string_view found = path.next(); wanted != "*" && wanted != found) return false;
  }
  return path.empty;
}

TESSERA_INLINE bool fits_path(std::string_view pattern, std::string_view path) {
  return fits_parts(path_parts(pattern), path_parts(path));
}

TESSERA_INLINE std::optional<std::size_t> path_patterns::find(const std::string& path) const {
  std::optional<std::size_t> row;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (!fits_path(all_[i], path)) continue;
    if (row)
      throw error(refusal{code::path_in_two_rows}, fmt::format("'{}' is a '{}' and a '{}'", path, all_[*row], all_[i]));
    row = i;
  }
  return row;
}

TESSERA_INLINE void path_patterns::check(const std::vector<std::string>& paths) const {
  std::vector<bool> used(all_.size(), false);
  for (const std::string& path : paths)
    if (const auto row = find(path)) used[*row] = true;
  if (const auto unused = std::find(used.begin(), used.end(), false); unused != used.end())
    throw error(refusal{code::path_without_row},
                fmt::format("'{}'", all_[static_cast<std::size_t>(unused - used.begin())]));
}

}  // namespace tessera::nn::engine
