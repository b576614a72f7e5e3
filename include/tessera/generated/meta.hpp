#pragma once

#include <tessera/meta/verdict.hpp>
#include <tessera/meta/refusals.hpp>

// Made by scripts/make_verdicts from meta/refusals.hpp; a test holds the two against each other.

namespace tessera {

namespace with {

template <index_t> struct most;

}  // namespace with

namespace verdicts {

template <class... Told> struct wrong_kind {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.argument.kind] a template takes another kind of type here; give it the one that the "
                  "verdict wants, in place of the one it was given");
  }
};
template <class... Told> struct list_full {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.list.full] a list of fixed length is full (axes, dimensions, operands, parameters, "
                  "windows); name fewer");
  }
};

}  // namespace verdicts

namespace detail {

template <> struct verdict_for<&code::list_full> {
  template <class Why> using type = verdicts::list_full<with::most<Why::number(0)>>;
};

}  // namespace detail
}  // namespace tessera
