#pragma once

#include <tessera/nn/running_network.hpp>

#include <array>

namespace tessera::detail {

template <class List>
struct running_layers;
template <class... Ons>
struct running_layers<layer_list<Ons...>> {
  static constexpr std::array<nn::running_layer, sizeof...(Ons)> table{
      {{Ons::name, Ons::only_here, &described<typename Ons::input>::value,
        [](const tensor_value& x) -> layer_plan { return Ons::layer::plan(x); }, &nn::forward<typename Ons::layer>}...}};
};

}  // namespace tessera::detail

namespace tessera::nn {

/// What a network is made of: a team or a seed, but not one thing alone (kind::nothing). Anything converts to it, and what is of another
/// kind is refused at the line that makes the network, where compilers name no layer.
template <kind Wanted, class Value>
struct made_of {
  Value value{};
  template <class Given>
  made_of(const Given& given) {
    using verdict = std::conditional_t<kind_of<Given> == Wanted, fits, network_made_otherwise<>>;
    verdict::template refuse<verdict>();
    if constexpr (verdict::ok && Wanted == kind::team) value = given.state();
    else if constexpr (verdict::ok) value = given;
  }
};

/// A network whose layers fit one another, with parameters and a forward: what `sequential` names.
template <class In, class... Layers>
class sequential_of : public network_between<In, typename network_of<In, Layers...>::output> {
  using known = network_of<In, Layers...>;
  using running = network_between<In, typename known::output>;

 public:
  using layers = typename known::layers;
  using verdict = typename known::verdict;

  /// Makes the parameters; all workers of the team do, and compare what they make.
  sequential_of(const made_of<kind::team, team_handle>& team, const made_of<kind::seed, seed>& s)
      : running(team.value, s.value, detail::running_layers<typename known::chained::layers>::table) {}
  explicit sequential_of(const made_of<kind::nothing, int>&) {}
  sequential_of() = delete;  // [tessera.network.arguments] a network is made of its team and a seed; write net{team, seed{7}}
  sequential_of(sequential_of&&) = default;
  sequential_of& operator=(sequential_of&&) = default;
  sequential_of(const sequential_of&) = delete;             // [tessera.network.copy] two would step the same weights;
  sequential_of& operator=(const sequential_of&) = delete;  // [tessera.network.copy] move it, or write clone()

  /// Another network whose parameters begin with the values of this one.
  sequential_of clone() const { return {*this, typename running::copying{}}; }

 private:
  sequential_of(const sequential_of& other, typename running::copying how) : running(other, how) {}
};

/// A network with a mistake: the one error at its first use, and nothing else that could fail.
template <class Verdict, class In>
class refused_sequential : public network_between<In, detail::refused_like<In>> {
 public:
  using layers = detail::each_layer<detail::layer_list<>>;
  using verdict = Verdict;
  template <class... Given>
  explicit refused_sequential(const Given&...) {}
  static_assert((Verdict::template refuse<Verdict>(), true));
};

/// Layers one after the other: what `network` knows from types, with parameters and a forward.
template <class In, class... Layers>
using sequential = typename detail::network_named<sequential_of, refused_sequential, In, Layers...>::type;

}  // namespace tessera::nn
