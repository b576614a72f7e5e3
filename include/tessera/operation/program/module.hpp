#pragma once

#include <tessera/operation/program/flow.hpp>

namespace tessera::detail {

// What a module is called with for a type that may be no tensor.
template <class In, class Mode>
struct input_flow {
  using type = flow<refused_tensor<>, Mode, refused_before>;
};
template <class In, class Mode>
  requires(TensorType<In> && described<as_tensor<In>>::verdict::ok)
struct input_flow<In, Mode> {
  using type = flow<canonical_tensor<In>, Mode>;
};

// What a module gives, as a list of flows.
template <class Y>
struct flows_of {
  using verdict = wrong_argument<kind::module, 0, kind::flow, kind_of<Y>>;
  static constexpr int count = 0;
};
template <class T, class Mode, class Verdict>
struct flows_of<flow<T, Mode, Verdict>> {
  using verdict = Verdict;
  using types = type_list<T>;
  static constexpr int count = 1;
  static constexpr void write(recorder<typename Mode::record>& in, const flow<T, Mode, Verdict>& y) { in.add(y.from); }
};
template <class... T, class Mode, class... Verdict>
struct flows_of<flows<flow<T, Mode, Verdict>...>> {
  using verdict = std::conditional_t<(Verdict::ok && ...), fits, refused_before>;
  using types = type_list<T...>;
  static constexpr int count = sizeof...(T);
  static constexpr void write(recorder<typename Mode::record>& in, const flows<flow<T, Mode, Verdict>...>& y) {
    write(in, y, indices_below<count>{});
  }
  template <int... Index>
  static constexpr void write(recorder<typename Mode::record>& in, const flows<flow<T, Mode, Verdict>...>& y,
                              indices<Index...>) {
    (in.add(get<Index>(y).from), ...);
  }
};

/// A module that is called with canonical tensor types, in a trace mode.
template <class Mode, class Module, class... In>
class module_call {
 protected:
  using record = typename Mode::record;

  template <int... Index>
  static constexpr auto called(recorder<record>& in, indices<Index...>) {
    return module_of<Module>{}(flow<In, Mode>{&in, {-1, Index}}...);
  }
  static constexpr recorder<record> written(recorder<record> in) {
    const auto y = called(in, indices_below<sizeof...(In)>{});
    results::write(in, y);
    return in;
  }

 public:
  using results = flows_of<decltype(called(std::declval<recorder<record>&>(), indices_below<sizeof...(In)>{}))>;

  /// Whether the module can be called while compiling.
  static constexpr bool is_constant = requires { typename std::bool_constant<(written({}), true)>; };
  /// Where it can: how much it writes down, and what it refuses that only values say.
  struct counted {
    static constexpr recorder<record> size = written({});
    static constexpr const refusal& value = size.why;
  };
};

/// The same as a constant program, of what that notes.
template <class Mode, class Module, class... In>
class module_program : module_call<Mode, Module, In...> {
  using call = module_call<Mode, Module, In...>;
  using typename call::record;
  static constexpr auto stored = [] {
    constexpr recorder<record> size = call::counted::size;
    stored_program<record, size.node_count, size.value_count, size.scope_count, size.recomputed_count> p;
    call::written({p.nodes, p.values, p.scopes, p.recomputed});
    return p;
  }();

 public:
  using typename call::results;
  static constexpr program_view<record> view = stored.view(sizeof...(In), results::count);
};

}  // namespace tessera::detail
