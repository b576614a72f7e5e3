#pragma once

#include <tessera/comm/team.hpp>
#include <tessera/nn/watch/csv_file.hpp>
#include <tessera/nn/watch/event_file.hpp>

#include <chrono>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace tessera::nn {

/// The files of a `metrics_writer`, and when it writes them.
struct metrics_options {
  bool csv = true;          ///< FOLDER/metrics.csv
  bool tensorboard = true;  ///< FOLDER/events.out.tfevents.TIME.HOST.…
  index_t flush_rows = 20;  ///< the files have all rows after so many, and errors are told then
  std::chrono::duration<double> flush_after = std::chrono::seconds(10);  ///< or after so long, at the next row
  std::optional<std::int64_t> begins_at{};  ///< of a run that is resumed: what was written from this step on is dropped
};

/// Writes the numbers of a run for common tools: a table of comma-separated values, and TensorBoard's event files.
///
///   ts::nn::metrics_writer metrics(team, "runs/7");
///   metrics.write(step, {{"loss", loss}, {"lr", 1e-3}});
///
/// All workers of the team call it, in one order; the first one of the mesh writes. An existing run is continued: the
/// table in its file, events in another file of the folder. A failure of the disk is one error on every worker: at once
/// when opening, else at the flush that the count of calls brings (`flush_rows`). Between those nothing is exchanged.
class metrics_writer {
 public:
  explicit metrics_writer(const team_handle& team, const std::filesystem::path& folder,
                          const metrics_options& options = {}, call_site at = call_site::here());
  template <Mesh M>
  explicit metrics_writer(const team<M>& team, const std::filesystem::path& folder, const metrics_options& options = {},
                          call_site at = call_site::here())
      : metrics_writer(team.state(), folder, options, at) {}
  /// Writes what is left, as far as that can be; `flush` before it hears of errors.
  ~metrics_writer();
  metrics_writer(const metrics_writer&) = delete;
  metrics_writer& operator=(const metrics_writer&) = delete;

  /// A row: what is known at a step. A name is on one line, and said once.
  void write(std::int64_t step, std::span<const metric> row, call_site at = call_site::here());
  void write(std::int64_t step, std::initializer_list<metric> row, call_site at = call_site::here()) {
    write(step, std::span<const metric>(row.begin(), row.size()), at);
  }

  /// Puts all rows into the files, or throws on every worker why it cannot.
  void flush(call_site at = call_site::here());

 private:
  void add(std::int64_t step, std::span<const metric> row);
  void flush_here();

  team_handle team_;
  metrics_options options_;
  std::optional<engine::csv_file> table_;  // on the first worker
  std::optional<engine::event_file> events_;
  std::string failed_;  // an error of this worker that the others have not heard of
  index_t rows_ = 0;
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/watch/metrics_writer_impl.hpp>
#endif
