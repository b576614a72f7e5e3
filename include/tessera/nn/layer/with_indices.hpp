#pragma once

#include <tessera/generated/nn.hpp>
#include <tessera/nn/layer/pooling.hpp>
#include <tessera/operation/network/network.hpp>

namespace tessera::detail {

constexpr bool is_maximum(const pooling& layer) { return layer.is == pooling::kind::max; }
constexpr bool is_maximum(const adaptive_max_pool_description&) { return true; }

}  // namespace tessera::detail

namespace tessera::nn {

namespace engine {

/// The maxima of windows and where they lie.
template <class Values>
struct values_and_indices {
  Values values;
  tensor<typename Values::partition_type, typename Values::shape_type, std::int64_t> indices;
};

/// The same of tensors whose layouts are values.
struct dynamic_values_and_indices {
  tensor<dyn> values;
  tensor<dyn> indices;
};

}  // namespace engine

/// A maximum pooling that also says where each maximum lies, of a layer that is a value:
/// `with_indices(max_pool_layer{.kernel = {2, 2}}, x)`. What does not fit, or is an average, is thrown.
template <class L>
  requires requires(const engine::bound_layer& b, const L& layer, const at::Tensor& local) {
    engine::forward_pooling(b, layer.description(), local, true);
  }
engine::dynamic_values_and_indices with_indices(const L& layer, const tensor<dyn>& x,
                                                call_site at = call_site::here()) {
  const auto description = layer.description();
  const layer_plan p = layer.plan(tensor_value{x.layout(), x.type()});
  engine::check(
      engine::first_of(p.why, tessera::detail::is_maximum(description) ? refusal{} : refusal{code::not_a_maximum}),
      *x.team());
  const engine::scoped_context now(*x.team(), {.name = "maxima with indices", .at = at});
  const engine::pooled y = engine::forward_pooling({x.team(), p}, description, x.local(), true);
  const auto given = [&](const at::Tensor& local, const char* called) {
    return tessera::detail::tensor_of(x.team(), p.output(), local,
                                      tessera::detail::lineage_of(text(called).hash, {x.lineage()}));
  };
  return {given(y.values, "maxima"), given(y.indices, "indices")};
}

/// A maximum pooling that also says where each maximum lies: `with_indices<max_pool<kernel<2, 2>>>(x)`.
///
/// An index is flat over the pooled dimensions of the global tensor, as LibTorch's in one process: it is the same on
/// any partition. Gradients pass through the values alone.
template <class L, class P, class S, class E>
  requires requires(const engine::bound_layer& b, const at::Tensor& local) {
    engine::forward_pooling(b, L::description(), local, true);
  }
auto with_indices(const tensor<P, S, E>& x, call_site at = call_site::here()) {
  using on = tessera::detail::applied<L, tensor<P, S, E>>;
  using values = typename on::template result<0>::type;
  on::verdict::template refuse<typename on::verdict>();
  using maximum = std::conditional_t<tessera::detail::is_maximum(L::description()), fits, verdicts::not_a_maximum<>>;
  maximum::template refuse<maximum>();
  const engine::dynamic_values_and_indices y = with_indices(L{}, x.dynamic(), at);
  using result = engine::values_and_indices<values>;
  return result{values(y.values), decltype(result::indices)(y.indices)};
}

}  // namespace tessera::nn
