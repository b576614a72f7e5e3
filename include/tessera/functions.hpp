#pragma once

// Functions of tensors, as types know them, and all that a module is written with. What they compute comes with
// tessera.hpp.
#include <tessera/network.hpp>
#include <tessera/operation/function/angular_margin.hpp>
#include <tessera/operation/function/cast.hpp>
#include <tessera/operation/function/concat.hpp>
#include <tessera/operation/function/contractions.hpp>
#include <tessera/operation/function/cosine_linear.hpp>
#include <tessera/operation/function/cumsum.hpp>
#include <tessera/operation/function/elementwise.hpp>
#include <tessera/operation/function/function_layer.hpp>
#include <tessera/operation/function/indexing.hpp>
#include <tessera/operation/function/linear_cross_entropy.hpp>
#include <tessera/operation/function/losses.hpp>
#include <tessera/operation/function/normalize.hpp>
#include <tessera/operation/function/own.hpp>
#include <tessera/operation/function/pad.hpp>
#include <tessera/operation/function/pad_globe.hpp>
#include <tessera/operation/function/reductions.hpp>
#include <tessera/operation/function/rotary.hpp>
#include <tessera/operation/function/scale_gradient.hpp>
#include <tessera/operation/function/shaping.hpp>
#include <tessera/operation/function/sorting.hpp>
#include <tessera/operation/function/typed.hpp>
#include <tessera/operation/function/verbs.hpp>
#include <tessera/operation/routing/routing_losses.hpp>
