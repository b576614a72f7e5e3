#pragma once

#include <tessera/plan/change.hpp>
#include <tessera/primitive/layout_proof.hpp>
#include <tessera/primitive/verb.hpp>

namespace tessera {

namespace detail {

constexpr bool is_static(const layout& x) {
  for (const auto& d : x.dims)
    if (d.extent == dynamic) return false;
  return true;
}

// The adjoint of a refused primitive: it leads between the same tensors and says nothing more.
template <class From, class To>
struct refused_primitive {
  using domain = canonical_tensor<From>;
  using codomain = canonical_tensor<To>;
  using adjoint = refused_primitive<cotangent_type<To>, cotangent_type<From>>;
  static constexpr tessera::verb verb = tessera::verb::nothing;
  template <class... Bindings>
  static constexpr tessera::cost cost(const Bindings&...) {
    return {};
  }
  template <class... Bindings>
  static constexpr index_t bytes(const Bindings&...) {
    return 0;
  }
};

}  // namespace detail

template <class From, class To>
class primitive;
template <verb Verb, class From, class To>
struct named_primitive;
template <class... Fs>
struct composition;

template <class From, class To>
inline constexpr kind kind_of<primitive<From, To>> = kind::primitive;
template <verb Verb, class From, class To>
inline constexpr kind kind_of<named_primitive<Verb, From, To>> = kind::primitive;
template <class F, class... Fs>
inline constexpr kind kind_of<composition<F, Fs...>> = kind::primitive;

namespace detail {

template <class From, class To>
struct primitive_verdict {
  static constexpr refusal value = [] {
    const refusal r = first_of(tensor_check<kind::primitive, 0, From>::value, tensor_check<kind::primitive, 1, To>::value);
    if (!r.ok()) return r;
    const tensor_value& from = described<as_tensor<From>>::value;
    const tensor_value& to = described<as_tensor<To>>::value;
    if (from.element != to.element) return refusal{code::wrong_element, static_cast<int>(from.element), static_cast<int>(to.element)};
    return check_change(from.layout, to.layout);
  }();
};

// What a change between types moves, where all extents are static; asked of types that are accepted.
template <class From, class To>
struct static_cost {
  static constexpr cost of = cost_of(change_between(described<From>::value.layout, described<To>::value.layout));
  static constexpr refusal value = check(of);
};

// F* leads back between the cotangents, and F** = F. A map asks this of its parts while it is defined, so F is here by name alone.
template <class F, class Domain, class Codomain, class Adjoint>
inline constexpr bool leads_back = std::is_same_v<typename Adjoint::domain, cotangent_type<Codomain>> &&
                                   std::is_same_v<typename Adjoint::codomain, cotangent_type<Domain>> &&
                                   std::is_same_v<typename Adjoint::adjoint::domain, Domain> &&
                                   std::is_same_v<typename Adjoint::adjoint::codomain, Codomain>;

template <bool Accepted, class F, class Domain, class Codomain, class Adjoint>
struct leads_back_if : std::true_type {};
template <class F, class Domain, class Codomain, class Adjoint>
struct leads_back_if<true, F, Domain, Codomain, Adjoint> : std::bool_constant<leads_back<F, Domain, Codomain, Adjoint>> {};

// Whether a map is not refused, as far as it says.
template <class F>
inline constexpr bool accepted = [] {
  if constexpr (requires { F::verdict::ok; }) return F::verdict::ok;
  else return true;
}();

}  // namespace detail

/// Anything with a domain, a codomain and an adjoint that leads back between their cotangents; whatever is named as a primitive or
/// a composition is held to it.
template <class F>
concept Primitive = kind_of<F> == kind::primitive && detail::leads_back<F, typename F::domain, typename F::codomain, typename F::adjoint>;

/// A linear map between two tensor types: every verb is one, and so is its adjoint.
///
///   adjoint::domain == cotangent<codomain>,  adjoint::codomain == cotangent<domain>,  F** == F,  ⟨F x, y⟩ = ⟨x, F* y⟩
///
/// The plan of a primitive with static extents is a constant, its cuts proved while compiling; with dynamic ones `bound`
/// gives it.
template <class From = void, class To = void>
class primitive {
  static constexpr const layout& from_ = detail::described<detail::as_tensor<From>>::value.layout;
  static constexpr const layout& to_ = detail::described<detail::as_tensor<To>>::value.layout;

