#pragma once

#include <tessera/nn/parameter/state_dict.hpp>

#include <torch/nn/module.h>

#include <concepts>

namespace tessera::nn {

/// The parameters and buffers of a module of LibTorch under its keys, which `assign` gives to a network: the tensors
/// themselves, on this worker alone.
template <std::derived_from<torch::nn::Module> Module>
state_dict state_of(const Module& serial, call_site = call_site::here()) {
  state_dict all;
  for (const auto& one : serial.named_parameters()) all[one.key()] = one.value();
  for (const auto& one : serial.named_buffers()) all[one.key()] = one.value();
  return all;
}

}  // namespace tessera::nn
