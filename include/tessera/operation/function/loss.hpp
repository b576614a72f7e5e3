#pragma once

#include <tessera/meta/call_site.hpp>
#include <tessera/operation/function/elementwise.hpp>
#include <tessera/operation/function/loss_memory.hpp>

// The losses of single elements, one a line: name, whether both operands are probabilities, the numbers it allows, its
// memory, the computation. Memory is which operands it keeps, what it makes and remembers, has at once forward and
// back. The computation takes boxes x and y and the loss's number n, with `each` as LibTorch's reduction.
// clang-format off
#define TESSERA_LOSSES(f)                                                                          \
  f(l1_loss, false, true, (0, 1, 0, 0, 1), at::l1_loss(x, y, each))                                \
  f(mse_loss, false, true, (3, 0, 0, 0, 0), at::mse_loss(x, y, each))                              \
  f(smooth_l1_loss, false, n.re >= 0, (3, 0, 0, 0, 0), at::smooth_l1_loss(x, y, each, n.re))       \
  f(huber_loss, false, n.re > 0, (3, 0, 0, 0, 0), at::huber_loss(x, y, each, n.re))                \
  f(poisson_nll_loss, false, true, (engine::of_poisson(n.whole)),                                  \
    at::poisson_nll_loss(x, y, (n.whole & 1) != 0, (n.whole & 2) != 0, n.re, each))                \
  f(kl_div, false, true, (n.whole != 0 ? 0 : 3, n.whole != 0 ? 2 : 0, 0, n.whole != 0 ? 0 : 2, n.whole != 0 ? 1 : 3), \
    at::kl_div(x, y, each, n.whole != 0))                                                          \
  f(binary_cross_entropy, true, true, (3, 0, 0, 0, 0), at::binary_cross_entropy(x, y, {}, each))   \
  f(binary_cross_entropy_with_logits, false, true, (0xf, 0, 0, 1, 1),                              \
    at::binary_cross_entropy_with_logits(x, y, {}, {}, each))                                      \
  f(hinge_embedding_loss, false, true, (0, 0, 2, 4, 3), at::hinge_embedding_loss(x, y, n.re, each))
// clang-format on

namespace tessera {

namespace nn {

/// The reduction of the losses of elements or samples: none, or for all workers their mean, their sum, their sum over
/// the batch's extent.
enum class reduction : signed char { none, mean, sum, batch_mean };

}  // namespace nn

namespace functions {

namespace detail {

/// The letters of weights, which are repeated where they lack a dimension of x or have one element there.
constexpr letters letters_of_weights(const layout& w, const layout& x) {
  const int lacking = x.dims.count - w.dims.count;
  letters l;
  for (int d = 0; d < w.dims.count; ++d)
    l.push(static_cast<char>((repeated(w, d, x, d + lacking) ? 'A' : 'a') + lacking + d));
  return l;
}

}  // namespace detail

namespace engine {

/// The memory of a loss of rates by its flags: bit 0 says that they are logarithms, bit 1 that Stirling's term is
/// added.
constexpr loss_memory of_poisson(index_t flags) {
  const bool logarithms = (flags & 1) != 0;
  if ((flags & 2) != 0) return logarithms ? loss_memory{3, 3, 1, 4, 3} : loss_memory{2, 3, 2, 4, 2};
  return logarithms ? loss_memory{3, 1, 0, 1, 2} : loss_memory{3, 2, 0, 1, 2};
}

/// Losses of the elements of x and of a target that lies like it; weights, which are constants, are cut alike or
/// repeated.
struct loss_of_elements : function {
  static constexpr bool divides = false;
  static constexpr bool of_samples = false;
  number n = 1.0;

