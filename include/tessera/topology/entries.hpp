#pragma once

#include <tessera/topology/axis.hpp>
#include <tessera/topology/layout.hpp>

namespace tessera {

/// A dimension that nothing cuts.
struct whole {};

/// A dimension cut into balanced parts by the axes in turn, DTensor's `Shard`: `blocks<a, b>` cuts by a, then each part
/// by b.
///
/// Over one axis of extent p, coordinate i holds [cut(n, p, i), cut(n, p, i + 1)). A product of axes cuts once.
template <class... Axes>
struct blocks {};

/// Blocks that never split units of `Grain` elements: the features of a channel, of an attention head.
template <index_t Grain, class... Axes>
struct grains {};

/// Parts of explicit lengths, one for each coordinate: `lengths<a, dim<3>, dim<4>>` is [0,3) [3,7).
///
/// `lengths<a>` alone are lengths that `from_local` learns from the tensors that workers have.
template <class Axis = void, class... Lengths>
struct lengths {};

/// 2p chunks dealt there and back: coordinate i of p holds chunks i and 2p − 1 − i, so causal work is even.
///
/// Chunk c of n elements is [cut(n, 2p, c), cut(n, 2p, c + 1)); axes count together, as one. `zigzag<grains<4, a>>`
/// keeps units of 4 whole.
template <class... Axes>
struct zigzag {};

/// The parts of a cover dealt `Parts` further: coordinate i holds part i + Parts, after the last comes the first.
template <class Cover, int Parts>
struct rotated {};

/// The halo of a window, for the outputs that `Cover` gives a worker; workers hold copies, which may overlap.
///
/// Output y of `Outputs` needs the inputs [⌊(A·y + B)/C⌋, ⌊(A·y + B2)/C⌋ + 1), beyond the edge what the boundary says;
/// a composed window reaches none of the first `Before` and the last `After` elements.
template <class Cover, index_t Outputs, index_t A, index_t B, index_t B2, index_t C = 1, boundary Edge = boundary::zero,
          index_t Before = 0, index_t After = 0>
struct haloed {};

/// The cotangent of a haloed dimension: the same intervals, but terms of a pending sum.
template <class Cover, index_t Outputs, index_t A, index_t B, index_t B2, index_t C = 1, boundary Edge = boundary::zero,
          index_t Before = 0, index_t After = 0>
struct pending {};

/// Equal copies that each worker may use differently, DTensor's `Replicate`: what an axis holds unless the partition
/// says otherwise.
template <class... Axes>
struct replicate {};

/// Terms of a pending sum, DTensor's `Partial`: `partial<a>`; of another combine, for values only: `partial<a, max>`.
template <class... Axes>
struct partial {};

// Other combines of terms. They have no gradient.
struct max {};   ///< the largest term
struct min {};   ///< the smallest term
struct prod {};  ///< the product of all terms
struct any {};   ///< whether any term is not 0
struct all {};   ///< whether all terms are not 0

/// Equal copies that all workers use alike.
template <class... Axes>
struct invariant {};

/// Held by one coordinate of an axis alone.
template <class Axis = void, int Coordinate = 0>
struct on {};

template <>
inline constexpr kind engine::kind_of<whole> = kind::cover;
template <class... Axes>
inline constexpr kind engine::kind_of<blocks<Axes...>> = kind::cover;
template <index_t Grain, class... Axes>
inline constexpr kind engine::kind_of<grains<Grain, Axes...>> = kind::cover;
template <class Axis, class... Lengths>
inline constexpr kind engine::kind_of<lengths<Axis, Lengths...>> = kind::cover;
template <class... Axes>
inline constexpr kind engine::kind_of<zigzag<Axes...>> = kind::cover;
template <class Cover, int Parts>
inline constexpr kind engine::kind_of<rotated<Cover, Parts>> = kind::cover;
template <class Cover, index_t Outputs, index_t A, index_t B, index_t B2, index_t C, boundary E, index_t L, index_t H>
inline constexpr kind engine::kind_of<haloed<Cover, Outputs, A, B, B2, C, E, L, H>> = kind::halo;
template <class Cover, index_t Outputs, index_t A, index_t B, index_t B2, index_t C, boundary E, index_t L, index_t H>
inline constexpr kind engine::kind_of<pending<Cover, Outputs, A, B, B2, C, E, L, H>> = kind::halo;
template <class... Axes>
inline constexpr kind engine::kind_of<replicate<Axes...>> = kind::placement;
template <class... Axes>
inline constexpr kind engine::kind_of<partial<Axes...>> = kind::placement;
template <class... Axes>
inline constexpr kind engine::kind_of<invariant<Axes...>> = kind::placement;
template <class Axis, int Coordinate>
inline constexpr kind engine::kind_of<on<Axis, Coordinate>> = kind::placement;
template <>
inline constexpr kind engine::kind_of<max> = kind::combine;
template <>
inline constexpr kind engine::kind_of<min> = kind::combine;
template <>
inline constexpr kind engine::kind_of<prod> = kind::combine;
template <>
inline constexpr kind engine::kind_of<any> = kind::combine;
template <>
inline constexpr kind engine::kind_of<all> = kind::combine;

namespace detail {

template <class A>
inline constexpr combine combine_named = combine::sum;
template <>
inline constexpr combine combine_named<max> = combine::max;
template <>
inline constexpr combine combine_named<min> = combine::min;
template <>
inline constexpr combine combine_named<prod> = combine::prod;
template <>
inline constexpr combine combine_named<any> = combine::any;
template <>
inline constexpr combine combine_named<all> = combine::all;

template <class A>
inline constexpr bool is_combine = kind_of<A> == kind::combine;

template <class... Axes>
inline constexpr combine combine_of = [] {
  combine with = combine::sum;
  ((with = is_combine<Axes> ? combine_named<Axes> : with), ...);
  return with;
}();

}  // namespace detail
}  // namespace tessera
