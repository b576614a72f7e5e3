#pragma once

#include <tessera/meta/refusal.hpp>

/// The refusals of this floor: the code, the numbers, and a sentence that says what is wrong and what to do.
namespace tessera::code {

inline constexpr reason wrong_kind{"tessera.argument.kind", "of, place, wanted, given",
                                   "a template takes another kind of type here; give it the one that the verdict "
                                   "wants, in place of the one it was given"};
inline constexpr reason list_full{
    "tessera.list.full", "most",
    "a list of fixed length is full (axes, dimensions, operands, parameters, windows); name fewer"};

}  // namespace tessera::code
