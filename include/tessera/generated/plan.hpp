#pragma once

#include <tessera/meta/verdict.hpp>
#include <tessera/plan/refusals.hpp>

// Made by scripts/make_verdicts from plan/refusals.hpp; a test holds the two against each other.

namespace tessera {

namespace with {

template <index_t> struct dimension;
template <index_t> struct operand;

}  // namespace with

namespace verdicts {

template <class... Told> struct not_a_tiling {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.move.tiling] a Move starts from a tiling: an axis that is partial, or a haloed dimension, must be folded first"); } };
template <class... Told> struct replicate_added_to_partial {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.sum] a whole value added to each term would be counted once for each worker; change it to partial first"); } };
template <class... Told> struct cost_overflows {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.cost.overflow] more elements or bytes move than can be counted, 2^63 - 1; make the tensor or the mesh smaller"); } };

}  // namespace verdicts

namespace detail {

template <> struct verdict_for<&code::not_a_tiling> { template <class Why> using type = verdicts::not_a_tiling<typename axis_of_refusal<Why>::type, typename number_or_none<with::dimension, Why::number(0)>::type>; };
template <> struct verdict_for<&code::replicate_added_to_partial> { template <class Why> using type = verdicts::replicate_added_to_partial<typename axis_of_refusal<Why>::type, with::operand<Why::number(0)>>; };
template <> struct verdict_for<&code::cost_overflows> { template <class Why> using type = verdicts::cost_overflows<>; };

}  // namespace detail
}  // namespace tessera
