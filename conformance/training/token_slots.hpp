#pragma once
// Slots of experts: which choice of which token lies in which.

#include "../cases.hpp"

#include <ATen/ATen.h>

namespace conformance::training {

/// Tokens in groups, each of which has so many slots of every expert.
struct slot_form {
  index_t experts = 0;
  index_t choices = 0;
  index_t slots = 0;
};

/// The choices that a worker's groups of tokens found a slot for, in a list.
struct slotted {
  at::Tensor token;   ///< of this worker
  at::Tensor choice;  ///< token · choices + number of the choice
  at::Tensor slot;    ///< in [experts, groups, slots], row-major
  at::Tensor kept;    ///< how many of each expert, in double
  index_t dropped = 0;
};

/// Fills slots by first choices before second ones, tokens in order. `chosen` is [tokens, choices], groups are runs of
/// tokens.
slotted fill_slots(const at::Tensor& chosen, const integers& group_sizes, const slot_form& form);

}  // namespace conformance::training
