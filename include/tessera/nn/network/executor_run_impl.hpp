#pragma once

#include <tessera/nn/network/executor.hpp>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>

namespace tessera::detail {

/// Throws what a layer threw as an error that names the layer; the first is nested in it.
[[noreturn]] inline void threw(const char* layer, const std::string& why) {
  std::throw_with_nested(error(refusal{code::layer_threw}, fmt::format("{}: {}", layer, why)));
}

}  // namespace tessera::detail

namespace tessera::nn::engine {

/// One call of a program: it runs the steps, and those that are recomputed once more for their backward.
class executor::run : public std::enable_shared_from_this<run> {
 public:
  /// By all workers, or each step by those alone that hold its first operand; with the network's states, or others.
  run(std::shared_ptr<state> of, std::shared_ptr<const bound_program> bound, call_site at, bool by_all = true,
      const std::vector<layer_state>* states = nullptr)
      : my_(std::move(of)),
        bound_(std::move(bound)),
        at_(at),
        by_all_(by_all),
        training_(my_->training),
        states_(states != nullptr ? states : &my_->states) {
    if (bound_->is_open) open_ = *bound_;
  }

  /// Where a value lies: with the extent that data gave, behind the step that gives it.
  const shared_layout_handle& where(std::size_t v) const { return now().where[v]; }

  /// All steps, from the program's inputs.
  void all(std::vector<at::Tensor>& values) const { part(0, my_->steps.size(), values); }
  /// Steps [first, end), whose operands are there.
  void part(std::size_t first, std::size_t end, std::vector<at::Tensor>& values) const {
    steps(first, end, 0, values, states_->data() + first, purpose::forward);
  }

 private:
  class again;

  /// Steps [first, end) with their states; what is recomputed, from `next` on, keeps what comes in alone.
  void steps(std::size_t first, std::size_t end, std::size_t next, std::vector<at::Tensor>& values,
             const layer_state* states, purpose why) const {
    for (std::size_t i = first; i < end;) {
      while (next < my_->recomputed.size() && my_->recomputed[next].first < i) ++next;
      if (c10::GradMode::is_enabled() && next < my_->recomputed.size() && my_->recomputed[next].first == i) {
        recomputed(next, values, states + (i - first), why);
        i = my_->recomputed[next].end;
        for (std::size_t k = my_->recomputed[next].first; k < i; ++k)
          for (const std::size_t v : my_->steps[k].done_with) values[v].reset();
        ++next;
      } else {
        one(i, values, states[i - first], why);
        ++i;
      }
    }
  }

  void one(std::size_t i, std::vector<at::Tensor>& values, const layer_state& mine, purpose why) const;
  /// A step bound for its operands. Where data size its results, that is found when it first runs.
  const bound_step& bound(std::size_t i, const std::vector<at::Tensor>& operands, const layer_state& mine) const;
  const bound_program& now() const { return open_ ? *open_ : *bound_; }
  std::vector<layer_tensor> shown(std::size_t i, const std::vector<at::Tensor>& operands, const layer_state& mine,
                                  const std::vector<at::Tensor>& results) const;
  void recomputed(std::size_t which, std::vector<at::Tensor>& values, const layer_state* states, purpose why) const;