  template <class... Weights>
  constexpr function_value each(const tensor_value& x, const tensor_value& y, const Weights&... w) const {
    const int dims = x.layout.dims.count;
    signature s;
    s.kind = linearity::nonlinear;
    s.result = letters_of(dims);
    static_vector<operand, 4> operands = no_items<operand, 4>;
    refusal why = check_takes(takes::reals, x.element);
    for (const tensor_value* one : std::initializer_list<const tensor_value*>{&x, &y, &w...}) {
      const layout& l = one->layout;
      const bool weighs = operands.count > 1;
      if (one->element != x.element) why = first_of(why, refusal{code::wrong_element, x.element, one->element});
      if (weighs && l.dims.count > dims)
        why = first_of(why, refusal{code::operand_of_other_dimensions, operands.count, dims, l.dims.count});
      if (!why.ok()) return {{}, why};
      s.operands.push(weighs ? detail::letters_of_weights(l, x.layout) : s.result);
      operands.push({l, weighs});
    }
    const inferred alike = infer(s, operands);
    return {{alike.layout, x.element}, alike.why};
  }
};

/// Losses of samples: of what each has along dimension 1.
struct loss_of_samples : function {
  static constexpr bool of_samples = true;
  number n;
  static constexpr bool holds(const number&) { return true; }

  /// The result with one number for each sample of x; these letters describe its other operands.
  template <class... Rest>
  static constexpr function_value samples(const signature& op, const tensor_value& x, const Rest&... rest) {
    static_vector<operand, 4> operands = no_items<operand, 4>;
    operands.push({x.layout, false});
    (operands.push({rest.layout, operands.count > 1 || !has_cotangent(rest.element)}), ...);
    const inferred alike = infer(op, operands);
    return {{alike.why.ok() ? detail::per_sample(alike.layout, {placement::invariant}) : layout(), x.element},
            first_of(alike.why, detail::check_sums(reduced<1>(x.layout, linearity::multilinear), x.layout))};
  }
  static constexpr signature letters_for(int dims) {
    signature s;
    s.kind = linearity::nonlinear;
    s.result = letters_of(dims);
    s.operands.push(s.result);
    return s;
  }
  static constexpr letters without_classes(const letters& x) {
    letters y;
    for (int d = 0; d < x.count; ++d)
      if (d != 1) y.push(x[d]);
    return y;
  }
};

/// A number for each class, which whoever calls keeps.
struct class_numbers {
  const double* first = nullptr;
  index_t count = 0;
};

/// −Σ t x over the classes of x[n, c, d…]; of scores, x is their log_softmax. t is 1 at a label, or a tensor of
/// probabilities. Classes may have weights: a list, or a tensor w[c] that every worker has.
template <bool OfScores>
struct loss_of_classes : loss_of_samples {
  static constexpr bool divides = true;
  static constexpr bool judges = true;
  class_numbers weight;

