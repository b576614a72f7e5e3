#pragma once

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpt {

/// A text as bytes, its last tenth kept for validation.
struct text {
  std::string train, held_back;
};

/// The text of a file, or of a folder's files, each distinct one once, in the order of their names.
inline text read(const std::filesystem::path& path, std::size_t least) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  std::error_code none;
  if (fs::is_directory(path, none)) {
    for (const auto& entry : fs::directory_iterator(path, none))
      if (entry.is_regular_file(none)) files.push_back(entry.path());
  } else {
    files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  std::string all;
  std::set<std::string> seen;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(in), {}};
    if (!in.eof() && in.bad())
      throw std::runtime_error(
          fmt::format("[gpt.text.unreadable] {}: cannot be read; name another file", file.string()));
    if (seen.insert(content).second) all += content;
  }
  const std::size_t kept = all.size() / 10;
  if (kept < least)
    throw std::runtime_error(fmt::format("[gpt.text.short] {}: has {} bytes; name a file or a folder with {} or more",
                                         path.string(), all.size(), 10 * least));
  return {all.substr(0, all.size() - kept), all.substr(all.size() - kept)};
}

/// Rows of bytes from places that follow from seed and turn, and the byte behind each.
struct batch {
  at::Tensor inputs, labels;
};
inline batch batch_of(const std::string& from, std::int64_t many, std::int64_t bytes_each, std::uint64_t seed,
                      std::uint64_t turn) {
  std::mt19937_64 chance(seed * 1000003 + turn);
  batch b{at::empty({many, bytes_each}, at::kLong), at::empty({many, bytes_each}, at::kLong)};
  for (std::int64_t r = 0; r < many; ++r) {
    const std::size_t begin = chance() % (from.size() - static_cast<std::size_t>(bytes_each));
    for (std::int64_t i = 0; i < bytes_each; ++i) {
      const auto byte = [&](std::int64_t at) {
        return static_cast<std::int64_t>(static_cast<unsigned char>(from[begin + static_cast<std::size_t>(at)]));
      };
      b.inputs.data_ptr<std::int64_t>()[r * bytes_each + i] = byte(i);
      b.labels.data_ptr<std::int64_t>()[r * bytes_each + i] = byte(i + 1);
    }
  }
  return b;
}

}  // namespace gpt
