#pragma once

#include <tessera/nn/pipeline/pipeline_run.hpp>

#include <algorithm>
#include <utility>

namespace tessera::nn::engine {

TESSERA_INLINE void pipeline_run::take(batch& b, micro_batch& now, const crossing& c, const at::Tensor& y) const {
  if (b.trains && has_gradient(b, c)) y.requires_grad_();
  if (b.trains) now.came[number_of(c)] = y;
  now.values[c.to] = y;
}

TESSERA_INLINE void pipeline_run::run_nodes(batch& b, const pipeline::operation& x, int part) {
  micro_batch& now = b.of[static_cast<std::size_t>(x.micro_batch)];
  const std::vector<std::size_t>& weighted = weighted_[static_cast<std::size_t>(part)];
  std::size_t next = 0;
  for (std::size_t i = 0; i < my().steps.size();) {
    if (const crossing* c = crossed_[i]; c != nullptr) {
      if (c->sender == part && !c->stays) {
        if (b.trains) now.left[number_of(*c)] = now.values[c->from];
        send(b, *c, now.values[c->from], x, false);
      }
      if (c->receiver == part && !c->stays) take(b, now, *c, receive(b, *c, x, false));
      ++i;
      continue;
    }
    if (map_.part[i] != part) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    const auto is_weighted = [&](std::size_t step) { return next != weighted.size() && weighted[next] == step; };
    while (end < my().steps.size() && crossed_[end] == nullptr && map_.part[end] == part && !is_weighted(end - 1))
      ++end;
    if (!is_weighted(end - 1) || !b.trains) {
      now.steps->part(i, end, now.values);
      next += is_weighted(end - 1);
    } else {
      now.steps->part(i, end - 1, now.values);
      const std::uint64_t since = at::sequence_number::peek();
      now.steps->part(end - 1, end, now.values);
      now.weighted[static_cast<std::size_t>(part)][next++] = roots_of(end - 1, since, now.values);
    }
    i = end;
  }
}

// Where the backward of a step's weights begins, whose nodes were made since then.
TESSERA_INLINE weight_roots pipeline_run::roots_of(std::size_t step, std::uint64_t since,
                                                   const std::vector<at::Tensor>& values) const {
  using torch::autograd::impl::gradient_edge;
  torch::autograd::edge_list made, weights;
  for (const parameter& p : states_[step].parameters)
    if (p.leaf().requires_grad()) weights.push_back(gradient_edge(p.leaf()));
  const executor::step& s = my().steps[step];
  for (int r = 0; r < s.record->plan().outputs(); ++r)
    if (const at::Tensor& y = values[s.first_result + static_cast<std::size_t>(r)]; y.requires_grad())
      made.push_back(gradient_edge(y));
  return weight_root_search(since, std::move(weights))(made);
}

TESSERA_INLINE void pipeline_run::run_own(batch& b, const pipeline::operation& x, int part) {
  micro_batch& now = b.of[static_cast<std::size_t>(x.micro_batch)];
  std::vector<std::size_t> takes, gives;
  const auto once = [](std::vector<std::size_t>& all, std::size_t v) {
    if (std::find(all.begin(), all.end(), v) == all.end()) all.push_back(v);
  };
  for (const crossing& c : map_.crossings) {
    if (c.receiver == part) {
      if (!c.stays) take(b, now, c, receive(b, c, x, false));
      once(takes, c.to);
    }
    if (c.sender == part) once(gives, c.from);
  }
  for (std::size_t i = 0; i < my().steps.size(); ++i)
    for (const std::size_t v : my().steps[i].operands)
      if (map_.part[i] == part && crossed_[i] == nullptr && map_.made_in[v] == stage_map::before) once(takes, v);
  for (std::size_t k = 0; k < now.outputs.size(); ++k)
    if (map_.made_in[output_of(k)] == part) once(gives, output_of(k));
  std::vector<at::Tensor> came;
  for (const std::size_t v : takes) came.push_back(now.values[v]);
  const auto nodes = [&](const std::vector<at::Tensor>& given) {
    check(given.size() == takes.size() ? refusal{} : refusal{code::own_forward_gave, given.size(), takes.size()},
          "run");
    std::vector<at::Tensor> values = now.values, left;
    for (std::size_t k = 0; k < takes.size(); ++k) values[takes[k]] = given[k];
    for (std::size_t i = 0; i < my().steps.size(); ++i) {
      if (map_.part[i] != part || crossed_[i] != nullptr) continue;
      std::vector<std::pair<std::size_t, at::Tensor>> kept;  // for later parts: the last reader of this one lets it go
      for (const std::size_t v : my().steps[i].operands)
        if (std::find(gives.begin(), gives.end(), v) != gives.end()) kept.emplace_back(v, values[v]);
      now.steps->part(i, i + 1, values);
      for (auto& [v, y] : kept) values[v] = std::move(y);
    }
    for (const std::size_t v : gives) left.push_back(values[v]);
    return left;
  };
  const std::vector<at::Tensor> given = options_.forward({stage_, x.chunk, x.micro_batch}, came, nodes);
  check(given.size() == gives.size() ? refusal{} : refusal{code::own_forward_gave, given.size(), gives.size()},
        "forward");
  for (std::size_t k = 0; k < gives.size(); ++k) {
    tessera::detail::check_local(given[k], *now.steps->where(gives[k]), now.bound->elements[gives[k]], *my().team);
    now.values[gives[k]] = given[k];
  }
  for (const crossing& c : map_.crossings) {
    if (c.sender != part || c.stays) continue;
    if (b.trains) now.left[number_of(c)] = now.values[c.from];
    send(b, c, now.values[c.from], x, false);
  }
}

TESSERA_INLINE void pipeline_run::forward(batch& b, const pipeline::operation& x) {
  micro_batch& now = b.of[static_cast<std::size_t>(x.micro_batch)];
  const int part = of_.part_of(stage_, x.chunk);
  const c10::AutoGradMode graph(b.trains);
  for (const crossing& c : map_.crossings)
    if (at::Tensor& y = now.left[number_of(c)]; c.stays && c.receiver == part) {
      take(b, now, c, y.detach());
      if (!b.trains) y.reset();
    }
  if (options_.forward) run_own(b, x, part);
  else run_nodes(b, x, part);
  for (const crossing& c : map_.crossings)
    if (c.stays && c.sender == part) now.left[number_of(c)] = now.values[c.from];
  for (std::size_t k = 0; k < now.outputs.size(); ++k)
    if (map_.made_in[output_of(k)] == part) now.outputs[k] = now.values[output_of(k)];
  for (std::size_t v = 0; v < now.values.size(); ++v)
    if (map_.made_in[v] == part) now.values[v].reset();
}

// What is recomputed has one backward, and so have weights that several steps of the part share.
TESSERA_INLINE std::vector<std::size_t> pipeline_run::steps_with_weights(int part) const {
  std::vector<std::size_t> steps;
  std::vector<const void*> seen;
  for (std::size_t i = 0; i < map_.part.size(); ++i) {
    if (map_.part[i] != part || crossed_[i] != nullptr) continue;
    for (const executor::recomputed_steps& r : my().recomputed)
      if (r.first <= i && i < r.end) return {};
    for (const parameter& p : states_[i].parameters) {
      const void* leaf = p.stored().local().unsafeGetTensorImpl();
      if (std::find(seen.begin(), seen.end(), leaf) != seen.end()) return {};
      seen.push_back(leaf);
    }
    if (!states_[i].parameters.empty()) steps.push_back(i);
  }
  return steps;
}

TESSERA_INLINE void pipeline_run::backward(batch& b, const pipeline::operation& x) {
  micro_batch& now = b.of[static_cast<std::size_t>(x.micro_batch)];
  const int part = of_.part_of(stage_, x.chunk);
  std::vector<at::Tensor> from, gradients;
  for (const crossing& c : map_.crossings) {
    if (c.sender != part || !has_gradient(b, c)) continue;
    at::Tensor& y = now.left[number_of(c)];
    const at::Tensor g = c.stays ? now.came[number_of(c)].grad() : receive(b, c, x, true);
    if (y.requires_grad() && g.defined()) {
      from.push_back(y);
      gradients.push_back(g);
    }
    y.reset();
    if (c.stays) now.came[number_of(c)].reset();
  }
  if (map_.made_in[output_of(0)] == part && now.outputs[0].requires_grad()) {
    const tensor<dyn> loss = tessera::detail::tensor_of(my().team, now.bound->where[output_of(0)], now.outputs[0], 0);
    from.push_back(now.outputs[0]);
    gradients.push_back(tessera::detail::seed_of(loss) * now.weight);
  }
  if (x.does == pipeline::work::backward_of_inputs && !weighted_[static_cast<std::size_t>(part)].empty())
    backward_of_inputs(b, now, part, from, gradients);
  else if (const backward_now window(*this, b, !options_.backward); !from.empty() && options_.backward)
    options_.backward({stage_, x.chunk, x.micro_batch}, from, gradients);
  else if (!from.empty()) torch::autograd::backward(from, gradients);
  for (std::size_t k = 0; k < now.outputs.size(); ++k)
    if (map_.made_in[output_of(k)] == part) now.outputs[k] = now.outputs[k].detach();
  for (const crossing& c : map_.crossings) {
    if (c.stays || c.receiver != part || !has_gradient(b, c)) continue;
    at::Tensor& y = now.came[number_of(c)];
    const at::Tensor g = y.grad();
    send(b, c, g.defined() ? g : at::zeros_like(y), x, true);
    y.reset();
  }
}

// Stops at what steps with weights gave, so that the backward of weights goes on from there. What comes to a part are
// values of others, and inputs of the network.
TESSERA_INLINE void pipeline_run::backward_of_inputs(const batch& b, micro_batch& now, int part,
                                                     const std::vector<at::Tensor>& from,
                                                     const std::vector<at::Tensor>& gradients) const {
  using torch::autograd::impl::gradient_edge;
  torch::autograd::edge_list roots, ends;
  for (const at::Tensor& y : from) roots.push_back(gradient_edge(y));
  std::vector<at::Tensor> leaves;
  for (const crossing& c : map_.crossings)
    if (const at::Tensor& x = now.came[number_of(c)]; c.receiver == part && x.defined() && x.requires_grad()) {
      leaves.push_back(x);
      ends.push_back(gradient_edge(x));
    }
  for (const at::Tensor& x : b.values)
    if (x.defined() && x.requires_grad()) {
      leaves.push_back(x);
      ends.push_back(gradient_edge(x));
    }
  std::vector<weight_roots>& all = now.weighted[static_cast<std::size_t>(part)];
  for (const weight_roots& step : all)
    for (const weight_root& root : step) ends.insert(ends.end(), root.from.begin(), root.from.end());
  if (roots.empty() || ends.empty()) return;
  const backward_now window(*this, b);
  const auto found = torch::autograd::Engine::get_default_engine().execute(roots, gradients, true, false, false, ends);
  auto next = found.begin();
  for (at::Tensor& x : leaves) {
    const at::Tensor& g = *next++;
    if (g.defined()) x.mutable_grad() = x.grad().defined() ? x.grad() + g : g;
  }
  for (weight_roots& step : all)
    for (weight_root& root : step)
      for (std::size_t i = 0; i < root.from.size(); ++i) root.gradients.push_back(*next++);
}

TESSERA_INLINE void pipeline_run::backward_of_weights(batch& b, const pipeline::operation& x) const {
  const int part = of_.part_of(stage_, x.chunk);
  std::vector<weight_roots>& all =
      b.of[static_cast<std::size_t>(x.micro_batch)].weighted[static_cast<std::size_t>(part)];
  std::vector<weight_root> calls;
  for (std::size_t k = all.size(); k-- > 0;)
    for (weight_root& root : std::exchange(all[k], {})) {
      weight_root now{{}, std::move(root.weights)};
      for (std::size_t r = 0; r < root.gradients.size(); ++r)
        if (root.gradients[r].defined()) {
          now.from.push_back(root.from[r]);
          now.gradients.push_back(root.gradients[r]);
        }
      if (!now.from.empty()) calls.push_back(std::move(now));
    }
  for (weight_root& now : calls) {
    const backward_now window(*this, b, &now == &calls.back());
    torch::autograd::Engine::get_default_engine().execute(now.from, now.gradients, false, false, true, now.weights);
    now = {};
  }
}

TESSERA_INLINE void pipeline_run::complete_gradients(batch& b) {
  if (std::exchange(b.complete, true)) return;
  held_gradients& held = *net_.held_gradients();
  if (stage_ >= 0 && b.last && !held.members().empty()) held.reduce(b.at);
  return_tied(b);
  net_.each_parameter([](const parameter& p) {  // of other stages: what it has none of, its gradient has none of
    const at::Tensor& x = p.stored().local();
    if (x.requires_grad() && x.numel() == 0 && !x.grad().defined()) x.mutable_grad() = at::zeros_like(x);
  });
}

// Outputs that lie in a parameter's memory stay what they were.
TESSERA_INLINE void pipeline_run::step(batch& b, const pipeline::operation& x) {
  complete_gradients(b);
  for (micro_batch& now : b.of)
    for (at::Tensor& y : now.outputs)
      net_.each_parameter([&](const parameter& p) {
        if (y.defined() && y.is_alias_of(p.stored().local())) y = y.clone();
      });
  options_.step({stage_, x.chunk, x.micro_batch});
}

}  // namespace tessera::nn::engine
