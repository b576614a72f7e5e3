#pragma once

#include <tessera/nn/serial/model_parts.hpp>

namespace tessera::nn {

TESSERA_INLINE std::string model_parts::suffix(int part, int stage) const {
  if (part < 0 || part >= tensor || stage < 0 || stage >= pipe)
    throw error(refusal{code::path_value_wrong},
                fmt::format("part {} of {}, stage {} of {}", part, tensor, stage, pipe));
  return (tensor > 1 ? fmt::format("_tp_{}", part) : "") + (pipe > 1 ? fmt::format("_pp_{}", stage) : "");
}

TESSERA_INLINE std::filesystem::path model_parts::path_of(const std::filesystem::path& whole, int part,
                                                          int stage) const {
  std::filesystem::path name = whole.stem();
  name += suffix(part, stage) + whole.extension().string();
  return whole.parent_path() / name;
}

TESSERA_INLINE int model_parts::stage_of(const std::string& key) const {
  if (pipe == 1) return 0;
  const std::string layer = engine::layer_of_key(key);
  const int* const stage = stages.find(layer);
  if (stage == nullptr) throw error(refusal{code::path_without_row}, fmt::format("'{}' is on no stage", layer));
  if (*stage < 0 || *stage >= pipe)
    throw error(refusal{code::path_value_wrong}, fmt::format("'{}' is on stage {} of {}", layer, *stage, pipe));
  return *stage;
}

TESSERA_INLINE void model_parts::check(const std::map<std::string, std::vector<index_t>>& tensors) const {
  if (tensor < 1 || pipe < 1)
    throw error(refusal{code::path_value_wrong}, fmt::format("{} parts of {} stages", tensor, pipe));
  engine::check_cuts(cuts, tensors);
  std::vector<std::string> keys;
  for (const auto& [key, extents] : tensors) {
    keys.push_back(key);
    static_cast<void>(stage_of(key));
  }
  stages.check(engine::layers_of_keys(keys));
}

}  // namespace tessera::nn
