#pragma once

#include <tessera/comm/base/error.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/nn/serial/cut_state.hpp>
#include <tessera/plan/cut.hpp>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>

#include <algorithm>

namespace tessera::nn {

namespace engine {

TESSERA_INLINE std::string layer_of_key(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  return dot == key.npos ? "" : key.substr(0, dot);
}

TESSERA_INLINE std::vector<std::string> layers_of_keys(const std::vector<std::string>& keys) {
  std::vector<std::string> layers;
  for (const std::string& key : keys) layers.push_back(layer_of_key(key));
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

TESSERA_INLINE cut_along cut_of_tensor(const cut_table& table, const std::string& key, std::size_t dimensions) {
  const cut_along* const cut = table.find(layer_of_key(key));
  return cut != nullptr && static_cast<std::size_t>(cut->dimension) < dimensions ? *cut : cut_along{0, 0};
}

TESSERA_INLINE void check_cuts(const cut_table& table, const std::map<std::string, std::vector<index_t>>& tensors) {
  std::map<std::string, bool> is_cut;  // by layer
  for (const auto& [key, extents] : tensors) {
    bool& layer = is_cut[layer_of_key(key)];
    const cut_along* const row = table.find(layer_of_key(key));
    if (row == nullptr) continue;
    const cut_along cut = cut_of_tensor(table, key, extents.size());
    layer = layer || cut.joined > 0;
    if (row->dimension < 0 || row->joined < 1 ||
        (cut.joined > 0 && extents[static_cast<std::size_t>(cut.dimension)] % cut.joined != 0))
      throw error(refusal{code::path_value_wrong}, key);
  }
  std::vector<std::string> layers;
  for (const auto& [path, cut] : is_cut) {
    if (!cut && table.find(path) != nullptr) throw error(refusal{code::path_value_wrong}, path);
    layers.push_back(path);
  }
  table.check(layers);
}

TESSERA_INLINE std::vector<tessera::engine::interval> cut_intervals(index_t extent, const cut_along& cut, int parts,
                                                                    int part) {
  const index_t each = extent / cut.joined;
  const index_t lo = tessera::cut(each, parts, part), hi = tessera::cut(each, parts, part + 1);
  std::vector<tessera::engine::interval> all;
  for (index_t j = 0; j < cut.joined; ++j) all.push_back({j * each + lo, j * each + hi});
  return all;
}

inline std::map<std::string, std::vector<index_t>> extents_by_key(const state_dict& state) {
  std::map<std::string, std::vector<index_t>> all;
  for (const auto& [key, t] : state) all[key] = t.sizes().vec();
  return all;
}

/// A tensor of all its parts.
inline at::Tensor joined_tensor(const std::vector<at::Tensor>& parts, const cut_along& cut, const std::string& key) {
  const auto refuse = [&](std::size_t part) {
    throw error(refusal{code::path_value_wrong}, fmt::format("{} of part {}", key, part));
  };
  std::vector<index_t> sizes = parts[0].sizes().vec();
  const std::size_t d = static_cast<std::size_t>(cut.dimension);
  sizes[d] = 0;
  for (const at::Tensor& t : parts) sizes[d] += t.dim() > cut.dimension ? t.size(cut.dimension) : 0;
  std::vector<at::Tensor> pieces;
  for (index_t j = 0; j < cut.joined; ++j)
    for (std::size_t r = 0; r < parts.size(); ++r) {
      std::vector<index_t> wanted = sizes;
      const auto mine = cut_intervals(sizes[d], cut, static_cast<int>(parts.size()), static_cast<int>(r));
      const index_t length = mine[0].size();
      wanted[d] = length * cut.joined;
      if (sizes[d] % cut.joined != 0 || parts[r].sizes() != at::IntArrayRef(wanted) ||
          parts[r].scalar_type() != parts[0].scalar_type())
        refuse(r);
      pieces.push_back(parts[r].narrow(cut.dimension, j * length, length));
    }
  return at::cat(pieces, cut.dimension);
}

}  // namespace engine

TESSERA_INLINE state_dict cut_state(const state_dict& whole, const cut_table& table, int parts, int part) {
  if (parts < 1 || part < 0 || part >= parts)
    throw error(refusal{code::path_value_wrong}, fmt::format("part {} of {}", part, parts));
  engine::check_cuts(table, engine::extents_by_key(whole));
  state_dict mine;
  for (const auto& [key, t] : whole) {
    const cut_along cut = engine::cut_of_tensor(table, key, t.sizes().size());
    if (cut.joined == 0) {
      mine[key] = t;
      continue;
    }
    std::vector<at::Tensor> pieces;
    for (const auto& i : engine::cut_intervals(t.size(cut.dimension), cut, parts, part))
      pieces.push_back(t.narrow(cut.dimension, i.lo, i.size()));
    mine[key] = at::cat(pieces, cut.dimension);
  }
  return mine;
}

TESSERA_INLINE state_dict joined_state(const std::vector<state_dict>& parts, const cut_table& table) {
  if (parts.empty()) throw error(refusal{code::path_value_wrong}, "no part");
  engine::check_cuts(table, engine::extents_by_key(parts[0]));
  state_dict whole;
  for (const auto& [key, first] : parts[0]) {
    std::vector<at::Tensor> all;
    for (std::size_t r = 0; r < parts.size(); ++r) {
      const auto found = parts[r].find(key);
      if (found == parts[r].end() || parts[r].size() != parts[0].size())
        throw error(refusal{code::other_parameters, static_cast<index_t>(parts[0].size()),
                            static_cast<index_t>(parts[r].size())},
                    fmt::format("{} of part {}", key, r));
      all.push_back(found->second);
    }
    const cut_along cut = engine::cut_of_tensor(table, key, first.sizes().size());
    if (cut.joined > 0) {
      whole[key] = engine::joined_tensor(all, cut, key);
      continue;
    }
    for (std::size_t r = 1; r < all.size(); ++r)
      if (all[r].scalar_type() != first.scalar_type() || !at::equal(all[r], first))
        throw error(refusal{code::copies_differ, 0, static_cast<index_t>(r)}, key);
    whole[key] = first;
  }
  return whole;
}

}  // namespace tessera::nn
