#pragma once

#include <tessera/operation/fourier/transform.hpp>
#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/layer/value_options.hpp>

namespace tessera {

namespace detail {

// One of what is said of a transform in angle brackets: a dimension, the norm, or another option as a value.
template <auto Said>
constexpr void read_transform(fourier& f, layer_options& o, bool& has_norm) {
  using given = std::remove_cv_t<decltype(Said)>;
  if constexpr (std::is_same_v<given, fft_norm>) {
    if (has_norm) f.why = first_of(f.why, refusal{code::option_given_twice, 0, 1});
    has_norm = true;
    f.norm = Said;
  } else if constexpr (std::is_integral_v<given>) {
    if (f.dims.count == f.dims.capacity) f.why = first_of(f.why, refusal{code::transform_dimensions, 4});
    else f.dims.push(static_cast<int>(Said));
  } else {
    constexpr option_kind is = option<given>::is;
    const bool taken = is == option_kind::output || (is == option_kind::output_padding && f.real && f.inverse);
    if (!taken) f.why = first_of(f.why, refusal{code::option_not_taken, 0});
    else option<given>::apply(o);
  }
}

template <bool Inverse, bool Real, auto... Said>
constexpr fourier transform_of() {
  fourier f;
  f.inverse = Inverse;
  f.real = Real;
  layer_options o;
  o.kernels.push({1, 1, 0, 0, 1});  // of which lengths are one each
  bool has_norm = false;
  (read_transform<Said>(f, o, has_norm), ...);
  f.has_output = o.weights.has_output;
  f.output = o.weights.output;
  f.length = o.weights.output_size.empty() ? 0 : o.weights.output_size[0];
  const bool length_is_none = !o.weights.output_padding.empty() || (!o.weights.output_size.empty() && f.length < 1);
  f.why = first_of(f.why, o.weights.why, length_is_none ? refusal{code::transform_length, 0, 0, f.length} : refusal{});
  return f;
}

}  // namespace detail

namespace nn {

/// y[k] = Σ x[j] exp(−2πi j k / n) over each of one to three dimensions, complex: `fft<2, 3>`.
///
/// Options, as values: `fft_norm::ortho`, `output_as<partition>{}`.
template <auto... Said>
struct fft : engine::described_layer<fft<Said...>>,
             tessera::detail::mesh_of_options<std::remove_cv_t<decltype(Said)>...> {
  static constexpr const char* name = "fft";
  static constexpr bool only_here = true;  ///< a function of the serial model: it takes no number in its keys
  static constexpr engine::fourier description() { return tessera::detail::transform_of<false, false, Said...>(); }
};

/// x[j] = Σ y[k] exp(2πi j k / n) / n, the inverse of `fft`.
template <auto... Said>
struct ifft : engine::described_layer<ifft<Said...>>,
              tessera::detail::mesh_of_options<std::remove_cv_t<decltype(Said)>...> {
  static constexpr const char* name = "ifft";
  static constexpr bool only_here = true;
  static constexpr engine::fourier description() { return tessera::detail::transform_of<true, false, Said...>(); }
};

/// `fft` of real numbers: of the last dimension that is named the elements 0 … n / 2, from which the others follow.
template <auto... Said>
struct rfft : engine::described_layer<rfft<Said...>>,
              tessera::detail::mesh_of_options<std::remove_cv_t<decltype(Said)>...> {
  static constexpr const char* name = "rfft";
  static constexpr bool only_here = true;
  static constexpr engine::fourier description() { return tessera::detail::transform_of<false, true, Said...>(); }
};

/// The inverse of `rfft`, real; `output_size<n>{}` is the last extent, 2 (m − 1) of m elements unless said.
template <auto... Said>
struct irfft : engine::described_layer<irfft<Said...>>,
               tessera::detail::mesh_of_options<std::remove_cv_t<decltype(Said)>...> {
  static constexpr const char* name = "irfft";
  static constexpr bool only_here = true;
  static constexpr engine::fourier description() { return tessera::detail::transform_of<true, true, Said...>(); }
};

/// These as a value: `fft_layer{.dims = {2, 3}, .inverse = true, .real = true, .length = 33}`.
struct fft_layer {
  static constexpr const char* name = "fft";
  static constexpr bool only_here = true;
  engine::per_dimension dims{};
  bool inverse = false;
  bool real = false;
  fft_norm norm = fft_norm::backward;
  index_t length = 0;
  engine::setting<layout> output_as{};

  constexpr engine::fourier description() const {
    engine::fourier f;
    f.inverse = inverse;
    f.real = real;
    f.norm = norm;
    f.length = length;
    f.has_output = output_as.is_set();
    f.output = output_as.value();
    if (dims.count() > f.dims.capacity) f.why = refusal{code::transform_dimensions, dims.count()};
    if (length < 0 || (length > 0 && !(real && inverse))) f.why = refusal{code::transform_length, 0, 0, length};
    for (int i = 0; i < dims.count() && f.why.ok(); ++i) f.dims.push(static_cast<int>(dims[i]));
    return f;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

}  // namespace nn

template <auto... Said>
inline constexpr kind engine::kind_of<nn::fft<Said...>> = kind::layer;
template <auto... Said>
inline constexpr kind engine::kind_of<nn::ifft<Said...>> = kind::layer;
template <auto... Said>
inline constexpr kind engine::kind_of<nn::rfft<Said...>> = kind::layer;
template <auto... Said>
inline constexpr kind engine::kind_of<nn::irfft<Said...>> = kind::layer;

}  // namespace tessera
