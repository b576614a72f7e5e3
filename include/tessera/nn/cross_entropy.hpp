#pragma once

#include <tessera/nn/verdicts.hpp>
#include <tessera/operation/functions/reductions.hpp>
#include <tessera/operation/typed.hpp>
#include <tessera/tensor/tensor.hpp>

namespace tessera::detail {

/// Logits [n, c] and labels [n] are cut alike along n; the classes may be cut.
inline constexpr signature loss_signature = [] {
  signature s;
  s.kind = linearity::nonlinear;
  s.operands.push(named("nc"));
  s.operands.push(named("n"));
  s.result = named("nc");
  return s;
}();

constexpr refusal check_loss(const tensor_value& x, const tensor_value& y) {
  const layout& logits = x.layout;
  const layout& labels = y.layout;
  if (!has_cotangent(x.element)) return refusal{code::element_has_no_cotangent};
  if (is_complex(x.element)) return refusal{code::no_order, text()};
  if (y.element != element::int64) return refusal{code::wrong_element, element::int64, y.element};
  if (logits.dims.count != 2) return refusal{code::layer_takes_other_dimensions, 2, logits.dims.count};
  static_vector<operand, 4> operands;
  operands.push({logits, false});
  static_vector<operand, 4> both = operands;
  both.push({labels, true});
  return first_of(infer(loss_signature, both).why, infer(functions::reduced<>(logits, linearity::multilinear), operands).why);
}

}  // namespace tessera::detail

namespace tessera::nn {

/// The mean over the batch of −log softmax(logits)[label]; invariant over the mesh.
///
///   m = maxₖ xₖ (a constant),  s = Σₖ exp(xₖ − m),  loss = mean(log s + m − x_label)
///
/// Classes may be cut: m is combined by maximum, s and x_label are summed in one exchange to an invariant, so backward moves
/// nothing for them. Half types are float from the logits to the mean, which alone is rounded.
tensor<dyn> cross_entropy(const tensor<dyn>& logits, const tensor<dyn>& labels, call_site at = call_site::here());

}  // namespace tessera::nn

namespace tessera::detail {

template <class Logits>
struct loss_value {
  static constexpr tensor_value value = [] {
    tensor_value t;
    t.layout.mesh = described<Logits>::value.layout.mesh;
    for (int a = 0; a < t.layout.mesh.axes.count; ++a) t.layout.roles.push({role::invariant});
    t.element = described<Logits>::value.element;
    return t;
  }();
};

template <class Logits, class Labels>
struct loss_verdict {
  static constexpr refusal value{code::tensor_wanted};
};
template <TensorType Logits, TensorType Labels>
struct loss_verdict<Logits, Labels> {
  static constexpr refusal value = first_of(described<Logits>::verdict_source::value, described<Labels>::verdict_source::value,
                                            check_loss(described<Logits>::value, value_of<Labels>));
};

}  // namespace tessera::detail

namespace tessera::nn {

template <class Logits, class Labels>
  requires(TensorType<Logits> || TensorType<Labels>)
auto cross_entropy(const Logits& logits, const Labels& labels, call_site at = call_site::here()) {
  using verdict = verdict_of<detail::loss_verdict<Logits, Labels>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) {
    using Loss = typename detail::tensor_named<Logits, detail::loss_value<Logits>>::type;
    return Loss(cross_entropy(logits.dynamic(), labels.dynamic(), at));
  } else {
    return detail::refused_tensor<>();
  }
}

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/cross_entropy.ipp>
#endif
