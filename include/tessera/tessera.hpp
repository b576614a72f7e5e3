#pragma once

// What programs of types need: the algebra, transports, distributed LibTorch tensors, functions, layers, losses, state
// dicts. Apart stand files (nn/file/weights_file.hpp), samples (nn/data/loader.hpp), programs that are put together
// while they run (nn/network/program_parts.hpp) and their files (nn/file/network_file.hpp), modules of LibTorch that
// are data parallel (nn/gradient/data_parallel.hpp), devices (comm/nccl/over_nccl.hpp,
// tensor/device/staged_transport.hpp) and all that prints (inspect/).
#include <tessera/network.hpp>
#include <tessera/nn/layer/cross_entropy.hpp>
#include <tessera/nn/layer/with_indices.hpp>
#include <tessera/nn/network/check_replicas.hpp>
#include <tessera/nn/network/network.hpp>
#include <tessera/nn/parameter/grad_norm.hpp>
#include <tessera/nn/parameter/reduce_gradients.hpp>
#include <tessera/nn/parameter/state_dict.hpp>
#include <tessera/tensor/from_local.hpp>
#include <tessera/tensor/generator.hpp>
#include <tessera/tensor/launch.hpp>
#include <tessera/tensor/operations.hpp>
#include <tessera/tensor/overlap.hpp>
#include <tessera/tensor/random.hpp>
#include <tessera/tensor/ring_shift.hpp>
