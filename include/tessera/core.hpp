#pragma once

// The partition algebra: axes, meshes, partitions, plans and primitives. No layers (network.hpp), no LibTorch, no MPI.
#include <tessera/primitive/composition.hpp>
#include <tessera/version.hpp>
