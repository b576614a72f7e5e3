#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/nn/watch/csv_file.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace tessera::nn::engine {

inline std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"") == text.npos) return std::string(text);
  std::string s = "\"";
  for (const char c : text) s += c == '"' ? std::string("\"\"") : std::string(1, c);
  return s + '"';
}

/// The fields of a line.
inline std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> all(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') all.back() += line[++i];
    else if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) all.emplace_back();
    else all.back() += c;
  }
  return all;
}

inline std::string csv_header(const std::vector<std::string>& names) {
  std::string s = "step,wall_time";
  for (const std::string& name : names) s += ',' + csv_field(name);
  return s + '\n';
}

inline std::string whole_text(const std::filesystem::path& path) {
  const tessera::detail::regular_file file(path);
  std::string text(file.size(), '\0');
  file.read(text.data(), text.size(), 0);
  return text;
}

TESSERA_INLINE csv_file::csv_file(const std::filesystem::path& path, std::optional<std::int64_t> begins_at)
    : path_(path) {
  std::error_code none;
  if (std::filesystem::exists(path, none)) go_on(engine::whole_text(path), begins_at);
  file_.emplace(path);
}

TESSERA_INLINE void csv_file::go_on(const std::string& text, std::optional<std::int64_t> begins_at) {
  std::string kept;
  for (std::size_t from = 0, end; (end = text.find('\n', from)) != text.npos; from = end + 1) {
    const std::string_view line(text.data() + from, end - from);
    if (from == 0) {
      names_ = engine::csv_fields(line.substr(0, line.find('\r')));
      if (names_.size() < 2 || names_[0] != "step" || names_[1] != "wall_time")
        throw error(refusal{code::no_metrics_file}, path_.string());
      names_.erase(names_.begin(), names_.begin() + 2);
    } else if (begins_at) {
      std::int64_t step = 0;
      const auto read = std::from_chars(line.data(), line.data() + line.size(), step);
      if (read.ec != std::errc() || step >= *begins_at) continue;
    }
    kept.append(line).append("\n");
  }
  if (kept.empty() && !text.empty() && !std::string_view("step,wall_time,").starts_with(text.substr(0, 15)))
    throw error(refusal{code::no_metrics_file}, path_.string());
  if (kept != text) write_whole(path_, kept);
}

TESSERA_INLINE void csv_file::widen(std::span<const metric> row) {
  const bool begins = names_.empty();
  const std::size_t before = names_.size();
  for (const metric& one : row)
    if (std::find(names_.begin(), names_.end(), one.name) == names_.end()) names_.emplace_back(one.name);
  if (names_.size() == before) return;
  file_->flush();
  const std::string text = begins ? std::string() : engine::whole_text(path_);
  const std::string more(names_.size() - before, ',');
  std::string wider = engine::csv_header(names_);
  for (std::size_t from = text.find('\n'), end; from != text.npos && (end = text.find('\n', from + 1)) != text.npos;
       from = end)
    wider.append(text, from + 1, end - from - 1).append(more).append("\n");
  file_.reset();
  write_whole(path_, wider);
  file_.emplace(path_);
}

TESSERA_INLINE void csv_file::add(std::int64_t step, double time, std::span<const metric> row) {
  widen(row);
  std::string line = fmt::format("{},{:.3f}", step, time);
  for (const std::string& name : names_) {
    const auto at = std::find_if(row.begin(), row.end(), [&](const metric& one) { return one.name == name; });
    line += at == row.end() ? "," : fmt::format(",{}", at->value);
  }
  file_->add(line + '\n');
}

}  // namespace tessera::nn::engine
