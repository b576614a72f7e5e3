#pragma once

#include <tessera/nn/verdicts.hpp>
#include <tessera/operation/functions/reductions.hpp>
#include <tessera/operation/typed.hpp>
#include <tessera/tensor/tensor.hpp>

#include <vector>

namespace tessera::nn {

/// What a loss makes of the losses of its samples.
enum class reduction : signed char { mean, sum };

/// The options of `cross_entropy`, LibTorch's: of a label that is not counted there is no loss, and a mean is by the weights of the labels.
struct cross_entropy_options {
  nn::reduction reduction = nn::reduction::mean;
  std::vector<double> weight = {};  ///< one for each class, all 1 unless said
  index_t ignore_index = -100;      ///< the label that is not counted
  double label_smoothing = 0;       ///< the share of a label that all classes have
};

}  // namespace tessera::nn

namespace tessera::detail {

/// Logits [n, c, d…] and labels [n, d…] are cut alike; the classes may be cut.
constexpr signature loss_signature(int dims) {
  signature s;
  s.kind = linearity::nonlinear;
  s.result = letters_of(dims);
  s.operands.push(s.result);
  letters labels;
  for (int d = 0; d < dims; ++d)
    if (d != 1) labels.push(s.result[d]);
  s.operands.push(labels);
  return s;
}

constexpr refusal check_loss(const tensor_value& x, const tensor_value& y) {
  const layout& logits = x.layout;
  const layout& labels = y.layout;
  if (!has_cotangent(x.element)) return refusal{code::element_has_no_cotangent};
  if (is_complex(x.element)) return refusal{code::no_order, text()};
  if (y.element != element::int64) return refusal{code::wrong_element, element::int64, y.element};
  if (logits.dims.count < 2) return refusal{code::layer_takes_other_dimensions, 2, logits.dims.count};
  static_vector<operand, 4> operands;
  operands.push({logits, false});
  static_vector<operand, 4> both = operands;
  both.push({labels, true});
  return first_of(infer(loss_signature(logits.dims.count), both).why, infer(functions::reduced<>(logits, linearity::multilinear), operands).why);
}

}  // namespace tessera::detail

namespace tessera::nn {

/// The mean of −log softmax(logits)[label] over logits [n, c, d…] and labels [n, d…], as over the pixels of images; invariant over the mesh.
///
///   m = maxₖ xₖ (a constant),  s = Σₖ exp(xₖ − m),  loss = mean(log s + m − x_label)
///
/// Anything may be cut. Of cut classes m is combined by maximum, s and x_label are summed in one exchange to an invariant, so backward moves
/// nothing for them. The sum of all losses and what they are divided by are summed in one exchange, in double. Half types are float before
/// that, and the mean alone is rounded.
tensor<dyn> cross_entropy(const tensor<dyn>& logits, const tensor<dyn>& labels, const cross_entropy_options& how = {},
                          call_site at = call_site::here());

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
auto cross_entropy(const Logits& logits, const Labels& labels, const cross_entropy_options& how = {}, call_site at = call_site::here()) {
  using verdict = verdict_of<detail::loss_verdict<Logits, Labels>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) {
    using Loss = typename detail::tensor_named<Logits, detail::loss_value<Logits>>::type;
    return Loss(cross_entropy(logits.dynamic(), labels.dynamic(), how, at));
  } else {
    return detail::refused_tensor<>();
  }
}

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/cross_entropy.ipp>
#endif
