#pragma once

#include <tessera/tensor/apply.hpp>
#include <tessera/tensor/autograd/graph_dependence.hpp>
#include <tessera/tensor/comparing.hpp>

namespace tessera::detail {

/// Compares the copies of a trained leaf, also where nothing moves: an update by hand, with gradients that are terms,
/// makes copies differ.
inline void agree_on_leaf(const tensor<dyn>& x) {
  team_state& team = *x.team();
  const at::Tensor& local = x.local();
  if (team.checks == checks::never || !local.is_leaf() || !local.requires_grad()) return;
  if (team.checks == checks::always) team.agree_on_copies(x.layout(), content_hash(local), team.doing());
  else if (c10::GradMode::is_enabled()) note_leaf(x);
}

TESSERA_INLINE void check_call(const function_value& gives, std::initializer_list<const tensor<dyn>*> operands) {
  const tensor<dyn>& first = **operands.begin();
  for (const tensor<dyn>* x : operands)
    if (x->team()->shared_carrier() != first.team()->shared_carrier()) throw error(refusal{code::other_team});
  check(gives.why, *first.team());
  for (const tensor<dyn>* x : operands) agree_on_leaf(*x);
}

TESSERA_INLINE local_operation::local_operation(linearity kind, const function_value& gives,
                                                std::initializer_list<const tensor<dyn>*> given, std::uint64_t made_by)
    : kind_(kind), gives_(gives.result) {
  check_call(gives, given);
  fingerprint from;
  from << made_by;
  for (const tensor<dyn>* x : given) {
    from << x->lineage();
    operands_.push(x);
    where_.operands.push({x->layout(), x->team()->rank()});
  }
  where_.result = {gives_.layout, operands_[0]->team()->rank()};
  lineage_ = from.value();
}

TESSERA_INLINE local_boxes local_operation::boxes_of_piece(const signature& op, local_boxes where, const interval& i) {
  for (int o = 0; o < op.operands.count; ++o)
    if (const int d = index_of(op.operands[o], op.streams()); d >= 0) where.operands[o].held[d] = {{i}, 1};
  if (const int d = index_of(op.result, op.streams()); d >= 0) where.result.held[d] = {{i}, 1};
  return where;
}
TESSERA_INLINE tensor<dyn> local_operation::streamed(const signature& op, std::shared_ptr<const stream_function> f,
                                                     const std::vector<at::Tensor>& boxes) const {
  static_vector<tensor_value, 4> x;
  for (const tensor<dyn>* one : operands_) x.push({one->layout(), one->type()});
  return exchanging("operation", stream_exchanges(op, x.items, x.count), [&](const bound_exchanges& by) {
    stream s = stream_for(op, by, boxes, std::move(f));
    s.results[0].type = scalar_type_of(gives_.element);
    return evaluate(by.team, s, boxes)[0];
  });
}

TESSERA_INLINE tensor<dyn> local_operation::result(at::Tensor local) const {
  const tensor<dyn>& first = *operands_[0];
  check(check_plain(local), *first.team());
  if (kind_ != linearity::additive && has_cotangent(gives_.element)) {
    std::vector<at::Tensor> boxes;
    for (const tensor<dyn>* x : operands_) boxes.push_back(x->local());
    local = depends_on_all(local, boxes);
  }
  return tensor_of(first.team(), gives_.layout, gives_.element, local, lineage_);
}

}  // namespace tessera::detail
