#pragma once

#include <tessera/nn/gradient/sharded_gradients.hpp>
#include <tessera/nn/parameter/refusing_gradient.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/plan/cutting.hpp>
#include <tessera/tensor/box/content_hash.hpp>
#include <tessera/tensor/change/lineage.hpp>

#include <algorithm>
#include <optional>

namespace tessera::nn::engine {

TESSERA_INLINE sharded_gradients::sharded_gradients(const team_handle& team, std::vector<named_leaf> leaves,
                                                    const shard_rule& how, call_site at)
    : leaf_gradients(team, std::move(leaves), how.gradients, "dividing gradients", at),
      shard_of_(this->leaves().size()) {
  const at::NoGradGuard no_graph;
  const auto divided = [&](index_t elements) {
    layout x = flat_layout(team->mesh(), elements, placement::invariant);
    for (int a = 0; a < x.placements.count; ++a)
      if ((how.axes >> a & 1u) != 0 && x.mesh.axes[a].extent > 1) x.cut_by(0, a);
    return x;
  };
  for (std::vector<std::size_t>& members : pack(how.groups, divided, true)) {
    bundle_shard one;
    index_t elements = 0;
    for (const std::size_t i : members) {
      shard_of_[i] = shards_.size();
      one.begins.push_back(elements);
      elements += this->leaves()[i].leaf.numel();
    }
    one.lies = divided(elements);
    one.group = how.groups.empty() ? 0 : how.groups[members.front()];
    one.mine = tessera::engine::held_by(one.lies, team->rank())[0][0];
    one.members = std::move(members);
    const at::Tensor values = elements_of(one);
    const bool half = values.scalar_type() == at::kBFloat16 || values.scalar_type() == at::kHalf;
    one.block = (how.masters && half ? values.to(at::kFloat) : values).set_requires_grad(true);
    states_.push_back(
        {refusing_gradient(one.block, refusal{code::stepped_inside_window}, this->leaves()[one.members[0]].name),
         {},
         {}});
    shards_.push_back(std::move(one));
  }
  for (const named_leaf& one : this->leaves())
    divided_.push_back(refusing_gradient(one.leaf, refusal{code::gradient_is_divided}, one.name));
}

TESSERA_INLINE std::vector<state_value> sharded_gradients::values() const {
  std::vector<state_value> all;
  for (std::size_t b = 0; b < shards_.size(); ++b) {
    const bundle_shard& one = shards_[b];
    std::vector<named_leaf> members;
    for (const std::size_t m : one.members) members.push_back(leaves()[m]);
    const std::string name = members[0].name;
    all.push_back({name, tessera::detail::tensor_of(team(), team()->intern(one.lies), one.block), true, true,
                   std::move(members), states_[b].waiting});
  }
  return all;
}

TESSERA_INLINE at::Tensor sharded_gradients::elements_of(const bundle_shard& of) const {
  const at::Tensor all = at::empty({of.mine.size()}, leaves()[of.members[0]].leaf.options().requires_grad(false));
  for (std::size_t m = 0; m < of.members.size(); ++m) {
    const at::Tensor& leaf = leaves()[of.members[m]].leaf;
    const index_t begin = std::max(of.mine.lo, of.begins[m]), end = std::min(of.mine.hi, of.begins[m] + leaf.numel());
    if (begin < end)
      all.narrow(0, begin - of.mine.lo, end - begin)
          .copy_(leaf.detach().reshape({-1}).narrow(0, begin - of.begins[m], end - begin));
  }
  return all;
}

TESSERA_INLINE at::Tensor sharded_gradients::rounded(const bundle_shard& of) const {
  return of.block.detach().to(leaves()[of.members[0]].leaf.scalar_type());
}

/// A step must be gathered before the next backward. LibTorch's SGD leaves no trace but the values themselves. They are
/// compared where nothing was gathered since gradients were given, as a step may have been left out.
TESSERA_INLINE void sharded_gradients::refuse_stepped() const {
  const at::NoGradGuard no_graph;
  const auto differs = [&](const bundle_shard& one) {
    return tessera::detail::content_hash(elements_of(one)) != tessera::detail::content_hash(rounded(one));
  };
  const std::uint64_t mine = std::any_of(shards_.begin(), shards_.end(), differs) ? 1 : 0;
  for (const std::uint64_t one : team()->collect(mine, "looking for a step that was not gathered"))
    if (one != 0) throw error(refusal{code::step_not_gathered}, team()->label());
}

TESSERA_INLINE void sharded_gradients::open_window() {
  for (std::size_t i = 0; i < leaves().size(); ++i) {
    const at::Tensor& gradient = gradient_of(i);
    if (!gradient.defined() || gradient.is_same(divided_[i])) continue;
    check_readable(gradient);
    throw error(refusal{code::gradient_is_divided}, leaves()[i].name);
  }
  if (stepped_) refuse_stepped();
  stepped_ = false;
  for (std::size_t i = 0; i < leaves().size(); ++i) gradient_of(i).reset();
  for (std::size_t b = 0; b < shards_.size(); ++b)
    states_[b].before = std::exchange(shards_[b].block.mutable_grad(), {});
}

/// What somebody let go of a block begins as zeros again, with the terms of its leaves.
TESSERA_INLINE void sharded_gradients::go_on() {
  for (std::size_t b = 0; b < shards_.size(); ++b) {
    at::Tensor& gradient = shards_[b].block.mutable_grad();
    if (!gradient.is_same(states_[b].waiting)) {
      states_[b].before.reset();
      states_[b].sum.reset();
      for (const std::size_t leaf : shards_[b].members) forget(leaf);
    }
    gradient.reset();
  }
}

TESSERA_INLINE void sharded_gradients::interrupt() {
  for (std::size_t b = 0; b < shards_.size(); ++b) shards_[b].block.mutable_grad() = states_[b].waiting;
}

TESSERA_INLINE void sharded_gradients::give(const std::vector<std::size_t>& leaves, std::vector<at::Tensor> sums) {
  const std::size_t b = shard_of_[leaves[0]];
  at::Tensor& sum = states_[b].sum;
  const at::Tensor terms = sums[0].to(shards_[b].block.scalar_type());
  sum = sum.defined() ? sum.add_(terms) : terms;
}

TESSERA_INLINE void sharded_gradients::close_window(double factor) {
  const at::NoGradGuard no_graph;
  for (std::size_t b = 0; b < shards_.size(); ++b) {
    at::Tensor sum = std::exchange(states_[b].sum, {});
    if (factor != 1) sum.mul_(factor);
    if (states_[b].before.defined()) sum.add_(std::exchange(states_[b].before, {}));
    shards_[b].block.mutable_grad() = std::move(sum);
  }
  for (std::size_t i = 0; i < leaves().size(); ++i) gradient_of(i) = divided_[i];
  stepped_ = true;
}

TESSERA_INLINE void sharded_gradients::gather(call_site at) {
  const tessera::engine::scoped_context now(*team(), {.why = purpose::state, .name = "gathering parameters", .at = at});
  const at::NoGradGuard no_graph;
  struct coming {
    const bundle_shard* of = nullptr;
    std::optional<awaited<tensor<dyn>>> values;
  };
  const auto arrive = [&](coming& one) {
    const at::Tensor all = tessera::finish(std::move(*one.values)).local();
    for (std::size_t m = 0; m < one.of->members.size(); ++m) {
      const at::Tensor& leaf = leaves()[one.of->members[m]].leaf;
      leaf.copy_(all.narrow(0, one.of->begins[m], leaf.numel()).view(leaf.sizes()));
    }
  };
  coming before;  // one arrives while the next one travels: two bundles of memory
  for (const bundle_shard& one : shards_) {
    const layout everywhere = flat_layout(one.lies.mesh, one.lies.dims[0].extent, placement::invariant);
    coming next{&one, start(everywhere,
                            tessera::detail::tensor_of(team(), one.lies, rounded(one),
                                                       tessera::detail::next_lineage(*team(), one.lies.mesh)),
                            at)};
    if (before.of != nullptr) arrive(before);
    before = std::move(next);
  }
  if (before.of != nullptr) arrive(before);
  stepped_ = false;
}

}  // namespace tessera::nn::engine
