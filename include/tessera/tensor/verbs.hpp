#pragma once

#include <tessera/operation/function/verbs.hpp>
#include <tessera/primitive/composition.hpp>
#include <tessera/tensor/distribute.hpp>

namespace tessera {

namespace detail {

/// The type of a tensor after it went to partition Q.
template <class From, class Q>
using moved_type = tensor<Q, typename described<From>::shape_type, typename described<From>::element_type>;

/// The primitive that a verb is between two types; `verb::several` is any.
template <verb Verb, class From, class To>
struct verb_between_types {
  using type = named_primitive<Verb, From, To>;
  using verdict_source = named_verdict<Verb, From, To>;
};
template <class From, class To>
struct verb_between_types<verb::several, From, To> {
  using type = primitive<From, To>;
  using verdict_source = primitive_verdict<From, To>;
};

// Why a verb does not lead a tensor to Q. This is asked before a primitive is instantiated, since compilers print lines
// for each class on the way to a refusal.
template <verb Verb, class From, class Q>
using led = std::conditional_t<PartitionType<Q>,
                               verdict_of<typename verb_between_types<Verb, From, moved_type<From, Q>>::verdict_source>,
                               argument_verdict<kind::call, 0, kind::partition, Q>>;

}  // namespace detail

/// Takes a dynamic tensor to another layout, DTensor's `redistribute`.
tensor<dyn> to(const layout& target, const tensor<dyn>& x, call_site at = call_site::here());
/// The same by a verb, which throws where it does not lead there.
inline tensor<dyn> to(verb called, const layout& target, const tensor<dyn>& x, call_site at = call_site::here()) {
  engine::check(
      engine::first_of(engine::check_change(x.layout(), target), engine::check_verb(called, x.layout(), target)),
      *x.team());
  return to(target, x, at);
}

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

}  // namespace detail

namespace functions {

/// The entry point for tensors.
template <verb Verb, class Q, class X>
  requires(engine::kind_of<X> != kind::flow)
auto lead(const change_to<Verb, Q>&, const X& x, call_site at) {
  if constexpr (engine::UntypedTensor<X>) {
    using verdict = tessera::detail::untyped<X, change_to<Verb, Q>>;
    verdict::template refuse<verdict>();
    return tessera::detail::refused_tensor<>();
  } else {
    using verdict = tessera::detail::led<Verb, X, Q>;
    verdict::template refuse<verdict>();
    if constexpr (verdict::ok) {
      using To = tessera::detail::moved_type<X, Q>;
      static_assert(sizeof(typename tessera::detail::verb_between_types<Verb, X, To>::type) > 0);
      return To(tessera::detail::carry({value_of<To>, tessera::detail::number_of_verb<X, To>}, x.dynamic(), at),
                tessera::detail::proved{});
    } else {
      return tessera::detail::refused_like<X>();
    }
  }
}

}  // namespace functions

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

/// Applies a primitive, a composition or a type made of one, by name: `apply<F>(x)`, x in any spelling of F's domain.
/// Its backward applies F*.
template <Primitive F, TensorType T>
auto apply(const T& x, call_site at = call_site::here()) {
  using verdict = engine::verdict_of<detail::takes<F, T>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok)
    return typename F::codomain(detail::through(static_cast<const F*>(nullptr), x.dynamic(), at));
  else return detail::refused_like<T>();
}

template <class F, TensorType T>
  requires(engine::kind_of<F> != kind::primitive)
auto apply(const T&) {
  using verdict = detail::argument_verdict<kind::call, 0, kind::primitive, F>;
  verdict::template refuse<verdict>();
  return detail::refused_like<T>();
}

template <class F, engine::UntypedTensor X>
auto apply(const X&) {
  using verdict = detail::untyped<X, F>;
  verdict::template refuse<verdict>();
  return detail::refused_tensor<>();
}

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/verbs_impl.hpp>
#endif
