#pragma once

#include <tessera/plan/narrowing.hpp>
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
  const std::shared_ptr<bound_exchange> bound = team.bound(s, e, what);
  const auto sizes = sizes_of(bound->output_extents());
  at::Tensor y = at::empty(sizes, at::TensorOptions().dtype(scalar_type(e)));
  const region to = region_of(y, e);
  if (team.watch.exchange_started != nullptr) team.watch.exchange_started(team.watch.self, s, e);
  const at::Tensor sent = as_stored(x);
  const received got = bound->start(region_of(sent, e), to, what).finish();
  team.total.bytes += got.bytes;
  team.total.messages += got.messages;
  if (team.watch.exchange_finished != nullptr) team.watch.exchange_finished(team.watch.self, s, e, got);
  return y;
}

/// Runs a change of layout on this worker's box; no gradient is recorded.
inline at::Tensor run_change(team_state& team, const change& plan, const at::Tensor& x, element e, const activity& what) {
  const c10::AutoGradMode no_record(false);
  at::Tensor y = x.detach();
  for (const step& s : plan.steps) y = run_step(team, s, y, e, what);
  return y;
}

/// The part of this worker's box that it keeps, as a view.
inline at::Tensor kept(const step& s, int rank, const at::Tensor& x) {
  const holding had = held_by(s.from, rank);
  const holding has = held_by(s.to, rank);
  at::Tensor y = at::alias(x);
  for (int d = 0; d < has.count; ++d)
    if (const index_t n = size_of(has[d]); n != y.size(d)) y = y.narrow(d, n == 0 ? 0 : position(had[d], has[d][0].lo), n);
  return y;
}

/// Refuses to write into a view in place: autograd would go past the gradient that its maker has of its own.
inline void refuse_writing(const at::Tensor& view) {
  if (auto* meta = torch::autograd::impl::get_view_autograd_meta(view))
    meta->set_creation_meta(torch::autograd::CreationMeta::IN_CUSTOM_FUNCTION);
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
/// compares where they call from, and which change of the team it is: backward has the number of its forward. Where each worker only
/// gives up a part of its own the result is a view on all of them, which takes nothing written in place.
inline at::Tensor change_layout(const team_handle& team, const layout& from, const layout& to, const at::Tensor& x, call_site at) {
  if (!x.defined()) throw error(refusal{code::undefined_tensor}, team->label());
  const planned_change& planned = team->planned(from, to);
  const element e = detail::element_of_scalar(x.scalar_type());
  detail::check_local(x, from, e, *team);
  const bool tracked = c10::GradMode::is_enabled() && x.requires_grad();
  if (tracked) check(first_of(check_gradient(from, e), check_gradient(to, e)), team->label());
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
  const auto& steps = planned.plan.steps;
  if (steps.empty()) return x;
  const bool narrowed = steps.count == 1 && narrows(steps[0]);
  const at::Tensor y = narrowed ? detail::kept(steps[0], team->rank(), x) : detail::run_change(*team, planned.plan, x, e, what);
  if (narrowed) detail::refuse_writing(y);
  if (tracked) {
    const auto node = detail::make_node<detail::change_backward>(team, planned, y, what);
    node->set_next_edges(torch::autograd::collect_next_edges(x));
    torch::autograd::set_history(y, node);
  }
  return y;
}

}  // namespace tessera
