#pragma once

#include <tessera/inspect/messages.hpp>
#include <tessera/plan/change.hpp>

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace tessera {

namespace engine {

/// A string as JSON writes it.
inline std::string json_string(std::string_view s) {
  std::string q = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') q += '\\';
    if (static_cast<unsigned char>(c) < 0x20) q += fmt::format("\\u{:04x}", static_cast<int>(c));
    else q += c;
  }
  return q + '"';
}

/// "[[5, 10], [0, 2]]": an interval for each dimension, in global indices.
inline std::string json_of(const box& b) {
  std::string s = "[";
  for (int d = 0; d < b.count; ++d) s += fmt::format("{}[{}, {}]", d == 0 ? "" : ", ", b[d].lo, b[d].hi);
  return s + "]";
}

/// "[3, 0, [[5, 10], [0, 2]]]": sender, receiver, box.
inline std::string json_of(const message& m) { return fmt::format("[{}, {}, {}]", m.from, m.to, json_of(m.where)); }

}  // namespace engine

/// A plan as one line of JSON: its kind, bytes and messages, which are the fields of an answer in the format of plan
/// files.
///
/// bytes_received has an entry for each rank of the world; `first` are fields that come before, such as the case's id.
inline std::string plan_json(const engine::transfer& plan, int world, index_t element_bytes,
                             std::string_view first = {}) {
  std::vector<index_t> received(static_cast<std::size_t>(world), 0);
  index_t total = 0;
  std::string messages;
  engine::each_message(plan, [&](const engine::message& m) {
    const index_t bytes = engine::volume(m.where) * element_bytes;
    received[static_cast<std::size_t>(m.to)] += bytes;
    total += bytes;
    messages += (messages.empty() ? "" : ", ") + engine::json_of(m);
  });
  std::string by_rank;
  for (index_t bytes : received) by_rank += fmt::format("{}{}", by_rank.empty() ? "" : ", ", bytes);
  return fmt::format(
      "{{{}{}\"kind\": \"{}\", \"bytes_received\": [{}], \"bytes_total\": {}, \"lower_bound\": {}, \"messages\": "
      "[{}]}}",
      first, first.empty() ? "" : ", ", engine::name_of(engine::collective_of(plan)), by_rank, total,
      engine::cost_of(plan).lower_bound * element_bytes, messages);
}

/// A change of layout: its transfers in order, each as above, also where two go in one phase.
inline std::string plan_json(const change& c, int world, index_t element_bytes) {
  std::string s;
  for (const engine::step& one : c.steps)
    s += (s.empty() ? "" : ", ") +
         plan_json(one.plan(), world, element_bytes,
                   fmt::format("\"map\": \"{}\"", one.kind == engine::map::move ? "move" : "fold"));
  return "[" + s + "]";
}

}  // namespace tessera