 public:
  using domain = canonical_tensor<detail::as_tensor<From>>;
  using codomain = canonical_tensor<detail::as_tensor<To>>;
  using verdict = verdict_of<detail::primitive_verdict<From, To>>;
  using adjoint = std::conditional_t<verdict::ok, primitive<cotangent_type<codomain>, cotangent_type<domain>>,
                                     detail::refused_primitive<cotangent_type<codomain>, cotangent_type<domain>>>;

  static constexpr tessera::verb verb = verdict::ok ? verb_between(from_, to_) : tessera::verb::nothing;
  static constexpr bool is_static = detail::is_static(from_) && detail::is_static(to_);

  /// The plan, for given values of the dynamic extents.
  template <class... Bindings>
  static constexpr change plan(const Bindings&... bindings) {
    if constexpr (verdict::ok) {
      using known = verdict_of<detail::bindings_check<domain, codomain, Bindings...>>;
      known::template refuse<known>();
      if constexpr (known::ok) return change_between(detail::bound_all(from_, bindings...), detail::bound_all(to_, bindings...));
    }
    return change{};
  }

  /// What the plan moves, in elements.
  template <class... Bindings>
  static constexpr tessera::cost cost(const Bindings&... bindings) {
    if constexpr (verdict::ok) {
      using known = verdict_of<detail::bindings_check<domain, codomain, Bindings...>>;
      known::template refuse<known>();
      if constexpr (known::ok && is_static && sizeof...(Bindings) == 0) {
        using counted = verdict_of<detail::static_cost<domain, codomain>>;
        counted::template refuse<counted>();
        return detail::static_cost<domain, codomain>::of;
      } else if constexpr (known::ok) {
        const tessera::cost c = cost_of(plan(bindings...));
        if (!check(c).ok()) stop(check(c));  // [tessera.cost.overflow] more elements or bytes move than can be counted
        return c;
      }
    }
    return tessera::cost{};
  }

  /// The bytes that all workers receive.
  template <class... Bindings>
  static constexpr index_t bytes(const Bindings&... bindings) {
    return cost(bindings...).total * bytes_of(detail::described<domain>::value.element);
  }

