#pragma once

#include <torch/csrc/autograd/function.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace tessera::detail {

/// A node of autograd's graph, held as LibTorch's own edges hold theirs: by a shared pointer, from version 2.13 on by
/// an intrusive one.
template <class Node, class... Arguments>
auto make_node(Arguments&&... arguments) {
  using held = decltype(torch::autograd::Edge::function);
  if constexpr (std::is_same_v<held, std::shared_ptr<torch::autograd::Node>>)
    return std::make_shared<Node>(std::forward<Arguments>(arguments)...);
  else return c10::make_intrusive<Node>(std::forward<Arguments>(arguments)...);
}

}  // namespace tessera::detail
