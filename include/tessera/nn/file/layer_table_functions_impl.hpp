#pragma once

#include <tessera/functions.hpp>
#include <tessera/nn/file/layer_table.hpp>
#include <tessera/nn/layer/class_losses.hpp>
#include <tessera/nn/layer/losses.hpp>

#include <optional>

namespace tessera::detail {

/// f for a dimension that a file names.
template <class F, int... Dim>
nn::dynamic_flow with_dimension(const nn::node_options& o, const F& f, indices<Dim...>) {
  const index_t d = o.number("dim");
  std::optional<nn::dynamic_flow> y;
  ((d == Dim ? void(y = f(std::integral_constant<int, Dim>{})) : void()), ...);
  if (!y) throw error(refusal{code::dimension_not_there, d, static_cast<int>(sizeof...(Dim))}, o.here().path());
  return *y;
}
template <class F>
nn::dynamic_flow with_dimension(const nn::node_options& o, const F& f) {
  return with_dimension(o, f, indices_below<5>{});
}

/// A loss of a file: of so many operands, with the number that its options say.
template <class Of, int Least, int Most, class Number>
struct loss_in_file {
  Number number;
  template <std::same_as<nn::dynamic_flow>... Flows>
    requires(Least <= sizeof...(Flows) && sizeof...(Flows) <= Most)
  nn::dynamic_flow operator()(const nn::node_options& o, const Flows&... x) const {
    functions::engine::reduced_loss<Of> f;
    f.how = o.reduction("reduction");
    f.n = number(o);
    return call(f, x...);
  }
};
template <class Of, int Least = 2, int Most = Least, class Number>
loss_in_file<Of, Least, Most, Number> loss_in(Number number) {
  return {number};
}

/// Attention as a file says it; three operands, or four with what comes behind the values.
struct attention_in_file {
  template <class... Flows>
    requires(sizeof...(Flows) == 3 || sizeof...(Flows) == 4)
  nn::dynamic_flow operator()(const nn::node_options& o, const Flows&... x) const {
    const bool slides = o.has("keys_before") || o.has("keys_after");
    return nn::attention_layer{.causal = o.flag("is_causal", false),
                               .streamed = o.flag("streamed", false),
                               .rows = o.number("rows", 0),
                               .heads = o.number("heads", 0),
                               .slides = slides,
                               .before = o.number("keys_before", 0, "all, or 0 beside `keys_after`"),
                               .after = o.number("keys_after", 0, "all, or 0 beside `keys_before`"),
                               .over = o.axes("over_heads", "none"),
                               .probability = o.real("p", 0),
                               .fewest_bytes = o.flag("fewest_bytes", false),
                               .added_mask = o.flag("added_mask", false)}(x...);
  }
};

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE void layer_table::add_functions() {
  using options = const node_options&;
  using flow_of = const dynamic_flow&;
  function("attention", tessera::detail::attention_in_file{});
  function("neighbourhood_attention", [](options o, flow_of q, flow_of k, flow_of v) {
    return neighbourhood_attention_layer{.kernel = o.numbers("kernel_size"), .heads = o.number("heads", 0)}(q, k, v);
  });
#define TESSERA_FUNCTION(called, kind, elements, result, saves, more, computed) \
  function(#called, [](options, flow_of x) { return tessera::called(x); });
  TESSERA_FUNCTIONS_OF_ONE(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(called, kind, elements, result, saves, more, computed) \
  function(#called, [](options, flow_of x, flow_of y) { return tessera::called(x, y); });
  TESSERA_FUNCTIONS_OF_TWO(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(named, called, kind, elements, result, saves, more, computed) \
  function(#named, [](options o, flow_of x) { return tessera::called(x, o.real("number")); });
  TESSERA_FUNCTIONS_OF_A_NUMBER(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(called, saves, more, first, otherwise, holds, computed) \
  function(#called, [](options o, flow_of x) { return tessera::called(x, o.real(#first, otherwise)); });
  TESSERA_ACTIVATIONS_OF_A_NUMBER(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(called, saves, more, first, otherwise, second, or_else, holds, computed)    \
  function(#called, [](options o, flow_of x) {                                                       \
    const double first_number = o.real(#first, otherwise), second_number = o.real(#second, or_else); \
    return tessera::called(x, first_number, second_number);                                          \
  });
  TESSERA_ACTIVATIONS_OF_TWO_NUMBERS(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
  function("concat", [](options o, flow_of x, flow_of y) {
    return tessera::detail::with_dimension(
        o, [&]<int Dim>(std::integral_constant<int, Dim>) { return tessera::concat<Dim>(x, y); });
  });
  function("pad_globe", [](options o, flow_of x) {
    functions::globe_padding f;
    f.rows = o.number("rows");
    f.columns = o.number("columns", f.rows, "`rows`");
    f.stride = o.number("stride", 1);
    f.negated = o.flag("negated", false);
    return functions::call(f, x);
  });
  function("softmax", [](options o, flow_of x) {
    return tessera::detail::with_dimension(
        o, [&]<int Dim>(std::integral_constant<int, Dim>) { return tessera::softmax<Dim>(x); });
  });
  function("tanhshrink", [](options, flow_of x) { return tessera::tanhshrink(x); });
  function("softmin", [](options o, flow_of x) {
    return tessera::detail::with_dimension(
        o, [&]<int Dim>(std::integral_constant<int, Dim>) { return tessera::softmin<Dim>(x); });
  });
  function("normalize", [](options o, flow_of x) {
    return tessera::detail::with_dimension(
        o, [&]<int Dim>(std::integral_constant<int, Dim>) { return tessera::normalize<Dim>(x, o.real("eps", 1e-12)); });
  });
  function("log_softmax", [](options o, flow_of x) {
    return tessera::detail::with_dimension(
        o, [&]<int Dim>(std::integral_constant<int, Dim>) { return tessera::log_softmax<Dim>(x); });
  });

  function("load_balance_loss", [](options o, flow_of scores, flow_of chosen) {
    return load_balance_loss(scores, chosen, o.flag("of_sigmoids", false));
  });
  function("router_z_loss", [](options, flow_of scores) { return router_z_loss(scores); });
  function("angular_margin", [](options o, flow_of x, flow_of labels) {
    const angular_margin_options otherwise;
    return angular_margin(x, labels,
                          {.margin = o.real("margin", otherwise.margin),
                           .scale = o.real("scale", otherwise.scale),
                           .easy = o.flag("easy", otherwise.easy),
                           .ignore_index = o.number("ignore_index", otherwise.ignore_index)});
  });

  namespace f = functions;
  using tessera::detail::loss_in;
  const auto none = [](options) { return f::engine::number(); };
  const auto real = [](const char* called, double otherwise) {
    return [=](options o) { return f::engine::number(o.real(called, otherwise)); };
  };
  const auto labels = [](options o) {
    f::engine::number n;
    n.whole = o.number("ignore_index", -100);
    return n;
  };
  function("l1_loss", loss_in<f::l1_loss>(none));
  function("mse_loss", loss_in<f::mse_loss>(none));
  function("smooth_l1_loss", loss_in<f::smooth_l1_loss>(real("beta", 1)));
  function("huber_loss", loss_in<f::huber_loss>(real("delta", 1)));
  function("poisson_nll_loss", loss_in<f::poisson_nll_loss>([](options o) {
             f::engine::number n(o.real("eps", 1e-8));
             const bool log_input = o.flag("log_input", true), full = o.flag("full", false);
             n.whole = log_input + 2 * full;
             return n;
           }));
  function("kl_div", loss_in<f::kl_div>(
                         [](options o) { return f::engine::number(static_cast<int>(o.flag("log_target", false))); }));
  function("binary_cross_entropy", loss_in<f::binary_cross_entropy, 2, 3>(none));
  function("binary_cross_entropy_with_logits", loss_in<f::binary_cross_entropy_with_logits, 2, 3>(none));
  function("binary_cross_entropy_with_pos_weight", loss_in<f::binary_cross_entropy_with_pos_weight, 3, 4>(none));
  function("hinge_embedding_loss", loss_in<f::hinge_embedding_loss>(real("margin", 1)));
  function("cosine_embedding_loss", loss_in<f::cosine_embedding_loss, 3>(real("margin", 0)));
  function("nll_loss", loss_in<f::nll_loss, 2, 3>(labels));
  function("cross_entropy", loss_in<f::cross_entropy, 2, 3>([=](options o) {
             f::engine::number n = labels(o);
             n.re = o.real("label_smoothing", 0);
             return n;
           }));
}

}  // namespace tessera::nn
