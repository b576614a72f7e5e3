#pragma once

// What a typed program needs: the algebra, transports, distributed LibTorch tensors, functions, layers, losses, state
// dicts. These have headers of their own:
//
//   weight files                            nn/file/weights_file.hpp
//   networks put together at run time       nn/network/program_parts.hpp, and their files nn/file/network_file.hpp
//   data parallel modules of LibTorch       nn/gradient/data_parallel.hpp
//   pipelines of stages                     nn/pipeline/pipeline_parallel.hpp
//   readers of samples                      nn/data/
//   averages, loss scaling, checkpoints     nn/training/, nn/file/checkpoint.hpp
//   metrics and watches of a run            nn/watch/
//   devices                                 comm/nccl/over_nccl.hpp, tensor/device/staged_transport.hpp
//   printing                                inspect/
#include <tessera/network.hpp>
#include <tessera/nn/gradient/accumulation.hpp>
#include <tessera/nn/layer/class_losses.hpp>
#include <tessera/nn/layer/cross_entropy.hpp>
#include <tessera/nn/layer/indexing.hpp>
#include <tessera/nn/layer/with_indices.hpp>
#include <tessera/nn/network/check_replicas.hpp>
#include <tessera/nn/network/network.hpp>
#include <tessera/nn/parameter/grad_norm.hpp>
#include <tessera/nn/parameter/state_dict.hpp>
#include <tessera/tensor/einsum.hpp>
#include <tessera/tensor/from_local.hpp>
#include <tessera/tensor/generator.hpp>
#include <tessera/tensor/launch.hpp>
#include <tessera/tensor/operations.hpp>
#include <tessera/tensor/overlap.hpp>
#include <tessera/tensor/random.hpp>
#include <tessera/tensor/ring_shift.hpp>
#include <tessera/tensor/sorting.hpp>
