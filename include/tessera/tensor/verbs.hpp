#pragma once

#include <tessera/primitive/composition.hpp>
#include <tessera/tensor/take.hpp>

namespace tessera {

namespace detail {

/// The type of a tensor after it went to partition Q.
template <class From, class Q>
using moved_type = tensor<Q, typename From::shape_type, typename From::element_type>;

}  // namespace detail

/// Takes a dynamic tensor to another layout.
tensor<dyn> to(const layout& target, const tensor<dyn>& x, call_site at = call_site::here());

namespace detail {

/// A number that no other verb has.
std::size_t next_verb();
/// The number of a verb between two types in this program.
template <class From, class To>
inline const std::size_t number_of_verb = next_verb();

/// A verb between two types that was accepted, while the program runs: what it leads to, and its number.
struct running_verb {
  const tensor_value& target;
  std::size_t number;
};

/// The change that a verb makes of a tensor: the one of its last call, unless its extents or what it is for are others.
const std::shared_ptr<bound_change>& change_of(const running_verb& v, const tensor<dyn>& x);
/// x where a verb leads.
tensor<dyn> carry(const running_verb& v, const tensor<dyn>& x, call_site at);

/// x under partition Q, by a primitive that was accepted.
template <class F, class Q, class P, class S, class E>
auto carry(const tensor<P, S, E>& x, call_site at) {
  static_assert(sizeof(F) > 0);
  using Result = moved_type<tensor<P, S, E>, Q>;
  return Result(carry({value_of<Result>, number_of_verb<tensor<P, S, E>, Result>}, x.dynamic(), at), proved{});
}

// Why x does not go to Q, asked before F is instantiated: compilers print a few lines for each class on the way to a refusal.
template <class Source, class Q>
using carried = std::conditional_t<PartitionType<Q>, verdict_of<Source>, argument_verdict<kind::call, 0, kind::partition, Q>>;

}  // namespace detail

/// Takes a tensor to another partition, by whatever verbs lead there: `to<Q>(x)`.
template <class Q = void, Distributes P, class S, class E>
auto to(const tensor<P, S, E>& x, call_site at = call_site::here()) {
  using To = detail::moved_type<tensor<P, S, E>, Q>;
  using verdict = detail::carried<detail::primitive_verdict<tensor<P, S, E>, To>, Q>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) return detail::carry<primitive<tensor<P, S, E>, To>, Q>(x, at);
  else return detail::refused_like<tensor<P, S, E>>();
}
template <class Q = void, UntypedTensor X>
auto to(const X&) {
  using verdict = detail::untyped<X>;
  verdict::template refuse<verdict>();
  return detail::refused_tensor<>();
}

namespace detail {

template <class From, class To>
tensor<dyn> through(const primitive<From, To>*, const tensor<dyn>& x, call_site at) {
  layout target = value_of<To>.layout;
  for (int d = 0; d < target.dims.count; ++d) target.dims[d].extent = x.layout().dims[d].extent;
  return to(target, x, at);
}
template <class... Fs>
tensor<dyn> through(const composition<Fs...>*, tensor<dyn> x, call_site at) {
  ((x = through(static_cast<const Fs*>(nullptr), x, at)), ...);
  return x;
}

template <class F, class T>
struct takes {
  static constexpr refusal value = [] {
    const refusal& why = described<T>::verdict_source::value;
    return why.ok() ? check_same(described<T>::value, described<typename F::domain>::value) : why;
  }();
};

}  // namespace detail

/// Applies a primitive, a composition or a type made of one, by name: `apply<F>(x)`, x in any spelling of F's domain. Its
/// backward applies F*.
template <Primitive F, TensorType T>
auto apply(const T& x, call_site at = call_site::here()) {
  using verdict = verdict_of<detail::takes<F, T>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) return typename F::codomain(detail::through(static_cast<const F*>(nullptr), x.dynamic(), at));
  else return detail::refused_like<T>();
}

template <class F, TensorType T>
  requires(kind_of<F> != kind::primitive)
auto apply(const T&) {
  using verdict = detail::argument_verdict<kind::call, 0, kind::primitive, F>;
  verdict::template refuse<verdict>();
  return detail::refused_like<T>();
}

template <class F, UntypedTensor X>
auto apply(const X&) {
  using verdict = detail::untyped<X>;
  verdict::template refuse<verdict>();
  return detail::refused_tensor<>();
}

// The named verbs: each refuses a pair of partitions that it does not lead between. Beside each its adjoint.
#define TESSERA_VERB(name)                                                                                       \
  template <class Q = void, Distributes P, class S, class E>                                                     \
  auto name(const tensor<P, S, E>& x, call_site at = call_site::here()) {                                        \
    using To = detail::moved_type<tensor<P, S, E>, Q>;                                                           \
    using verdict = detail::carried<detail::named_verdict<verb::name, tensor<P, S, E>, To>, Q>;                  \
    verdict::template refuse<verdict>();                                                                         \
    if constexpr (verdict::ok) return detail::carry<named_primitive<verb::name, tensor<P, S, E>, To>, Q>(x, at); \
    else return detail::refused_like<tensor<P, S, E>>();                                                         \
  }                                                                                                              \
  template <class Q = void, UntypedTensor X>                                                                     \
  auto name(const X&) {                                                                                          \
    using verdict = detail::untyped<X>;                                                                          \
    verdict::template refuse<verdict>();                                                                         \
    return detail::refused_tensor<>();                                                                           \
  }
TESSERA_VERB(broadcast)
TESSERA_VERB(sum_reduce)
TESSERA_VERB(all_reduce)
TESSERA_VERB(copy_in)
TESSERA_VERB(all_gather)
TESSERA_VERB(reduce_scatter)
TESSERA_VERB(scatter)
TESSERA_VERB(gather)
TESSERA_VERB(all_to_all)
TESSERA_VERB(repartition)
TESSERA_VERB(halo_exchange)
TESSERA_VERB(halo_accumulate)
TESSERA_VERB(share)
TESSERA_VERB(keep)
TESSERA_VERB(take)
TESSERA_VERB(put)
TESSERA_VERB(as_term)
#undef TESSERA_VERB

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/verbs.ipp>
#endif
