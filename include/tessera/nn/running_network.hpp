#pragma once

#include <tessera/nn/forward.hpp>
#include <tessera/operation/network.hpp>

#include <span>

namespace tessera::nn {

/// A layer as run time sees it: functions of values.
struct running_layer {
  const char* name;
  bool only_here;            ///< no layer of the serial network: it takes no number in its keys
  const layer_plan* planned; ///< the compiler's plan, dynamic extents unbound
  tessera::element element;
  layer_plan (*plan)(const tensor_value&);
  at::Tensor (*forward)(const team_handle&, const layer_plan&, const at::Tensor&, const std::vector<parameter>&);
};

/// Layers one after the other while the program runs: parameters, plans for the extents at hand, forward. Which layers is a value.
///
/// Initial values depend on seed, path and global index alone: every partition starts from the same bits.
class running_network {
 public:
  /// The network's output on a tensor whose layout is a value.
  tensor<dyn> operator()(const tensor<dyn>& x) const {
    if (x.team()->shared_carrier() != team_->shared_carrier()) throw error(refusal{code::other_team}, team_->label());
    tensor<dyn> y = x;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const layer_plan& p = plan_for(i, y);
      y = {team_, p.output, layers_[i].forward(team_, p, y.local(), parameters_[i])};
    }
    return y;
  }

  /// The stored forms that an optimizer steps: local leaves.
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    each_parameter([&](const parameter& p) { all.push_back(p.stored().local()); });
    return all;
  }

  template <class Visit>
  void each_parameter(Visit&& visit) const {
    for (const auto& layer : parameters_)
      for (const parameter& p : layer) visit(p);
  }
  template <class Visit>
  void each_parameter(Visit&& visit) {
    for (auto& layer : parameters_)
      for (parameter& p : layer) visit(p);
  }

  /// Whether layers behave as in training.
  bool training() const { return training_; }
  void train(bool on = true) { training_ = on; }
  void eval() { train(false); }

  const team_handle& team() const { return team_; }

 protected:
  /// Makes the parameters; all workers of the team do, and compare what they make.
  running_network(const team_handle& team, seed s, std::span<const running_layer> layers)
      : team_(team), layers_(layers), parameters_(layers.size()), plans_(layers.size()) {
    fingerprint f;
    int number = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      for (const parameter_value& w : layers[i].planned->parameters) {
        parameters_[i].emplace_back(team_, fmt::format("{}.{}", number, w.name), w, layers[i].element, s);
        f << w.stored << w.used;
      }
      f << layers[i].planned->input << layers[i].planned->output;
      if (!layers[i].only_here) ++number;
    }
    f << s.value;
    if (team_->inside()) team_->agree(f.value());
  }
  running_network() = default;

 private:
  struct bound_plan {
    layout input;
    layer_plan plan;
  };

  // The plan for the extents at hand: computed when they change, by the function that the compiler used.
  const layer_plan& plan_for(std::size_t i, const tensor<dyn>& x) const {
    bound_plan& b = plans_[i];
    if (b.input.dims.count == 0 || !(b.input == x.layout())) {
      b.input = x.layout();
      b.plan = layers_[i].plan(tensor_value{x.layout(), x.type()});
      check(b.plan.why, fmt::format("layer {}, {}", i, layers_[i].name));
    }
    return b.plan;
  }

  team_handle team_;
  std::span<const running_layer> layers_;
  std::vector<std::vector<parameter>> parameters_;
  mutable std::vector<bound_plan> plans_;
  bool training_ = true;
};

/// A running network between two tensor types. Not the layers but these name it, so what compilers say of a call is short.
template <class In, class Out>
class network_between : public running_network {
 public:
  using input = In;
  using output = Out;
  using running_network::operator();

  /// The network's output; x may be spelled in any way that means the input's partition.
  template <class T>
  Out operator()(const T& x) const {
    using verdict = verdict_of<passed<T>>;
    verdict::template refuse<verdict>();
    if constexpr (verdict::ok) return Out((*this)(x.dynamic()));
    else return {};
  }

 protected:
  using running_network::running_network;

 private:
  template <class T>
  struct passed {
    static constexpr refusal value = [] {
      if constexpr (!TensorType<T>) return refusal{code::not_a_tensor};
      else if constexpr (!detail::described<T>::verdict::ok) return detail::described<T>::verdict_source::value;
      else return check_same(value_of<T>, value_of<In>);
    }();
  };
};

}  // namespace tessera::nn
