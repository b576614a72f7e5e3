#pragma once

#include <tessera/nn/file/checkpoint_folder.hpp>
#include <tessera/nn/file/weights_stream.hpp>
#include <tessera/nn/refusals.hpp>

#include <algorithm>
#include <charconv>

namespace tessera::nn::engine {

inline constexpr std::string_view checkpoint_prefix = "checkpoint_";

/// Throws what the standard library says of a path.
inline void require_made(const std::error_code& said, const std::filesystem::path& path) {
  if (said) throw error(refusal{code::file_not_written}, fmt::format("{}: {}", path.string(), said.message()));
}

TESSERA_INLINE std::filesystem::path checkpoint_folder::at(std::int64_t number) const {
  return path_ / fmt::format("{}{:08}", checkpoint_prefix, number);
}

TESSERA_INLINE std::vector<std::int64_t> checkpoint_folder::numbers() const {
  std::vector<std::int64_t> all;
  std::error_code none;
  for (const auto& inside : std::filesystem::directory_iterator(path_, none)) {
    const std::string name = inside.path().filename().string();
    if (!name.starts_with(checkpoint_prefix)) continue;
    std::int64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + checkpoint_prefix.size(), end, number);
    if (read.ec == std::errc() && read.ptr == end && number >= 0 && at(number).filename() == name)
      all.push_back(number);
  }
  std::sort(all.begin(), all.end());
  return all;
}

TESSERA_INLINE std::vector<std::int64_t> checkpoint_folder::whole() const {
  std::vector<std::int64_t> all = numbers();
  std::erase_if(all, [&](std::int64_t n) {
    std::error_code none;
    return !std::filesystem::exists(at(n) / checkpoint_index::name, none);
  });
  return all;
}

TESSERA_INLINE std::int64_t checkpoint_folder::begin_next() const {
  std::error_code said;
  std::filesystem::create_directories(path_, said);
  require_made(said, path_);
  const std::vector<std::int64_t> before = whole();
  const std::int64_t next = before.empty() ? 1 : before.back() + 1;
  for (const std::int64_t n : numbers())
    if (n >= next) abandon(n);
  std::filesystem::create_directory(at(next), said);
  require_made(said, at(next));
  tessera::detail::flush_folder(path_);
  return next;
}

TESSERA_INLINE void checkpoint_folder::remove_older(std::int64_t than, int keep) const {
  std::vector<std::int64_t> stay = whole();
  std::erase_if(stay, [&](std::int64_t n) { return n >= than; });
  if (keep >= 0 && stay.size() > static_cast<std::size_t>(keep)) stay.erase(stay.begin(), stay.end() - keep);
  for (const std::int64_t n : numbers())
    if (n < than && std::find(stay.begin(), stay.end(), n) == stay.end()) abandon(n);
}

TESSERA_INLINE void checkpoint_folder::abandon(std::int64_t number) const {
  std::error_code none;
  std::filesystem::remove(at(number) / checkpoint_index::name, none);
  tessera::detail::flush_folder(at(number));
  std::filesystem::remove_all(at(number), none);
}

TESSERA_INLINE std::filesystem::path checkpoint_at(const std::filesystem::path& path) {
  std::error_code none;
  if (std::filesystem::exists(path / checkpoint_index::name, none)) return path;
  const checkpoint_folder folder(path);
  const std::vector<std::int64_t> whole = folder.whole();
  if (whole.empty()) throw error(refusal{code::checkpoint_missing}, path.string());
  return folder.at(whole.back());
}

TESSERA_INLINE std::string index_text(const std::filesystem::path& checkpoint) {
  const tessera::detail::regular_file file(checkpoint / checkpoint_index::name);
  std::string text(file.size(), '\0');
  file.read(text.data(), text.size(), 0);
  return text;
}

TESSERA_INLINE void verify_file(const std::filesystem::path& checkpoint, const checkpoint_file& file) {
  const std::filesystem::path path = checkpoint / file.name;
  tessera::detail::regular_file(path).expect(file.bytes);
  tessera::detail::weights_reader reader(path);
  if (reader.size() != file.bytes || reader.sum() != file.sum) throw error(refusal{code::file_altered}, path.string());
  reader.verify();
}

}  // namespace tessera::nn::engine
