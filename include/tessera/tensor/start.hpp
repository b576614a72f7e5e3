#pragma once

#include <tessera/tensor/verbs.hpp>

#include <optional>
#include <utility>

namespace tessera {

namespace detail {

/// A change of layout that was begun: what its end needs, and the end of its backward.
struct begun_change {
  change_call call;
  at::Tensor x;  ///< where nothing is exchanged: the end does all then
  std::optional<bound_change::running> running;
  std::shared_ptr<begun_change> back;
};

/// The beginning of a change stands for its end in autograd's graph: a number, whose gradient is that the backward was begun.
struct started {
  at::Tensor token;
  std::shared_ptr<begun_change> change;
};

inline started begin_change(change_call call, const at::Tensor& x);
inline at::Tensor end_change(const started& b);

/// Begins the adjoint of a change that ends.
class finish_backward final : public torch::autograd::Node {
 public:
  explicit finish_backward(std::shared_ptr<begun_change> of) : of_(std::move(of)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const change_call& forward = of_->call;
    const during here(*forward.team, forward.backward());
    const at::Tensor g = forward.gradient_of_result(gradients[0]);
    started back = begin_change({forward.team, forward.change->adjoint(), g, forward.what.at}, g);
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
    const during here(*of_->call.team, of_->call.backward());
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
  const auto begun = std::make_shared<begun_change>(begun_change{std::move(call), {}, {}, nullptr});
  started b{at::zeros({}, at::kDouble), begun};
  bound_change& change = *begun->call.change;
  if (change.stays()) {
    begun->x = x;
    return b;
  }
  begun->running.emplace(change.start(x, begun->call.what));
  if (tracked) record(b.token, x, make_node<start_backward>(begun));
  return b;
}

inline at::Tensor end_change(const started& b) {
  begun_change& begun = *b.change;
  if (!begun.running) return run(begun.call, begun.x);
  const at::Tensor y = [&] {
    const c10::AutoGradMode no_record(false);
    return begun.call.change->finish(*begun.running);
  }();
  begun.running.reset();
  if (begun.call.tracked) record(y, b.token, make_node<finish_backward>(b.change));
  return y;
}

}  // namespace detail

/// A tensor on its way to another layout, between `start` and `finish`. One that is dropped unfinished gives its exchange up, which
/// no worker may do alone.
template <class T>
class awaited {
 public:
  awaited(awaited&&) noexcept = default;
  awaited& operator=(awaited&&) noexcept = default;

  /// Whether this worker's boxes have come; waits for nobody.
  bool arrived() const {
    const std::shared_ptr<detail::begun_change>& begun = begun_here();
    return !begun->running || begun->call.change->arrived(*begun->running);
  }

 private:
  template <class U>
  friend U finish(awaited<U>&& later);
  template <class Q, class P, class S, class E>
  friend auto start(const tensor<P, S, E>& x, call_site at);
  friend awaited<tensor<dyn>> start(const layout& target, const tensor<dyn>& x, call_site at);

  explicit awaited(detail::started b) : started_(std::move(b)) {}

  const std::shared_ptr<detail::begun_change>& begun_here() const {
    if (!started_.change) throw error(refusal{code::undefined_tensor});
    return started_.change;
  }

  detail::started started_;
};

/// Begins what `to<Q>(x)` does: the exchange goes on while other work is done, until `finish`.
///
///   auto later = ts::start<Q>(x);  …  auto y = ts::finish(std::move(later));
///
/// Any number may be under way; all workers begin them in one order and end them in any. x must not be written meanwhile. The
/// backward of `finish` begins the adjoint, that of `start` ends it.
template <class Q = void, class P, class S, class E>
auto start(const tensor<P, S, E>& x, call_site at = call_site::here()) {
  using To = detail::moved_type<tensor<P, S, E>, Q>;
  using verdict = detail::carried<detail::primitive_verdict<tensor<P, S, E>, To>, Q>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) return awaited<To>(detail::begin_change({x.team(), detail::change_of_verb<To>(x), x.local(), at}, x.local()));
  else return detail::refused_like<tensor<P, S, E>>();
}

/// The same to a layout that is a value.
inline awaited<tensor<dyn>> start(const layout& target, const tensor<dyn>& x, call_site at = call_site::here()) {
  const auto change = detail::bound_change_of(*x.team(), x.where(), x.team()->place(target), x.type(), x.team()->doing());
  return awaited<tensor<dyn>>(detail::begin_change({x.team(), change, x.local(), at}, x.local()));
}

/// The tensor that was on its way: its boxes have arrived and its readers have read.
template <class T>
T finish(awaited<T>&& later) {
  const std::shared_ptr<detail::begun_change> begun = later.begun_here();
  at::Tensor y = detail::end_change(std::exchange(later.started_, {}));
  tensor<dyn> arrived = detail::tensor_of(begun->call.team, begun->call.change->to(), std::move(y));
  if constexpr (std::is_same_v<T, tensor<dyn>>) return arrived;
  else return T(std::move(arrived), detail::proved{});
}
template <class T>
T finish(awaited<T>& later) = delete;  // std::move it: it is used up

}  // namespace tessera
