#pragma once

#include <tessera/tensor/box/content_hash.hpp>
#include <tessera/tensor/change/bound_change.hpp>
#include <tessera/tensor/change/make_node.hpp>
#include <tessera/topology/copies.hpp>

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>

namespace tessera {
namespace detail {

/// Refuses to write into a view in place: autograd would go past the gradient that its maker has of its own.
inline void refuse_writing(const at::Tensor& view) {
  if (auto* meta = torch::autograd::impl::get_view_autograd_meta(view))
    meta->set_creation_meta(torch::autograd::CreationMeta::IN_CUSTOM_FUNCTION);
}

/// A call of a bound change: what it is for, and whether its gradient is recorded. A comparison also covers the calling
/// line, the operand's lineage and its copies. It covers the number of the change among those of its workers; a
/// backward has the number of its forward.
struct change_call {
  team_handle team;
  std::shared_ptr<bound_change> change;
  call_context context;
  bool tracked = false;
  std::uint64_t lineage;  ///< of its operand

  change_call(const team_handle& of, std::shared_ptr<bound_change> bound, const at::Tensor& x, call_site at,
              std::uint64_t operand = 0)
      : team(of),
        change(std::move(bound)),
        context(of->doing()),
        tracked(c10::GradMode::is_enabled() && x.requires_grad()),
        lineage(operand) {
    const element e = change->element();
    check_local(x, *change->from(), e, *team);
    if (tracked) check(change->gradient(), *team);
    context.moves = &change->moves();
    context.element = e;
    if (context.at.file == nullptr) context.at = at;
    crew& workers = change->workers();
    if (context.why != purpose::backward) context.number = workers.next_change();
    if (workers.takes_part() && compares(team->checks, change->calls.next(context.at))) compare(workers, x);
  }

  /// The purpose of a backward of this call.
  call_context backward() const {
    call_context back = context;
    back.why = purpose::backward;
    return back;
  }
  /// The gradient that came, or zeros: a worker without one takes part all the same, the others wait for it.
  at::Tensor gradient_of_result(const at::Tensor& came) const {
    if (came.defined()) return came;
    const box_vector& sizes = change->to()->extents();
    return at::zeros(at::IntArrayRef(sizes.begin(), sizes.end()), options_of(*team, scalar_type_of(change->element())));
  }

 private:
  void compare(const crew& workers, const at::Tensor& x) const {
    const layout& from = change->from()->layout();
    fingerprint f;
    f << from << change->to()->layout() << static_cast<int>(change->element()) << static_cast<int>(tracked)
      << context.hash() << context.number;
    f << lineage << (context.at.file == nullptr ? 0 : text(context.at.file).hash) << context.at.line;
    const bool copied = has_copies(from) && (team->checks == checks::always || copies_are_at_hand(x));
    const std::vector<std::uint64_t> hashes = team->agree(workers, f.value(), copied ? content_hash(x) : 0, context);
    if (copied) team->compare_copies(workers, from, [&](std::size_t i) { return hashes[i]; }, context);
  }

  // Samples wait for no device, whose kernels may round otherwise on another one; terms of a halo may lie beside this
  // box while they come.
  bool copies_are_at_hand(const at::Tensor& x) const {
    const layout& from = change->from()->layout();
    return x.is_cpu() && std::all_of(from.dims.begin(), from.dims.end(), [](const dimension& d) { return d.tiles(); });
  }
};

inline at::Tensor run(change_call call, const at::Tensor& x, const padded_box& around = {});

/// The gradient of a change of layout: the change from to* to from*, itself differentiable.
class change_backward final : public torch::autograd::Node {
 public:
  change_backward(change_call forward, const padded_box& around) : forward_(std::move(forward)), around_(around) {}
  /// One that several graphs have: it runs before all that waits, as leaves do, and before those that were made
  /// earlier, on every worker.
  explicit change_backward(change_call forward)
      : Node(first_of_all + at::sequence_number::get_and_increment()), forward_(std::move(forward)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const scoped_context here(*forward_.team, forward_.backward());
    const at::Tensor g =
        gradients[0].defined() ? around_.inside(gradients[0]) : forward_.gradient_of_result(gradients[0]);
    at::Tensor back = run({forward_.team, forward_.change->adjoint(), g, forward_.context.at}, g);
    // What moved nothing is a view; two leaves must not share one gradient.
    if (!c10::GradMode::is_enabled() && back.is_alias_of(g)) back = back.clone();
    return {back};
  }
  std::string name() const override { return "tessera::change"; }
  /// Whether several graphs have a node, or it is a leaf's.
  static bool lasts(const torch::autograd::Node& node) { return node.sequence_nr() >= first_of_all; }

 private:
  static constexpr std::uint64_t first_of_all = std::uint64_t{1} << 63;

  change_call forward_;
  padded_box around_;
};

/// Makes y's gradient that of x, or of what stands for x, through a node.
inline void record(const at::Tensor& y, const at::Tensor& x, const decltype(torch::autograd::Edge::function)& node) {
  node->set_next_edges(torch::autograd::collect_next_edges(x));
  torch::autograd::set_history(y, node);
}

/// The result of a change that does something, without its gradient.
inline at::Tensor unrecorded(const change_call& call, const at::Tensor& x, const padded_box& around = {}) {
  const c10::AutoGradMode no_record(false);
  const at::Tensor y = around.empty() ? call.change->run(x, call.context) : call.change->run(x, call.context, around);
  if (call.change->stays()) refuse_writing(y);
  return y;
}

/// This worker's box of the result. Where each worker only gives up a part of its own that is a view on all of them,
/// which takes nothing written in place. A padding around it is filled in the same memory.
inline at::Tensor run(change_call call, const at::Tensor& x, const padded_box& around) {
  if (!around.empty() && call.change->stays()) return around.around(run(std::move(call), x));
  if (call.change->changes_nothing()) return x;
  const at::Tensor y = unrecorded(call, x, around);
  if (call.tracked) record(y, x, make_node<change_backward>(std::move(call), around));
  return y;
}

}  // namespace detail

namespace engine {

/// Carries this worker's box of a tensor from one layout to another: every verb on LibTorch tensors is this.
///
/// Its backward is the adjoint primitive, carried by the same function, so gradients of every order follow. All workers
/// of the team call it with the same layouts, in one order everywhere; a worker without elements hands in its empty
/// box. A padding lies around the box where a local operation reads it so.
at::Tensor change_layout(const team_handle& team, const shared_layout_handle& from, const shared_layout_handle& to,
                         const at::Tensor& x, const padded_box& around = {}, call_site at = call_site::here());
at::Tensor change_layout(const team_handle& team, const layout& from, const layout& to, const at::Tensor& x,
                         call_site at = call_site::here());

/// The same for a value that is used in a narrower element. A Move rounds before it sends and widens on arrival, since
/// rounding commutes with it. Its gradient is that of the change itself.
at::Tensor change_layout_rounded(const team_handle& team, const shared_layout_handle& from,
                                 const shared_layout_handle& to, const at::Tensor& x, element as,
                                 call_site at = call_site::here());

}  // namespace engine

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/change/change_impl.hpp>
#endif
