#pragma once

#include <tessera/nn/file/throw_on_all.hpp>
#include <tessera/nn/watch/metrics_writer.hpp>

#include <fmt/core.h>

#include <algorithm>

namespace tessera::nn {

namespace engine {

/// Seconds since 1970.
inline double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

inline void check_names(std::span<const metric> row) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string_view name = row[i].name;
    const bool twice = std::any_of(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const metric& other) { return other.name == name; });
    const bool columns = name == "step" || name == "wall_time";  // which rows have anyway
    if (name.empty() || twice || columns || name.find_first_of("\r\n") != name.npos)
      throw error(refusal{code::metric_name}, fmt::format("'{}'", name));
  }
}

}  // namespace engine

TESSERA_INLINE metrics_writer::metrics_writer(const team_handle& team, const std::filesystem::path& folder,
                                              const metrics_options& options, call_site at)
    : team_(team), options_(options) {
  const engine::scoped_context now(*team_, {.name = "opening files of metrics", .at = at});
  tessera::detail::on_first(team_, code::file_not_written, [&] {
    std::filesystem::create_directories(folder);
    if (options_.csv) table_.emplace(folder / "metrics.csv", options_.begins_at);
    if (options_.tensorboard) events_.emplace(folder, engine::wall_time(), options_.begins_at);
  });
}

TESSERA_INLINE metrics_writer::~metrics_writer() {
  if (failed_.empty())
    static_cast<void>(tessera::detail::packed_failure(code::file_not_written, [&] { flush_here(); }));
}

TESSERA_INLINE void metrics_writer::flush_here() {
  if (table_) table_->flush();
  if (events_) events_->flush();
  flushed_ = std::chrono::steady_clock::now();
}

TESSERA_INLINE void metrics_writer::add(std::int64_t step, std::span<const metric> row) {
  const double time = engine::wall_time();
  if (row.empty()) return;
  if (table_) table_->add(step, time, row);
  if (events_) events_->add(step, time, row);
  if (std::chrono::steady_clock::now() - flushed_ >= options_.flush_after) flush_here();
}

TESSERA_INLINE void metrics_writer::write(std::int64_t step, std::span<const metric> row, call_site at) {
  engine::check_names(row);
  if ((table_ || events_) && failed_.empty())
    failed_ = tessera::detail::packed_failure(code::file_not_written, [&] { add(step, row); });
  if (++rows_ % std::max<index_t>(options_.flush_rows, 1) == 0) flush(at);
}

TESSERA_INLINE void metrics_writer::flush(call_site at) {
  const engine::scoped_context now(*team_, {.name = "writing metrics", .at = at});
  tessera::detail::on_first(team_, code::file_not_written, [&] {
    if (!failed_.empty()) throw error::unpacked(failed_);
    failed_ = tessera::detail::packed_failure(code::file_not_written, [&] { flush_here(); });
    if (!failed_.empty()) throw error::unpacked(failed_);
  });
}

}  // namespace tessera::nn
