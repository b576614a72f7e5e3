#pragma once

#include <tessera/nn/network/network.hpp>
#include <tessera/operation/layer/layer_values.hpp>
#include <tessera/operation/network/sharded_parameters.hpp>

#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace tessera::detail {

/// What run time asks of a layer: a constant for each kind of layer.
struct layer_functions {
  const char* name;
  bool (*only_here)(const void* layer);
  bool moves_only;
  bool is_function;  ///< of flows, and no part of a module
  int results;
  layer_plan (*plan)(const void* layer, std::span<const tensor_value* const> x);  ///< its parameters not yet as tiles
  std::vector<at::Tensor> (*forward)(const void* layer, const nn::call& c);
  void (*destroy)(const void* layer);
  std::optional<nn::engine::open_extents> (*measured)(const void* layer, const nn::measured_call& x) = nullptr;
};

/// A layer as a value, at its place in a program.
class placed_node {
 public:
  /// Owns the layer, of which nothing is kept where its type says all.
  placed_node(const void* layer, const layer_functions& functions);
  placed_node(const placed_node&) = delete;
  ~placed_node();

  /// Stands where these operands come in, its parameters stored over axes, the outermost first.
  void stand(std::vector<tensor_value> operands, std::vector<tiles_over> over);

  nn::engine::node_record record;

  int results() const { return functions_->results; }
  bool is_function() const { return functions_->is_function; }
  layer_plan plan() const;
  layer_plan plan_for(std::span<const tensor_value* const> x) const;

 private:
  const void* layer_;
  const layer_functions* functions_;
  std::vector<tensor_value> operands_;
  std::vector<tiles_over> over_;
};

/// The plan of a layer that takes another number of operands.
layer_plan plan_of_wrong_count(std::size_t operands);

/// The plan of a layer for one to four operands.
template <class L>
layer_plan plan_for_count(const L& layer, std::span<const tensor_value* const> x) {
  if constexpr (requires { layer.plan(*x[0]); })
    if (x.size() == 1) return layer.plan(*x[0]);
  if constexpr (requires { layer.plan(*x[0], *x[0]); })
    if (x.size() == 2) return layer.plan(*x[0], *x[1]);
  if constexpr (requires { layer.plan(*x[0], *x[0], *x[0]); })
    if (x.size() == 3) return layer.plan(*x[0], *x[1], *x[2]);
  if constexpr (requires { layer.plan(*x[0], *x[0], *x[0], *x[0]); })
    if (x.size() == 4) return layer.plan(*x[0], *x[1], *x[2], *x[3]);
  return plan_of_wrong_count(x.size());
}

/// A layer and what runs it.
template <class L>
struct kept_layer {
  L layer;
  nn::engine::running_layer<L> runs{layer};
};

template <class L>
inline constexpr layer_functions functions_of_layer{
    L::name,
    [](const void* kept) { return is_only_here(static_cast<const kept_layer<L>*>(kept)->layer); },
    is_move<L>,
    is_function<L>,
    result_count<L>(),
    [](const void* kept, std::span<const tensor_value* const> x) {
      return plan_for_count(static_cast<const kept_layer<L>*>(kept)->layer, x);
    },
    [](const void* kept, const nn::call& c) { return static_cast<const kept_layer<L>*>(kept)->runs(c); },
    [](const void* kept) { delete static_cast<const kept_layer<L>*>(kept); },
    measured_by<L>([](const void* kept) -> const L& { return static_cast<const kept_layer<L>*>(kept)->layer; })};

// Of a layer without values nothing is kept.
template <class L>
  requires(std::is_empty_v<kept_layer<L>>)
inline constexpr layer_functions functions_of_layer<L>{
    L::name,
    [](const void*) { return is_only_here(L{}); },
    is_move<L>,
    is_function<L>,
    result_count<L>(),
    [](const void*, std::span<const tensor_value* const> x) { return plan_for_count(L{}, x); },
    [](const void*, const nn::call& c) { return nn::engine::running_layer<L>(L{})(c); },
    [](const void*) {},
    measured_by<L>([](const void*) { return L{}; })};

}  // namespace tessera::detail

namespace tessera::nn::engine {

/// A layer as a program places it.
template <class L>
std::unique_ptr<tessera::detail::placed_node> placed([[maybe_unused]] const L& layer) {
  using namespace tessera::detail;
  const void* kept = nullptr;
  if constexpr (!std::is_empty_v<kept_layer<L>>) kept = new kept_layer<L>{layer};
  return std::make_unique<placed_node>(kept, functions_of_layer<L>);
}

}  // namespace tessera::nn::engine

namespace tessera::detail {

/// A change of a flow's layout, by whatever verbs lead there or by one that is named. Extents that the layout leaves
/// open are the flow's.
struct change_to_layout : nn::repartition_layer {
  static constexpr const char* name = "to";
  verb by = verb::several;

  constexpr layer_plan plan(const tensor_value& x) const {
    for (int d = 0; d < to.dims.count && d < x.layout.dims.count; ++d) {
      const index_t wanted = to.dims[d].extent, has = x.layout.dims[d].extent;
      if (wanted != dynamic && has != dynamic && wanted != has)
        return refused_layer(refusal{code::extents_differ, d, has, wanted});
    }
    layer_plan p = nn::repartition_layer::plan(x);
    if (by != verb::several && p.why.ok()) p.why = check_verb(by, x.layout, p.output());
    return p;
  }
};

}  // namespace tessera::detail

#ifndef TESSERA_COMPILED
#include <tessera/nn/network/placed_layer_impl.hpp>
#endif
