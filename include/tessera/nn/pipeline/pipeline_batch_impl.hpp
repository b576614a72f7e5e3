#pragma once

#include <tessera/nn/pipeline/pipeline_run.hpp>

#include <algorithm>

namespace tessera::nn::engine {

TESSERA_INLINE auto pipeline_run::begin(std::span<const tensor<dyn>> inputs, bool trains, call_site at) -> batch {
  if (inputs.size() != inputs_.size())
    throw error(refusal{code::wrong_number_of_operands, inputs_.size(), inputs.size()}, my().team->label());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const tensor<dyn>& x = inputs[i];
    if (x.team()->shared_carrier() != my().team->shared_carrier()) throw error(refusal{code::other_team});
    check(tessera::detail::check_fits({x.layout(), x.type()}, inputs_[i]), *x.team());
  }
  batch b;
  b.trains = trains;
  b.at = at;
  b.inputs.assign(inputs.begin(), inputs.end());
  std::vector<const tensor<dyn>*> given;
  for (const tensor<dyn>& x : b.inputs) given.push_back(&x);
  b.bound = net_.bound_for(given);
  if (trains && !b.bound->layout_of(my().outputs.at(0)).dims.empty())
    throw error(refusal{code::pipeline_has_no_loss, b.bound->layout_of(my().outputs[0]).dims.count});
  for (const std::size_t v : my().outputs)
    if (is_open(b.bound->layout_of(v))) throw error(refusal{code::extent_not_bound}, "an output of a pipeline");
  net_.begin_call();
  enter(b);
  cut(b);
  bind(b);
  if (net_.compares_now()) agree_on_copies(net_, at);
  return b;
}

// Moves inputs to where stages take them, once for the whole batch.
TESSERA_INLINE void pipeline_run::enter(batch& b) const {
  const c10::AutoGradMode graph(b.trains && c10::GradMode::is_enabled());
  b.entered.resize(b.bound->where.size());
  for (std::size_t i = 0; i < b.inputs.size(); ++i) b.entered[i] = b.inputs[i].local();
  const auto whole = std::make_shared<const executor::run>(net_.state_, b.bound, b.at);
  std::vector<at::Tensor> values = b.entered;
  for (std::size_t i = 0; i < my().steps.size(); ++i)
    if (map_.part[i] == stage_map::before) {
      const executor::step& s = my().steps[i];
      for (const std::size_t v : s.operands) values[v] = b.entered[v];  // an earlier reader may have let it go
      whole->part(i, i + 1, values);
      b.entered[s.first_result] = values[s.first_result];
    }
  b.values = b.entered;
  for (at::Tensor& x : b.values)
    if (x.defined() && x.requires_grad()) x = x.detach().requires_grad_();
}

// The rows of a value that a micro-batch has; none where it has all of it.
TESSERA_INLINE std::optional<micro_batch_rows> pipeline_run::rows_taken(const batch& b, std::size_t v, int m) const {
  std::size_t input = v;
  while (input >= b.inputs.size()) input = my().steps[maker_of(input)].operands[0];
  const auto& whole = options_.whole_inputs;
  if (std::find(whole.begin(), whole.end(), input) != whole.end()) return std::nullopt;
  const layout& lies = b.bound->layout_of(v);
  std::optional<micro_batch_rows> rows;
  if (!lies.dims.empty()) rows = rows_of(lies, my().team->rank(), m, of_.micro_batches);
  if (!rows) throw error(refusal{code::micro_batch_lies_otherwise, static_cast<index_t>(input), m});
  const index_t all = lies.dims[0].extent, mine = rows->lies.dims[0].extent;
  const bool equal = options_.rows == pipeline::micro_batch_sizes::equal;
  if (mine == 0 || (equal && mine * of_.micro_batches != all))
    throw error(refusal{code::micro_batches_differ, all, of_.micro_batches});
  return rows;
}

