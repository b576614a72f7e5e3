#pragma once

#include <tessera/operation/memory/simulated_run.hpp>
#include <tessera/operation/network/bundled_traffic.hpp>
#include <tessera/operation/network/network.hpp>

namespace tessera {

namespace engine {

/// The memory of a network on one worker, in bytes: each tensor counts as on the worker that has most of it.
///
/// `forward` and `training` are the peaks of activations. They count inputs and outputs, which the caller holds, and
/// values that somebody still reads. They also count what a layer makes of operands and parameters before it computes,
/// and its workspace. `training` covers forward, which keeps what backward reads, and backward. Backward runs from
/// given gradients of the outputs to those of the parameters, which have their memory already; inputs have none. Each
/// is at least what LibTorch's allocator is asked for, but for workspace that docs/design/memory.md says is not
/// counted.
///
/// Memory of transports is not LibTorch's and not counted, nor are the wider copies in which operations on half types
/// compute. A convolution is counted as LibTorch's own kernel computes it. Where that hands it to oneDNN, less is asked
/// for, or more where few channels fill its blocks. Attention is counted as LibTorch's kernel of the host computes it
/// with one thread. Unless it meets keys in blocks, that kernel wants queries and values of one number of features.
struct memory_value {
  index_t forward = 0;     ///< without gradients: a value is gone behind its last reader
  index_t training = 0;    ///< forward and backward
  index_t parameters = 0;  ///< as they are stored
  index_t gradients = 0;   ///< theirs
  index_t buffers = 0;
  index_t held = 0;        ///< by what is gathered of held parameters, and its gradients, until these are reduced
  index_t travelling = 0;  ///< by bundles of these gradients on their way, beside `held` and `gradients`

  friend constexpr bool operator==(const memory_value&, const memory_value&) = default;
};

/// Refuses more bytes than can be counted.
constexpr refusal check(const memory_value& m) {
  for (const index_t bytes : {m.forward, m.training, m.parameters, m.held, m.travelling})
    if (bytes == INT64_MAX) return refusal{code::cost_overflows};
  return {};
}

}  // namespace engine

namespace detail {

// The bytes of a tensor whose dynamic extents are bound.
constexpr index_t bytes_bound(tensor_value x, const bound_extents& known) {
  for (const bound_extent& k : known) bind_extent(x.layout, k.tag, k.extent);
  return bytes_held(x.layout, x.element);
}

constexpr layer_memory bound_memory(layer_plan p, const operand_elements& e, const bound_extents& known) {
  bind_all(p, known);
  return memory_of(p, e);
}

// What a layer takes, as a constant of its own.
template <const auto* Record, auto... Bindings>
inline constexpr layer_memory constant_memory =
    bound_memory(Record->plan(), Record->elements, extents_bound(Bindings...));

template <const auto& Program, class Inputs, class Indices = indices_below<Program.count>>
struct program_memory;
template <const auto& Program, class... In, int... Node>
struct program_memory<Program, type_list<In...>, indices<Node...>> {
  using run = simulated_run<Program.count, values_of(Program)>;
  using layers = const layer_memory (&)[sizeof...(Node) + 1];

  static constexpr memory_value sum(layers each, const bound_extents& known, node_memory* nodes = nullptr) {
    const index_t inputs[]{bytes_bound(described<In>::value, known)..., 0};
    memory_value all;
    all.forward = run(Program, each, inputs).forward(false);
    run training(Program, each, inputs);
    all.training = training.training();
    for (int i = 0; i < Program.count && nodes != nullptr; ++i) nodes[i] = training.at(i);
    for (int i = 0; i < Program.count; ++i) {
      if (each[i].held > 0 && !taken_before(Program, i)) {
        all.held = capped_sum(all.held, each[i].held);
        all.travelling = capped_sum(all.travelling, each[i].travelling);
      }
      if (owner_of(Program, i) != i) continue;
      all.parameters = capped_sum(all.parameters, each[i].stored);
      all.gradients = capped_sum(all.gradients, each[i].learned);
      all.buffers = capped_sum(all.buffers, each[i].buffers);
    }
    all.travelling = capped_sum(all.travelling, bundles_between<Program>(indices<Node...>{}));
    return all;
  }
  static constexpr memory_value under(const bound_extents& known, node_memory* nodes = nullptr) {
    return sum({bound_memory(Program.nodes[Node].record->plan(), Program.nodes[Node].record->elements, known)...,
                layer_memory()},
               known, nodes);
  }
  template <auto... Bindings>
  static constexpr memory_value constant() {
    return sum({constant_memory<Program.nodes[Node].record, Bindings...>..., layer_memory()},
               extents_bound(Bindings...));
  }
};

// What a network takes, whose plans are the types' or are made anew.
template <class Network>
constexpr memory_value memory_under(const bound_extents& known, node_memory* nodes = nullptr) {
  using figures = program_memory<Network::program, typename Network::inputs>;
  if constexpr (planned_anew<Network>) {
    const auto count = [](const layer_plan& p, const operand_elements& e) { return memory_of(p, e); };
    return figures::sum(node_figures<Network, layer_memory, decltype(count)>(known, count).of, known, nodes);
  } else {
    return figures::under(known, nodes);
  }
}
template <class Network, int Node, auto... Bindings>
inline constexpr layer_memory memory_planned_anew =
    memory_of(bound_plan<Network, Node, Bindings...>, Network::program.nodes[Node].record->elements);

template <class Network, auto... Bindings>
struct constant_peak {
  template <int... Node>
  static constexpr memory_value counted(indices<Node...>) {
    using figures = program_memory<Network::program, typename Network::inputs>;
    if constexpr (planned_anew<Network>)
      return figures::sum({memory_planned_anew<Network, Node, Bindings...>..., layer_memory()},
                          extents_bound(Bindings...));
    else return figures::template constant<Bindings...>();
  }
  static constexpr memory_value of = counted(indices_below<Network::program.count>{});
  static constexpr refusal value = check(of);
};

}  // namespace detail

// As `traffic` asks, line by line: a function of both would name the network once more in the message of a mistake.

/// The memory of a worker for a network with given dynamic extents: `peak_memory<net>(bind<batch>(64)).training`,
/// or `peak_memory<net, bind<batch>(64)>().training` where they are constants.
template <class Network, auto... Constants, class... Bindings>
constexpr engine::memory_value peak_memory(const Bindings&... bindings) {
  using given = detail::argument_verdict<kind::call, 0, kind::network, Network>;
  given::template refuse<given>();
  if constexpr (given::ok) {
    if constexpr (Network::verdict::ok) {
      using known = detail::network_bindings<Network, std::remove_const_t<decltype(Constants)>..., Bindings...>;
      known::template refuse<known>();
      if constexpr (known::ok && sizeof...(Bindings) == 0) {
        return detail::counted_constant<detail::constant_peak, Network, Constants...>();
      } else if constexpr (known::ok) {
        return detail::within_count(
            detail::memory_under<Network>(detail::checked_extents<Network>(Constants..., bindings...)));
      }
    }
  }
  return {};
}

}  // namespace tessera
