#pragma once

#include <tessera/nn/network/placed_layer.hpp>

#include <functional>
#include <string>
#include <vector>

namespace tessera::nn {

class program;

}  // namespace tessera::nn

namespace tessera::detail {

/// Notes what run time needs of layers that are values.
struct building {
  using record = nn::engine::node_record;
  using program_type = nn::program;
};

}  // namespace tessera::detail

namespace tessera::nn {

/// A flow of a program that is put together while it runs.
using dynamic_flow = flow<tensor<dyn>, tessera::detail::building>;

/// A layer as a program reads it: its place in the keys of parameters, and its name, such as "linear".
struct read_layer {
  std::string path;
  const char* name = nullptr;
};

namespace engine {

/// A part that a program reads in place of the layers for which a predicate holds.
struct replacement {
  std::function<bool(const read_layer&)> holds;
  std::function<std::vector<dynamic_flow>(const std::vector<dynamic_flow>& x, bool numbered)> add;
};

/// An input or an output of a network: its name, if given, and its tensor. The tensor's lists live as long as the
/// program or a network of it.
struct program_end {
  std::string name;
  tensor_value is;
};

}  // namespace engine

}  // namespace tessera::nn
