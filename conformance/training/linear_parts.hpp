#pragma once
// Linear layers whose tensors lie as a case says: links of the library's plan, and how a run judges a chain of them.

#include "attempt.hpp"

#include "../layers.hpp"

namespace conformance::training {

/// How the tensors of a linear layer lie; the weight is [out, in].
struct linear_tensors {
  layout x;
  layout weight;
  std::optional<layout> bias;
  std::optional<layout> y;  ///< as the layer gives it where nothing is said
};

/// What a case calls the parameters of a layer.
struct linear_names {
  std::string weight;
  std::string bias;
};

/// How a layer's parameters lie in a world, of a weight that is stored [out, in] or [in, out].
linear_tensors lying_in(world& w, const linear_names& named, const recipe& weight, const std::optional<recipe>& bias,
                        bool in_out);

/// How y = x wᵀ lies where axes cut its features as they cut the weight's outputs, and its samples as they cut those of
/// x.
layout between(const layout& x, const layout& weight);

/// The link of a linear layer. An axis that cuts outputs or inputs of the weight cuts the product so; one that cuts
/// samples of x and y as well only stores the weight in tiles.
link linear_link(const linear_tensors& lie);

/// What links move in both directions, in elements received by all workers.
json received_by_all(const std::vector<link>& links);

/// A linear layer of a case: its link, and its parameters.
struct linear_part {
  link of;
  recipe weight;
  std::optional<recipe> bias;
  bool in_out = false;  ///< the weight is stored [in, out]
  linear_names named;
};

/// What goes into layers, and what is expected of them.
struct linear_question {
  recipe x;
  std::optional<recipe> cotangent;
  std::optional<numbers> y;
  std::map<std::string, numbers> gradients;
  std::string activation = "none";  ///< between two layers
};

/// An elementwise function by its name in the file.
tensor<dyn> activated(const std::string& name, const tensor<dyn>& x);

/// Throws `unbuilt` for a gradient that is expected of something that is not there.
void check_names(const linear_question& asked, const std::vector<linear_part>& parts);

/// Runs layers one after the other forward and backward, and judges the result and the gradients.
void run_linear(attempt& a, const std::vector<linear_part>& parts, const linear_question& asked);

}  // namespace conformance::training
