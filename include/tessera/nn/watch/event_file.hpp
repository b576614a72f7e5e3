#pragma once

#include <tessera/nn/watch/appended_file.hpp>
#include <tessera/nn/watch/metric.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tessera::nn::engine {

/// CRC-32C, Castagnoli's cyclic redundancy check, of bytes.
std::uint32_t crc32c(std::string_view bytes);

/// A record of the TFRecord format: 8 bytes of length, 4 of that one's masked CRC-32C, the bytes, 4 of theirs.
std::string tf_record(std::string_view bytes);

/// A new file of TensorBoard events in a folder, which shows all files of the folder as one run.
class event_file {
 public:
  /// Events from the step on at which this one begins, which files before have, are not shown any more.
  event_file(const std::filesystem::path& folder, double time, std::optional<std::int64_t> begins_at);

  void add(std::int64_t step, double time, std::span<const metric> row);
  void flush() { file_.flush(); }

 private:
  tessera::detail::appended_file file_;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/watch/event_file_impl.hpp>
#endif
