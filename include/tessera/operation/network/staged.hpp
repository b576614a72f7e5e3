#pragma once

#include <tessera/operation/network/chain_walk.hpp>
#include <tessera/operation/network/network.hpp>
#include <tessera/operation/network/staged_layers.hpp>
#include <tessera/operation/network/staged_options.hpp>

namespace tessera {

namespace detail {

/// A step of the way of a flow to a coordinate of an axis, which began as `Begin`: `to`, wherever it comes from.
template <class Axis, int Coordinate, class Begin, class Said, int Step>
struct to_stage : nn::layer<to_stage<Axis, Coordinate, Begin, Said, Step>> {
  static constexpr const char* name = "to";
  static constexpr bool moves_only = true;
  static constexpr bool only_here = true;
  static constexpr repartition_description description() { return {}; }
  static constexpr layer_plan plan(const tensor_value& x) {
    return plan_to_stage(x.layout, described<Begin>::value.layout, short_name_of<bare_axis<Axis>>(), Coordinate,
                         Said::how.through, Step);
  }
};

}  // namespace detail

template <class Axis, int Coordinate, class Begin, class Said, int Step>
inline constexpr kind engine::kind_of<detail::to_stage<Axis, Coordinate, Begin, Said, Step>> = kind::layer;

namespace detail {

// Asks each unit what it costs.
struct measuring_units {
  pipeline::layer_cost* costs;
  index_t rows;

  template <int Unit, class Part, class X>
  constexpr auto unit(const X& x) const {
    const auto y = passed_through<Part>(x);
    if constexpr (!is_refused<std::remove_const_t<decltype(y)>>)
      costs[Unit] = with_flows(x, [&](const auto&... one) { return cost_of<Part>(one...); });
    return y;
  }

 private:
  template <class Part, class... F>
  constexpr pipeline::layer_cost cost_of(const F&...) const {
    pipeline::layer_cost all;
    if constexpr (module_call<plans, Part, typename F::type...>::is_constant) {
      const program_view<layer_record>& p = module_program<plans, Part, typename F::type...>::view;
      for (int i = 0; i < p.count; ++i) {
        const layer_record& layer = *p.nodes[i].record;
        pipeline::layer_cost one = cost_in_stage(layer.plan(), layer.elements, rows, p.times_again(i));
        if (owner_of(p, i) != i) one.parameters = one.bytes.once = 0;
        all += one;
      }
    }
    return all;
  }
};

// The part of the pipeline that each unit of a chain is in, for flows of these types.
template <class Chain, class Axis, class Said, class... T>
struct unit_places {
  static constexpr int units = units_of<Chain>;
  refusal why;
  int axis = -1;
  pipeline::extent of;
  int part[units + 1]{};

  static constexpr unit_places made() {
    unit_places p;
    const layout& x = first_layout();
    p.why = check_kinds<kind::module, kind::axis, Axis>(1);
    p.axis = x.mesh.find(axis_name<Axis>());
    if (p.why.ok() && p.axis < 0) p.why = refusal{code::axis_not_in_mesh, axis_name<Axis>(), x.mesh.axes.count};
    if (!p.why.ok()) return p;
    constexpr pipeline::assignment how = Said::how;
    p.of = how.over(static_cast<int>(x.mesh.axes[p.axis].extent));
    pipeline::layer_cost costs[units + 1]{};
    if constexpr (how.measures()) {
      recorder<layer_record> in;
      measure(costs, in, indices_below<static_cast<int>(sizeof...(T))>{});
    }
    const pipeline::shares all = pipeline::shared_out(how, {costs, static_cast<std::size_t>(units)}, p.of.stages);
    p.why = all.why;
    if (!p.why.ok()) return p;
    const auto parts = pipeline::parts_of(all);
    for (int i = 0; i < units; ++i) p.part[i] = parts[i];
    return p;
  }

 private:
  static constexpr const layout& first_layout() {
    const layout* const all[]{&described<T>::value.layout...};
    return *all[0];
  }
  template <int... Index>
  static constexpr void measure(pipeline::layer_cost* costs, recorder<layer_record>& in, indices<Index...>) {
    const measuring_units walk{costs, Said::how.rows};
    if constexpr (sizeof...(T) == 1) walked<Chain, 0>(walk, flow<T..., plans>{&in, {-1, 0}});
    else walked<Chain, 0>(walk, flows(flow<T, plans>{&in, {-1, Index}}...));
  }
};

template <class Chain, class Axis, class Said, class... T>
struct units_placed {
  static constexpr auto all = unit_places<Chain, Axis, Said, T...>::made();
  static constexpr const refusal& value = all.why;
};

// As nothing is said: no way round.
struct directly {
  static constexpr pipeline::assignment how{};
};

// Takes all that goes on to where the next unit is, and through it.
template <class Axis, class Said, class Placed>
struct placing_units {
  template <int Unit, class Part, class X>
  constexpr auto unit(const X& x) const {
    constexpr int part = Placed::all.part[Unit], before = Unit == 0 ? -1 : Placed::all.part[Unit - (Unit > 0)];
    if constexpr (part == before) {
      return passed_through<Part>(x);
    } else {
      constexpr int stage = Placed::all.of.stage_of(part);
      const auto there = with_flows(x, [](const auto&... one) {
        if constexpr (sizeof...(one) == 1) return moved<stage, part == 0>(one...);
        else return flows(moved<stage, part == 0>(one)...);
      });
      if constexpr (is_refused<std::remove_const_t<decltype(there)>>) return first_refused(there);
      else return passed_through<Part>(there);
    }
  }

