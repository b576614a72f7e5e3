#pragma once

#include <tessera/meta/refusal.hpp>

/// What this floor refuses: the code, what is wrong and what to do, and what is told with it.
namespace tessera::code {

inline constexpr reason not_a_tiling{
    "tessera.move.tiling", "axis, dimension or none",
    "a Move starts from a tiling: an axis that is partial, or a haloed dimension, must be folded first"};
inline constexpr reason replicate_added_to_partial{
    "tessera.rule.sum", "axis, operand",
    "a whole value added to each term would be counted once for each worker; change it to partial first"};
inline constexpr reason cost_overflows{
    "tessera.cost.overflow", "",
    "more elements or bytes move than can be counted, 2^63 - 1; make the tensor or the mesh smaller"};

}  // namespace tessera::code
