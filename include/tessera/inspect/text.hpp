#pragma once

#include <tessera/comm/base/format_text.hpp>
#include <tessera/inspect/messages.hpp>
#include <tessera/plan/phase.hpp>
#include <tessera/primitive/verb.hpp>

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace tessera {

namespace engine {

/// The letters of a text, which lives as long as the program.
inline std::string_view chars_of(const text& t) { return {t.data, static_cast<std::size_t>(t.size)}; }

}  // namespace engine

/// "[0,4)"
inline std::string text_of(const engine::interval& i) { return fmt::format("[{},{})", i.lo, i.hi); }

/// "[0,4)x[2,7)"
inline std::string text_of(const box& b) {
  std::string s;
  for (int d = 0; d < b.count; ++d) s += (d == 0 ? "" : "x") + text_of(b[d]);
  return b.empty() ? "()" : s;
}

/// "2x2": the extents of a mesh; "row 2 x col 2" with names.
inline std::string text_of(const mesh_value& m, bool names = true) {
  std::string s;
  for (int a = 0; a < m.axes.count; ++a)
    s += (a == 0  ? ""
          : names ? " x "
                  : "x") +
         (names ? fmt::format("{} {}", engine::chars_of(m.axes[a].name), m.axes[a].extent)
                : fmt::format("{}", m.axes[a].extent));
  return m.axes.empty() ? "1 worker" : s;
}

namespace engine {

/// Where a mesh sits in the world, if not row-major from 0: "from worker 2", "from worker 4 by 1, 2", "on workers 3,
/// 1".
inline std::string world_ranks_text(const mesh_value& m, int most = 8) {
  const auto list = [&](int n, const auto& item) {
    std::string s;
    for (int i = 0; i < n && i < most; ++i) s += fmt::format("{}{}", i == 0 ? "" : ", ", item(i));
    return n > most ? s + ", …" : s;
  };
  if (m.ranks != nullptr) return "on workers " + list(m.size(), [&](int i) { return m.rank(m.at(i)); });
  if (m == row_major(m, m.first)) return m.first == 0 ? "" : fmt::format("from worker {}", m.first);
  return fmt::format("from worker {} by ", m.first) + list(m.axes.count, [&](int i) { return m.axes[i].stride; });
}

/// "64", or the name of a dynamic extent.
inline std::string extent_text(const dimension& d) {
  return d.extent != dynamic ? fmt::format("{}", d.extent)
         : d.tag.size > 0    ? std::string(engine::chars_of(d.tag))
                             : "?";
}

/// "batchx1x8x8": the global shape.
inline std::string shape_text(const layout& x) {
  std::string s;
  for (int d = 0; d < x.dims.count; ++d) s += (d == 0 ? "" : "x") + extent_text(x.dims[d]);
  return x.dims.empty() ? "scalar" : s;
}

/// "blocks(row, col)", "grains of 16(row)", "zigzag(row)", "haloed(row)", "whole"; axes that cut together are
/// "row*col".
inline std::string cover_text(const layout& x, int d) {
  std::string axes;
  for (int l = 0; l < x.levels(d); ++l) {
    const int a = x.cutter(d, l);
    axes += (l == 0 ? "" : x.placements[a].joined ? "*" : ", ") + std::string(engine::chars_of(x.mesh.axes[a].name));
  }
  const dimension& dim = x.dims[d];
  if (axes.empty()) return dim.kind == cover::tiled ? "whole" : dim.kind == cover::haloed ? "haloed" : "pending";
  if (dim.turned != 0) axes += fmt::format(" + {}", dim.turned);
  if (dim.kind == cover::haloed) return "haloed(" + axes + ")";
  if (dim.kind == cover::pending) return "pending(" + axes + ")";
  if (dim.bounds != nullptr) return "lengths(" + axes + ")";
  if (dim.zigzag) return dim.grain() > 1 ? fmt::format("zigzag of {}({})", dim.grain(), axes) : "zigzag(" + axes + ")";
  return dim.grain() > 1 ? fmt::format("grains of {}({})", dim.grain(), axes) : "blocks(" + axes + ")";
}

/// The name of a placement.
inline const char* placement_name(placement r) {
  constexpr const char* names[]{"replicate", "partial", "invariant", "on", "cut"};
  return names[static_cast<int>(r)];
}

/// The name by which terms combine.
inline const char* combine_text(combine c) {
  constexpr const char* names[]{"sum", "max", "min", "prod", "any", "all"};
  return names[static_cast<int>(c)];
}

/// The sign between terms that combine so: truth values like numbers, any the largest and all the least.
inline const char* combine_sign(combine c) {
  constexpr const char* signs[]{"+", "∨", "∧", "×", "∨", "∧"};
  return signs[static_cast<int>(c)];
}

/// The text behind an axis in its placement: the coordinate that holds the tensor, or how terms combine unless they are
/// added.
inline std::string role_detail(const axis_placement& r) {
  if (r.kind == placement::on) return fmt::format(" = {}", r.coordinate);
  return r.kind == placement::partial && r.with != combine::sum ? fmt::format(" {}", combine_text(r.with)) : "";
}

/// How a tensor lies, without numbers: "blocks(row, col)" a dimension, then the placements but replicate.
inline std::string covers_text(const layout& x) {
  std::string s;
  for (int d = 0; d < x.dims.count; ++d) s += (d == 0 ? "" : " ") + cover_text(x, d);
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind != placement::cut && x.placements[a].kind != placement::replicate)
      s += fmt::format(" {}({}{})", placement_name(x.placements[a].kind), engine::chars_of(x.mesh.axes[a].name),
                       role_detail(x.placements[a]));
  return s;
}

}  // namespace engine

