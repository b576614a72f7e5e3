#pragma once

#include <tessera/comm/base/error.hpp>
#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/nn/pipeline/stage_map.hpp>

#include <algorithm>

namespace tessera::nn::engine {

TESSERA_INLINE stage_map stages_of(const std::vector<staged_node>& nodes, const std::vector<const layout*>& values,
                                   int axis, const pipeline::extent& of, const std::vector<const char*>& called) {
  stage_map m;
  m.made_in.assign(values.size(), stage_map::before);
  m.part.assign(nodes.size(), stage_map::before);
  const auto stage = [&](std::size_t v) { return stage_of(*values[v], axis); };
  const auto refuse = [&](const reason& why, index_t first, std::size_t node, index_t last = 0) {
    throw error(refusal{why, first, static_cast<index_t>(node), last}, called[node]);
  };
  // The first part of a stage from one on.
  const auto part_from = [&](int first, int of_stage, std::size_t node) {
    int part = std::max(first, 0);
    while (part < of.parts() && of.stage_of(part) != of_stage) ++part;
    if (part >= of.parts()) refuse(code::stage_goes_back, of_stage, node, of.chunks);
    return part;
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const staged_node& n = nodes[i];
    const auto all = [&](const auto& is) { return std::all_of(n.operands.begin(), n.operands.end(), is); };
    const auto gives = [&](int part) {
      m.part[i] = part;
      for (std::size_t r = 0; r < n.results; ++r) m.made_in[n.first_result + r] = part;
    };
    const bool entered = all([&](std::size_t v) { return m.made_in[v] == stage_map::before; });
    const int s = stage(n.first_result);
    if (n.moves_only && entered) {
      gives(stage_map::before);
      continue;
    }
    const bool leaves = n.moves_only && s < 0;
    if (leaves || !all([&](std::size_t v) { return m.made_in[v] != stage_map::behind; })) {
      if (!n.moves_only) refuse(code::on_no_stage, axis, i);
      gives(stage_map::behind);
      continue;
    }
    if (s < 0) refuse(code::on_no_stage, axis, i);
    const int before = m.made_in[n.operands.empty() ? n.first_result : n.operands[0]];
    const bool turns = n.moves_only && before >= 0 && before + 1 < of.parts() && of.stage_of(before + 1) == s &&
                       *values[n.operands[0]] == *values[n.first_result];
    if (n.moves_only && (turns || stage(n.operands[0]) != s)) {
      gives(part_from(before + 1, s, i));
      m.crossings.push_back({i, n.operands[0], n.first_result, before, m.part[i], turns});
      continue;
    }
    int first = 0;
    for (const std::size_t v : n.operands) {
      if (stage(v) != s) refuse(code::on_no_stage, axis, i);
      first = std::max(first, m.made_in[v]);
    }
    gives(part_from(first, s, i));
    // From an earlier chunk of its own stage: each part takes it once, in whatever order nodes stand.
    for (const std::size_t v : n.operands) {
      const auto is_kept = [&](const crossing& c) {
        return c.node == crossing::no_node && c.from == v && c.receiver == m.part[i];
      };
      if (m.made_in[v] >= 0 && m.made_in[v] < m.part[i] &&
          std::none_of(m.crossings.begin(), m.crossings.end(), is_kept))
        m.crossings.push_back({crossing::no_node, v, v, m.made_in[v], m.part[i], true});
    }
  }
  std::vector<bool> has(static_cast<std::size_t>(of.parts()));
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (m.part[i] >= 0 && m.crossing_of(i) == nullptr) has[static_cast<std::size_t>(m.part[i])] = true;
  for (int q = 0; q < of.parts(); ++q)
    if (!has[static_cast<std::size_t>(q)])
      throw error(refusal{code::stage_without_nodes, of.stage_of(q), q / of.stages});
  return m;
}

}  // namespace tessera::nn::engine
