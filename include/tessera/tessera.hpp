#pragma once

// Everything: the algebra, transports, distributed LibTorch tensors, layers and losses.
#include <tessera/network.hpp>
#include <tessera/nn/copies.hpp>
#include <tessera/nn/cross_entropy.hpp>
#include <tessera/nn/grad_norm.hpp>
#include <tessera/nn/network.hpp>
#include <tessera/nn/reduce_gradients.hpp>
#include <tessera/nn/state_dict.hpp>
#include <tessera/nn/with_indices.hpp>
#include <tessera/tensor/adopt.hpp>
#include <tessera/tensor/launch.hpp>
#include <tessera/tensor/operations.hpp>
#include <tessera/tensor/random.hpp>
#include <tessera/tensor/shift.hpp>
#include <tessera/tensor/start.hpp>
