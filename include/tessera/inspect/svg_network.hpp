#pragma once

#include <tessera/inspect/network.hpp>
#include <tessera/inspect/svg_layout.hpp>

namespace tessera {

namespace detail {

/// A network as it is drawn: rows under one another, with lines on the left for what runs from one to another.
template <class Network>
class network_drawing {
 public:
  explicit network_drawing(const network_rows<Network>& all)
      : all_(all), lanes_(all.drawn()), colours_(ranks_of_all(all)) {
    double y = 52;
    for (const network_row& r : all.rows) {
      top_.push_back(y);
      y += r.is == network_row::kind::output ? 30 : row_height;
    }
    bottom_ = y;
    names_ = 28 + lane_width * lanes_.count;
    double widest = 60;
    for (const network_row& r : all.rows) {
      widest = std::max({widest, drawing::width_of(r.name, 14), drawing::width_of(r.path, 11)});
      for (const layout& x : r.lies)
        widest_lies_ =
            std::max({widest_lies_, drawing::width_of(covers_text(x), 11), drawing::width_of(shape_text(x), 12)});
      most_moved_ = std::max({most_moved_, r.traffic.forward.bytes, r.traffic.backward.bytes});
      most_lives_ = std::max({most_lives_, r.lives.forward, r.lives.backward});
    }
    lies_ = names_ + widest + 30;
    maps_ = lies_ + widest_lies_ + 20;
    moved_ = maps_ + map_width + 30;
    lives_ = moved_ + bar_room + 90;
  }

  std::string str() {
    to_.rect(0, 0, lives_ + bar_room + 80, 1, "#ffffff");
    scopes();
    titles();
    for (const lanes::strand& s : lanes_.strands) strand(s);
    for (std::size_t r = 0; r < all_.rows.size(); ++r) row(r);
    sums();
    return to_.str();
  }

 private:
  static constexpr double row_height = 64, lane_width = 20, map_width = 84, map_height = 44, bar_room = 120;
  static constexpr const char* forward = "#4477aa";
  static constexpr const char* backward = "#ee8833";

  static std::vector<int> ranks_of_all(const network_rows<Network>& all) {
    std::vector<int> ranks;
    for (const network_row& r : all.rows)
      for (const layout& x : r.lies)
        for (const int rank : ranks_of(x.mesh)) ranks.push_back(rank);
    return ranks;
  }
  double lane_x(int lane) const { return 22 + lane_width * lane; }
  double mark_y(std::size_t r) const { return top_[r] + (all_.rows[r].is == network_row::kind::output ? 8 : 16); }

  // Scopes are boxes around their rows, those inside others a little smaller.
  void scopes() {
    constexpr const auto& program = Network::program;
    for (int s = 0; s < number_of_scopes(); ++s) {
      int depth = 0;
      for (int up = program.scopes[s].parent; up >= 0; up = program.scopes[up].parent) ++depth;
      for (std::size_t r = 0; r < all_.rows.size(); ++r) {
        if (!inside(r, s) || (r > 0 && inside(r - 1, s))) continue;
        std::size_t end = r;
        while (end + 1 < all_.rows.size() && inside(end + 1, s)) ++end;
        const double inset = 4 + 5.0 * depth;
        const double y = top_[r] - 8 + 3.0 * depth;
        const double height = top_[end] + row_height - 14 - 3.0 * depth - y;
        to_.rect(inset, y, lies_ - 12 - inset - 5.0 * depth, height, "#e8eef5", 0.55,
                 "rx='8' stroke='#c9d5e3' stroke-width='1'");
      }
    }
  }
  static constexpr int number_of_scopes() {
    int n = 0;
    for (const auto& node : Network::program)
      for (int s = node.scope; s >= 0; s = Network::program.scopes[s].parent) n = s >= n ? s + 1 : n;
    return n;
  }
  bool inside(std::size_t r, int scope) const {
    if (all_.rows[r].is != network_row::kind::node) return false;
    for (int s = all_.rows[r].scope; s >= 0; s = Network::program.scopes[s].parent)
      if (s == scope) return true;
    return false;
  }

  void titles() {
    to_.text(lies_, 24, "what it gives", 11, drawing::faint);
    to_.text(moved_, 24, "bytes moved", 11, drawing::faint);
    to_.text(lives_, 24, "bytes living on a worker", 11, drawing::faint);
    to_.rect(16, 16, 9, 9, forward, 1, "rx='2'");
    to_.text(29, 24, "forward", 11, drawing::faint);
    to_.rect(80, 16, 9, 9, backward, 1, "rx='2'");
    to_.text(93, 24, "backward", 11, drawing::faint);
  }