 private:
  // What comes in may be there already; a move that leads to the same place begins a chunk.
  template <int Stage, bool First, class F>
  static constexpr auto moved(const F& x) {
    constexpr const layout& lies = described<typename F::type>::value.layout;
    constexpr bool there = is_on_stage(lies, Placed::all.axis, Stage);
    if constexpr (First && there) {
      return x;
    } else {
      using said = std::conditional_t<First || there, directly, Said>;
      constexpr int steps = way_between(lies, Placed::all.axis, Stage, said::how.through).over.count;
      return step<Stage, typename F::type, said, 0, steps>(x);
    }
  }
  template <int Stage, class Begin, class How, int Step, int Steps, class F>
  static constexpr auto step(const F& x) {
    if constexpr (Step == Steps || is_refused<F>) return x;
    else return step<Stage, Begin, How, Step + 1, Steps>(passed_on<to_stage<Axis, Stage, Begin, How, Step>>(x));
  }
  template <class T, class Mode, class Verdict>
  static constexpr auto first_refused(const flow<T, Mode, Verdict>& x) {
    return x;
  }
  template <class First, class... Rest>
  static constexpr auto first_refused(const flows<First, Rest...>& all) {
    if constexpr (is_refused<First>) return all.first;
    else return first_refused(all.rest);
  }
};

// Lets a program that is put together while it runs see to all of it.
struct units_at_run_time {
  template <int Unit, class Part, class X>
  auto unit(const X& x) const {
    return with_flows(x, [](const auto& first, const auto&... rest) {
      return first.in->as_unit([](const auto&... one) { return passed_on<Part>(one...); }, first, rest...);
    });
  }
};

// What is no chain is one part.
template <class Module>
struct as_chain {
  using type = nn::chain<Module>;
};
template <class... Parts>
struct as_chain<nn::chain<Parts...>> {
  using type = nn::chain<Parts...>;
};

template <class... How>
struct stages_said {
  static constexpr pipeline::assignment how = assignment_said<How...>();
};

}  // namespace detail

namespace nn {

/// A chain whose parts lie on the coordinates of an axis one after the other, as if `to` stood between them:
/// `staged<chain<block, block, block, block>, stage, by_parameters>`.
///
/// Parts of chains within it count too, also under a name; a part is whole on a stage, with what is in it. `how` is
/// `by_count`, `by_parameters`, `by_memory<rows>`, `by_time<rows>`, `by_weights<…>` or `by_sizes<…>`, and `chunks<c>`
/// and `turning` where a schedule passes stages several times; `through_shards<model>` lets the workers of an axis send
/// a share each. What a part gives, several flows too, goes to the next one. Keys, plans and results are those of the
/// chain with `to` written out. In a program that is put together while it runs a module may stand in place of the
/// chain: there each node is a part.
template <class Module, class Axis, class... How>
struct staged {
  template <engine::FlowType First, engine::FlowType... Rest>
  constexpr auto operator()(const First& first, const Rest&... rest) const {
    using namespace tessera::detail;
    static_assert((StageOption<How> && ...));  // how staged shares out: by_count, by_parameters, …, chunks, turning
    using said = stages_said<How...>;
    const auto all = [&] {
      if constexpr (sizeof...(rest) == 0) return first;
      else return flows(first, rest...);
    }();
    if constexpr (engine::DynamicFlow<First>) {
      first.in->refuse(check_kinds<kind::module, kind::axis, Axis>(1), "staged");
      return first.in->in_stages(axis_name<Axis>(), said::how, first.layout().mesh, [&] {
        if constexpr (is_chain<Module>::value)
          return walked<typename as_chain<Module>::type, 0>(units_at_run_time{}, all);
        else return module_of<Module>{}(first, rest...);
      });
    } else if constexpr (is_refused<std::remove_const_t<decltype(all)>>) {
      return refused_flow<typename First::trace_mode, typename First::type, refused_before>();
    } else {
      using placed =
          units_placed<typename as_chain<Module>::type, Axis, said, typename First::type, typename Rest::type...>;
      if constexpr (!placed::all.why.ok())
        return refused_flow<typename First::trace_mode, typename First::type, verdict_of<placed, Axis>>();
      else if constexpr (!is_chain<Module>::value) return module_of<Module>{}(first, rest...);  // there is one stage
      else return walked<typename as_chain<Module>::type, 0>(placing_units<Axis, said, placed>{}, all);
    }
  }
};

}  // namespace nn
}  // namespace tessera
