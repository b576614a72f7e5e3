#pragma once

#include <tessera/inspect/schedule.hpp>
#include <tessera/inspect/svg.hpp>
#include <tessera/plan/schedule/timeline.hpp>

#include <algorithm>

namespace tessera {

namespace engine {

/// The operations of stages over time: a row for each stage, a box for each operation with its micro-batch.
class schedule_panel {
 public:
  static constexpr double left = 84, width = 900, row = 26;

  schedule_panel(drawing& to, const pipeline::extent& of, double top, double units)
      : to_(to), of_(of), top_(top), scale_(units > 0 ? width / units : 0) {}

  void title(std::string_view words) { to_.text(16, top_ - 10, words, 13, drawing::ink, "start", true); }
  void name_stages() {
    for (int s = 0; s < of_.stages; ++s) {
      to_.text(16, top_ + s * row + 17, fmt::format("stage {}", s));
      to_.rect(left, top_ + s * row, width, row - 4, drawing::paper);
    }
  }
  void draw(int stage, const pipeline::operation& x, double begins, double waits, double ends) {
    const double at = left + begins * scale_, y = top_ + stage * row;
    if (waits > 0) to_.rect(at, y, waits * scale_, row - 4, to_.hatch(drawing::faint));
    const bool steps = x.does == pipeline::work::step;
    const double busy = std::max((ends - begins - waits) * scale_, steps ? 3. : 0.);  // seen where it takes no time
    const double shade = 1 - 0.35 * (of_.chunks > 1 ? static_cast<double>(x.chunk) / (of_.chunks - 1) : 0);
    to_.rect(at + waits * scale_, y, busy, row - 4, colour_of(x.does), shade, "stroke='#ffffff' stroke-width='0.5'");
    const std::string word = fmt::format("{}", x.micro_batch);
    if (!steps && drawing::width_of(word, 11) + 2 < busy)
      to_.text(at + waits * scale_ + busy / 2, y + 15, word, 11, "#ffffff", "middle");
  }
  double bottom() const { return top_ + of_.stages * row; }

  static const char* colour_of(pipeline::work does) {
    constexpr const char* colours[]{"#4477aa", "#449955", "#77aa22", "#ee8833", "#aa3377"};
    return colours[static_cast<int>(does)];
  }

 private:
  drawing& to_;
  pipeline::extent of_;
  double top_;
  double scale_;
};

}  // namespace engine

/// A schedule as SVG, each operation as long as is said; below it, where there is one, a batch as it was measured.
///
/// A box has its micro-batch; later chunks are paler, and a hatched box is a wait for another stage.
template <class Schedule>
  requires requires(const Schedule& s) { s.of.stages; }
std::string svg_of(const Schedule& s, const std::vector<std::vector<pipeline::timed_operation>>& measured = {},
                   const pipeline::times& each = {}) {
  using pipeline::work;
  const pipeline::run r = pipeline::run_of(s, each);
  engine::check(r.why);
  engine::drawing to;
  engine::schedule_panel steps(to, s.of, 36, r.span);
  steps.title(fmt::format("planned: {} steps, {:.1f} % of them waiting", r.span, 100 * r.bubble()));
  steps.name_stages();
  bool has[5] = {};
  for (int stage = 0; stage < s.of.stages; ++stage)
    for (int i = 0; i < pipeline::engine::count_of(s, stage); ++i) {
      const pipeline::operation x = s.at(stage, i);
      has[static_cast<int>(x.does)] = true;
      const double begins = r.begin_of(stage, i);
      steps.draw(stage, x, begins, 0, begins + each.of(x.does));
    }
  double bottom = steps.bottom();
  if (!measured.empty()) {
    engine::schedule_panel times(to, s.of, bottom + 36, pipeline::span_of(measured));
    times.title(fmt::format("measured: {:.3g} ms, {:.1f} % of them waiting", 1e3 * pipeline::span_of(measured),
                            100 * pipeline::bubble_of(measured)));
    times.name_stages();
    for (std::size_t stage = 0; stage < measured.size(); ++stage)
      for (const pipeline::timed_operation& x : measured[stage])
        times.draw(static_cast<int>(stage), x.does, x.begins, x.waits, x.ends);
    bottom = times.bottom();
  }
  constexpr const char* words[]{"forward", "backward", "backward of inputs", "backward of weights", "step"};
  double x = engine::schedule_panel::left;
  for (int i = 0; i < 5; ++i) {
    if (!has[i]) continue;
    to.rect(x, bottom + 10, 12, 12, engine::schedule_panel::colour_of(static_cast<work>(i)));
    to.text(x + 18, bottom + 20, words[i]);
    x += 40 + engine::drawing::width_of(words[i]);
  }
  return to.str();
}

}  // namespace tessera