  std::shared_ptr<state> my_;
  std::shared_ptr<const bound_program> bound_;
  mutable std::optional<bound_program> open_;  ///< the same with what data have given so far
  call_site at_;
  bool by_all_;
  bool training_;
  const std::vector<layer_state>* states_;  ///< of all steps
};

TESSERA_INLINE const bound_step& executor::run::bound(std::size_t i, const std::vector<at::Tensor>& operands,
                                                      const layer_state& mine) const {
  if (const auto& known = now().steps[i]) return *known;
  const step& node = my_->steps[i];
  std::vector<shared_layout_handle> where;
  for (const std::size_t v : node.operands) where.push_back(open_->where[v]);
  std::optional<open_extents> extent;
  if (node.record->measured != nullptr) {
    const layout& first = where.at(0)->layout();
    const crew& workers = by_all_ ? my_->team->crew_of(first.mesh) : my_->team->crew_of(first);
    extent = node.record->measured(node.record->layer, {my_->team, where, operands, workers, mine, training_});
  }
  open_->steps[i] = my_->bound_step_for(i, *open_, extent);
  const bound_step& b = *open_->steps[i];
  for (std::size_t r = 0; r < b.gives.size(); ++r) {
    shared_layout_handle& foretold = open_->where[node.first_result + r];
    if (!is_open(foretold->layout()) && foretold != b.result(r))
      throw error(refusal{code::extent_not_bound, static_cast<index_t>(r)}, node.called);
    foretold = b.result(r);
  }
  return b;
}

/// The operands and results of a step, for an observer.
TESSERA_INLINE std::vector<layer_tensor> executor::run::shown(std::size_t i, const std::vector<at::Tensor>& operands,
                                                              const layer_state& mine,
                                                              const std::vector<at::Tensor>& results) const {
  const step& node = my_->steps[i];
  std::vector<layer_tensor> all;
  for (std::size_t k = 0; k < operands.size(); ++k)
    all.push_back({layer_tensor::operand, static_cast<int>(k), {}, where(node.operands[k]), operands[k]});
  for (std::size_t k = 0; k < mine.parameters.size(); ++k) {
    const tensor<dyn>& stored = mine.parameters[k].stored();
    all.push_back(
        {layer_tensor::parameter, static_cast<int>(k), mine.parameters[k].path(), stored.where(), stored.local()});
  }
  for (std::size_t k = 0; k < results.size(); ++k)
    all.push_back({layer_tensor::result, static_cast<int>(k), {}, where(node.first_result + k), results[k]});
  return all;
}

TESSERA_INLINE void executor::run::one(std::size_t i, std::vector<at::Tensor>& values, const layer_state& mine,
                                       purpose why) const {
  const step& node = my_->steps[i];
  const scoped_context now_running(*my_->team, {.why = why, .name = node.called, .at = at_});
  for (const parameter& w : mine.parameters) w.check_element();
  for (const buffer& b : mine.buffers) b.check_copies();  // how often the layer drew among them
  std::vector<at::Tensor> operands;
  for (const std::size_t v : node.operands) operands.push_back(values[v]);
  for (const std::size_t v : node.done_with) values[v].reset();
  struct drop_guard {  // of a layer that throws
    const std::vector<parameter>& all;
    ~drop_guard() {
      for (const parameter& w : all) w.drop();
    }
  } const taken{mine.parameters};
  observed_layer seen(node.seen, why);
  std::vector<at::Tensor> results = [&] {
    try {
      const bound_layer& layer = bound(i, operands, mine).layer;
      return node.record->forward({layer, operands, mine, training_, node.number, my_->compares_indices});
    } catch (const error&) {
      throw;
    } catch (const c10::Error& e) {
      tessera::detail::threw(node.called, e.what_without_backtrace());
    } catch (const std::exception& e) {
      tessera::detail::threw(node.called, e.what());
    }
  }();
  seen.gave(results, [&] { return shown(i, operands, mine, results); });
  for (const parameter& w : mine.parameters) w.let_go(results);
  for (std::size_t k = 0; k < results.size(); ++k) {
    const std::size_t v = node.first_result + k;
    tessera::detail::check_local(results[k], *where(v), bound_->elements[v], *my_->team);
    values[v] = std::move(results[k]);
  }
}

/// The gradient of recomputed steps. They run again from their inputs, with the buffers as they were; what they assign
/// to buffers is dropped. It sees inputs and parameters through aliases, whose gradients it gives on, so hooks on them
/// hear of one gradient.
class executor::run::again final : public torch::autograd::Node {
 public:
  again(std::shared_ptr<const run> of, std::size_t which, const std::vector<at::Tensor>& values,
        std::vector<layer_state> states)
      : of_(std::move(of)), which_(which), states_(std::move(states)) {
    for (const std::size_t v : part().reads) {
      inputs_.emplace_back(values[v], false);
      add_next_edge(torch::autograd::impl::gradient_edge(values[v]));
    }
    for (const layer_state& s : states_)
      for (const parameter& p : s.parameters) {
        versions_.push_back(p.stored().local()._version());
        add_next_edge(torch::autograd::impl::gradient_edge(p.leaf()));
      }
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const bool differentiated = c10::GradMode::is_enabled();
    const c10::AutoGradMode record(true);
    std::vector<at::Tensor> values(of_->bound_->where.size());
    torch::autograd::edge_list to;
    const auto alias = [&](const at::Tensor& x) {
      to.push_back(torch::autograd::impl::gradient_edge(x));
      return x;
    };
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      const at::Tensor x = inputs_[k].unpack();
      values[part().reads[k]] = x.requires_grad() ? alias(at::alias(x)) : x;
    }
    std::vector<layer_state> states(states_.size());
    auto version = versions_.begin();
    for (std::size_t i = 0; i < states.size(); ++i) {
      for (const parameter& p : states_[i].parameters) {
        if (p.stored().local()._version() != *version++) throw error(refusal{code::parameter_changed}, p.path());
        states[i].parameters.push_back(p.alias());
        if (p.leaf().requires_grad()) alias(states[i].parameters.back().leaf());
      }
      for (const buffer& b : states_[i].buffers) states[i].buffers.push_back(b.clone());
    }
    of_->steps(part().first, part().end, which_ + 1, values, states.data(), purpose::backward);
    torch::autograd::edge_list from;
    torch::autograd::variable_list given;
    std::size_t k = 0;
    for (const std::size_t v : part().gives) {
      const at::Tensor& y = values[v];
      at::Tensor& g = gradients[k++];
      if (!y.requires_grad()) continue;
      from.push_back(torch::autograd::impl::gradient_edge(y));
      given.push_back(g.defined() ? std::move(g) : at::zeros_like(y));
    }
    values.clear();
    gradients.clear();
    states.clear();
    torch::autograd::variable_list all(num_outputs());
    if (from.empty()) return all;
    const auto found =
        torch::autograd::Engine::get_default_engine().execute(from, given, differentiated, differentiated, false, to);
    auto next = found.begin();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (next_edge(i).is_valid()) all[i] = *next++;
    return all;
  }
  void release_variables() override {
    for (torch::autograd::SavedVariable& x : inputs_) x.reset_data();
  }
  std::string name() const override { return "tessera::recompute"; }

