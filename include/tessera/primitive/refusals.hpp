#pragma once

#include <tessera/meta/refusal.hpp>

/// The refusals of this floor: the code, the numbers, and a sentence that says what is wrong and what to do.
namespace tessera::code {

inline constexpr reason partitions_do_not_meet{
    "tessera.compose.partition", "map",
    "what the first map delivers is not what the second takes; put a repartition between them"};
inline constexpr reason not_this_verb{
    "tessera.verb.pair", "wanted verb, found verb",
    "this verb does not lead from the first partition to the second; name the verb that does, or let `to` find it"};

}  // namespace tessera::code
