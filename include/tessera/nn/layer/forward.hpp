#pragma once

#include <tessera/nn/call/measured_call.hpp>
#include <tessera/nn/layer/attention.hpp>
#include <tessera/nn/layer/class_losses.hpp>
#include <tessera/nn/layer/embedding.hpp>
#include <tessera/nn/layer/interpolate.hpp>
#include <tessera/nn/layer/neighbourhood_attention.hpp>
#include <tessera/nn/layer/normalisation.hpp>
#include <tessera/nn/layer/pooling.hpp>
#include <tessera/nn/layer/projection.hpp>
#include <tessera/nn/layer/spectral_conv.hpp>
#include <tessera/operation/function/function_layer.hpp>
#include <tessera/operation/layer/free_weight.hpp>
#include <tessera/operation/network/descriptions.hpp>
#include <tessera/operation/routing/routing_losses.hpp>
#include <tessera/tensor/functions.hpp>
#include <tessera/tensor/pad_globe.hpp>

namespace tessera::functions {

/// Of this worker's rows, added to those of all others.
at::Tensor compute(const load_balance_loss& f, const engine::bound_exchanges& by, const at::Tensor& scores,
                   const at::Tensor& chosen);
at::Tensor compute(const router_z_loss& f, const engine::bound_exchanges& by, const at::Tensor& scores);

}  // namespace tessera::functions

