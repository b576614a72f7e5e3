#pragma once

#include <tessera/nn/parameter/refusing_gradient.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/nn/training/average.hpp>
#include <tessera/nn/training/small_state.hpp>
#include <tessera/tensor/change/change.hpp>

#include <ATen/OpMathType.h>

#include <algorithm>
#include <cmath>

namespace tessera::nn {

namespace engine {

/// How a tensor lies when workers share what each of them has a copy of.
inline layout shared_out(layout x) {
  for (int a = 0; a < x.placements.count; ++a) {
    const bool copies = x.placements[a].kind == placement::invariant || x.placements[a].kind == placement::replicate;
    if (copies && x.mesh.axes[a].extent > 1) tessera::detail::spread(x, a);
  }
  return x;
}

TESSERA_INLINE averaged_tensor::averaged_tensor(const state_tensor& t)
    : key(t.serial() == serial_view{} ? t.key() : t.path()), stored(t.stored()) {}

}  // namespace engine

struct average::kept_state {
  team_handle team;
  average_options options;
  std::vector<engine::averaged_tensor> all;
  index_t updates = 0;
  bool swapped = false;
  bool trained = false;  ///< while they were swapped in

  void check_free() {
    if (swapped) throw error(refusal{code::averages_swapped_in}, team->label());
    if (std::exchange(trained, false)) throw error(refusal{code::average_trained}, team->label());
  }
};

TESSERA_INLINE average::average(const team_handle& team, std::vector<engine::averaged_tensor> all,
                                const average_options& options, call_site at)
    : kept_(std::make_shared<kept_state>(kept_state{team, options, std::move(all)})) {
  if (!(options.decay >= 0 && options.decay <= 1))
    throw error(refusal{code::decay_out_of_range}, fmt::format("{}", options.decay));
  const engine::scoped_context now(*team, {.why = purpose::state, .name = "beginning averages", .at = at});
  const at::NoGradGuard no_graph;
  for (engine::averaged_tensor& one : kept_->all) {
    const team_handle& its = one.stored.team();
    const engine::shared_layout_handle tiles = its->intern(engine::shared_out(one.stored.layout()));
    const at::Tensor mine = engine::change_layout(its, one.stored.where(), tiles, one.stored.local().detach());
    const at::ScalarType wide = one.of ? at::toOpMathType(mine.scalar_type()) : mine.scalar_type();
    one.kept = tessera::detail::tensor_of(its, tiles, mine.to(wide, /*non_blocking=*/false, /*copy=*/true));
  }
}

TESSERA_INLINE void average::update(call_site at) {
  kept_state& my = *kept_;
  my.check_free();
  const engine::scoped_context now(*my.team, {.why = purpose::state, .name = "updating averages", .at = at});
  const at::NoGradGuard no_graph;
  const double n = static_cast<double>(my.updates);
  const double decay = my.options.warms_up ? std::min(my.options.decay, (1 + n) / (10 + n)) : my.options.decay;
  for (engine::averaged_tensor& one : my.all) {
    if (one.of && my.options.only_trained && !one.stored.local().requires_grad()) continue;
    const at::Tensor mine =
        engine::change_layout(one.stored.team(), one.stored.where(), one.kept.where(), one.stored.local().detach());
    const at::Tensor& kept = one.kept.local();
    if (!one.of) kept.copy_(mine);
    // Two roundings, wherever an element lies: a sum with a factor is one in some loops of LibTorch and two in others.
    else kept.mul_(decay).add_(mine.to(kept.scalar_type()).mul(1 - decay));
  }
  ++my.updates;
}

/// What stood where an average stands now.
struct average::swapped::set_aside {
  const engine::averaged_tensor* of;
  at::Tensor values;
  at::Tensor gradient;  ///< of a parameter that is trained
  at::Tensor refusing;
  std::int64_t version = 0;  ///< when the average stood there
};

TESSERA_INLINE average::swapped::swapped(std::shared_ptr<kept_state> of) : of_(std::move(of)) { of_->swapped = true; }

TESSERA_INLINE average::swapped::swapped(std::shared_ptr<kept_state> of, call_site at)
    : swapped((of->check_free(), std::move(of))) {
  const engine::scoped_context now(*of_->team, {.why = purpose::state, .name = "swapping averages in", .at = at});
  const at::NoGradGuard no_graph;
  for (const engine::averaged_tensor& one : of_->all)
    if (one.of) one.of->check_reduced();
  for (const engine::averaged_tensor& one : of_->all) {
    const at::Tensor& there = one.stored.local();
    const at::Tensor average = engine::change_layout(one.stored.team(), one.kept.where(), one.stored.where(),
                                                     one.kept.local().to(there.scalar_type()));
    all_.push_back({&one, there.clone(), there.grad(), {}});
    there.copy_(average);
    if (there.requires_grad()) {
      all_.back().refusing = engine::refusing_gradient(there, refusal{code::average_trained}, one.key);
      there.mutable_grad() = all_.back().refusing;
    }
    all_.back().version = there._version();
  }
}

TESSERA_INLINE average::swapped::~swapped() {
  const at::NoGradGuard no_graph;
  for (const set_aside& one : all_) {
    const at::Tensor& there = one.of->stored.local();
    if (one.of->of && there._version() != one.version) of_->trained = true;
    if (one.refusing.defined()) {
      if (!there.grad().is_same(one.refusing)) of_->trained = true;
      there.mutable_grad() = one.gradient;
    }
    there.copy_(one.values);
  }
  of_->swapped = false;
}

TESSERA_INLINE index_t average::updates() const { return kept_->updates; }

TESSERA_INLINE std::vector<engine::averaged_tensor>& average::tensors() { return kept_->all; }

TESSERA_INLINE state_dict average::state() const { return {{"updates", at::scalar_tensor(kept_->updates, at::kLong)}}; }

TESSERA_INLINE void average::load_state(const state_dict& numbers) {
  const engine::small_state given(numbers, {{"updates", at::kLong}});
  const index_t updates = given.at<index_t>("updates");
  if (updates < 0) given.refuse(fmt::format("{} updates", updates));
  kept_->updates = updates;
}

}  // namespace tessera::nn
