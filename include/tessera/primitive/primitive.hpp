#pragma once

#include <tessera/generated/primitive.hpp>
#include <tessera/plan/phase.hpp>
#include <tessera/primitive/layout_proof.hpp>
#include <tessera/primitive/verb.hpp>
#include <tessera/topology/canonical_tensor.hpp>

namespace tessera {

namespace detail {

constexpr bool is_static(const layout& x) {
  for (const auto& d : x.dims)
    if (d.extent == dynamic) return false;
  return true;
}

constexpr index_t bytes_moved(const cost& c, element e) { return within_count(c * bytes_of(e)).total; }

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

namespace engine {

template <verb Verb, class From, class To>
struct named_primitive;

}  // namespace engine

template <class From, class To>
inline constexpr kind engine::kind_of<primitive<From, To>> = kind::primitive;
template <verb Verb, class From, class To>
inline constexpr kind engine::kind_of<engine::named_primitive<Verb, From, To>> = kind::primitive;

namespace detail {

template <class From, class To>
struct primitive_verdict {
  static constexpr refusal value = [] {
    const refusal r =
        first_of(tensor_check<kind::primitive, 0, From>::value, tensor_check<kind::primitive, 1, To>::value);
    if (!r.ok()) return r;
    const tensor_value& from = described<as_tensor<From>>::value;
    const tensor_value& to = described<as_tensor<To>>::value;
    if (from.element != to.element)
      return refusal{code::wrong_element, static_cast<int>(from.element), static_cast<int>(to.element)};
    return check_change(from.layout, to.layout);
  }();
};

// What a change between types moves, where all extents are static; asked of types that are accepted.
template <class From, class To>
struct static_cost {
  static constexpr cost of = cost_of(change_between(described<From>::value.layout, described<To>::value.layout));
  static constexpr refusal value = check(of);
};

// F* leads back between the cotangents, and F** = F. A map asks this of its parts while it is defined, so F is here by
// name alone.
template <class F, class Domain, class Codomain, class Adjoint>
inline constexpr bool leads_back = std::is_same_v<typename Adjoint::domain, cotangent_type<Codomain>> &&
                                   std::is_same_v<typename Adjoint::codomain, cotangent_type<Domain>> &&
                                   std::is_same_v<typename Adjoint::adjoint::domain, Domain> &&
                                   std::is_same_v<typename Adjoint::adjoint::codomain, Codomain>;

template <bool Accepted, class F, class Domain, class Codomain, class Adjoint>
struct leads_back_if : std::true_type {};
template <class F, class Domain, class Codomain, class Adjoint>
struct leads_back_if<true, F, Domain, Codomain, Adjoint>
    : std::bool_constant<leads_back<F, Domain, Codomain, Adjoint>> {};

// A maximum, a minimum, a product, any and all are for values only.
template <class From, class To>
struct adjoint_check {
  static constexpr refusal value = first_of(check_combines_gradient(described<as_tensor<From>>::value.layout),
                                            check_combines_gradient(described<as_tensor<To>>::value.layout));
};

// The adjoint of a change that combines terms otherwise than by a sum: there is none, which whoever asks for it is
// told.
template <class From, class To>
struct no_adjoint : refused_primitive<To, From> {
  using verdict = verdict_of<adjoint_check<From, To>>;
  static_assert((verdict::template refuse<verdict>(), true));
};

}  // namespace detail

/// Anything with a domain, a codomain and an adjoint that leads back between their cotangents. Every named primitive
/// and composition is held to it.
template <class F>
concept Primitive = engine::kind_of<F> == kind::primitive &&
                    detail::leads_back<F, typename F::domain, typename F::codomain, typename F::adjoint>;

/// A linear map between two tensor types: every verb is one, and so is its adjoint.
///
///   adjoint::domain == cotangent<codomain>,  adjoint::codomain == cotangent<domain>,  F** == F,  ⟨F x, y⟩ = ⟨x, F* y⟩
///
/// The plan of a primitive with static extents is a constant, its cuts proved while compiling; with dynamic ones
/// `bound` gives it.
template <class From = void, class To = void>
class primitive {
  static constexpr const layout& from_ = detail::described<detail::as_tensor<From>>::value.layout;
  static constexpr const layout& to_ = detail::described<detail::as_tensor<To>>::value.layout;

 public:
  using domain = engine::canonical_tensor<detail::as_tensor<From>>;
  using codomain = engine::canonical_tensor<detail::as_tensor<To>>;
  using verdict = engine::verdict_of<detail::primitive_verdict<From, To>>;
  static constexpr bool has_adjoint = verdict::ok && detail::adjoint_check<From, To>::value.ok();
  using adjoint =
      std::conditional_t<!verdict::ok, detail::refused_primitive<cotangent_type<codomain>, cotangent_type<domain>>,
                         std::conditional_t<has_adjoint, primitive<cotangent_type<codomain>, cotangent_type<domain>>,
                                            detail::no_adjoint<domain, codomain>>>;

