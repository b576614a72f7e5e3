#pragma once
// Layers of a serial model, and how their parameters lie once they are cut.

#include "recipe.hpp"
#include "world.hpp"

#include <tessera/operation/layer/lookup.hpp>

namespace conformance::training {

/// A layer of a serial model.
struct serial_layer {
  std::string path;
  integers extents;  ///< of its matrix as the case says it: [in, out], or [rows, features]
  bool is_table = false;
  lookup rows;               ///< of a table
  std::string cut = "none";  ///< where the layer itself says it
  bool bias = true;          ///< of a linear layer
  std::map<std::string, recipe> tensors;

  std::string key(const std::string& name) const { return path.empty() ? name : path + "." + name; }
};

serial_layer read_layer(const json& said);

/// How the parameters of a layer lie once it is cut along the axis model, by name.
std::map<std::string, layout> lying_cut(const serial_layer& l, const std::string& cut, const mesh_value& m);

}  // namespace conformance::training
