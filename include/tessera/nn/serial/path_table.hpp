#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::nn {

namespace engine {

/// Whether a pattern fits a path. In it `*` is any one part between dots, `**` any number of parts.
bool fits_path(std::string_view pattern, std::string_view path);

/// The patterns of a table of paths.
class path_patterns {
 public:
  void push(std::string pattern) { all_.push_back(std::move(pattern)); }

  /// Which pattern fits a path, if any; refuses a path that two fit.
  std::optional<std::size_t> find(const std::string& path) const;
  /// Refuses patterns that fit none of these paths, and paths that two patterns fit.
  void check(const std::vector<std::string>& paths) const;

 private:
  std::vector<std::string> all_;
};

}  // namespace engine

/// Rows of a pattern and what it says of the layers whose path it fits: `{{"blocks.*.fc1", 0}, {"blocks.*.fc2", 1}}`.
///
/// In a pattern `*` is any one part of a path, `**` any number of parts. A row fits a layer at least, a layer one row
/// at most.
template <class Value>
class path_table {
 public:
  path_table() = default;
  path_table(std::initializer_list<std::pair<std::string, Value>> rows) {
    for (const auto& [pattern, value] : rows) add(pattern, value);
  }

  void add(std::string pattern, Value value) {
    patterns_.push(std::move(pattern));
    values_.push_back(std::move(value));
  }

  /// What the table says of a path; nullptr if nothing.
  const Value* find(const std::string& path) const {
    const auto row = patterns_.find(path);
    return row ? &values_[*row] : nullptr;
  }
  /// Refuses a table that is not one of these layers.
  void check(const std::vector<std::string>& paths) const { patterns_.check(paths); }

 private:
  engine::path_patterns patterns_;
  std::vector<Value> values_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/serial/path_table_impl.hpp>
#endif
