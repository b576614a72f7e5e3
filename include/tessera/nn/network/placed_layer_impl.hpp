#pragma once

#include <tessera/nn/network/placed_layer.hpp>

namespace tessera::detail {

TESSERA_INLINE placed_node::placed_node(const void* layer, const layer_functions& functions)
    : layer_(layer), functions_(&functions) {
  record.name = functions.name;
  record.only_here = functions.only_here(layer);
  record.moves_only = functions.moves_only;
  record.layer = this;
  record.planned = [](const void* self, const tensor_value* const* at_hand) {
    const placed_node& node = *static_cast<const placed_node*>(self);
    return at_hand == nullptr ? node.plan() : node.plan_for({at_hand, node.operands_.size()});
  };
  record.planned_for = [](const void* self, std::span<const tensor_value* const> at_hand) {
    return static_cast<const placed_node*>(self)->plan_for(at_hand);
  };
  record.run = [](const void* self, const nn::call& c) {
    const placed_node& node = *static_cast<const placed_node*>(self);
    return node.functions_->forward(node.layer_, c);
  };
  if (functions.measured != nullptr)
    record.measured = [](const void* self, const nn::measured_call& x) {
      const placed_node& node = *static_cast<const placed_node*>(self);
      return node.functions_->measured(node.layer_, x);
    };
}

TESSERA_INLINE placed_node::~placed_node() { functions_->destroy(layer_); }

TESSERA_INLINE void placed_node::stand(std::vector<tensor_value> operands, std::vector<tiles_over> over) {
  operands_ = std::move(operands);
  over_ = std::move(over);
  for (const tensor_value& one : operands_) record.elements.push(one.element);
}

TESSERA_INLINE layer_plan placed_node::plan() const {
  std::vector<const tensor_value*> x;
  for (const tensor_value& one : operands_) x.push_back(&one);
  return plan_for(x);
}

TESSERA_INLINE layer_plan placed_node::plan_for(std::span<const tensor_value* const> x) const {
  layer_plan p = functions_->plan(layer_, x);
  for (auto over = over_.rbegin(); over != over_.rend(); ++over) p = stored_as_tiles(p, *over);
  return checked(p, *x[0]);
}

TESSERA_INLINE layer_plan plan_of_wrong_count(std::size_t operands) {
  return refused_layer(refusal{code::wrong_number_of_operands, -1, operands});
}

}  // namespace tessera::detail
