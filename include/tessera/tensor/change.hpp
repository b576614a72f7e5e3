#pragma once

#include <tessera/tensor/element_type.hpp>
#include <tessera/tensor/node.hpp>

#include <torch/csrc/autograd/functions/utils.h>

namespace tessera {

using team_handle = std::shared_ptr<team_state>;

namespace detail {

/// A number for the bits of a tensor, to compare copies by.
inline std::uint64_t hash_of(const at::Tensor& x) {
  const at::Tensor packed = as_stored(x.detach()).contiguous();
  const auto* byte = static_cast<const unsigned char*>(packed.numel() == 0 ? nullptr : packed.data_ptr());
  std::uint64_t h = 14695981039346656037u;
  for (std::size_t i = 0; i < packed.nbytes(); ++i) h = (h ^ byte[i]) * 1099511628211u;
  return h;
}

inline at::Tensor run_step(team_state& team, const step& s, const at::Tensor& x, element e, const activity& what) {
  exchange& bound = team.bound(s, e);
  if (const exchange::leg* own = bound.own()) {  // a plan that moves nothing returns a view
    at::Tensor part = x;
    for (int d = 0; d < own->extents.count; ++d)
      if (own->extents[d] != part.size(d)) part = part.narrow(d, own->offset[d], own->extents[d]);
    return part;
  }
  const auto sizes = sizes_of(bound.output_extents());
  at::Tensor y = at::empty(sizes, at::TensorOptions().dtype(scalar_type(e)));
  const region to = region_of(y, e);
  if (bound.fold() || y.dim() == 0) fill_neutral(to, s.with);
  if (team.watch.exchange_started != nullptr) team.watch.exchange_started(team.watch.self, s, e);
  const at::Tensor sent = as_stored(x);
  in_flight call = bound.start(team.carrier(), region_of(sent, e), to, what);
  const received got = bound.finish(team.carrier(), std::move(call));
  team.total.bytes += got.bytes;
  team.total.messages += got.messages;
  if (team.watch.exchange_finished != nullptr) team.watch.exchange_finished(team.watch.self, s, e, got);
  return y;
}

/// Runs a change of layout on this worker's box; no gradient is recorded.
inline at::Tensor run_change(team_state& team, const change& plan, at::Tensor x, element e, const activity& what) {
  for (const step& s : plan.steps) x = run_step(team, s, x, e, what);
  return x;
}

}  // namespace detail

inline at::Tensor change_layout(const team_handle& team, const layout& from, const layout& to, const at::Tensor& x,
                                call_site at = call_site::here());

namespace detail {

/// The gradient of a change of layout: the change from to* to from*, itself differentiable.
class change_backward final : public torch::autograd::Node {
 public:
  change_backward(team_handle team, const planned_change& of, const at::Tensor& y, const activity& forward)
      : team_(std::move(team)), of_(of), forward_(forward), sizes_(y.sizes().vec()), options_(y.options()) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    // A worker without a gradient takes part all the same: the others wait for it.
    activity now = forward_;
    now.why = purpose::backward;
    const during here(*team_, now);
    at::Tensor g = gradients[0].defined() ? gradients[0] : at::zeros(sizes_, options_);
    at::Tensor back = change_layout(team_, cotangent(of_.to), cotangent(of_.from), g);
    // What moved nothing is a view; two leaves must not share one gradient.
    if (!c10::GradMode::is_enabled() && back.is_alias_of(g)) back = back.clone();
    return {back};
  }
  std::string name() const override { return "tessera::change"; }

 private:
  team_handle team_;
  const planned_change& of_;  // the team keeps it
  activity forward_;
  std::vector<index_t> sizes_;
  at::TensorOptions options_;
};

}  // namespace detail

/// Carries this worker's box of a tensor from one layout to another: every verb on LibTorch tensors is this.
///
/// Its backward is the adjoint primitive, carried by the same function, so gradients of every order follow. All workers of
/// the team call it with the same layouts, in one order everywhere; a worker without elements hands in its empty box. Checked mode
/// compares where they call from, and which change of the team it is: backward has the number of its forward.
inline at::Tensor change_layout(const team_handle& team, const layout& from, const layout& to, const at::Tensor& x, call_site at) {
  if (!x.defined()) throw error(refusal{code::undefined_tensor}, team->label());
  const planned_change& planned = team->planned(from, to);
  const element e = detail::element_of_scalar(x.scalar_type());
  detail::check_local(x, from, e, *team);
  const bool tracked = c10::GradMode::is_enabled() && x.requires_grad();
  activity what = team->doing();
  what.moves = &planned.moves;
  what.element = e;
  if (what.at.file == nullptr) what.at = at;
  if (what.why != purpose::backward) what.number = team->next_number();
  if (team->checked && team->inside()) {
    fingerprint f;
    f << from << to << static_cast<int>(e) << static_cast<int>(tracked) << what.hash() << what.number;
    f << text(what.at.file).hash << what.at.line;
    team->agree(f.value(), "comparing changes", [&] { return text_of(what); });
    team->agree_on_copies(from, detail::hash_of(x), what);
  }
  if (planned.plan.steps.empty()) return x;
  at::Tensor y;
  {
    const c10::AutoGradMode no_record(false);
    y = detail::run_change(*team, planned.plan, x.variable_data(), e, what).variable_data();
  }
  if (y.is_alias_of(x)) torch::autograd::impl::set_version_counter(y, torch::autograd::impl::version_counter(x));
  if (tracked) {
    const auto node = detail::make_node<detail::change_backward>(team, planned, y, what);
    node->set_next_edges(torch::autograd::collect_next_edges(x));
    torch::autograd::set_history(y, node);
  }
  return y;
}

}  // namespace tessera
