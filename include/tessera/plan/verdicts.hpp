#pragma once

#include <tessera/plan/refusals.hpp>

// Made by scripts/make_verdicts from plan/refusals.hpp; a test holds the two against each other.

namespace tessera {

template <index_t... Numbers> struct not_a_tiling : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.move.tiling] a Move starts from a tiling: an axis that is partial, or a haloed dimension, must be folded first");
  }
};
template <index_t... Numbers> struct replicate_added_to_partial : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.sum] a whole value added to each term would be counted once for each worker; change it to partial first");
  }
};
template <index_t... Numbers> struct cost_overflows : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.cost.overflow] more elements or bytes move than can be counted, 2^63 - 1; make the tensor or the mesh smaller");
  }
};

namespace detail {

template <index_t... Numbers> struct verdict_named<&code::not_a_tiling, Numbers...> { using type = not_a_tiling<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::replicate_added_to_partial, Numbers...> { using type = replicate_added_to_partial<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::cost_overflows, Numbers...> { using type = cost_overflows<Numbers...>; };

}  // namespace detail
}  // namespace tessera
