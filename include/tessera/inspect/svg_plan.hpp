#pragma once

#include <tessera/inspect/draw_plan.hpp>
#include <tessera/inspect/svg_layout.hpp>
#include <tessera/plan/change.hpp>

namespace tessera {

namespace detail {

// The messages in columns, if they are few.
inline double draw_messages(drawing& to, const transfer& plan, const palette& colours, double x0, double y0) {
  const std::vector<message> all = messages_of(plan);
  if (all.empty()) return y0;
  if (all.size() > 30) {
    to.text(x0, y0 + 12, fmt::format("{} messages", all.size()), 11, drawing::faint);
    return y0 + 20;
  }
  double step = 0;
  for (const message& m : all) step = std::max(step, 74 + drawing::width_of(text_of(m.where), 11));
  const std::size_t across =
      std::max<std::size_t>(1, static_cast<std::size_t>((std::max(to.width(), 560.0) - x0) / (step + 24)));
  const std::size_t rows = (all.size() + across - 1) / across;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double x = x0 + (step + 24) * static_cast<double>(i / rows), y = y0 + 12 + 20 * static_cast<double>(i % rows);
    to.chip(x + 12, y, all[i].from, colours.of(all[i].from));
    to.text(x + 34, y + 4, "→", 12, drawing::faint, "middle");
    to.chip(x + 56, y, all[i].to, colours.of(all[i].to));
    to.text(x + 74, y + 4, text_of(all[i].where), 11);
  }
  return y0 + 12 + 20 * static_cast<double>(rows);
}

// One transfer from y0 on: where it ends.
inline double draw_transfer(drawing& to, const transfer& plan, double y0) {
  const bool move = plan.kind() == map::move;
  const layout& tiling = plan.source().of;
  const layout& composed = plan.target().of;
  std::vector<int> ranks = ranks_of(tiling.mesh);
  for (int rank : ranks_of(composed.mesh)) ranks.push_back(rank);
  const palette colours(ranks);
  const view v = choose_view({&tiling, &composed}, true, 320, 240, disjoint(plan) ? 12 : 5);
  const sheet s{to, v, colours};
  const cost c = cost_of(plan);

  to.text(16, y0 + 16, fmt::format("{}: {}", move ? "Move" : "Fold", name_of(collective_of(plan))), 15, drawing::ink,
          "start", true);
  to.text(16, y0 + 34,
          fmt::format("{} elements in {} {}, the busiest worker receives {}, lower bound {}", c.total, c.messages,
                      c.messages == 1 ? "message" : "messages", c.busiest, c.lower_bound),
          12, drawing::faint);
  const double top = y0 + 52;
  const holders held = holders_of(v, tiling);
  double bottom = top;
  const auto draw_tiling = [&](double x) {
    const double left = x + names_room(v, tiling), y = top + 32;
    draw_tiles(s, tiling, held, left, y);
    draw_edges(s, tiling, left, y);
    return area{left, y, v.columns.size, v.rows.size};
  };
  const auto draw_other = [&](double x) { return draw_composed(s, plan, x, top); };
  const layout from = move ? tiling : cotangent(composed), target = move ? composed : cotangent(tiling);
  const auto note = [&](const layout& x, const area& a) {
    std::vector<std::string> lines = notes_of(v, x, holders_of(v, x));
    std::erase_if(lines, [](const std::string& l) { return l.starts_with("hatched"); });
    const area notes = draw_notes(to, lines, a.x, a.y + a.h + 20, std::max(280.0, a.w));
    bottom = std::max(bottom, notes.y + notes.h);
    return a.x + std::max(a.w, notes.w);
  };
  const area first = move ? draw_tiling(16) : draw_other(16);
  const double middle = note(from, first) + 36;
  const double at = top + 60;
  to.path(fmt::format("M{} {}h26v-6l14 10l-14 10v-6h-26z", pixels(middle - 20), pixels(at)), "#c3cad4");
  const area second = move ? draw_other(middle + 36) : draw_tiling(middle + 36);
  note(target, second);
  // What full and pale colours mean.
  double x = 16;
  const auto key = [&](double opacity, const char* number, const char* says) {
    to.rect(x, bottom + 4, 18, 14, "#4477aa", opacity);
    to.text(x + 9, bottom + 14.5, number, 10, "#ffffff", "middle", true);
    to.text(x + 24, bottom + 15, says, 11, drawing::faint);
    x += 48 + drawing::width_of(says, 11);
  };
  if (c.total > 0)
    key(1, "0",
        move ? "arrives: colour and number of the sender" : "is sent and added: colour and number of the receiver");
  key(0.3, "", move ? "held already" : "kept");
  return draw_messages(to, plan, colours, 16, bottom + 30);
}

}  // namespace detail

/// A plan as SVG: source and target side by side, each box in the colour of the worker at the other end. A few messages
/// are listed below.
inline std::string svg_of(const engine::transfer& plan, std::string_view title = {}) {
  engine::drawing to;
  if (!title.empty()) to.text(16, 24, title, 12, engine::drawing::faint);
  detail::draw_transfer(to, plan, title.empty() ? 8 : 26);
  return to.str();
}

/// A change of layout: its transfers one below the other, also where two go in one phase.
inline std::string svg_of(const change& c) {
  engine::drawing to;
  double y = 8;
  if (c.steps.empty()) to.text(16, 24, "nothing moves", 15, engine::drawing::ink, "start", true);
  for (const engine::step& s : c.steps) y = detail::draw_transfer(to, s.plan(), y) + 28;
  return to.str();
}

}  // namespace tessera
