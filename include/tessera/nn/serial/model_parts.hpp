#pragma once

#include <tessera/nn/serial/cut_state.hpp>

#include <filesystem>
#include <string>

namespace tessera::nn {

/// The files of a model whose tensors are cut by `tensor` workers and whose layers lie on `pipe` stages: one for each
/// part of each stage, `net_tp_1_pp_2.safetensors`. A number of 1 has no place in the name.
struct model_parts {
  int tensor = 1;
  int pipe = 1;
  cut_table cuts = {};          ///< where layers are cut
  path_table<int> stages = {};  ///< on which stage layers lie; where there are several, each layer has a row

  /// What a file has in its name behind that of the whole model's.
  std::string suffix(int part, int stage) const;
  /// The path of a file, of that of the whole model's.
  std::filesystem::path path_of(const std::filesystem::path& whole, int part, int stage) const;
  /// The stage on which the layer of a key lies.
  int stage_of(const std::string& key) const;

  /// Refuses numbers of parts and tables that are not those of these tensors, of extents by key.
  void check(const std::map<std::string, std::vector<index_t>>& tensors) const;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/serial/model_parts_impl.hpp>
#endif
