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

/// How workers have a tensor where it is used: a bundle whole, so that its members are ranges of it.
inline shared_layout_handle used_as(const state_value& v) {
  if (v.members.empty()) return v.lies.where();
  layout whole = one_number(v.lies.layout().mesh);
  dimension flat;
  flat.extent = v.lies.layout().dims[0].extent;
  whole.dims.push(flat);
  return v.lies.team()->intern(whole);
}

/// A change of layout of a value, but of what workers have of their own: that is no copy of others'.
inline at::Tensor changed(const state_value& v, const shared_layout_handle& from, const shared_layout_handle& to,
                          const at::Tensor& x) {
  return v.alike ? change_layout(v.lies.team(), from, to, x) : x;
}

TESSERA_INLINE averaged_tensor::averaged_tensor(const state_tensor& t, bool stepped)
    : averaged_tensor(state_value{t.serial() == serial_view{} ? t.key() : t.path(), t.stored(), stepped}) {}

}  // namespace engine

struct average::kept_state {
  team_handle team;
  average_options options;
  std::vector<engine::averaged_tensor> all;
  std::vector<engine::state_value> kept{};  ///< of each of them
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
  for (const engine::averaged_tensor& one : kept_->all) {
    engine::state_value kept = one.of;
    kept.waiting.reset();
    const tensor<dyn>& there = one.of.lies;
    const team_handle& its = there.team();
    const engine::shared_layout_handle tiles =
        one.of.alike ? its->intern(engine::shared_out(there.layout())) : there.where();
    const at::Tensor mine = engine::changed(one.of, there.where(), tiles, there.local().detach());
    const at::ScalarType wide = one.of.stepped ? at::toOpMathType(mine.scalar_type()) : mine.scalar_type();
    kept.lies = tessera::detail::tensor_of(its, tiles, mine.to(wide, /*non_blocking=*/false, /*copy=*/true));
    kept_->kept.push_back(std::move(kept));
  }
}

TESSERA_INLINE void average::update(call_site at) {
  kept_state& my = *kept_;
  my.check_free();
  const engine::scoped_context now(*my.team, {.why = purpose::state, .name = "updating averages", .at = at});
  const at::NoGradGuard no_graph;
  const double n = static_cast<double>(my.updates);
  const double decay = my.options.warms_up ? std::min(my.options.decay, (1 + n) / (10 + n)) : my.options.decay;
  for (std::size_t i = 0; i < my.all.size(); ++i) {
    const engine::state_value& of = my.all[i].of;
    if (of.stepped && my.options.only_trained && !of.lies.local().requires_grad()) continue;
    const tensor<dyn>& lies = my.kept[i].lies;
    const at::Tensor mine = engine::changed(of, of.lies.where(), lies.where(), of.lies.local().detach());
    const at::Tensor& kept = lies.local();
    if (!of.stepped) kept.copy_(mine);
    // Two roundings, wherever an element lies: a sum with a factor is one in some loops of LibTorch and two in others.
    else kept.mul_(decay).add_(mine.to(kept.scalar_type()).mul(1 - decay));
  }
  ++my.updates;
}

/// A tensor of LibTorch while averages stand in the network's place.
struct average::swapped::set_aside {
  at::Tensor there;
  at::Tensor values;    ///< what stood where an average stands now
  at::Tensor gradient;  ///< of what is trained
  at::Tensor refusing;
  std::int64_t version = 0;  ///< when the average stood there
  bool stepped = true;
};

TESSERA_INLINE average::swapped::swapped(std::shared_ptr<kept_state> of) : of_(std::move(of)) { of_->swapped = true; }

TESSERA_INLINE average::swapped::swapped(std::shared_ptr<kept_state> of, call_site at)
    : swapped((of->check_free(), std::move(of))) {
  const engine::scoped_context now(*of_->team, {.why = purpose::state, .name = "swapping averages in", .at = at});
  const at::NoGradGuard no_graph;
  for (const engine::averaged_tensor& one : of_->all) {
    one.of.check_reduced();
    if (one.stored) one.stored->check_reduced();
  }
  const auto refuse_gradient = [](set_aside& one, const std::string& name) {
    one.gradient = one.there.grad();
    one.refusing = engine::refusing_gradient(one.there, refusal{code::average_trained}, name);
    one.there.mutable_grad() = one.refusing;
  };
  const auto put = [&](const at::Tensor& there, const at::Tensor& average, const std::string& name, bool stepped) {
    all_.push_back({there, there.clone(), {}, {}});
    set_aside& one = all_.back();
    one.stepped = stepped;
    there.copy_(average.reshape(there.sizes()));
    if (there.requires_grad()) refuse_gradient(one, name);
    one.version = there._version();
  };
  for (std::size_t i = 0; i < of_->all.size(); ++i) {
    const engine::state_value& net = of_->all[i].of;
    const tensor<dyn>& kept = of_->kept[i].lies;
    const at::Tensor& first = net.members.empty() ? net.lies.local() : net.members[0].leaf;
    const at::Tensor average =
        engine::changed(net, kept.where(), engine::used_as(net), kept.local().to(first.scalar_type()));
    if (net.members.empty()) {
      put(net.lies.local(), average, net.name, net.stepped);
      continue;
    }
    index_t begin = 0;
    for (const engine::named_leaf& one : net.members) {
      put(one.leaf, average.narrow(0, begin, one.leaf.numel()), one.name, true);
      begin += one.leaf.numel();
    }
    all_.push_back({net.lies.local(), {}, {}, {}, net.lies.local()._version()});  // what is stepped for them
    refuse_gradient(all_.back(), net.name);
  }
}

TESSERA_INLINE average::swapped::~swapped() {
  const at::NoGradGuard no_graph;
  for (const set_aside& one : all_) {
    if (one.stepped && one.there._version() != one.version) of_->trained = true;
    if (one.refusing.defined()) {
      if (!one.there.grad().is_same(one.refusing)) of_->trained = true;
      one.there.mutable_grad() = one.gradient;
    }
    if (one.values.defined()) one.there.copy_(one.values);
  }
  of_->swapped = false;
}

TESSERA_INLINE index_t average::updates() const { return kept_->updates; }

TESSERA_INLINE const std::vector<engine::state_value>& average::values() const { return kept_->kept; }

TESSERA_INLINE state_dict average::state() const { return {{"updates", at::scalar_tensor(kept_->updates, at::kLong)}}; }

TESSERA_INLINE void average::load_state(const state_dict& numbers) {
  const engine::small_state given(numbers, {{"updates", at::kLong}});
  const index_t updates = given.at<index_t>("updates");
  if (updates < 0) given.refuse(fmt::format("{} updates", updates));
  kept_->updates = updates;
}

}  // namespace tessera::nn