  static constexpr tessera::verb verb = verdict::ok ? engine::verb_between(from_, to_) : tessera::verb::nothing;
  static constexpr bool is_static = detail::is_static(from_) && detail::is_static(to_);

  /// The plan, for given values of the dynamic extents.
  template <class... Bindings>
  static constexpr change plan(const Bindings&... bindings) {
    if constexpr (verdict::ok) {
      using known = engine::verdict_of<detail::bindings_check<domain, codomain, Bindings...>>;
      known::template refuse<known>();
      if constexpr (known::ok)
        return change_between(detail::as_bound(detail::bound_all(from_, bindings...)),
                              detail::as_bound(detail::bound_all(to_, bindings...)));
    }
    return change{};
  }

  /// The cost of the plan, in elements.
  template <class... Bindings>
  static constexpr tessera::cost cost(const Bindings&... bindings) {
    if constexpr (verdict::ok) {
      using known = engine::verdict_of<detail::bindings_check<domain, codomain, Bindings...>>;
      known::template refuse<known>();
      if constexpr (known::ok && is_static && sizeof...(Bindings) == 0) {
        using counted = engine::verdict_of<detail::static_cost<domain, codomain>>;
        counted::template refuse<counted>();
        return detail::static_cost<domain, codomain>::of;
      } else if constexpr (known::ok) {
        return detail::within_count(engine::cost_of(plan(bindings...)));
      }
    }
    return tessera::cost{};
  }

  /// The bytes that all workers receive.
  template <class... Bindings>
  static constexpr index_t bytes(const Bindings&... bindings) {
    return detail::bytes_moved(cost(bindings...), detail::described<domain>::value.element);
  }

 private:
  static_assert(std::disjunction_v<std::bool_constant<!verdict::ok>,
                                   detail::both_proved<detail::as_tensor<From>, detail::as_tensor<To>>>,
                "[tessera.plan.proof] the parts of a dimension do not tile it; this is a fault of the library");
  static_assert(
      detail::leads_back_if<has_adjoint, primitive, domain, codomain, adjoint>::value,
      "[tessera.primitive.law] the adjoint does not lead back between the cotangents; this is a fault of the library");
  static_assert((verdict::template refuse<verdict>(), true));
};

namespace engine {

/// Refuses a change of layout that is not the verb it is called.
constexpr refusal check_verb(verb called, const layout& from, const layout& to) {
  const verb leads = verb_between(from, to);
  const bool tiles = called == verb::repartition && leads == verb::all_to_all;
  const bool idle = leads == verb::nothing && detail::verb_of_longer_axes(from, to) == called;
  if (leads == called || tiles || idle) return {};
  return refusal{code::not_this_verb, static_cast<int>(called), static_cast<int>(leads)};
}

}  // namespace engine

namespace detail {

template <verb Verb, class From, class To>
struct named_verdict {
  static constexpr refusal value = [] {
    const refusal leads_nowhere = primitive_verdict<From, To>::value;
    return leads_nowhere.ok()
               ? check_verb(Verb, described<as_tensor<From>>::value.layout, described<as_tensor<To>>::value.layout)
               : leads_nowhere;
  }();
};

}  // namespace detail

namespace engine {

/// A primitive that must be the verb it is called: `named_primitive<verb::all_gather, From, To>`.
template <verb Verb, class From = void, class To = void>
struct named_primitive : primitive<From, To> {
  using verdict = verdict_of<detail::named_verdict<Verb, From, To>>;
  static_assert((verdict::template refuse<verdict>(), true));
};

}  // namespace engine

namespace detail {

// What has no adjoint.
template <class F>
struct no_map {
  using verdict = argument_verdict<kind::call, 0, kind::primitive, F>;
  static_assert((verdict::template refuse<verdict>(), true));
  using adjoint = F;
};

// The adjoint as a class that is there: one that is not is refused where it is named.
template <class F>
struct adjoint_of {
  using type = typename F::adjoint;
  static_assert(sizeof(std::conditional_t<kind_of<F> == kind::primitive, type, char>) > 0);
};

}  // namespace detail

/// The adjoint of a map; of one that combines terms otherwise than by a sum there is none.
template <class F>
using adjoint =
    typename detail::adjoint_of<std::conditional_t<engine::kind_of<F> == kind::primitive, F, detail::no_map<F>>>::type;

}  // namespace tessera
