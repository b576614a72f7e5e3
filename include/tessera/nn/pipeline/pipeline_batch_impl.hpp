#pragma once

#include <tessera/nn/pipeline/micro_batch_rows.hpp>
#include <tessera/nn/pipeline/pipeline_batch.hpp>

#include <algorithm>

namespace tessera::nn::engine {

TESSERA_INLINE auto pipeline_run::begin(std::span<const tensor<dyn>> inputs, bool trains, call_site at) -> batch {
  if (inputs.size() != static_cast<std::size_t>(my().program.inputs))
    throw error(refusal{code::wrong_number_of_operands, my().program.inputs, inputs.size()}, my().team->label());
  for (const tensor<dyn>& x : inputs)
    if (x.team()->shared_carrier() != my().team->shared_carrier()) throw error(refusal{code::other_team});
  batch b;
  b.trains = trains;
  b.at = at;
  b.inputs.assign(inputs.begin(), inputs.end());
  std::vector<const tensor<dyn>*> given;
  for (const tensor<dyn>& x : b.inputs) given.push_back(&x);
  b.bound = net_.bound_for(given);
  if (trains && !b.bound->values[my().outputs.at(0)].layout.dims.empty())
    throw error(refusal{code::pipeline_has_no_loss, b.bound->values[my().outputs[0]].layout.dims.count});
  enter(b);
  cut(b);
  bind(b);
  if (net_.compares_now()) agree_on_copies(net_, at);
  return b;
}

// Moves inputs to where stages take them, once for the whole batch.
TESSERA_INLINE void pipeline_run::enter(batch& b) const {
  const c10::AutoGradMode graph(b.trains && c10::GradMode::is_enabled());
  b.entered.resize(b.bound->values.size());
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

// Cuts rows into micro-batches, and binds the program for each.
TESSERA_INLINE void pipeline_run::cut(batch& b) const {
  const int rank = my().team->rank();
  const auto is_whole = [&](std::size_t v) {
    const auto& whole = options_.whole_inputs;
    while (v >= b.inputs.size()) {  // what an input became
      const auto maker = std::find_if(my().steps.begin(), my().steps.end(),
                                      [&](const executor::step& s) { return s.first_result == v; });
      v = maker->operands[0];
    }
    return std::find(whole.begin(), whole.end(), v) != whole.end();
  };
  double all_rows = 0;
  std::vector<double> rows_had;
  for (int m = 0; m < of_.micro_batches; ++m) {
    micro_batch& now = b.of.emplace_back();
    now.values.resize(b.values.size());
    std::vector<tensor<dyn>> given;
    std::vector<micro_batch_rows> cuts(b.values.size());
    const std::vector<interval>* rows = nullptr;
    for (std::size_t v = 0; v < b.values.size(); ++v) {
      const at::Tensor& x = b.values[v];
      if (!x.defined()) continue;
      const layout& lies = b.bound->values[v].layout;
      now.values[v] = x;
      if (is_whole(v)) {
        if (v < b.inputs.size()) given.push_back(b.inputs[v]);
        continue;
      }
      const auto refuse = [&](const reason& why) { throw error(refusal{why, static_cast<index_t>(v), m}); };
      if (lies.dims.empty()) refuse(code::micro_batch_lies_otherwise);
      const std::optional<micro_batch_rows> mine = rows_of(lies, rank, m, of_.micro_batches);
      if (!mine) refuse(code::micro_batch_lies_otherwise);
      const index_t wanted = lies.dims[0].extent;
      if (mine->lies.dims[0].extent == 0 || (options_.rows == pipeline::micro_batch_sizes::equal &&
                                             mine->lies.dims[0].extent * of_.micro_batches != wanted))
        throw error(refusal{code::micro_batches_differ, wanted, of_.micro_batches});
      cuts[v] = *mine;
      now.values[v] = x.narrow(0, mine->here.lo, mine->here.size());
      if (v < b.inputs.size())
        given.push_back(tessera::detail::tensor_of(my().team, my().team->intern(mine->lies), now.values[v].detach(),
                                                   b.inputs[v].lineage()));
      else if (rows != nullptr && *rows != cuts[v].rows) refuse(code::micro_batch_lies_otherwise);
      const bool taken = v >= b.inputs.size() || stage_of(lies, axis_) >= 0;  // by a stage
      if (!taken) continue;
      if (rows != nullptr && *rows != cuts[v].rows) refuse(code::micro_batch_lies_otherwise);
      if (rows == nullptr) rows_had.push_back(static_cast<double>(mine->lies.dims[0].extent));
      rows = &cuts[v].rows;
    }
    std::vector<const tensor<dyn>*> x;
    for (const tensor<dyn>& one : given) x.push_back(&one);
    now.bound = net_.bound_for(x);
    for (std::size_t v = b.inputs.size(); v < b.values.size(); ++v)
      if (b.values[v].defined() && !is_whole(v) && !(now.bound->values[v].layout == cuts[v].lies))
        throw error(refusal{code::micro_batch_lies_otherwise, static_cast<index_t>(v), m});
    now.steps = std::make_shared<const executor::run>(net_.state_, now.bound, b.at);
    now.came.resize(map_.crossings.size());
    now.left.resize(map_.crossings.size());
    now.outputs.resize(my().outputs.size());
    for (const auto& steps : weighted_) now.weighted.emplace_back(steps.size());
    all_rows += rows_had.size() > static_cast<std::size_t>(m) ? rows_had.back() : 0;
  }
  if (all_rows > 0 && options_.loss_is_mean)
    for (std::size_t m = 0; m < b.of.size(); ++m) b.of[m].weight = rows_had[m] / all_rows;
}

// Binds all that goes between stages, in one order everywhere, so that no stage waits for another one to bind.
TESSERA_INLINE void pipeline_run::bind(batch& b) const {
  std::vector<const executor::bound_program*> known;
  for (const micro_batch& m : b.of) {
    if (std::find(known.begin(), known.end(), m.bound.get()) != known.end()) continue;
    known.push_back(m.bound.get());
    for (const crossing& c : map_.crossings) {
      if (c.stays) continue;
      for (const bool back : {false, true}) {
        if (back && !(b.trains && has_gradient(b, c))) continue;
        const tessera::engine::call_context context = context_of(b, c, back);
        const auto change = change_of(m, c, back, context);
        if (!change->stays() && change->workers().has(my().team->rank())) change->bind(context);
      }
    }
  }
}

// The outputs of the whole batch, moved off the stages where the program says so.
TESSERA_INLINE std::vector<tensor<dyn>> pipeline_run::leave(batch& b) const {
  const at::NoGradGuard none;
  std::vector<at::Tensor> values(b.bound->values.size());
  for (std::size_t k = 0; k < my().outputs.size(); ++k) {
    const std::size_t v = output_of(k);
    const tessera::engine::shared_layout_handle& lies = b.bound->where[v];
    if (values[v].defined()) continue;
    if (map_.made_in[v] < 0) {  // an input as it came
      values[v] = b.values[v].detach();
      continue;
    }
    const tessera::engine::box_vector& sizes = lies->extents();
    values[v] =
        at::zeros(at::IntArrayRef(sizes.begin(), sizes.end()),
                  tessera::detail::options_of(*my().team, tessera::detail::scalar_type_of(b.bound->values[v].element)));
    index_t row = 0;
    for (const micro_batch& m : b.of) {
      const at::Tensor& y = m.outputs[k];
      if (!y.defined()) continue;
      if (y.dim() == 0) {
        values[v] += y.detach() * m.weight;
      } else {
        values[v].narrow(0, row, y.size(0)).copy_(y.detach());
        row += y.size(0);
      }
    }
  }
  const auto whole = std::make_shared<const executor::run>(net_.state_, b.bound, b.at);
  for (std::size_t i = 0; i < my().steps.size(); ++i)
    if (map_.part[i] == stage_map::behind) {
      const std::size_t v = my().steps[i].operands[0];
      const at::Tensor x = values[v];
      whole->part(i, i + 1, values);
      values[v] = x;
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
