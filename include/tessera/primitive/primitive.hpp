#pragma once

#include <tessera/plan/change.hpp>
#include <tessera/plan/proof.hpp>
#include <tessera/primitive/verb.hpp>

namespace tessera {

namespace detail {

constexpr bool is_static(const layout& x) {
  for (const auto& d : x.dims)
    if (d.extent == dynamic) return false;
  return true;
}

// Proves every cut of a static dimension: by the first axis, then each length that it leaves by the next.
template <index_t Least, index_t Most, int... Extents>
struct levels_proved {
  static constexpr bool value = true;
};
template <index_t Least, index_t Most, int P, int... Inner>
struct levels_proved<Least, Most, P, Inner...> {
  template <index_t... I>
  static constexpr bool lengths(std::integer_sequence<index_t, I...>) {
    return (laws::proved<Least + I, P> && ...);
  }
  static constexpr bool value = lengths(std::make_integer_sequence<index_t, Most - Least + 1>{}) &&
                                levels_proved<Least / P, (Most + P - 1) / P, Inner...>::value;
};

template <class Source>
struct layout_proved {
  template <int Dim, int... Level>
  static constexpr bool levels(std::integer_sequence<int, Level...>) {
    constexpr const dimension& d = Source::value.dims[Dim];
    constexpr index_t n = d.kind == cover::tiled ? d.extent : d.outputs;
    if constexpr (d.extent == dynamic || sizeof...(Level) == 0) return true;
    else {
      constexpr index_t units = ceil_divide(n, d.grain());
      return levels_proved<units, units, Source::value.mesh.axes[Source::value.cutting(Dim, Level)].extent...>::value;
    }
  }
  template <int... Dim>
  static constexpr bool dims(std::integer_sequence<int, Dim...>) {
    return (levels<Dim>(std::make_integer_sequence<int, Source::value.levels(Dim)>{}) && ...);
  }
  static constexpr bool value = dims(std::make_integer_sequence<int, Source::value.dims.count>{});
};

template <class T>
struct layout_source {
  static constexpr const layout& value = value_of<T>.layout;
};

template <class From, class To>
struct both_proved : std::conjunction<layout_proved<layout_source<From>>, layout_proved<layout_source<To>>> {};

// The adjoint of a refused primitive: it leads between the same tensors and says nothing more.
template <class From, class To>
struct refused_primitive {
  using domain = canonical_tensor<From>;
  using codomain = canonical_tensor<To>;
  using adjoint = refused_primitive<cotangent_type<To>, cotangent_type<From>>;
};

template <class From, class To>
struct primitive_verdict {
  static constexpr refusal value = [] {
    const refusal r = first_of(described<From>::verdict_source::value, described<To>::verdict_source::value);
    if (!r.ok()) return r;
    if (value_of<From>.element != value_of<To>.element)
      return refusal{code::wrong_element, static_cast<int>(value_of<From>.element), static_cast<int>(value_of<To>.element)};
    return check_change(value_of<From>.layout, value_of<To>.layout);
  }();
};

}  // namespace detail

namespace detail {

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
concept Primitive = requires {
  typename F::domain;
  typename F::codomain;
  typename F::adjoint;
} && detail::leads_back<F, typename F::domain, typename F::codomain, typename F::adjoint>;

/// A linear map between two tensor types: every verb is one, and so is its adjoint.
///
///   adjoint::domain == cotangent<codomain>,  adjoint::codomain == cotangent<domain>,  F** == F,  ⟨F x, y⟩ = ⟨x, F* y⟩
///
/// The plan of a primitive with static extents is a constant, its cuts proved while compiling; with dynamic ones `bound`
/// gives it.
template <TensorType From, TensorType To>
struct primitive {
  using domain = canonical_tensor<From>;
  using codomain = canonical_tensor<To>;
  using verdict = verdict_of<detail::primitive_verdict<From, To>>;
  using adjoint = std::conditional_t<verdict::ok, primitive<cotangent_type<To>, cotangent_type<From>>,
                                     detail::refused_primitive<cotangent_type<To>, cotangent_type<From>>>;

  static constexpr tessera::verb verb = verb_between(value_of<From>.layout, value_of<To>.layout);
  static constexpr bool is_static = detail::is_static(value_of<From>.layout) && detail::is_static(value_of<To>.layout);

  /// The plan, where all extents are static.
  static constexpr change plan()
    requires is_static
  {
    return planned(value_of<From>.layout, value_of<To>.layout);
  }