 private:
  static_assert(std::disjunction_v<std::bool_constant<!verdict::ok>, detail::both_proved<detail::as_tensor<From>, detail::as_tensor<To>>>,
                "[tessera.plan.proof] the parts of a dimension do not tile it; this is a fault of the library");
  static constexpr bool has_adjoint = verdict::ok && only_sums(from_) && only_sums(to_);
  static_assert(detail::leads_back_if<has_adjoint, primitive, domain, codomain, adjoint>::value,
                "[tessera.primitive.law] the adjoint does not lead back between the cotangents; this is a fault of the library");
  static_assert((verdict::template refuse<verdict>(), true));
};

namespace detail {

template <verb Verb, class From, class To>
struct named_verdict {
  static constexpr refusal value = [] {
    const refusal leads_nowhere = primitive_verdict<From, To>::value;
    if (!leads_nowhere.ok()) return leads_nowhere;
    const layout& from = described<as_tensor<From>>::value.layout;
    const layout& to = described<as_tensor<To>>::value.layout;
    const verb leads = verb_between(from, to);
    const bool tiles = Verb == verb::repartition && leads == verb::all_to_all;
    const bool idle = leads == verb::nothing && verb_of_longer_axes(from, to) == Verb;
    if (leads == Verb || tiles || idle) return refusal{};
    return refusal{code::not_this_verb, static_cast<int>(Verb), static_cast<int>(leads)};
  }();
};

}  // namespace detail

/// A primitive that must be the verb it is called: `named_primitive<verb::all_gather, From, To>`.
template <verb Verb, class From = void, class To = void>
struct named_primitive : primitive<From, To> {
  using verdict = verdict_of<detail::named_verdict<Verb, From, To>>;
  static_assert((verdict::template refuse<verdict>(), true));
};

namespace detail {

template <class F>
inline constexpr kind kind_of_map = Primitive<F> ? kind::primitive : kind_of<F> == kind::primitive ? kind::something_else : kind_of<F>;

// What has no adjoint.
template <class F>
struct no_map {
  using verdict = argument_verdict<kind::call, 0, kind::primitive, F>;
  static_assert((verdict::template refuse<verdict>(), true));
  using adjoint = F;
};

}  // namespace detail

template <class F>
using adjoint = typename std::conditional_t<kind_of<F> == kind::primitive, F, detail::no_map<F>>::adjoint;

namespace detail {

// What maps one after the other are, if each begins where the one before it ends.
template <class... Fs>
struct chained;
template <class F>
struct chained<F> {
  using domain = typename F::domain;
  using codomain = typename F::codomain;
  static constexpr int gap = -1;
};
template <class F, class G, class... Rest>
struct chained<F, G, Rest...> {
  using domain = typename F::domain;
  using codomain = typename chained<G, Rest...>::codomain;
  static constexpr int behind = chained<G, Rest...>::gap;
  static constexpr int gap = !same(described<typename F::codomain>::value.layout, described<typename G::domain>::value.layout) ? 0
                             : behind < 0 ? -1
                                          : behind + 1;
};

template <class... Fs>
struct composition_check {
  static constexpr refusal value = [] {
    constexpr kind given[]{kind_of_map<Fs>...};
    for (int i = 0; i < static_cast<int>(sizeof...(Fs)); ++i)
      if (given[i] != kind::primitive) return refused_kind<kind::primitive, kind::primitive>(i, given[i]);
    if constexpr ((Primitive<Fs> && ...)) {
      if (!(accepted<Fs> && ...)) return refusal{code::refused_before};
      if (chained<Fs...>::gap >= 0) return refusal{code::partitions_do_not_meet, chained<Fs...>::gap + 1};
    }
    return refusal{};
  }();
};

template <class Reversed, class... Fs>
struct reversed_adjoints;

// The ends of a composition and its adjoint; of one that is refused, those of nothing.
template <bool Accepted, class... Fs>
struct ends_of {
  using domain = tensor<refused_partition, shape<>>;
  using codomain = domain;
  using adjoint = refused_primitive<domain, domain>;
};
template <class... Fs>
struct ends_of<true, Fs...> {
  using domain = typename chained<Fs...>::domain;
  using codomain = typename chained<Fs...>::codomain;
  using adjoint = typename reversed_adjoints<composition<>, Fs...>::type;
};

}  // namespace detail

/// Primitives one after the other, first to last: its adjoint is the adjoints, last to first.
template <class... Fs>
struct composition {
  static_assert(((requires { sizeof(Fs); } || true) && ...));  // what a map refuses, it refuses here
  using verdict = verdict_of<detail::composition_check<Fs...>>;
  using domain = typename detail::ends_of<verdict::ok, Fs...>::domain;
  using codomain = typename detail::ends_of<verdict::ok, Fs...>::codomain;
  using adjoint = typename detail::ends_of<verdict::ok, Fs...>::adjoint;

  /// What its maps move one after the other: elements, and the bytes that all workers receive.
  template <class... Bindings>
  static constexpr tessera::cost cost(const Bindings&... bindings) {
    tessera::cost sum;
    if constexpr (verdict::ok) ((sum += Fs::cost(bindings...)), ...);
    return sum;
  }
  template <class... Bindings>
  static constexpr index_t bytes(const Bindings&... bindings) {
    return cost(bindings...).total * bytes_of(detail::described<domain>::value.element);
  }

  static_assert(detail::leads_back_if<verdict::ok, composition, domain, codomain, adjoint>::value,
                "[tessera.primitive.law] the adjoint does not lead back between the cotangents; this is a fault of the library");
  static_assert((verdict::template refuse<verdict>(), true));
};
template <>
struct composition<> {};

namespace detail {

template <class... Done>
struct reversed_adjoints<composition<Done...>> {
  using type = composition<Done...>;
};
template <class... Done, class F, class... Rest>
struct reversed_adjoints<composition<Done...>, F, Rest...>
    : reversed_adjoints<composition<typename F::adjoint, Done...>, Rest...> {};

}  // namespace detail
}  // namespace tessera
