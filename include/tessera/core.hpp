#pragma once

// The partition algebra: axes, meshes, partitions, plans, primitives and the static face of networks. No LibTorch, no MPI.
#include <tessera/operation/local_boxes.hpp>
#include <tessera/operation/network.hpp>
#include <tessera/operation/plan_operation.hpp>
#include <tessera/operation/typed.hpp>
#include <tessera/plan/staging.hpp>
#include <tessera/primitive/composition.hpp>
#include <tessera/version.hpp>