  /// The plan for given values of the dynamic extents.
  template <class... Bindings>
  static constexpr change plan(const Bindings&... bindings) {
    layout from = value_of<From>.layout;
    layout to = value_of<To>.layout;
    ((from = bound(from, bindings.tag, bindings.extent), to = bound(to, bindings.tag, bindings.extent)), ...);
    return planned(from, to);
  }

  /// What the plan moves, in elements.
  template <class... Bindings>
  static constexpr tessera::cost cost(const Bindings&... bindings) {
    if constexpr (!verdict::ok) {
      return {};  // refused already
    } else {
      using unbound = verdict_of<detail::all_bound<From, Bindings...>>;
      unbound::template refuse<unbound>();
      if constexpr (unbound::ok) return cost_of(plan(bindings...));
      else return {};
    }
  }

  /// The bytes that all workers receive.
  template <class... Bindings>
  static constexpr index_t bytes(const Bindings&... bindings) {
    return cost(bindings...).total * bytes_of(value_of<From>.element);
  }

 private:
  static constexpr change planned(const layout& from, const layout& to) {
    return verdict::ok ? change_between(from, to) : change{};
  }

  static_assert(std::disjunction_v<std::bool_constant<!verdict::ok>, detail::both_proved<From, To>>,
                "[tessera.plan.proof] the parts of a dimension do not tile it; this is a fault of the library");
  static constexpr bool has_adjoint = verdict::ok && only_sums(value_of<From>.layout) && only_sums(value_of<To>.layout);
  static_assert(detail::leads_back_if<has_adjoint, primitive, domain, codomain, adjoint>::value,
                "[tessera.primitive.law] the adjoint does not lead back between the cotangents; this is a fault of the library");
  static_assert((verdict::template refuse<verdict>(), true));
};

/// A primitive that must be the verb it is called: `named_primitive<verb::all_gather, From, To>`.
template <verb Verb, TensorType From, TensorType To>
struct named_primitive : primitive<From, To> {
  struct source {
    static constexpr refusal value = [] {
      const refusal leads_nowhere = detail::primitive_verdict<From, To>::value;
      if (!leads_nowhere.ok()) return leads_nowhere;
      const tessera::verb leads = verb_between(value_of<From>.layout, value_of<To>.layout);
      const bool tiles = Verb == tessera::verb::repartition && leads == tessera::verb::all_to_all;
      if (leads != Verb && !tiles) return refusal{code::not_this_verb, static_cast<int>(Verb), static_cast<int>(leads)};
      return refusal{};
    }();
  };
  using verdict = verdict_of<source>;
  static_assert((verdict::template refuse<verdict>(), true));
};

template <Primitive F>
using adjoint = typename F::adjoint;

namespace detail {

template <class... Fs>
struct chain_ends;
template <class F>
struct chain_ends<F> {
  using domain = typename F::domain;
  using codomain = typename F::codomain;
  static constexpr int gap = -1;
};
template <class F, class G, class... Rest>
struct chain_ends<F, G, Rest...> {
  using domain = typename F::domain;
  using codomain = typename chain_ends<G, Rest...>::codomain;
  static constexpr int behind = chain_ends<G, Rest...>::gap;
  static constexpr int gap = !same(value_of<typename F::codomain>.layout, value_of<typename G::domain>.layout) ? 0
                             : behind < 0                                                                      ? -1
                                                                                                               : behind + 1;
};

template <class Reversed, class... Fs>
struct reversed_adjoints;

}  // namespace detail

/// Primitives one after the other, first to last: its adjoint is the adjoints, last to first.
template <Primitive... Fs>
struct composition {
  using domain = typename detail::chain_ends<Fs...>::domain;
  using codomain = typename detail::chain_ends<Fs...>::codomain;
  using adjoint = typename detail::reversed_adjoints<composition<>, Fs...>::type;

  struct source {
    static constexpr refusal value = detail::chain_ends<Fs...>::gap < 0
                                         ? refusal{}
                                         : refusal{code::partitions_do_not_meet, detail::chain_ends<Fs...>::gap + 1};
  };
  using verdict = verdict_of<source>;

  /// What its maps move one after the other: elements, and the bytes that all workers receive.
  template <class... Bindings>
  static constexpr tessera::cost cost(const Bindings&... bindings) {
    tessera::cost sum;
    ((sum += Fs::cost(bindings...)), ...);
    return sum;
  }
  template <class... Bindings>
  static constexpr index_t bytes(const Bindings&... bindings) {
    return (Fs::bytes(bindings...) + ...);
  }

  static_assert(detail::leads_back_if<verdict::ok && (detail::accepted<Fs> && ...), composition, domain, codomain, adjoint>::value,
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
