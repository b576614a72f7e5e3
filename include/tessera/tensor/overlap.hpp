#pragma once

#include <tessera/tensor/change/running_change.hpp>
#include <tessera/tensor/verbs.hpp>

#include <optional>
#include <utility>

namespace tessera {

namespace detail {

/// A change of layout that was begun: what its end needs, and the end of its backward.
struct begun_change {
  explicit begun_change(change_call of) : call(std::move(of)) {}

  change_call call;
  at::Tensor x;  ///< where nothing is exchanged: the end does all then
  std::optional<running_change> running;
  std::shared_ptr<begun_change> back;
};

/// The beginning of a change stands for its end in autograd's graph: a number, whose gradient is that the backward was
/// begun.
struct started {
  at::Tensor token;
  std::shared_ptr<begun_change> change;
};

/// Begins what a verb does.
started begin(const running_verb& v, const tensor<dyn>& x, call_site at);
at::Tensor end_change(const started& b);

}  // namespace detail

/// A tensor on its way to another layout, between `start` and `finish`. One that is dropped unfinished gives its
/// exchange up, which no worker may do alone.
template <class T>
class awaited {
 public:
  awaited(awaited&&) noexcept = default;
  awaited& operator=(awaited&&) noexcept = default;

  /// Whether this worker's boxes of the result are there; waits for nobody.
  bool arrived() const {
    const std::shared_ptr<detail::begun_change>& begun = begun_here();
    return !begun->running || begun->running->arrived();
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
/// Any number may be under way; all workers begin them in one order and end them in any. x must not be written
/// meanwhile. A change may need several exchanges, as a sum of three workers for all does. Each begins when the one
/// before has arrived and its worker asks `arrived`, or waits for anything. The backward of `finish` begins the
/// adjoint, that of `start` ends it.
template <class Q = void, class P, class S, class E>
auto start(const tensor<P, S, E>& x, call_site at = call_site::here()) {
  using To = detail::moved_type<tensor<P, S, E>, Q>;
  using verdict = detail::led<verb::several, tensor<P, S, E>, Q>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok)
    return awaited<To>(detail::begin({value_of<To>, detail::number_of_verb<tensor<P, S, E>, To>}, x.dynamic(), at));
  else return detail::refused_like<tensor<P, S, E>>();
}

/// The same to a layout that is a value.
awaited<tensor<dyn>> start(const layout& target, const tensor<dyn>& x, call_site at = call_site::here());

/// The tensor that was on its way: its boxes have arrived and its readers have read.
template <class T>
T finish(awaited<T>&& later) {
  const std::shared_ptr<detail::begun_change> begun = later.begun_here();
  at::Tensor y = detail::end_change(std::exchange(later.started_, {}));
  tensor<dyn> arrived = detail::tensor_of(begun->call.team, begun->call.change->to(), std::move(y),
                                          detail::lineage_of(text("change").hash, {begun->call.lineage}));
  if constexpr (std::is_same_v<T, tensor<dyn>>) return arrived;
  else return T(std::move(arrived), detail::proved{});
}
template <class T>
T finish(awaited<T>& later) = delete;  // std::move it: it is used up

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/overlap_impl.hpp>
#endif