namespace tessera::nn {

/// This worker's rows to the places of their experts, and the slots of its own experts.
std::vector<at::Tensor> forward(const call& c, const engine::routing& layer);

/// The rows of the fullest expert and of the fullest place, rounded up by a sixteenth at most; nothing where slots are
/// limited.
std::optional<engine::open_extents> extent_for(const measured_call& c, const engine::routing& layer);

/// The sums of gates times slots of this worker's experts, back to where their rows are.
at::Tensor forward(const call& c, const engine::row_combining& layer);

namespace engine {

/// (raw → output) ∘ (x · w) ∘ (input → used), plus the bias: every linear layer and convolution. Products and bias of
/// half types are added in a wider type and rounded once; terms that other workers add are rounded before they go.
at::Tensor forward_contraction(const bound_layer& b, const contraction& layer, const at::Tensor& input,
                               const std::vector<parameter>& parameters);

/// Padding and slices ∘ (blocks → what is kept).
at::Tensor forward_pad(const bound_layer& b, const static_vector<sliding, 8>& widths, const at::Tensor& input);

/// The sums of this worker's part of each channel over the extents of the whole, put together.
at::Tensor forward_global_avg_pool(const call& c);

/// Channels as space, or space as channels.
at::Tensor forward_pixel_shuffle(const call& c, const pixel_shuffle_description& layer);

/// Windows as channels ∘ (blocks → haloed).
at::Tensor forward_unfold(const bound_layer& b, const unfold_description& layer, const at::Tensor& input);

/// (terms → blocks) ∘ sums of windows.
at::Tensor forward_fold(const bound_layer& b, const fold_description& layer, const at::Tensor& input);

/// In training the operand with zeros for what is dropped, by the call's key, how often it drew, and global index.
at::Tensor forward_dropout(const call& c, const dropout_description& layer);

/// x where it is above 0, elsewhere x times a slope: in training one that is drawn as dropout draws.
at::Tensor forward_rrelu(const call& c, const rrelu_description& layer);

/// x where it is above 0, elsewhere the weight times x.
at::Tensor forward_prelu(const call& c);

}  // namespace engine

// The families of layers, by what their types say that they are.
inline at::Tensor forward(const call& c, const engine::contraction& layer) {
  return engine::forward_contraction(c.bound, layer, c.operand(), c.state.parameters);
}
inline at::Tensor forward(const call& c, const engine::pooling& layer) {
  return engine::forward_pooling(c.bound, layer, c.operand()).values;
}
inline at::Tensor forward(const call& c, const engine::adaptive_max_pool_description& layer) {
  return engine::forward_pooling(c.bound, layer, c.operand()).values;
}
inline at::Tensor forward(const call& c, const engine::upsampling& layer) {
  return engine::forward_upsampling(c.bound, layer, c.operand());
}
inline at::Tensor forward(const call& c, const engine::pixel_shuffle_description& layer) {
  return engine::forward_pixel_shuffle(c, layer);
}
inline at::Tensor forward(const call& c, const engine::unfold_description& layer) {
  return engine::forward_unfold(c.bound, layer, c.operand());
}
inline at::Tensor forward(const call& c, const engine::fold_description& layer) {
  return engine::forward_fold(c.bound, layer, c.operand());
}
inline at::Tensor forward(const call& c, const engine::dropout_description& layer) {
  return engine::forward_dropout(c, layer);
}
inline at::Tensor forward(const call& c, const engine::rrelu_description& layer) {
  return engine::forward_rrelu(c, layer);
}
inline at::Tensor forward(const call& c, const engine::pad_description& layer) {
  return engine::forward_pad(c.bound, layer.widths, c.operand());
}
inline at::Tensor forward(const call& c, const engine::slice_description& layer) {
  return engine::forward_pad(c.bound, layer.of(c.bound.inputs[0].from->layout()).widths, c.operand());
}
inline at::Tensor forward(const call& c, const engine::global_avg_pool_description&) {
  return engine::forward_global_avg_pool(c);
}
inline at::Tensor forward(const call& c, const engine::flatten_description&) {
  return c.operand().reshape(c.bound.sizes);
}
inline at::Tensor forward(const call& c, const engine::repartition_description&) { return c.bound.leaving(c.used()); }
inline at::Tensor forward(const call& c, const engine::free_parameter&) { return c.weight(0); }
inline at::Tensor forward(const call& c, const engine::free_buffer&) { return c.bound.leaving(c.buffer(0).value()); }
inline at::Tensor forward(const call& c, const engine::cast_description& layer) {
  return c.operand().to(tessera::detail::scalar_type_of(layer.element));
}
inline at::Tensor forward(const call& c, const engine::prelu_description&) { return engine::forward_prelu(c); }
inline at::Tensor forward(const call& c, const engine::relu_description&) { return at::relu(c.operand()); }

namespace engine {

/// The result of a function where this worker holds none of it.
at::Tensor forward_of_nothing(const call& c);

/// The result of a function, whose gradient goes to all operands.
at::Tensor forward_of_all(const call& c, const at::Tensor& y);

/// A function of tensors: a local one on the boxes, another with its exchanges.
template <class F, int... Index>
at::Tensor forward_function(const F& f, const call& c, tessera::detail::indices<Index...>) {
  const local_boxes& where = c.bound.boxes();
  if constexpr (requires { f.signature_on(c.bound.inputs[Index].to->layout()...); }) {
    if (where.result.empty()) return forward_of_nothing(c);
    const tessera::detail::computing<F> compute{f};
    if constexpr (std::is_invocable_v<decltype(compute), const local_boxes&, decltype(c.operand(Index))...>)
      return forward_of_all(c, compute(where, c.operand(Index)...));
    else return forward_of_all(c, compute(c.operand(Index)...));
  } else {
    static_vector<const layout*, 4> operands;
    (operands.push(&c.bound.inputs[Index].to->layout()), ...);
    return forward_of_all(
        c, compute(f, bound_exchanges{c.bound.team, where, c.bound.exchanges, operands}, c.operand(Index)...));
  }
}

}  // namespace engine

template <class F, int Operands>
at::Tensor forward(const call& c, const tessera::detail::function_layer<F, Operands>&) {
  F f{};
  if constexpr (tessera::detail::HoldsNumber<F>) f.n = c.number;
  return engine::forward_function(f, c, tessera::detail::indices_below<Operands>{});
}
template <class F, int Operands>
at::Tensor forward(const call& c, const tessera::detail::held_function<F, Operands>& held) {
  return engine::forward_function(held.f, c, tessera::detail::indices_below<Operands>{});
}

namespace engine {

/// The results of a layer as a list: one, or several.
inline std::vector<at::Tensor> listed(at::Tensor y) { return {std::move(y)}; }
inline std::vector<at::Tensor> listed(std::vector<at::Tensor> all) { return all; }

/// The forward of a layer by its description. The compiled library holds it for each of TESSERA_DESCRIPTIONS.
template <class Description>
std::vector<at::Tensor> forward_described(const void* description, const call& c) {
  return listed(nn::forward(c, *static_cast<const Description*>(description)));
}

#ifdef TESSERA_COMPILED
#define TESSERA_HELD(description) \
  extern template std::vector<at::Tensor> forward_described<description>(const void*, const call&);
TESSERA_DESCRIPTIONS(TESSERA_HELD)
#undef TESSERA_HELD
#endif

/// Whether data give an extent of a layer's results: it, or a function of its description, has an `extent_for`.
template <class L>
concept Measured = requires(const L& layer, const measured_call& x) { layer.extent_for(x); } ||
                   requires(const L& layer, const measured_call& x) { extent_for(x, layer.description()); };

/// The extent that data give a layer's results; nothing where its plan leaves none open.
template <Measured L>
std::optional<open_extents> extent_for(const L& layer, const measured_call& x) {
  if constexpr (requires { layer.extent_for(x); }) return layer.extent_for(x);
  else return extent_for(x, layer.description());
}

/// The forward of a layer, as run time keeps it: the value of its family, or a layer with a forward of its own.
template <class L>
class running_layer {
  static constexpr bool has_forward = requires(const L& layer, const call& c) { layer.forward(c); };
  static auto kept(const L& layer) {
    if constexpr (has_forward) return layer;
    else return layer.description();
  }

 public:
  explicit running_layer(const L& layer) : value_(kept(layer)) {}

  std::vector<at::Tensor> operator()(const call& c) const {
    if constexpr (has_forward) return listed(value_.forward(c));
    else return forward_described<decltype(kept(std::declval<const L&>()))>(&value_, c);
  }

 private:
  decltype(kept(std::declval<const L&>())) value_;
};

}  // namespace engine

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/forward_impl.hpp>
#include <tessera/nn/layer/routing_impl.hpp>
#endif
