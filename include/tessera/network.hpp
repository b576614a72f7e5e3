#pragma once

// The algebra and what types know of operations and networks: layers, shapes, parameters and traffic. No LibTorch, no
// MPI.
#include <tessera/core.hpp>
#include <tessera/operation/adaptive_pooling.hpp>
#include <tessera/operation/attention.hpp>
#include <tessera/operation/cast.hpp>
#include <tessera/operation/embedding.hpp>
#include <tessera/operation/free_weight.hpp>
#include <tessera/operation/local_boxes.hpp>
#include <tessera/operation/peak_memory.hpp>
#include <tessera/operation/pixel_shuffle.hpp>
#include <tessera/operation/plan_operation.hpp>
#include <tessera/operation/prelu.hpp>
#include <tessera/operation/projection.hpp>
#include <tessera/operation/rrelu.hpp>
#include <tessera/operation/stored_over.hpp>
#include <tessera/operation/typed.hpp>
#include <tessera/operation/unfold.hpp>
