#pragma once

#include <tessera/tensor/memory/own_memory.hpp>
#include <tessera/tensor/overlap.hpp>

namespace tessera {

namespace detail {

inline started begin_change(change_call call, const at::Tensor& x);

/// Begins the adjoint of a change that ends.
class finish_backward final : public torch::autograd::Node {
 public:
  explicit finish_backward(std::shared_ptr<begun_change> of) : of_(std::move(of)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const change_call& forward = of_->call;
    const scoped_context here(*forward.team, forward.backward());
    const at::Tensor g = forward.gradient_of_result(gradients[0]);
    started back = begin_change({forward.team, forward.change->adjoint(), g, forward.context.at}, g);
    of_->back = std::move(back.change);
    return {back.token};
  }
  std::string name() const override { return "tessera::finish"; }

 private:
  std::shared_ptr<begun_change> of_;
};

/// Ends the adjoint of a change that begins.
class start_backward final : public torch::autograd::Node {
 public:
  explicit start_backward(std::shared_ptr<begun_change> of) : of_(std::move(of)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const scoped_context here(*of_->call.team, of_->call.backward());
    const std::shared_ptr<begun_change> back = std::exchange(of_->back, nullptr);
    at::Tensor g = end_change({gradients[0], back});
    // What moved nothing is a view; two leaves must not share one gradient.
    if (!c10::GradMode::is_enabled() && back->x.defined() && g.is_alias_of(back->x)) g = g.clone();
    return {g};
  }
  std::string name() const override { return "tessera::start"; }

 private:
  std::shared_ptr<begun_change> of_;
};

inline started begin_change(change_call call, const at::Tensor& x) {
  const bool tracked = call.tracked;
  const auto begun = std::make_shared<begun_change>(std::move(call));
  // where x lies: autograd goes through it on that device's stream
  started b{at::zeros({}, options_of(*begun->call.team, at::kDouble)), begun};
  bound_change& change = *begun->call.change;
  if (change.stays()) {
    begun->x = x;
    return b;
  }
  begun->running.emplace(change, x, begun->call.context);
  if (tracked) record(b.token, x, make_node<start_backward>(begun));
  return b;
}

TESSERA_INLINE at::Tensor end_change(const started& b) {
  begun_change& begun = *b.change;
  if (!begun.running) return in_own_memory(run(begun.call, begun.x), begun.x);
  const at::Tensor y = [&] {
    const c10::AutoGradMode no_record(false);
    return begun.running->finish();
  }();
  begun.running.reset();
  if (begun.call.tracked) record(y, b.token, make_node<finish_backward>(b.change));
  return y;
}

TESSERA_INLINE started begin(const running_verb& v, const tensor<dyn>& x, call_site at) {
  return begin_change({x.team(), change_of(v, x), x.local(), at, x.lineage()}, x.local());
}

}  // namespace detail

TESSERA_INLINE awaited<tensor<dyn>> start(const layout& target, const tensor<dyn>& x, call_site at) {
  const auto change =
      detail::bound_change_of(*x.team(), x.where(), x.team()->intern(target), x.type(), x.team()->doing());
  return awaited<tensor<dyn>>(detail::begin_change({x.team(), change, x.local(), at, x.lineage()}, x.local()));
}

}  // namespace tessera
