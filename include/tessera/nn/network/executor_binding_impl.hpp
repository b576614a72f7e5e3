#pragma once

#include <tessera/nn/network/executor.hpp>

#include <algorithm>

namespace tessera::nn::engine {

TESSERA_INLINE layer_plan executor::state::plan_of(const step& s, const bound_program& b) const {
  std::vector<tensor_value> operands;
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    const std::size_t v = s.operands[i];
    operands.push_back({with_open(b.layout_of(v), s.open.at(i)), b.elements[v]});
  }
  std::vector<const tensor_value*> x;
  for (const tensor_value& one : operands) x.push_back(&one);
  const layer_plan p = s.record->plan_for(x);
  check(p.why, s.called);
  return p;
}

TESSERA_INLINE std::shared_ptr<const bound_step> executor::state::bound_step_for(std::size_t i, const bound_program& b,
                                                                                 std::optional<open_extents> extent) {
  const step& now = steps[i];
  const auto known = bound_steps[i].find([&](const bound_step& one) {
    for (std::size_t k = 0; k < now.operands.size(); ++k)
      if (one.operands[k] != b.where[now.operands[k]] || one.elements[k] != b.elements[now.operands[k]]) return false;
    return one.extent == extent;
  });
  if (known) return known;
  layer_plan p = plan_of(now, b);
  if (extent)
    p.each_layout([&](layout& x) {
      for (dimension& d : x.dims) {
        if (d.extent != dynamic) continue;
        const bool is_second = d.tag == second_open;
        d.extent = is_second ? extent->second : extent->first;
        if (is_second) d.tag = {};
      }
    });
  const element first = now.operands.empty() ? now.record->elements[0] : b.elements[now.operands[0]];
  bound_step one{{}, {}, extent, bound_layer(team, p, first), {}};
  for (const std::size_t v : now.operands) {
    one.operands.push_back(b.where[v]);
    one.elements.push_back(b.elements[v]);
  }
  for (int r = 0; r < p.outputs(); ++r) one.gives.push_back(p.element_of(r, first));
  return bound_steps[i].keep(std::move(one));
}

TESSERA_INLINE std::shared_ptr<const bound_program> executor::bound_for(
    std::span<const tensor<dyn>* const> inputs) const {
  state& my = here();
  const auto known = my.bound.find([&](const bound_program& b) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (b.where[i] != inputs[i]->where() || b.elements[i] != inputs[i]->type()) return false;
    return true;
  });
  if (known) return known;
  bound_program b;
  for (const tensor<dyn>* x : inputs) {
    b.where.push_back(x->where());
    b.elements.push_back(x->type());
  }
  for (std::size_t i = 0; i < my.steps.size(); ++i) {
    const step& now = my.steps[i];
    const auto is_open_value = [&](std::size_t v) { return is_open(b.layout_of(v)); };
    bool open = std::any_of(now.operands.begin(), now.operands.end(), is_open_value);
    if (open || now.record->measured != nullptr) {
      const layer_plan p = my.plan_of(now, b);
      for (int r = 0; r < p.outputs(); ++r) open = open || is_open(p.output(r));
      if (open)
        for (int r = 0; r < p.outputs(); ++r) {
          b.elements.push_back(p.element_of(r, b.elements[now.operands[0]]));
          b.where.push_back(my.team->intern(p.output(r)));
        }
    }
    b.is_open = b.is_open || open;
    b.steps.push_back(open ? nullptr : my.bound_step_for(i, b));
    for (std::size_t r = 0; !open && r < b.steps[i]->gives.size(); ++r) {
      b.where.push_back(b.steps[i]->result(r));
      b.elements.push_back(b.steps[i]->gives[r]);
    }
  }
  return my.bound.keep(std::move(b));
}

}  // namespace tessera::nn::engine
