#pragma once

#include <tessera/nn/forward.hpp>
#include <tessera/nn/verdicts.hpp>
#include <tessera/operation/network.hpp>

#include <list>
#include <memory>
#include <span>

namespace tessera::nn {

/// A layer as run time sees it: functions of values.
struct running_layer {
  const char* name;
  bool only_here;             ///< no layer of the serial network: it takes no number in its keys
  const tensor_value* input;  ///< dynamic extents unbound
  layer_plan (*plan)(const tensor_value&);
  at::Tensor (*forward)(const bound_layer&, const at::Tensor&, const std::vector<parameter>&);
};

/// Layers one after the other while the program runs: parameters, plans for the extents at hand, forward. Which layers is a value.
///
/// Initial values depend on seed, path and global index alone: every partition starts from the same bits. A network moves and does
/// not copy; one that was moved from refuses every use.
class running_network {
 public:
  /// The stored forms that an optimizer steps: local leaves.
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    each_parameter([&](const parameter& p) { all.push_back(p.stored().local()); });
    return all;
  }

  template <class Visit>
  void each_parameter(Visit&& visit) const {
    for (const auto& layer : here().parameters)
      for (const parameter& p : layer) visit(p);
  }

  /// Whether layers behave as in training.
  bool training() const { return here().training; }
  void train(bool on = true) { here().training = on; }
  void eval() { train(false); }

  const team_handle& team() const { return here().team; }

 protected:
  /// Makes the parameters; all workers of the team do, and compare what they make.
  running_network(const team_handle& team, const seed& s, std::span<const running_layer> layers);
  running_network() = default;

  struct copying {};
  /// A network like another one, whose parameters begin with the values of that one's.
  running_network(const running_network& other, copying);

  /// The layers in turn on a tensor like the network's input.
  tensor<dyn> forward(const tensor<dyn>& x, call_site at) const;

 private:
  struct kept_layer {
    placement_handle input;
    element type;
    bound_layer bound;
  };
  static constexpr std::size_t most_kept = 64;

  struct state {
    team_handle team;
    std::span<const running_layer> layers;
    std::vector<std::vector<parameter>> parameters;
    std::vector<std::list<kept_layer>> bound;  // each layer
    bool training = true;

    state(team_handle of, std::span<const running_layer> in_turn) : team(std::move(of)), layers(in_turn), bound(in_turn.size()) {}
  };

  state& here() const {
    if (!state_) throw error(refusal{code::network_moved_from});
    return *state_;
  }

  // A layer bound for the extents at hand, planned by the function that the compiler used when they first come in; those of the
  // extents that came last are kept.
  const bound_layer& bound_for(std::size_t i, const tensor<dyn>& x) const;

  std::unique_ptr<state> state_;
};

/// A running network between two tensor types. Not the layers but these name it, so what compilers say of a call is short.
template <class In, class Out>
class network_between : public running_network {
 public:
  using input = In;
  using output = Out;

  /// The network's output; x may be spelled in any way that means the input's partition.
  template <class T>
  Out operator()(const T& x, call_site at = call_site::here()) const {
    using verdict = verdict_of<passed<T>>;
    verdict::template refuse<verdict>();
    if constexpr (verdict::ok) return Out(this->forward(x.dynamic(), at));
    else return {};
  }

  /// The same for a tensor whose layout is a value, which is the input's.
  tensor<dyn> operator()(const tensor<dyn>& x, call_site at = call_site::here()) const {
    check(tessera::detail::check_fits({x.layout(), x.type()}, value_of<In>), x.team()->label());
    return this->forward(x, at);
  }

 protected:
  using running_network::running_network;

 private:
  template <class T>
  struct passed {
    static constexpr refusal value = [] {
      if constexpr (!TensorType<T>) return refusal{code::tensor_wanted};
      else if constexpr (!detail::described<T>::verdict::ok) return detail::described<T>::verdict_source::value;
      else return check_same(value_of<T>, value_of<In>);
    }();
  };
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/running_network.ipp>
#endif
