#pragma once

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace digits {

/// Images with their labels, in the order of the file.
struct dataset {
  at::Tensor images;  ///< N x 1 x 8 x 8, double, ink from 0 (none) to 1 (full)
  at::Tensor labels;  ///< N, int64, 0 to 9
};

/// What a network learns from, and what it never sees before its examination.
struct split {
  dataset train, test;
};

/// A data file that cannot be used: the text begins with a code such as `[digits.data.missing]` and says what to do.
struct data_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

inline constexpr std::size_t pixels = 64, line_bytes = pixels + 3;  // 64 pixels, a comma, a label, a line feed
inline constexpr std::string_view head = "# digits images=", between = " fnv1a64=";

/// What the first line of a data file promises about the rest.
struct promise {
  std::uint64_t images = 0, checksum = 0;
};

/// FNV-1a over the bytes of a text, 64 bits.
constexpr std::uint64_t fnv1a64(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  return hash;
}

/// The value of a digit in base 17 (0-9, a-g), or -1.
constexpr int base17(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  return digit >= 'a' && digit <= 'g' ? digit - 'a' + 10 : -1;
}

[[noreturn]] inline void refuse(std::string_view why, const std::filesystem::path& path, std::string_view what) {
  throw data_error(fmt::format("[digits.data.{}] {}: {}; restore it from the repository (git checkout -- {})", why,
                               path.string(), what, path.string()));
}

inline std::string bytes_of(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) refuse("missing", path, "there is no such file");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse("missing", path, "the file cannot be opened for reading");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Reads the first line, without its line feed; true when it has the one form that is written.
inline bool parse(std::string_view line, promise& says) {
  if (!line.starts_with(head)) return false;
  const std::size_t at = line.find(between);
  if (at == line.npos) return false;
  const char* end = line.data() + line.size();
  std::from_chars(line.data() + head.size(), line.data() + at, says.images);
  std::from_chars(line.data() + at + between.size(), end, says.checksum, 16);
  return line == fmt::format("{}{}{}{:016x}", head, says.images, between, says.checksum);
}

}  // namespace detail

/// Reads a data file, after checking its length and checksum against its first line.
///
/// @throws data_error missing, truncated, altered (length or checksum) or malformed (not this notation)
inline dataset read(const std::filesystem::path& path) {
  using namespace detail;
  const std::string bytes = bytes_of(path);
  const std::string_view text = bytes;
  const std::size_t newline = text.find('\n');
  const std::string_view first = text.substr(0, newline);
  if (newline == text.npos && (first.starts_with(head) || head.starts_with(first)))
    refuse("truncated", path, "the file ends within its first line");
  promise says;
  if (!parse(first, says) || says.images == 0)
    refuse("malformed", path, fmt::format("the first line should read \"{}<count>{}<16 digits>\"", head, between));

  const std::string_view body = text.substr(newline + 1);
  const auto promised = fmt::format("{} images of {} bytes each are promised", says.images, line_bytes);
  if (body.size() / line_bytes < says.images)
    refuse("truncated", path, fmt::format("{}, but only {} bytes follow", promised, body.size()));
  if (body.size() != says.images * line_bytes)
    refuse("altered", path, fmt::format("{}, but {} bytes follow", promised, body.size()));
  if (const std::uint64_t is = fnv1a64(body); is != says.checksum)
    refuse("altered", path, fmt::format("its checksum is {:016x}, not {:016x}", is, says.checksum));

  const auto count = static_cast<std::int64_t>(says.images);
  dataset all{at::empty({count, 1, 8, 8}, at::kDouble), at::empty({count}, at::kLong)};
  double* ink = all.images.data_ptr<double>();
  auto* label = all.labels.data_ptr<std::int64_t>();
  for (std::size_t image = 0; image < says.images; ++image) {
    const std::string_view line = body.substr(image * line_bytes, line_bytes);
    const auto bad = [&] { refuse("malformed", path, fmt::format("line {} is not 64 pixels and a label", image + 2)); };
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const int value = base17(line[pixel]);
      if (value < 0) bad();
      *ink++ = value / 16.0;
    }
    if (line[pixels] != ',' || line[pixels + 1] < '0' || line[pixels + 1] > '9' || line[pixels + 2] != '\n') bad();
    *label++ = line[pixels + 1] - '0';
  }
  return all;
}

/// Divides a data set: every fifth image (index mod 5 = 4) is for the test, the rest to learn from.
inline split divide(const dataset& all) {
  const std::int64_t count = all.labels.size(0);
  if (count < 5) throw data_error(fmt::format("[digits.data.malformed] {} images are too few: give 5 or more", count));
  const at::Tensor is_test = at::arange(count, at::kLong).remainder(5).eq(4);
  const auto take = [&](const at::Tensor& which) {
    const at::Tensor index = which.nonzero().flatten();
    return dataset{all.images.index_select(0, index), all.labels.index_select(0, index)};
  };
  return {take(is_test.logical_not()), take(is_test)};
}

/// What a network is shown: the ink from -1 (none) to 1 (full), exactly, by which training is quicker and steadier.
inline at::Tensor centred(const at::Tensor& images) { return images * 2 - 1; }

}  // namespace digits
