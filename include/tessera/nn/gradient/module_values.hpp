#pragma once

#include <tessera/comm/team.hpp>
#include <tessera/nn/gradient/leaf_gradients.hpp>

#include <torch/nn/module.h>

#include <string>
#include <vector>

namespace tessera::nn {

/// Where the values come from with which workers begin.
enum class first_values : signed char {
  brought,  ///< the first worker's
  compared  ///< each worker's own, which must be equal to the bit
};

namespace engine {

/// The parameters of a module that have gradients, in its order. One that a module has under several names counts once,
/// under the first.
std::vector<named_leaf> trained_leaves(const torch::nn::Module& module);

/// How many they are, without a list of their names.
std::size_t count_trained(const torch::nn::Module& module);

/// Parameters and buffers of a module, in its order, each once.
std::vector<named_leaf> state_tensors(const torch::nn::Module& module);

/// The axes of a mesh that have these names, a bit for each; all of them where none is named.
unsigned axes_named(const mesh_value& mesh, const std::vector<std::string>& names);

/// Adds what of a module is not trained: parameters without a gradient, and buffers, of which each worker has its own.
void add_standing(const team_handle& team, const torch::nn::Module& module, std::vector<state_value>& values);

/// What all workers get of what lies on the first.
at::Tensor from_first(const team_handle& team, const at::Tensor& mine);

/// Compares names, elements and shapes of tensors, and lets all workers begin with the same values. Throws on all of
/// them where something differs, and names it.
void begin_alike(const team_handle& team, const std::vector<named_leaf>& tensors, first_values how);

}  // namespace engine

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/module_values_impl.hpp>
#endif
