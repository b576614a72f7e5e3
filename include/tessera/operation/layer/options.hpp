#pragma once

#include <tessera/operation/window/interpolation.hpp>
#include <tessera/topology/partition.hpp>
#include <tessera/topology/window.hpp>

namespace tessera {

/// Extents of a sliding kernel, one for each dimension it slides over.
template <index_t... Extents>
struct kernel {};
/// Steps of a kernel; 1 unless said (of a pooling: its kernel's extents).
template <index_t... Steps>
struct stride {};
/// Zeros at both ends of each dimension; 0 unless said.
template <index_t... Widths>
struct padding {};
/// Zeros at the ends of each dimension, before and after: `padding_at<0, 1, 0, 1>`.
template <index_t... Widths>
struct padding_at {};
/// As many zeros as keep the extents under stride 1; where they are odd the last is at the end.
struct padding_same {};
/// No padding.
struct padding_valid {};
/// How much further a transposed convolution goes on at the end of each dimension; 0 unless said.
template <index_t... Widths>
struct output_padding {};
/// The extents that a transposed convolution gives, instead of its output padding.
template <index_t... Extents>
struct output_size {};
/// Distances of a kernel's taps; 1 unless said.
template <index_t... Distances>
struct dilation {};
/// The boundary in the padding: `padding_mode<boundary::reflect>`, or one for each dimension,
/// `padding_mode<boundary::periodic, boundary::zero>`; zeros unless said.
template <boundary... Edges>
struct padding_mode {};
/// Groups of features that see only each other; 1 unless said.
template <index_t Count>
struct groups {};
/// A pooling counts a last window that only begins inside the tensor or its padding.
struct ceil_mode {};
/// An average pooling leaves padding out of its divisor.
struct exclude_padding {};
/// How many elements an upsampling makes of each, along each dimension: `factor<3, 4>, divisor<2>` is 3/2 and 2.
template <index_t... Times>
struct factor {};
/// The extents that an upsampling gives, along each dimension.
template <index_t... Extents>
struct size {};
/// Of which inputs an output of an upsampling is made: `mode<interpolation::linear>`; of the nearest unless said.
template <interpolation How>
struct mode {};
/// An upsampling leaves the first and last elements where they are, and makes the others between.
struct align_corners {};
/// Asks an upsampling for a smoothed result, which is refused.
struct antialias {};
/// The divisor of an average pooling, whatever the window holds, and of the factors of an upsampling.
template <index_t By>
struct divisor {};

/// Leaves out the bias of a linear layer or a convolution.
struct no_bias {};
/// The axes that cut a weight's outputs: the input is gathered over them. `cut_out<grains<8, model>>` splits no 8 of
/// them.
template <class... Axes>
struct cut_out {};
/// The axes that cut a weight's inputs: the result is reduced over them.
template <class... Axes>
struct cut_in {};
/// The partition of a layer's result.
template <class Partition = void>
struct output_as {};
/// The element in which a layer's weights are stored; they are rounded to that of its input where they are used.
template <class Element = void>
struct weights_as {};

/// Terms of a half type are rounded to it before they travel, in half the bytes. Unless said they travel in float, and
/// their sum is rounded once.
struct round_terms {};

/// The index of an embedding's row that begins as zeros and gets no gradient; below 0 it counts from the far end.
template <index_t Index>
struct padding_idx {};

/// By what a Fourier transform of n elements is divided, as LibTorch's `norm`: its inverse by n, both by √n, or itself
/// by n.
enum class fft_norm : signed char { backward, ortho, forward };

/// In attention a query sees the keys up to its own place.
struct causal {};

/// In attention the mask is of numbers that are added to scores; else it is of booleans.
struct added_mask {};

/// In attention each worker has all rows of some heads: these axes cut the sequence before and behind it, heads in it.
///
/// Jacobs et al., DeepSpeed Ulysses, 2023.
template <class... Axes>
struct over_heads {};

/// In attention `over_heads` of these axes, or keys and values stream along them: whichever moves fewer bytes both
/// ways.
///
/// They stream where (features of queries and result) / (those of keys and values) > 3p/2 − 1.
template <class... Axes>
struct fewest_bytes {};

/// In attention a query at place i sees the keys of [i − before, i + after] alone.
template <index_t Before, index_t After = 0>
struct sliding_window {};

/// The parts of a cut sequence come one after another: keys and values in attention. So many elements of a part come at
/// once, or as many as the library takes.
template <index_t Rows = 0>
struct streamed {};

template <index_t... Given>
inline constexpr kind engine::kind_of<kernel<Given...>> = kind::option;
template <index_t... Given>
inline constexpr kind engine::kind_of<stride<Given...>> = kind::option;
template <index_t... Given>
inline constexpr kind engine::kind_of<padding<Given...>> = kind::option;
template <index_t... Given>
inline constexpr kind engine::kind_of<padding_at<Given...>> = kind::option;
template <>
inline constexpr kind engine::kind_of<padding_same> = kind::option;
template <>
inline constexpr kind engine::kind_of<padding_valid> = kind::option;
template <index_t... Given>
inline constexpr kind engine::kind_of<output_padding<Given...>> = kind::option;
template <index_t... Given>
inline constexpr kind engine::kind_of<output_size<Given...>> = kind::option;
template <index_t... Given>
inline constexpr kind engine::kind_of<dilation<Given...>> = kind::option;
template <boundary... Given>
inline constexpr kind engine::kind_of<padding_mode<Given...>> = kind::option;
template <index_t Given>
inline constexpr kind engine::kind_of<groups<Given>> = kind::option;
template <index_t... Given>
inline constexpr kind engine::kind_of<factor<Given...>> = kind::option;
template <index_t... Given>
inline constexpr kind engine::kind_of<size<Given...>> = kind::option;
template <interpolation Given>
inline constexpr kind engine::kind_of<mode<Given>> = kind::option;
template <>
inline constexpr kind engine::kind_of<align_corners> = kind::option;
template <>
inline constexpr kind engine::kind_of<antialias> = kind::option;
template <index_t Given>
inline constexpr kind engine::kind_of<divisor<Given>> = kind::option;
template <class... Given>
inline constexpr kind engine::kind_of<cut_out<Given...>> = kind::option;
template <class... Given>
inline constexpr kind engine::kind_of<cut_in<Given...>> = kind::option;
template <class Given>
inline constexpr kind engine::kind_of<output_as<Given>> = kind::option;
template <class Given>
inline constexpr kind engine::kind_of<weights_as<Given>> = kind::option;
template <>
inline constexpr kind engine::kind_of<ceil_mode> = kind::option;
template <>
inline constexpr kind engine::kind_of<exclude_padding> = kind::option;
template <>
inline constexpr kind engine::kind_of<causal> = kind::option;
template <>
inline constexpr kind engine::kind_of<added_mask> = kind::option;
template <class... Axes>
inline constexpr kind engine::kind_of<over_heads<Axes...>> = kind::option;
template <class... Axes>
inline constexpr kind engine::kind_of<fewest_bytes<Axes...>> = kind::option;
template <index_t... Given>
inline constexpr kind engine::kind_of<sliding_window<Given...>> = kind::option;
template <index_t Given>
inline constexpr kind engine::kind_of<streamed<Given>> = kind::option;
template <index_t Given>
inline constexpr kind engine::kind_of<padding_idx<Given>> = kind::option;
template <>
inline constexpr kind engine::kind_of<no_bias> = kind::option;
template <>
inline constexpr kind engine::kind_of<round_terms> = kind::option;

}  // namespace tessera
