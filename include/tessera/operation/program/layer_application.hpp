#pragma once

#include <tessera/operation/plan/layer_traffic.hpp>
#include <tessera/operation/plan/plan_described.hpp>
#include <tessera/topology/canonical_tensor.hpp>

namespace tessera::detail {

// The mesh type of a layer's results: the one it names, else that of its first operand.
template <class L, class In>
struct mesh_after {
  using type = typename described<In>::mesh_type;
};
template <class L, class In>
  requires requires { typename L::mesh_type; }
struct mesh_after<L, In> {
  using type = typename L::mesh_type;
};

// The operand whose names a layer's results have: the first, or the one that it says.
template <int At, class First, class... Rest>
struct operand_at : operand_at<At - 1, Rest...> {};
template <class First, class... Rest>
struct operand_at<0, First, Rest...> {
  using type = First;
};
template <class L>
constexpr int named_by() {
  if constexpr (requires { L::named_by; }) return L::named_by;
  else return 0;
}

// A result of a layer, where its plan has it.
struct result_value {
  const tessera::layout& layout;
  tessera::element element;

  constexpr bool operator==(const tensor_value& x) const { return layout == x.layout && element == x.element; }
};

// A plan whose parameters are checked too.
constexpr layer_plan checked(layer_plan p, const tensor_value& first) {
  if (p.why.ok()) p.why = check_parameters(p, first.element);
  return p;
}

// What a layer plans on these operands.
template <class L, class First, class... Rest>
constexpr layer_plan planned_on(const First& first, const Rest&... rest) {
  if constexpr (requires { L::plan(first, rest...); }) {
    layer_plan p = L::plan(first, rest...);
    if (p.why.ok()) p.why = check_parameters(p, first.element);
    return p;
  } else {
    return refused_layer(refusal{code::wrong_number_of_operands, -1, 1 + sizeof...(rest)});
  }
}

// The plan of a layer on canonical tensor types: one constant, from which all is taken that types know of the layer.
template <class L, class... In>
inline constexpr layer_plan constant_plan = planned_on<L>(described<In>::value...);

/// A layer applied to canonical tensor types: its plan and the types of its results.
template <class L, class First, class... Rest>
struct applied {
  using layer = L;
  static constexpr operand_elements elements{{described<First>::value.element, described<Rest>::value.element...},
                                             1 + sizeof...(Rest)};
  static constexpr const layer_plan& planned = constant_plan<L, First, Rest...>;
  /// The same through a pointer to a function, or that for other operands. At run time the plan is made anew, since a
  /// constant would lie in the program.
  static constexpr layer_plan plan(const void* = nullptr, const tensor_value* const* operands = nullptr) {
    if (__builtin_is_constant_evaluated())
      return operands == nullptr ? planned : plan_again(operands, indices_below<1 + sizeof...(Rest)>{});
    const tensor_value* const own[]{&described<First>::value, &described<Rest>::value...};
    return plan_at_run_time(operands == nullptr ? own : operands);
  }
  struct verdict_source {
    static constexpr const refusal& value = planned.why;
  };
  using verdict = verdict_of<verdict_source, L, First, Rest...>;

  template <int... Index>
  static constexpr layer_plan plan_again(const tensor_value* const* x, indices<Index...>) {
    return planned_on<L>(*x[Index]...);
  }
  static layer_plan plan_at_run_time(const tensor_value* const* x) {
    constexpr std::size_t count = 1 + sizeof...(Rest);
    if constexpr (Described<L>)
      return checked(plan_described<description_type<L>>(&description_of<L>, std::span(x, count)), *x[0]);
    else return plan_again(x, indices_below<count>{});
  }

  template <int Index>
  struct result {
    static constexpr result_value value{planned.output(Index), planned.element_of(Index, elements.items[0])};

    // What stays as it was keeps its type, which is canonical already; what is cut as it was keeps its partition.
    static auto named() {
      using like = typename operand_at<named_by<L>(), First, Rest...>::type;
      using mesh = typename mesh_after<L, First>::type;
      constexpr bool stays = std::is_same_v<mesh, typename described<like>::mesh_type>;
      if constexpr (stays && value == described<like>::value) return std::type_identity<like>{};
      else if constexpr (stays && cut_alike(value.layout, described<like>::value.layout))
        return resized<like, result>{};
      else return tensor_named<like, result, mesh>{};
    }
    using type = typename decltype(named())::type;
  };
};

}  // namespace tessera::detail
