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
    record.name = layer.name;
    record.only_here = requires { L::only_here; };
    record.planned = [](const void* self) { return static_cast<const placed_layer*>(self)->plan(); };
    for (const tensor_value& one : operands) record.elements.push(one.element);
    record.layer = this;
    record.planned_for = [](const void* self, std::span<const tensor_value* const> at_hand) {
      return static_cast<const placed_layer*>(self)->plan_for(at_hand, indices_below<Operands>{});
    };
    record.run = [](const void* self, const nn::call& c) { return static_cast<const placed_layer*>(self)->runs(c); };
  }
  placed_layer(const placed_layer&) = delete;

  nn::engine::node_record record;

  layer_plan plan() const {
    std::vector<const tensor_value*> x;
    for (const tensor_value& one : operands) x.push_back(&one);
    return plan_for(x, indices_below<Operands>{});
  }

 private:
  template <int... Index>
  layer_plan plan_for(std::span<const tensor_value* const> x, indices<Index...>) const {
    if constexpr (requires { layer.plan(*x[Index]...); }) {
      layer_plan p = layer.plan(*x[Index]...);
      for (auto over = over_.rbegin(); over != over_.rend(); ++over) p = stored_as_tiles(p, *over);
      if (p.why.ok()) p.why = check_parameters(p, x[0]->element);
      return p;
    } else {
      return refused_layer(refusal{code::wrong_number_of_operands, -1, Operands});
    }
  }

  L layer;
  std::vector<tensor_value> operands;
  std::vector<tiles_over> over_;  // the outermost first
  nn::engine::running_layer<L> runs;
};

}  // namespace tessera::detail