 private:
  const recomputed_steps& part() const { return of_->my_->recomputed[which_]; }

  std::shared_ptr<const run> of_;
  std::size_t which_;
  std::vector<torch::autograd::SavedVariable> inputs_;
  std::vector<layer_state> states_;     // with buffers of their own
  std::vector<std::int64_t> versions_;  // of the parameters
};

TESSERA_INLINE void executor::run::recomputed(std::size_t which, std::vector<at::Tensor>& values,
                                              const layer_state* states, purpose why) const {
  const recomputed_steps& part = my_->recomputed[which];
  const auto has_graph = [](const at::Tensor& x) { return x.requires_grad(); };
  bool tracked = std::any_of(part.reads.begin(), part.reads.end(), [&](std::size_t v) { return has_graph(values[v]); });
  std::vector<layer_state> before(part.end - part.first);
  for (std::size_t i = 0; i < before.size(); ++i) {
    before[i].parameters = states[i].parameters;
    for (const parameter& p : states[i].parameters) tracked = tracked || has_graph(p.stored().local());
    for (const buffer& b : states[i].buffers) before[i].buffers.push_back(b.clone());
  }
  std::vector<at::Tensor> local(values.size());
  {
    const at::NoGradGuard no_graph;
    for (const std::size_t v : part.reads) local[v] = values[v].detach();
    steps(part.first, part.end, which + 1, local, states, why);
  }
  const auto node =
      tracked ? tessera::detail::make_node<again>(shared_from_this(), which, values, std::move(before)) : nullptr;
  for (const std::size_t v : part.gives) {
    const at::Tensor& y = local[v];
    if (!tracked) {
      values[v] = y;
      continue;
    }
    values[v] = y.variable_data();
    torch::autograd::impl::set_version_counter(values[v], torch::autograd::impl::version_counter(y));
    const auto input_number = node->add_input_metadata(values[v]);
    if (y.is_floating_point() || y.is_complex())
      torch::autograd::impl::set_gradient_edge(values[v], {node, input_number});
  }
}

}  // namespace tessera::nn::engine
