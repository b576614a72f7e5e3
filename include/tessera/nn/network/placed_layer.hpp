#pragma once

#include <tessera/nn/network/network.hpp>
#include <tessera/operation/layer/layer_values.hpp>
#include <tessera/operation/network/sharded_parameters.hpp>

#include <vector>

namespace tessera::detail {

/// A layer as a value, at its place in a program, with what comes in there, and the axes that its parameters are stored
/// over.
template <class L, int Operands>
class placed_layer {
 public:
  placed_layer(const L& l, std::vector<tensor_value> x, const std::vector<tiles_over>& over)
      : layer(l), operands(std::move(x)), over_(over), runs(layer) {
    facts.name = layer.name;
    facts.only_here = requires { L::only_here; };
    facts.planned = [](const void* self) { return static_cast<const placed_layer*>(self)->plan(); };
    for (const tensor_value& one : operands) facts.elements.push(one.element);
    facts.layer = this;
    facts.planned_for = [](const void* self, std::span<const tensor_value* const> at_hand) {
      return static_cast<const placed_layer*>(self)->plan_for(at_hand, indices_below<Operands>{});
    };
    facts.run = [](const void* self, const nn::call& c) { return static_cast<const placed_layer*>(self)->runs(c); };
  }
  placed_layer(const placed_layer&) = delete;

  nn::engine::node_record facts;

  layer_plan plan() const {
    std::vector<const tensor_value*> x;
    for (const tensor_value& one : operands) x.push_back(&one);
    return plan_for(x, indices_below<Operands>{});
  }

 private:
  template <int... Place>
  layer_plan plan_for(std::span<const tensor_value* const> x, indices<Place...>) const {
    if constexpr (requires { layer.plan(*x[Place]...); } && !Described<L>)
      return stored(layer.plan(*x[Place]...), *x[0]);
    else if constexpr (requires { plan_of(layer.what(), *x[Place]...); })
      return stored(plan_described<decltype(layer.what())>(runs.description(), x), *x[0]);
    else return refused_layer(refusal{code::wrong_number_of_operands, -1, Operands});
  }
  layer_plan stored(layer_plan p, const tensor_value& first) const {
    for (auto over = over_.rbegin(); over != over_.rend(); ++over) p = stored_as_tiles(p, *over);
    return checked(p, first);
  }

  L layer;
  std::vector<tensor_value> operands;
  std::vector<tiles_over> over_;  // the outermost first
  nn::engine::running_layer<L> runs;
};

}  // namespace tessera::detail
