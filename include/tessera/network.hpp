#pragma once

// The algebra and what types know of operations and networks: layers, shapes, parameters and traffic. No LibTorch, no
// MPI.
#include <tessera/core.hpp>
#include <tessera/operation/attention/attention.hpp>
#include <tessera/operation/attention/neighbourhood_attention.hpp>
#include <tessera/operation/fourier/spectral_conv.hpp>
#include <tessera/operation/function/typed.hpp>
#include <tessera/operation/layer/adaptive_pooling.hpp>
#include <tessera/operation/layer/cast.hpp>
#include <tessera/operation/layer/embedding.hpp>
#include <tessera/operation/layer/free_weight.hpp>
#include <tessera/operation/layer/pixel_shuffle.hpp>
#include <tessera/operation/layer/prelu.hpp>
#include <tessera/operation/layer/projection.hpp>
#include <tessera/operation/layer/rrelu.hpp>
#include <tessera/operation/layer/unfold.hpp>
#include <tessera/operation/network/multiply_adds.hpp>
#include <tessera/operation/network/peak_memory.hpp>
#include <tessera/operation/network/replace.hpp>
#include <tessera/operation/network/sharded_parameters.hpp>
#include <tessera/operation/plan/plan_operation.hpp>
#include <tessera/operation/routing/combine.hpp>
#include <tessera/operation/routing/route.hpp>
#include <tessera/operation/rule/local_boxes.hpp>