// Cuts rows into micro-batches, and binds the program for each. What stages take of them are the same rows.
TESSERA_INLINE void pipeline_run::cut(batch& b) const {
  double all_rows = 0;
  for (int m = 0; m < of_.micro_batches; ++m) {
    micro_batch& now = b.of.emplace_back();
    now.values = b.values;
    std::vector<tensor<dyn>> given;
    std::vector<std::optional<micro_batch_rows>> cuts(b.values.size());
    std::optional<micro_batch_rows>& rows = now.rows;
    const auto refuse = [&](std::size_t v) {
      throw error(refusal{code::micro_batch_lies_otherwise, static_cast<index_t>(v), m});
    };
    for (std::size_t v = 0; v < b.values.size(); ++v) {
      at::Tensor& x = now.values[v];
      if (!x.defined()) continue;
      cuts[v] = rows_taken(b, v, m);
      if (const auto& mine = cuts[v]) {
        x = x.narrow(0, mine->here.lo, mine->here.size());
        if (stage_of(mine->lies, axis_) >= 0) {
          if (rows && rows->rows != mine->rows) refuse(v);
          rows = mine;
          b.rows = b.bound->layout_of(v);
        }
      }
      if (v < b.inputs.size())
        given.push_back(cuts[v] ? tessera::detail::tensor_of(my().team, my().team->intern(cuts[v]->lies), x.detach(),
                                                             b.inputs[v].lineage())
                                : b.inputs[v]);
    }
    std::vector<const tensor<dyn>*> x;
    for (const tensor<dyn>& one : given) x.push_back(&one);
    now.bound = net_.bound_for(x);
    for (std::size_t v = b.inputs.size(); v < cuts.size(); ++v)
      if (cuts[v] && !(now.bound->layout_of(v) == cuts[v]->lies)) refuse(v);
    now.steps = std::make_shared<const executor::run>(net_.state_, now.bound, b.at, false, &states_);
    now.came.resize(map_.crossings.size());
    now.left.resize(map_.crossings.size());
    now.outputs.resize(my().outputs.size());
    for (const auto& steps : weighted_) now.weighted.emplace_back(steps.size());
    now.weight = rows ? static_cast<double>(rows->lies.dims[0].extent) : 1;
    all_rows += now.weight;
  }
  for (micro_batch& m : b.of) m.weight = options_.loss_is_mean ? m.weight / all_rows : 1;
  for (std::size_t k = 0; k < my().outputs.size(); ++k) {
    b.joins.push_back(join_of_output(b, output_of(k)));
    if (b.joins.back() == rows_join::never)
      throw error(refusal{code::micro_batch_lies_otherwise, static_cast<index_t>(k), of_.micro_batches});
  }
}

// How an output's rows of all micro-batches become those of the batch.
TESSERA_INLINE rows_join pipeline_run::join_of_output(const batch& b, std::size_t v) const {
  const layout& whole = b.bound->layout_of(v);
  if (map_.made_in[v] < 0 || whole.dims.empty()) return rows_join::in_turn;
  if (!b.rows) return b.of.size() == 1 ? rows_join::in_turn : rows_join::never;
  std::optional<rows_join> all;
  for (const micro_batch& m : b.of) {
    if (all && m.bound == b.of[0].bound) continue;  // as the first
    const rows_join one = join_of(whole, *b.rows, m.bound->layout_of(v), m.rows->lies);
    if (all && one != *all) return rows_join::never;
    all = one;
  }
  return *all;
}

