#pragma once

#include <tessera/meta/refusals.hpp>

// Made by scripts/make_verdicts from meta/refusals.hpp; a test holds the two against each other.

namespace tessera {

template <index_t... Numbers> struct wrong_kind : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.argument.kind] a template takes another kind of type here; give it the one that the verdict wants, in place of the one it was given");
  }
};
template <index_t... Numbers> struct list_full : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.list.full] a list of fixed length is full (axes, dimensions, operands, parameters, windows); name fewer");
  }
};

namespace detail {

template <index_t... Numbers> struct verdict_named<&code::wrong_kind, Numbers...> { using type = wrong_kind<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::list_full, Numbers...> { using type = list_full<Numbers...>; };

}  // namespace detail
}  // namespace tessera
