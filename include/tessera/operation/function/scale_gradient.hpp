#pragma once

#include <tessera/operation/function/elementwise.hpp>

namespace tessera::detail {

template <index_t Num, index_t Den>
struct fraction_check {
  static constexpr refusal value = Den > 0 ? refusal{} : refusal{code::fraction_without_divisor, Num, Den};
};

}  // namespace tessera::detail

namespace tessera::nn {

/// x, whose cotangent is multiplied by Num/Den: x̄ = Num/Den · ȳ. Nothing moves; of terms each is scaled.
///
/// A number that only run time knows is told to the function: `scale_gradient(x, 0.25)`.
template <index_t Num, index_t Den = 1>
struct scale_gradient {
  static constexpr bool sees_to_its_scope = true;  // the serial network has no such layer
  template <engine::AnyTensor X>
  constexpr auto operator()(const X& x) const {
    using verdict = engine::verdict_of<tessera::detail::fraction_check<Num, Den>>;
    verdict::template refuse<verdict>();
    return tessera::scale_gradient(x, Den > 0 ? static_cast<double>(Num) / static_cast<double>(Den) : 1);
  }
};

}  // namespace tessera::nn