  // From the mark of a row, down a lane, to the mark of another.
  void strand(const lanes::strand& s) {
    const auto from = static_cast<std::size_t>(s.from), to = static_cast<std::size_t>(s.to);
    const double x0 = lane_x(lanes_.row_lane[from]), x1 = lane_x(s.lane), x2 = lane_x(lanes_.row_lane[to]);
    const double y0 = mark_y(from), y2 = mark_y(to);
    const bool skips = s.to > s.from + 1;
    const double bend = std::min(34.0, (y2 - y0) / 2);
    std::string d = fmt::format("M{} {}", pixels(x0), pixels(y0));
    const auto curve = [&](double xa, double ya, double xb, double yb) {
      d += xa == xb ? fmt::format("V{}", pixels(yb))
                    : fmt::format("C{} {} {} {} {} {}", pixels(xa), pixels((ya + yb) / 2), pixels(xb),
                                  pixels((ya + yb) / 2), pixels(xb), pixels(yb));
    };
    curve(x0, y0, x1, y0 + bend);
    if (y2 - bend > y0 + bend) d += fmt::format("V{}", pixels(y2 - bend));
    curve(x1, y2 - bend, x2, y2);
    to_.curve(d, skips ? lane_colour(s.lane) : "#9aa5b4", skips ? 2.5 : 2);
  }
  static const char* lane_colour(int lane) {
    constexpr const char* colours[]{"#6b7f99", "#8866bb", "#449955", "#cc4455", "#22aabb", "#bb9911"};
    return colours[lane % 6];
  }

  void row(std::size_t r) {
    const network_row& now = all_.rows[r];
    const bool node = now.is == network_row::kind::node;
    const double x = lane_x(lanes_.row_lane[r]), y = mark_y(r);
    to_.circle(x, y, 6, node ? drawing::ink : "#ffffff", drawing::ink);
    to_.text(names_, y + 5, now.name, 14, drawing::ink, "start", true);
    if (now.is == network_row::kind::output) return;
    if (!now.path.empty()) to_.text(names_, y + 20, now.path, 11, drawing::faint);
    std::string parameters;
    for (int i = 0; i < now.plan.parameters(); ++i)
      parameters +=
          fmt::format("{}{} {}", i == 0 ? "" : ", ", now.plan.parameter(i).name, shape_text(now.plan.stored(i)));
    to_.text(lies_, y + 1,
             shape_text(now.lies[0]) + (now.lies.size() > 1 ? fmt::format(" and {} more", now.lies.size() - 1) : ""),
             12);
    to_.text(lies_, y + 16, covers_text(now.lies[0]), 11, drawing::faint);
    if (!parameters.empty()) to_.text(lies_, y + 31, parameters, 11, drawing::faint);
    const layout shown = drawable(now.lies[0]);
    const view v = choose_view({&now.lies[0]}, false, map_width, map_height);
    draw_tiles({to_, v, colours_}, without_windows(shown), holders_of(v, shown), maps_, y - 12);
    if (!node) return;
    const auto bars = [&](double at, index_t there, index_t back, index_t most) {
      bar(at, y - 10, there, most, forward);
      bar(at, y + 6, back, most, backward);
    };
    bars(moved_, now.traffic.forward.bytes, now.traffic.backward.bytes, most_moved_);
    bars(lives_, now.lives.forward, now.lives.backward, most_lives_);
  }
  void bar(double x, double y, index_t bytes, index_t most, const char* fill) {
    const double w = bar_room * static_cast<double>(bytes) / static_cast<double>(most);
    if (bytes > 0) to_.rect(x, y, std::max(w, 1.5), 12, fill, bytes == most ? 1 : 0.7, "rx='2'");
    to_.text(x + w + (bytes > 0 ? 6 : 0), y + 10, bytes == 0 ? "nothing" : grouped(bytes), 11,
             bytes == most ? drawing::ink : drawing::faint);
  }

  void sums() {
    const traffic_value& t = all_.traffic;
    const double y = bottom_ + 16;
    to_.text(16, y,
             fmt::format("forward {} bytes, at least {}; backward {}, at least {}; busiest worker {} and {}",
                         grouped(t.forward.bytes), grouped(t.forward.lower_bound_bytes), grouped(t.backward.bytes),
                         grouped(t.backward.lower_bound_bytes), grouped(t.forward.busiest_worker_bytes),
                         grouped(t.backward.busiest_worker_bytes)),
             11);
    to_.text(16, y + 16,
             fmt::format("a worker's memory: forward alone {} bytes, with backward {}, parameters {}",
                         grouped(all_.memory.forward), grouped(all_.memory.training), grouped(all_.memory.parameters)),
             11);
  }

  const network_rows<Network>& all_;
  lanes lanes_;
  palette colours_;
  drawing to_;
  std::vector<double> top_;
  double bottom_ = 0;
  double names_ = 0, lies_ = 0, maps_ = 0, moved_ = 0, lives_ = 0;  // where columns begin
  double widest_lies_ = 80;
  index_t most_moved_ = 1;
  index_t most_lives_ = 1;
};

}  // namespace detail

/// A network as SVG, from its type alone. Lines show which node reads which, with skips and branches; boxes show
/// scopes. Each node shows its result's layout, the bytes it moves and those that live on a worker meanwhile, forward
/// and backward.
///
/// `bindings` give dynamic extents their values; traffic needs all of them.
template <class Network, class... Bindings>
std::string network_svg(const Bindings&... bindings) {
  const engine::network_rows<Network> all(bindings...);
  return detail::network_drawing<Network>(all).str();
}

}  // namespace tessera