/// The parts of one dimension, by coordinate: "[0,4) [4,7) [7,10)"; two intervals of one worker are joined by +.
inline std::string parts_text(const layout& x, int d, int most = 8) {
  const engine::parts p(x, d);
  std::string s;
  for (int k = 0; k < p.count(); ++k) {
    if (k == most) return s + fmt::format(" … {} parts", p.count());
    const engine::intervals held = p.held(p.by_number(k));
    s += (k == 0 ? "" : " ") + text_of(held[0]);
    if (held.count > 1) s += "+" + text_of(held[1]);
  }
  return s;
}

/// A layout in the notation for people: "10x4 over a 3 = [0,4) [4,7) [7,10) by a, whole".
inline std::string text_of(const layout& x) {
  const std::string where = engine::world_ranks_text(x.mesh);
  std::string s =
      fmt::format("{} over {}{}{} =", engine::shape_text(x), text_of(x.mesh), where.empty() ? "" : " ", where);
  for (int d = 0; d < x.dims.count; ++d) {
    s += d == 0 ? " " : ", ";
    const bool shown = (x.levels(d) > 0 || x.dims[d].kind != cover::tiled) && x.dims[d].extent != dynamic &&
                       x.dims[d].bounds != engine::learned;
    s += shown ? fmt::format("{} {}", engine::cover_text(x, d), parts_text(x, d)) : engine::cover_text(x, d);
  }
  if (x.dims.empty()) s += " a number";
  for (const placement kind : {placement::replicate, placement::partial, placement::invariant, placement::on}) {
    std::string axes;
    for (int a = 0; a < x.placements.count; ++a)
      if (x.placements[a].kind == kind)
        axes += (axes.empty() ? "" : ", ") + std::string(engine::chars_of(x.mesh.axes[a].name)) +
                engine::role_detail(x.placements[a]);
    if (!axes.empty()) s += fmt::format("; {}({})", engine::placement_name(kind), axes);
  }
  return s;
}

/// A tensor type in the same notation.
template <TensorType T>
std::string text_of() {
  return text_of(value_of<T>.layout);
}

namespace engine {

/// The messages of a plan, one a line: "0 -> 2: [0,4)x[2,7)". A worker's own box is left out.
inline std::string messages_text(const transfer& plan, int most = 64) {
  std::string s;
  int lines = 0;
  each_message(plan, [&](const message& m) {
    if (lines++ < most) s += fmt::format("  {} -> {}: {}\n", m.from, m.to, text_of(m.where));
  });
  if (lines > most) s += fmt::format("  … {} messages\n", lines);
  return s;
}

/// One transfer: what it is and costs, in elements, and its messages.
inline std::string transfer_text(const transfer& plan, int most = 64) {
  const cost c = cost_of(plan);
  return fmt::format("{} ({}): {} elements in {} messages, busiest worker {}, lower bound {}\n",
                     plan.kind() == map::move ? "move" : "fold", name_of(collective_of(plan)), c.total, c.messages,
                     c.busiest, c.lower_bound) +
         messages_text(plan, most);
}

}  // namespace engine

/// A plan as text: its verb, its transfers with kind and cost in elements, and their messages. Two transfers that share
/// a phase also have their joint cost.
inline std::string plan_text(const layout& from, const layout& to) {
  std::string s = fmt::format("{}\n  from {}\n  to   {}\n", engine::name_of(engine::verb_between(from, to)),
                              text_of(from), text_of(to));
  const change c = change_between(from, to);
  for (const engine::step& st : c.steps) s += engine::transfer_text(st.plan());
  if (phases_of(c).count == c.steps.count) return s;
  const cost both = engine::cost_of(c);
  return s + fmt::format(
                 "both in one phase, each worker adds up what it will have: {} elements in {} messages, busiest worker "
                 "{}\n",
                 both.total, both.messages, both.busiest);
}

}  // namespace tessera
