#pragma once

#include <tessera/nn/parameter/state_dict.hpp>
#include <tessera/nn/serial/path_table.hpp>
#include <tessera/plan/interval.hpp>

#include <string>
#include <vector>

namespace tessera::nn {

/// Where a layer of a serial model is cut: each of its tensors that has the dimension is cut along it, others are
/// whole.
///
/// Dimension 0 cuts weight and bias of a linear layer, dimension 1 its weight alone.
struct cut_along {
  int dimension = 0;
  index_t joined = 1;  ///< tensors that lie end to end along it, each of which is cut: 3 of queries, keys, values
};

/// The layers of a serial model that are cut, and where; those of no row are whole. A layer's path is that of its
/// tensors' keys: `blocks.0.fc1` has `blocks.0.fc1.weight`.
using cut_table = path_table<cut_along>;

/// The part of a whole state that worker `part` of `parts` has: of n elements those from cut(n, parts, part) on.
state_dict cut_state(const state_dict& whole, const cut_table& table, int parts, int part);

/// The whole state of all its parts, in their order, which undoes `cut_state` of the same table. Refuses parts that are
/// none of one state.
state_dict joined_state(const std::vector<state_dict>& parts, const cut_table& table);

namespace engine {

/// The path of the layer that has a key.
std::string layer_of_key(const std::string& key);
/// The layers that have these keys.
std::vector<std::string> layers_of_keys(const std::vector<std::string>& keys);

/// How a tensor of a layer is cut: whole where `joined` is 0.
cut_along cut_of_tensor(const cut_table& table, const std::string& key, std::size_t dimensions);

/// Refuses a table that is not one of these tensors, of extents by key: each row cuts one at least.
void check_cuts(const cut_table& table, const std::map<std::string, std::vector<index_t>>& tensors);

/// The elements along the dimension of a cut that a part has: an interval of each of the joined tensors.
std::vector<tessera::engine::interval> cut_intervals(index_t extent, const cut_along& cut, int parts, int part);

}  // namespace engine

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/serial/cut_state_impl.hpp>
#endif
