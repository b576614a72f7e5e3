#pragma once
// LibTorch's optimizers by name, with the options of a case.

#include "../cases.hpp"

#include <torch/optim/optimizer.h>

namespace conformance::training {

/// An optimizer that steps some tensors, by a case's name and options.
std::unique_ptr<torch::optim::Optimizer> optimizer_of(const std::string& name, const json& options,
                                                      const std::vector<at::Tensor>& steps);

/// Its state of a tensor under LibTorch's names.
std::map<std::string, at::Tensor> state_of_step(const torch::optim::Optimizer& optimizer, const at::Tensor& stepped);

}  // namespace conformance::training
