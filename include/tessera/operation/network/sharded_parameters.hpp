#pragma once

#include <tessera/operation/program/chain.hpp>
#include <tessera/operation/rule/axes_by_name.hpp>

namespace tessera {

/// Axes over which what was gathered stays between forward and backward, which moves a third less: `stored_over<block,
/// gathered_once<data>>`.
template <class... Axes>
struct gathered_once {};
template <class... Axes>
inline constexpr kind kind_of<gathered_once<Axes...>> = kind::option;

/// Axes over which what was gathered stays for all micro-batches of a step, until `nn::reduce_gradients`:
/// `stored_over<block, held_over<data>>`. Of no axes copies stay copies, whose gradients wait: `held_over<>`.
template <class... Axes>
struct held_over {};
template <class... Axes>
inline constexpr kind kind_of<held_over<Axes...>> = kind::option;

/// Over which axes parameters are stored as tiles, and how often they are gathered.
struct tiles_over {
  static_vector<text, max_axes> axes;
  gathered times = gathered::twice;
};

namespace detail {

/// Stores the parameters of a layer as tiles over these axes, as far as an axis holds copies of them: along it the
/// dimension is cut that its workers share most evenly; what is too small for that lies on coordinate 0. What the layer
/// takes stays as it is, but goes behind forward and is gathered again for backward, unless it is gathered once or
/// held. Of a layer that is held all parameters are, copies as well.
constexpr layer_plan stored_as_tiles(layer_plan p, const tiles_over& over) {
  for (int i = 0; p.why.ok() && i < p.parameters(); ++i) {
    layout stored = p.stored(i);
    unsigned taken = 0;
    bool spreads = false;
    for (int a : found(stored.mesh, over.axes, taken, p.why)) {
      if (stored.roles[a].kind != role::invariant || stored.mesh.axes[a].extent == 1) continue;
      spread(stored, a);
      spreads = true;
    }
    if (!p.why.ok()) continue;
    if (spreads) p.store(stored, i);
    const bool holds = over.times == gathered::held;  // what has no tiles too
    if (holds || (spreads && !p.held(i))) p.gather(over.times, i);
  }
  return p;
}

// The axes by name, or why they are none.
template <class... Axes>
struct tiles_named {
  static constexpr refusal why =
      first_of(check_axes<kind::module, Axes...>(),
               sizeof...(Axes) > max_axes ? refusal{code::too_many, sizeof...(Axes)} : refusal{});
  static constexpr tiles_over over(gathered times = gathered::twice) {
    tiles_over t;
    t.times = times;
    if constexpr (why.ok()) (t.axes.push(short_name_of<bare_axis<Axes>>()), ...);
    return t;
  }
};
template <class... Axes>
struct tiles_named<gathered_once<Axes...>> : tiles_named<Axes...> {
  static constexpr tiles_over over() { return tiles_named<Axes...>::over(gathered::once); }
};
template <class... Axes>
struct tiles_named<held_over<Axes...>> : tiles_named<Axes...> {
  static constexpr tiles_over over() { return tiles_named<Axes...>::over(gathered::held); }
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

/// Notes layers as another reading does, with their parameters stored as tiles.
template <class Reading, class... Axes>
struct reading_tiles {
  using on = Reading;
  using fact = typename Reading::fact;
  template <class L>
  using in_place_of = layer_in_tiles<L, Axes...>;
  template <class On>
  static constexpr const fact* fact_of() {
    return Reading::template fact_of<On>();
  }
};

// The same flows for another reading that notes the same.
template <class Reading, class T, class Before, class Verdict>
constexpr flow<T, Reading, Verdict> read_by(const flow<T, Before, Verdict>& x) {
  return {x.in, x.from};
}
template <class Reading, class... F>
constexpr auto read_by(const flows<F...>& all) {
  return [&]<int... Place>(indices<Place...>) {
    return flows(read_by<Reading>(get<Place>(all))...);
  }(indices_below<sizeof...(F)>{});
}

}  // namespace detail

template <class L, class... Axes>
inline constexpr kind kind_of<detail::layer_in_tiles<L, Axes...>> = kind::layer;

namespace nn {

/// A layer or a module whose parameters are stored as tiles over axes that hold copies of them, which is ZeRO-3 over
/// data: `stored_over<linear<64>, data>`.
///
/// use : stored → used gathers a parameter, and its adjoint scatters the sum of the gradients. What was gathered goes
/// behind forward and is gathered again for backward, so p workers move (p − 1)/p of a parameter three times, where an
/// all_reduce does twice, while each holds, and its optimizer steps, a p-th (Rajbhandari et al. 2020); with
/// `gathered_once<axes…>` it stays, and moves twice; with `held_over<axes…>` it stays for any number of calls, whose
/// gradients add up where it lies, and moves twice in all. Initial values, keys and results are those of the part
/// itself.
template <class Part, class... Axes>
struct stored_over {
  using wraps = Part;
  static constexpr int results = tessera::detail::results_said<Part>();
  static constexpr Part inside() { return {}; }
  template <class Call, FlowType First, FlowType... Rest>
  constexpr auto around(const Call& call, const First& first, const Rest&... rest) const {
    if constexpr (DynamicFlow<First>) {
      using named = tessera::detail::tiles_named<Axes...>;
      first.in->refuse(named::why, "stored_over");
      return first.in->stored_over(named::over(), [&] { return call(first, rest...); });
    } else {
      using reading = typename First::reading;
      using tiles = tessera::detail::reading_tiles<reading, Axes...>;
      const auto y = call(tessera::detail::read_by<tiles>(first), tessera::detail::read_by<tiles>(rest)...);
      return tessera::detail::read_by<reading>(y);
    }
  }
  template <FlowType... F>
  constexpr auto operator()(const F&... x) const {
    return around(tessera::detail::module_of<Part>{}, x...);
  }
};

}  // namespace nn
}  // namespace tessera
