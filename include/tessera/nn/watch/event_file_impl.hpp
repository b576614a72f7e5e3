#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/nn/watch/event_file.hpp>

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <filesystem>

namespace tessera::nn::engine {

/// The remainders of all bytes modulo Castagnoli's polynomial, bits reversed.
inline constexpr std::array<std::uint32_t, 256> castagnoli = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t r = i;
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1) * 0x82F63B78U);
    table[i] = r;
  }
  return table;
}();

/// A whole number in so many bytes, the lowest first.
inline std::string little_endian(std::uint64_t n, int bytes) {
  std::string s;
  for (int i = 0; i < bytes; ++i) s += static_cast<char>((n >> (8 * i)) & 0xFF);
  return s;
}

// Fields of a protocol buffer message, https://protobuf.dev/programming-guides/encoding: number, type, value.
inline std::string varint(std::uint64_t n) {
  std::string s;
  for (; n >= 0x80; n >>= 7) s += static_cast<char>((n & 0x7F) | 0x80);
  return s + static_cast<char>(n);
}
inline std::string whole_field(int number, std::int64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(static_cast<std::uint64_t>(value));
}
inline std::string double_field(int number, double value) {
  return varint((static_cast<std::uint64_t>(number) << 3) | 1) + little_endian(std::bit_cast<std::uint64_t>(value), 8);
}
inline std::string float_field(int number, float value) {
  return varint((static_cast<std::uint64_t>(number) << 3) | 5) + little_endian(std::bit_cast<std::uint32_t>(value), 4);
}
inline std::string bytes_field(int number, std::string_view value) {
  return varint((static_cast<std::uint64_t>(number) << 3) | 2) + varint(value.size()) + std::string(value);
}

// Fields of TensorFlow's event.proto and summary.proto.
inline std::string event(double time, std::int64_t step) { return double_field(1, time) + whole_field(2, step); }
inline std::string file_version() { return bytes_field(3, "brain.Event:2"); }
inline std::string session_starts() { return bytes_field(7, whole_field(1, 1)); }
inline std::string simple_value(const metric& of) {
  return bytes_field(1, bytes_field(1, of.name) + float_field(2, static_cast<float>(of.value)));
}

/// A new event file of a folder: TensorBoard reads those of one folder in the order of their names.
inline std::filesystem::path new_event_file(const std::filesystem::path& folder, double time) {
  char host[256] = "localhost";
  static_cast<void>(::gethostname(host, sizeof host - 1));
  std::filesystem::path path;
  for (int number = 0; path.empty() || std::filesystem::exists(path); ++number)
    path = folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<std::int64_t>(time), host,
                                ::getpid(), number);
  return path;
}

TESSERA_INLINE std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t r = ~0U;
  for (const char c : bytes) r = (r >> 8) ^ engine::castagnoli[(r ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~r;
}

TESSERA_INLINE std::string tf_record(std::string_view bytes) {
  const auto masked = [](std::string_view of) {
    const std::uint32_t crc = crc32c(of);
    return engine::little_endian(std::rotr(crc, 15) + 0xA282EAD8U, 4);
  };
  const std::string length = engine::little_endian(bytes.size(), 8);
  return length + masked(length) + std::string(bytes) + masked(bytes);
}

TESSERA_INLINE event_file::event_file(const std::filesystem::path& folder, double time,
                                      std::optional<std::int64_t> begins_at)
    : file_(engine::new_event_file(folder, time)) {
  file_.add(tf_record(engine::event(time, 0) + engine::file_version()));
  if (begins_at) file_.add(tf_record(engine::event(time, *begins_at) + engine::session_starts()));
  file_.flush();
}

TESSERA_INLINE void event_file::add(std::int64_t step, double time, std::span<const metric> row) {
  std::string summary;
  for (const metric& one : row) summary += engine::simple_value(one);
  file_.add(tf_record(engine::event(time, step) + engine::bytes_field(5, summary)));
}

}  // namespace tessera::nn::engine