  static constexpr bool of_probabilities(const tensor_value& x, const tensor_value& y) {
    return OfScores && has_cotangent(y.element) && y.layout.dims.count == x.layout.dims.count;
  }
  template <class... Weights>
  constexpr function_value each(const tensor_value& x, const tensor_value& y, const Weights&... w) const {
    const int dims = x.layout.dims.count;
    if (dims < 2) return {{}, refusal{code::layer_takes_other_dimensions, 2, dims}};
    const element wanted = of_probabilities(x, y) ? x.element : element::int64;
    refusal why = check_takes(takes::reals, x.element);
    if (x.layout.dims[1].zigzag) why = first_of(why, refusal{code::interval_wanted, 1});
    if (y.element != wanted) why = first_of(why, refusal{code::wrong_element, wanted, y.element});
    const index_t classes = x.layout.dims[1].extent;
    if (weight.count != 0 && classes != dynamic && weight.count != classes)
      why = first_of(why, refusal{code::class_weights_differ, weight.count, classes});
    for (const tensor_value* one : std::initializer_list<const tensor_value*>{&w...}) {
      if (one->element != x.element) why = first_of(why, refusal{code::wrong_element, x.element, one->element});
      if (one->layout.dims.count != 1)
        why = first_of(why, refusal{code::operand_of_other_dimensions, 2, 1, one->layout.dims.count});
      else if (one->layout.dims[0].extent != classes)
        why = first_of(why, refusal{code::class_weights_differ, one->layout.dims[0].extent, classes});
    }
    if (!(n.re >= 0 && n.re <= 1)) why = first_of(why, refusal{code::no_probability});
    if (!why.ok()) return {{}, why};
    signature s = letters_for(dims);
    s.operands.push(of_probabilities(x, y) ? s.result : without_classes(s.result));
    if constexpr (sizeof...(w) > 0) {
      s.operands.push(named("W"));
      s = s.whole("W");
    }
    return samples(s, x, y, w...);
  }
  /// Of labels that are not smoothed, backward reads scores alone; else scores less the largest, what it makes of them
  /// and the targets.
  template <class... Weights>
  static constexpr loss_memory takes(const number& n, const tensor_value& x, const tensor_value& y, const Weights&...) {
    const bool weighs = sizeof...(Weights) > 0, smooth = n.re != 0;
    loss_memory m(1, 0, 0, OfScores, !OfScores);
    if (of_probabilities(x, y)) m = {2, index_t{1} + (smooth || weighs), 1, 1 + weighs, 1};
    else if (smooth) m = {0, 1, 1, 1, 1};
    m.rows = 14;
    return m;
  }
  /// The largest score, then Σ exp, Σ t x and of probabilities Σ t.
  template <class... Weights>
  constexpr void parts(exchange_values& all, const tensor_value& x, const tensor_value& y, const Weights&...) const {
    if (OfScores)
      all.push({detail::per_sample(x.layout, partial_by(combine::max)), detail::per_sample(x.layout, {}),
                detail::wide(x.element)});
    all.push(detail::over_classes(x, 1 + OfScores + of_probabilities(x, y)));
  }
  /// Of what only a value says a program keeps one number.
  constexpr refusal not_kept() const { return weight.count == 0 ? refusal{} : refusal{code::class_weights_in_module}; }
};

}  // namespace engine

#define TESSERA_LOSS(loss, of_probabilities, numbers, memory, computed)                       \
  struct loss : engine::loss_of_elements {                                                    \
    static constexpr const char* name = #loss;                                                \
    static constexpr bool judges = of_probabilities;                                          \
    static constexpr bool holds([[maybe_unused]] const engine::number& n) { return numbers; } \
    static constexpr engine::loss_memory takes([[maybe_unused]] const engine::number& n) {    \
      return engine::loss_memory memory;                                                      \
    }                                                                                         \
  };
/// A loss that each element has, as a value.
TESSERA_LOSSES(TESSERA_LOSS)
#undef TESSERA_LOSS

/// The same with a weight for the elements whose target is 1, the last operand.
struct binary_cross_entropy_with_pos_weight : binary_cross_entropy_with_logits {
  static constexpr engine::loss_memory takes(const engine::number&) { return {0xf, 0, 0, 3, 3}; }
};
struct nll_loss : engine::loss_of_classes<false> {
  static constexpr const char* name = "nll_loss";
};
struct cross_entropy : engine::loss_of_classes<true> {
  static constexpr const char* name = "cross_entropy";
};

/// 1 − cos of the rows of x and y whose target is 1, max(0, cos − margin) where it is −1.
struct cosine_embedding_loss : engine::loss_of_samples {
  static constexpr const char* name = "cosine_embedding_loss";
  static constexpr bool divides = false;
  static constexpr bool judges = false;

  constexpr engine::function_value each(const tensor_value& x, const tensor_value& y,
                                        const tensor_value& target) const {
    refusal why = engine::check_takes(engine::takes::reals, x.element);
    if (y.element != x.element) why = engine::first_of(why, refusal{code::wrong_element, x.element, y.element});
    if (target.element != x.element && target.element != element::int64)
      why = engine::first_of(why, refusal{code::wrong_element, element::int64, target.element});
    if (x.layout.dims.count != 2)
      why = engine::first_of(why, refusal{code::layer_takes_other_dimensions, 2, x.layout.dims.count});
    if (!why.ok()) return {{}, why};
    signature s = letters_for(2);
    s.operands.push(s.result);
    s.operands.push(without_classes(s.result));
    return samples(s, x, y, target);
  }
  /// Products of one kind after the other.
  static constexpr engine::loss_memory takes(const engine::number&, const tensor_value&, const tensor_value&,
                                             const tensor_value&) {
    engine::loss_memory m(3, 0, 0, 1, 3);
    m.rows = 14;
    return m;
  }
  /// Σ x y, Σ x², Σ y².
  constexpr void parts(engine::exchange_values& all, const tensor_value& x, const tensor_value&,
                       const tensor_value&) const {
    all.push(detail::over_classes(x, 3));
  }
};

}  // namespace functions
}  // namespace tessera
