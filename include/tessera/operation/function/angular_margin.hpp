#pragma once

#include <tessera/operation/function/losses.hpp>

namespace tessera {

namespace nn {

/// The options of `angular_margin`, ArcFace's numbers (Deng et al., 2019).
struct angular_margin_options {
  double margin = 0.5;          ///< what is added to the angle of a label's class, from 0 to π
  double scale = 64;            ///< what all cosines are multiplied with
  bool easy = false;            ///< leaves cosines below 0 as they are
  index_t ignore_index = -100;  ///< a label whose row has no margin
};

}  // namespace nn

namespace functions {

/// scale · x[n, c, d…], with cos(arccos x + margin) for the one x that a label [n, d…] names.
struct angular_margin : engine::function {
  static constexpr const char* name = "angular_margin";
  static constexpr engine::saved saves = engine::saved::nothing;
  engine::number n = standard(nn::angular_margin_options{});  ///< its real part the margin, its imaginary the scale
  call_site at;

  constexpr angular_margin() = default;
  constexpr explicit angular_margin(const nn::angular_margin_options& how, const call_site& from = {})
      : n(standard(how)), at(from) {}

  static constexpr engine::number standard(const nn::angular_margin_options& how) {
    engine::number n(how.margin);
    n.im = how.scale;
    n.large = how.easy;
    n.whole = how.ignore_index;
    return n;
  }
  constexpr nn::angular_margin_options options() const {
    return {.margin = n.re, .scale = n.im, .easy = n.large, .ignore_index = n.whole};
  }

  constexpr engine::function_value on(const tensor_value& x, const tensor_value& labels) const {
    constexpr double pi = 3.141592653589793;
    const int dims = x.layout.dims.count;
    if (dims < 2) return {{}, refusal{code::layer_takes_other_dimensions, 2, dims}};
    refusal why = engine::check_takes(engine::takes::reals, x.element);
    if (x.layout.dims[1].zigzag) why = engine::first_of(why, refusal{code::interval_wanted, 1});
    if (labels.element != element::int64)
      why = engine::first_of(why, refusal{code::wrong_element, element::int64, labels.element});
    const bool fits = n.re >= 0 && n.re <= pi && n.im > 0 && n.im < std::numeric_limits<double>::infinity();
    if (!fits) why = engine::first_of(why, refusal{code::loss_option_out_of_range});
    if (!why.ok()) return {{}, why};
    signature s = engine::loss_of_samples::letters_for(dims);
    s.operands.push(engine::loss_of_samples::without_classes(s.result));
    static_vector<operand, 4> operands = engine::no_items<operand, 4>;
    operands.push({x.layout, false});
    operands.push({labels.layout, true});
    const inferred alike = infer(s, operands);
    return {{alike.layout, x.element}, alike.why};
  }
  /// The number of labels that name no class, from those who have others.
  constexpr engine::exchange_values exchanges(const tensor_value&, const tensor_value& labels) const {
    engine::exchange_values all = engine::no_items<engine::exchange_value, 4>;
    all.push(detail::summing(labels.layout, 1));
    return all;
  }
};

}  // namespace functions

namespace losses {

/// scale · x[n, c, d…] of cosines x, but scale · cos(arccos x + margin) at the label [n, d…] of each row; easy: only
/// where x > 0. Else below cos(π − margin) it is scale · (x − margin · sin margin). A label of no class is told on all
/// workers.
template <engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto angular_margin(const X& cosines, const Y& labels, const nn::angular_margin_options& how = {},
                              call_site at = call_site::here()) {
  return call(functions::angular_margin(how, at), cosines, labels);
}

}  // namespace losses

}  // namespace tessera
