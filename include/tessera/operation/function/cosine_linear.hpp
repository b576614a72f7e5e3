#pragma once

#include <tessera/operation/function/contractions.hpp>
#include <tessera/operation/function/normalize.hpp>
#include <tessera/operation/function/verbs.hpp>
#include <tessera/operation/layer/free_weight.hpp>
#include <tessera/operation/program/chain.hpp>

namespace tessera {

namespace detail::of_cosine_linear {

struct weight;  // its serial name

inline constexpr signature products = operation("nd,cd->nc").multilinear();

template <index_t Features>
struct as_linear {
  static constexpr initial_value initial = init::usual(Features);
};

}  // namespace detail::of_cosine_linear

namespace nn {

/// y[n, c] = x[n, ·] · w[c, ·] / (‖x[n, ·]‖ ‖w[c, ·]‖): the cosines of features and classes.
///
/// `Weight` is the tensor type of w[c, d] as it is used, as that of `nn::weight`; it begins as that of `nn::linear`, or
/// as `Begins::initial`. Features are taken to the partition `Features` before they meet it, where one is named.
template <TensorType Weight, class Features = void, class Begins = void>
struct cosine_linear {
  constexpr auto operator()(auto x) const {
    namespace own = tessera::detail::of_cosine_linear;
    using usual = own::as_linear<value_of<Weight>.layout.dims[1].extent>;
    using begins = std::conditional_t<std::is_void_v<Begins>, usual, Begins>;
    const auto w = x | named<own::weight, nn::weight<Weight, begins>>{};
    return einsum<own::products>(normalize<1>(taken(x)), normalize<1>(w));
  }

 private:
  static constexpr auto taken(auto x) {
    if constexpr (std::is_void_v<Features>) return x;
    else return to<Features>(x);
  }
};

}  // namespace nn
}  // namespace tessera