// Binds all that goes between stages, in one order everywhere, so that no stage waits for another one to bind.
TESSERA_INLINE void pipeline_run::bind(batch& b) const {
  std::vector<const bound_program*> known;
  for (const micro_batch& m : b.of) {
    if (std::find(known.begin(), known.end(), m.bound.get()) != known.end()) continue;
    known.push_back(m.bound.get());
    for (const crossing& c : map_.crossings) {
      if (is_open(m.bound->layout_of(c.from))) throw error(refusal{code::extent_not_bound}, names_[number_of(c)]);
      if (c.stays) continue;
      for (const bool back : {false, true}) {
        if (back && !(b.trains && has_gradient(b, c))) continue;
        const tessera::engine::call_context context = context_of(b, c, back);
        const auto change = change_of(m, c, back, context);
        if (!change->stays() && change->workers().has(my().team->rank())) change->bind(context);
      }
    }
  }
  for (const tied_parameter& p : tied_) {
    const tessera::engine::call_context context = context_of_return(b, p);
    const auto change = return_of(p, context);
    if (b.trains && is_learned(p.taken) && change->workers().has(my().team->rank())) change->bind(context);
  }
}

// An output of the whole batch, of what micro-batches gave: numbers by their weights, counts added, rows side by side.
TESSERA_INLINE at::Tensor pipeline_run::joined(const batch& b, std::size_t k) const {
  const std::size_t v = output_of(k);
  if (map_.made_in[v] < 0) return b.values[v].detach();  // an input as it came
  const tensor_value is{b.bound->layout_of(v), b.bound->elements[v]};
  const tessera::engine::box_vector& sizes = b.bound->where[v]->extents();
  const at::ScalarType own = tessera::detail::scalar_type_of(is.element);
  const at::ScalarType wide =
      is.layout.dims.empty() ? tessera::detail::added_in(own) : own;  // rounded once, not M times
  at::Tensor all =
      at::zeros(at::IntArrayRef(sizes.begin(), sizes.end()), tessera::detail::options_of(*my().team, wide));
  index_t row = 0;
  for (const micro_batch& m : b.of) {
    const at::Tensor& y = m.outputs[k];
    if (!y.defined()) continue;
    if (b.joins[k] == rows_join::by_place) {
      const index_t times = y.size(0) / m.rows->lies.dims[0].extent;
      index_t from = 0;
      for (const interval& i : m.rows->rows) {
        all.narrow(0, times * i.lo, times * i.size()).copy_(y.detach().narrow(0, from, times * i.size()));
        from += times * i.size();
      }
    } else if (!is.layout.dims.empty()) {
      all.narrow(0, row, y.size(0)).copy_(y.detach());
      row += y.size(0);
    } else if (has_cotangent(is.element)) {
      all += y.detach().to(wide) * m.weight;
    } else {
      all += y;
    }
  }
  return all.to(own);
}

// The outputs of the whole batch, moved off the stages where the program says so.
TESSERA_INLINE std::vector<tensor<dyn>> pipeline_run::leave(batch& b) const {
  const at::NoGradGuard none;
  std::vector<at::Tensor> values(b.bound->where.size());
  for (std::size_t k = 0; k < my().outputs.size(); ++k)
    if (at::Tensor& x = values[output_of(k)]; !x.defined()) x = joined(b, k);
  const auto whole = std::make_shared<const executor::run>(net_.state_, b.bound, b.at);
  for (std::size_t i = 0; i < my().steps.size(); ++i)
    if (map_.part[i] == stage_map::behind) {
      const std::size_t v = my().steps[i].operands[0];
      const at::Tensor x = values[v];
      whole->part(i, i + 1, values);
      values[v] = x;  // for others
    }
  std::vector<tensor<dyn>> all;
  fingerprint from;
  from << my().lineage;
  for (const tensor<dyn>& x : b.inputs) from << x.lineage();
  for (const std::size_t v : my().outputs)
    all.push_back(tessera::detail::tensor_of(my().team, b.bound->where[v], values[v],
                                             tessera::detail::lineage_of(v, {from.value()})));
  for (std::size_t v = 0; v < b.values.size(); ++v)
    if (const at::Tensor& x = b.values[v]; b.trains && x.defined() && x.requires_grad())
      torch::autograd::backward({b.entered[v]}, {x.grad().defined() ? x.grad() : at::zeros_like(x)}, true);
  return all;
}

}  // namespace tessera::nn::engine
