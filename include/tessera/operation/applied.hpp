#pragma once

#include <tessera/operation/layer_traffic.hpp>
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

/// What types need of a layer's plan: its first result and how many it has, and why it is refused, if it is.
struct plan_summary {
  tensor_value first;
  refusal why;
  int outputs = 0;
};

constexpr tensor_value output_of(const layer_plan& p, int i, element first) {
  return p.why.ok() ? tensor_value{p.output(i), p.element_of(i, first)} : tensor_value{};
}

// The value of a result, as a constant.
template <class On, int Place>
struct result_value {
  static constexpr tensor_value value = output_of(On::plan(), Place, On::elements.items[0]);
};
template <class On>
struct result_value<On, 0> {
  static constexpr const tensor_value& value = On::summary.first;
};

template <class L, class... In>
concept PlansFor = requires { L::plan(described<In>::value...); };

/// A layer applied to canonical tensor types: its plan, which is large and a constant only where one asks for it, and the types of its
/// results.
template <class L, class First, class... Rest>
struct applied {
  using layer = L;
  static constexpr operand_elements elements{{described<First>::value.element, described<Rest>::value.element...}, 1 + sizeof...(Rest)};
  static constexpr layer_plan plan() {
    if constexpr (PlansFor<L, First, Rest...>) return L::plan(described<First>::value, described<Rest>::value...);
    else return refused_layer(refusal{code::wrong_number_of_operands, -1, 1 + sizeof...(Rest)});
  }

  static constexpr plan_summary summary = [] {
    const layer_plan p = plan();
    return plan_summary{output_of(p, 0, elements.items[0]), p.why, p.outputs()};
  }();
  struct verdict_source {
    static constexpr const refusal& value = summary.why;
  };
  using verdict = verdict_of<verdict_source, L, First, Rest...>;

  template <int Place>
  struct result : result_value<applied, Place> {
    using result_value<applied, Place>::value;

    // What stays as it was keeps its type, which is canonical already; what is cut as it was keeps its partition.
    static auto named() {
      using mesh = typename mesh_after<L, First>::type;
      constexpr bool stays = std::is_same_v<mesh, typename described<First>::mesh_type>;
      if constexpr (stays && value == described<First>::value) return std::type_identity<First>{};
      else if constexpr (stays && cut_alike(value.layout, described<First>::value.layout)) return resized<First, result>{};
      else return tensor_named<First, result, mesh>{};
    }
    using type = typename decltype(named())::type;
  };
};

}  // namespace tessera::detail
