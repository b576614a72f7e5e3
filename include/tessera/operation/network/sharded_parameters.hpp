#pragma once

#include <tessera/operation/program/chain.hpp>
#include <tessera/operation/rule/axes_by_name.hpp>

namespace tessera {

/// How often parameters that are stored as tiles are gathered: `sharded_over<block, data, gathered<gathering::once>>`.
///
///  twice  for forward and again for backward, unless said: what was gathered goes behind forward
///  once   it stays between forward and backward, which moves a third less
///  held   it stays for all micro-batches of a step, until `nn::reduce_gradients`; without axes copies stay copies,
///         whose gradients wait
///  bundled  the same, but each backward reduces what waits, unless `nn::accumulation` leaves it
template <gathering Times>
struct gathered {};
template <gathering Times>
inline constexpr kind engine::kind_of<gathered<Times>> = kind::option;

namespace engine {

/// Over which axes parameters are stored as tiles, and how often they are gathered.
struct tiles_over {
  static_vector<text, max_axes> axes;
  gathering times = gathering::twice;
};

}  // namespace engine

namespace detail {

/// Stores the parameters of a layer as tiles over these axes, as far as an axis holds copies of them. An axis cuts the
/// dimension that its workers share most evenly; a parameter too small for that lies on coordinate 0. The layer's own
/// form stays as it is. It is released behind forward and gathered again for backward, unless it is gathered once or
/// held. Of a layer that is held all parameters are, copies as well.
constexpr layer_plan stored_as_tiles(layer_plan p, const tiles_over& over) {
  for (int i = 0; p.why.ok() && i < p.parameters(); ++i) {
    layout stored = p.stored(i);
    unsigned taken = 0;
    bool spreads = false;
    for (int a : found(stored.mesh, over.axes, taken, p.why)) {
      if (stored.placements[a].kind != placement::invariant || stored.mesh.axes[a].extent == 1) continue;
      spread(stored, a);
      spreads = true;
    }
    if (!p.why.ok()) continue;
    if (spreads) p.set_stored(stored, i);
    if (engine::holds(over.times) || (spreads && !p.held(i))) p.set_gathering(over.times, i);  // held without tiles too
  }
  return p;
}

template <class Axes, gathering Times = gathering::twice>
struct tiles_said;
template <class... Axes, gathering Times>
struct tiles_said<axes_are<Axes...>, Times> {
  static constexpr refusal why =
      first_of(check_axes<kind::module, Axes...>(),
               sizeof...(Axes) > max_axes ? refusal{code::too_many, sizeof...(Axes)} : refusal{});
  static constexpr tiles_over over() {
    tiles_over t;
    t.times = Times;
    if constexpr (why.ok()) (t.axes.push(short_name_of<bare_axis<Axes>>()), ...);
    return t;
  }
};

template <class Said, class... Given>
struct tiles_among {
  using type = Said;
};
template <class... Axes, gathering Times, class First, class... Rest>
struct tiles_among<tiles_said<axes_are<Axes...>, Times>, First, Rest...>
    : tiles_among<tiles_said<axes_are<Axes..., First>, Times>, Rest...> {};
template <class... Axes, gathering Before, gathering Times, class... Rest>
struct tiles_among<tiles_said<axes_are<Axes...>, Before>, gathered<Times>, Rest...>
    : tiles_among<tiles_said<axes_are<Axes...>, Times>, Rest...> {};

template <class T>
inline constexpr bool says_times = false;
template <gathering Times>
inline constexpr bool says_times<gathered<Times>> = true;

// The axes among these, by name, and how often it is gathered, which is said once; or why they are none.
template <class... Given>
struct tiles_named : tiles_among<tiles_said<axes_are<>>, Given...>::type {
  static constexpr refusal why = [] {
    constexpr bool says[]{says_times<Given>..., false};
    int first = -1;
    for (int i = 0; i < static_cast<int>(sizeof...(Given)); ++i) {
      if (!says[i]) continue;
      if (first >= 0) return refusal{code::option_given_twice, first, i};
      first = i;
    }
    return tiles_among<tiles_said<axes_are<>>, Given...>::type::why;
  }();
};

/// A layer whose parameters are stored as tiles.
template <class L, class... Axes>
struct layer_in_tiles : L {
  template <class... Operands>
  static constexpr auto plan(const Operands&... x) -> decltype(L::plan(x...)) {
    using named = tiles_named<Axes...>;
    return named::why.ok() ? stored_as_tiles(L::plan(x...), named::over()) : refused_layer(named::why);
  }
};

/// Notes layers as another mode does, with their parameters stored as tiles.
template <class Mode, class... Axes>
struct tiles_mode {
  using on = Mode;
  using record = typename Mode::record;
  template <class L>
  using in_place_of = layer_in_tiles<L, Axes...>;
  template <class On>
  static constexpr const record* record_of() {
    return Mode::template record_of<On>();
  }
};

}  // namespace detail

template <class L, class... Axes>
inline constexpr kind engine::kind_of<detail::layer_in_tiles<L, Axes...>> = kind::layer;

namespace nn {

/// A layer or a module whose parameters are stored as tiles over axes that hold copies of them, which over data is FSDP
/// and ZeRO-3: `sharded_over<linear<64>, data>`.
///
/// use : stored → used gathers a parameter, and its adjoint scatters the sum of the gradients. A gathered parameter is
/// released behind forward and gathered again for backward. So p workers move (p − 1)/p of a parameter three times,
/// where an all_reduce moves it twice. Each worker holds a p-th of it, and so does its optimizer (Rajbhandari et al.
/// 2020). With `gathered<gathering::once>` the gathered parameter stays, and moves twice. With
/// `gathered<gathering::held>` it stays for any number of calls, whose gradients add up locally; all of them together
/// move it twice. Initial values, keys and results are those of the part itself.
template <class Part, class... Axes>
struct sharded_over {
  using wraps = Part;
  static constexpr int results = tessera::detail::result_count<Part>();
  static constexpr Part inside() { return {}; }
  template <class Call, engine::FlowType First, engine::FlowType... Rest>
  constexpr auto around(const Call& call, const First& first, const Rest&... rest) const {
    if constexpr (engine::DynamicFlow<First>) {
      using named = tessera::detail::tiles_named<Axes...>;
      first.in->refuse(named::why, "sharded_over");
      return first.in->sharded_over(named::over(), [&] { return call(first, rest...); });
    } else {
      using mode = typename First::trace_mode;
      using tiles = tessera::detail::tiles_mode<mode, Axes...>;
      const auto y = call(tessera::detail::in_mode<tiles>(first), tessera::detail::in_mode<tiles>(rest)...);
      return tessera::detail::in_mode<mode>(y);
    }
  }
  template <engine::FlowType... F>
  constexpr auto operator()(const F&... x) const {
    return around(tessera::detail::module_of<Part>{}, x...);
  }
};

/// A layer or a module whose gradients travel in bundles, DistributedDataParallel's buckets: `bundled<block>`.
///
/// Workers sum the gradients inside backward, 25 MiB of one element at a time, in the reverse of the order in which
/// forward takes parameters. With axes, parameters are also stored as tiles over them.
template <class Part, class... Axes>
using bundled = sharded_over<Part, Axes..., gathered<gathering::bundled>>;

}  // namespace nn
}  // namespace tessera
