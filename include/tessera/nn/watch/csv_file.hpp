#pragma once

#include <tessera/nn/watch/appended_file.hpp>
#include <tessera/nn/watch/metric.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera::nn::engine {

/// A table of metrics as comma-separated values (RFC 4180). Its columns are the step, the seconds since 1970, and each
/// name in the order of first appearance.
///
/// An existing file is continued. A new name rewrites it with one more column, which is empty in earlier rows.
class csv_file {
 public:
  /// Rows from the step on at which it begins again are dropped, and so is a last one that was cut short.
  csv_file(const std::filesystem::path& path, std::optional<std::int64_t> begins_at);

  void add(std::int64_t step, double time, std::span<const metric> row);
  void flush() { file_->flush(); }

 private:
  void go_on(const std::string& text, std::optional<std::int64_t> begins_at);
  void widen(std::span<const metric> row);

  std::filesystem::path path_;
  std::vector<std::string> names_;
  std::optional<tessera::detail::appended_file> file_;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/watch/csv_file_impl.hpp>
#endif
