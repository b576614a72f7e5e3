#pragma once

// Functions of tensors, as types know them, and all that a module is written with. What they compute comes with
// tessera.hpp.
#include <tessera/network.hpp>
#include <tessera/operation/functions/cast.hpp>
#include <tessera/operation/functions/concat.hpp>
#include <tessera/operation/functions/contractions.hpp>
#include <tessera/operation/functions/elementwise.hpp>
#include <tessera/operation/functions/function_layer.hpp>
#include <tessera/operation/functions/losses.hpp>
#include <tessera/operation/functions/own.hpp>
#include <tessera/operation/functions/pad.hpp>
#include <tessera/operation/functions/reductions.hpp>
#include <tessera/operation/functions/scale_gradient.hpp>
#include <tessera/operation/functions/shaping.hpp>
#include <tessera/operation/functions/verbs.hpp>
#include <tessera/operation/typed.hpp>
