#pragma once

#include <tessera/nn/parameter/check_state.hpp>
#include <tessera/nn/parameter/state_dict.hpp>
#include <tessera/tensor/verbs.hpp>

#include <algorithm>

namespace tessera::detail {

TESSERA_INLINE std::string described_tensor(const at::Tensor& t) {
  if (!t.defined()) return "undefined";
  return c10::str(t.scalar_type(), t.sizes(), t.is_meta() ? " on no device" : "",
                  t.layout() == at::kStrided ? "" : " not strided");
}

/// A number for a tensor: its element type, shape and bits.
inline std::uint64_t digest_of(const at::Tensor& t) {
  const std::string what = described_tensor(t);
  return text(what.data(), static_cast<int>(what.size())).hash ^ (readable(t) ? content_hash(t) : 0);
}

TESSERA_INLINE void agree_on_state(const team_handle& team, const nn::state_dict& state, const std::string& from) {
  std::string lines;
  for (const auto& [key, t] : state) lines += fmt::format("{} {:016x}\n", key, digest_of(t));
  const std::vector<std::uint64_t> all =
      team->collect(text(lines.data(), static_cast<int>(lines.size())).hash, "comparing state dicts");
  const auto other =
      static_cast<std::size_t>(std::find_if(all.begin(), all.end(), [&](auto h) { return h != all[0]; }) - all.begin());
  if (other == all.size()) return;
  const std::vector<std::string> texts = team->collect_text(lines);
  const auto differ = std::mismatch(texts[0].begin(), texts[0].end(), texts[other].begin(), texts[other].end()).first -
                      texts[0].begin();
  const std::size_t line = texts[0].substr(0, static_cast<std::size_t>(differ)).rfind('\n') + 1;
  std::string first;  // a key that one of them lacks comes before the other's
  for (const std::string& t : {texts[0], texts[other]})
    if (const std::string key = t.substr(line, t.find('\n', line) - line - 17);
        line < t.size() && (first.empty() || key < first))
      first = key;
  const auto rank = [&](std::size_t i) { return team->mesh().rank(team->mesh().at(static_cast<int>(i))); };
  throw error(refusal{code::copies_differ, rank(0), rank(other)}, from + first);
}

TESSERA_INLINE void check_parts(const keyed_state& all) {
  for (const auto& [key, parts] : all) {
    const nn::engine::state_tensor& first = *parts[0];
    std::map<index_t, index_t> ends;  // of the parts, by where they begin
    for (const nn::engine::state_tensor* p : parts) {
      const bool alike = p->serial_sizes() == first.serial_sizes() &&
                         p->serial().dimension == first.serial().dimension &&
                         p->stored().type() == first.stored().type();
      if (!alike || !ends.emplace(p->serial().begin, p->serial_end()).second)
        throw error(refusal{code::serial_view_wrong}, key);
    }
    index_t filled = 0;
    for (const auto& [begin, end] : ends)
      if (begin == filled) filled = end;
    if (first.serial().whole > 0 && filled != first.serial().whole) throw error(refusal{code::serial_view_wrong}, key);
  }
}

TESSERA_INLINE nn::state_dict state_of(const keyed_state& kept, bool on_host) {
  const at::NoGradGuard no_record;
  nn::state_dict all;
  for (const auto& [key, parts] : kept) {
    const bool inside = parts[0]->stored().team()->inside();
    at::TensorOptions options = parts[0]->stored().local().options().requires_grad(false);
    if (on_host) options = options.device(at::kCPU);
    const at::Tensor& serial = all[key] =
        at::empty(inside ? parts[0]->serial_sizes() : std::vector<index_t>{0}, options);
    for (const nn::engine::state_tensor* p : parts) {
      layout everywhere;  // also where the layer lies on another mesh than the network
      everywhere.mesh = p->stored().team()->mesh();
      everywhere.placements.resize(everywhere.mesh.axes.count);
      for (const dimension& d : p->stored().layout().dims) {
        dimension uncut;
        uncut.extent = d.extent;
        everywhere.dims.push(uncut);
      }
      p->compare_copies();
      const at::Tensor whole = to(everywhere, p->stored()).local();
      if (inside) p->part_of(serial).copy_(whole);
    }
  }
  return all;
}

TESSERA_INLINE void assign_from(const team_handle& team, const keyed_state& kept, const nn::state_dict& state,
                                const std::string& from) {
  if (!team->inside()) return;  // it holds no part of any
  agree_on_state(team, state, from);
  check_state(kept, state, from, described_tensor);
  for (const auto& [key, parts] : kept)
    if (const auto given = state.find(key); given != state.end())
      for (const nn::engine::state_tensor* p : parts) p->assign(p->part_of(given->second));
}

}  // namespace tessera::detail
