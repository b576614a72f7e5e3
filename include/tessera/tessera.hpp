#pragma once

// What programs of types need: the algebra, transports, distributed LibTorch tensors, functions, layers, losses, state
// dicts. Apart stand files (nn/weights_file.hpp), programs that are put together while they run (nn/program_parts.hpp)
// and their files (nn/network_file.hpp), devices (comm/nccl/over_nccl.hpp, tensor/staged_transport.hpp) and all that
// prints (inspect/).
#include <tessera/network.hpp>
#include <tessera/nn/copies.hpp>
#include <tessera/nn/cross_entropy.hpp>
#include <tessera/nn/grad_norm.hpp>
#include <tessera/nn/network.hpp>
#include <tessera/nn/reduce_gradients.hpp>
#include <tessera/nn/state_dict.hpp>
#include <tessera/nn/with_indices.hpp>
#include <tessera/tensor/adopt.hpp>
#include <tessera/tensor/generator.hpp>
#include <tessera/tensor/launch.hpp>
#include <tessera/tensor/operations.hpp>
#include <tessera/tensor/random.hpp>
#include <tessera/tensor/shift.hpp>
#include <tessera/tensor/start.hpp>
