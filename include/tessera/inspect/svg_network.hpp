#pragma once

#include <tessera/inspect/network.hpp>
#include <tessera/inspect/svg_layout.hpp>

namespace tessera {

/// A network as SVG, from its type alone: how each layer's result lies, and the bytes that the layer moves forward and backward.
///
/// `bindings` give dynamic extents their values; traffic needs all of them.
template<class Network, class... Bindings>
std::string network_svg(const Bindings&... bindings) {
  drawing to;
  struct row_value {
    std::string name;
    layout lies;
    bool moves;
    traffic_value traffic;
  };
  std::vector<row_value> rows{{"input", value_of<typename Network::input>.layout, false, {}}};
  index_t most = 1;
  for (const layer_row& l : layer_rows<Network>(bindings...)) {
    most = std::max({most, l.traffic.forward.bytes, l.traffic.backward.bytes});
    rows.push_back({l.number < 0 ? l.name : fmt::format("{} {}", l.number, l.name), l.plan.output(), true, l.traffic});
  }
  const palette colours(ranks_of(rows[0].lies.mesh));
  const double map_x = 280, bar_x = 430, bar_room = 230;
  to.text(bar_x, 26, "bytes received by all workers", 11, drawing::faint);
  double y = 40;
  for (const row_value& r : rows) {
    const layout given = detail::bound_all(r.lies, bindings...);
    const layout x = drawable(given);
    const view v = choose_view({&given}, false, 120, 64);
    to.text(16, y + 14, r.name, 13, drawing::ink, "start", true);
    to.text(16, y + 30, shape_text(given), 11);
    to.text(16, y + 45, covers_text(given), 11, drawing::faint);
    detail::draw_tiles({to, v, colours}, detail::without_windows(x), detail::holders_of(v, x), map_x, y);
    if (r.moves) {
      const auto bar = [&](double at, index_t bytes, const char* fill, const char* way) {
        to.rect(bar_x, at, bar_room * static_cast<double>(bytes) / static_cast<double>(most), 14, fill);
        to.text(bar_x + bar_room * static_cast<double>(bytes) / static_cast<double>(most) + 6, at + 11,
                bytes == 0 ? fmt::format("nothing {}", way) : fmt::format("{} {}", grouped(bytes), way), 11, drawing::faint);
      };
      bar(y + 4, r.traffic.forward.bytes, "#4477aa", "forward");
      bar(y + 23, r.traffic.backward.bytes, "#ee8833", "backward");
    }
    y += std::max(64.0, v.rows.size) + 16;
  }
  const traffic_value all = traffic<Network>(bindings...);
  to.text(
      16, y + 12,
      fmt::format("forward {} bytes, at least {}; backward {}, at least {}; busiest worker {} and {}", grouped(all.forward.bytes),
                  grouped(all.forward.lower_bound_bytes), grouped(all.backward.bytes), grouped(all.backward.lower_bound_bytes),
                  grouped(all.forward.busiest_worker_bytes), grouped(all.backward.busiest_worker_bytes)),
      11);
  return to.str();
}

}  // namespace tessera
