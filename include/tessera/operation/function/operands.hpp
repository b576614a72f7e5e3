#pragma once

#include <tessera/topology/tensor_type.hpp>

namespace tessera {

/// A tensor that workers share, by its type or by its value, or what stands for one while a program is made.
template <class X>
concept DistributedTensor =
    TensorType<X> || engine::kind_of<X> == kind::dynamic_tensor || engine::kind_of<X> == kind::flow;

namespace engine {

/// A tensor of any kind; functions refuse LibTorch's.
template <class X>
concept AnyTensor = DistributedTensor<X> || kind_of<X> == kind::libtorch_tensor;

}  // namespace engine

}  // namespace tessera
