#pragma once

#include <tessera/primitive/refusals.hpp>

// Made by scripts/make_verdicts from primitive/refusals.hpp; a test holds the two against each other.

namespace tessera {

template <index_t... Numbers> struct partitions_do_not_meet : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.compose.partition] what the first map delivers is not what the second takes; put a repartition between them");
  }
};
template <index_t... Numbers> struct not_this_verb : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.verb.pair] this verb does not lead from the first partition to the second; name the verb that does, or let `to` find it");
  }
};

namespace detail {

template <index_t... Numbers> struct verdict_named<&code::partitions_do_not_meet, Numbers...> { using type = partitions_do_not_meet<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::not_this_verb, Numbers...> { using type = not_this_verb<Numbers...>; };

}  // namespace detail
}  // namespace tessera
