#pragma once

#include <tessera/nn/forward.hpp>
#include <tessera/operation/network.hpp>

#include <memory>
#include <span>
#include <unordered_map>

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
/// Initial values depend on seed, path and global index alone: every partition starts from the same bits. A network moves and does
/// not copy; one that was moved from refuses every use.
class running_network {
 public:
  running_network(running_network&&) noexcept = default;
  running_network& operator=(running_network&&) noexcept = default;

  /// The stored forms that an optimizer steps: local leaves.
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    each_parameter([&](const parameter& p) { all.push_back(p.stored().local()); });
    return all;
  }

  template <class Visit>
  void each_parameter(Visit&& visit) const {
    static_cast<void>(team());
    for (const auto& layer : parameters_)
      for (const parameter& p : layer) visit(p);
  }

  /// Whether layers behave as in training.
  bool training() const { return team() && training_; }
  void train(bool on = true) { training_ = team() && on; }
  void eval() { train(false); }

  const team_handle& team() const {
    if (!team_) throw error(refusal{code::network_moved_from});
    return team_;
  }

 protected:
  /// Makes the parameters; all workers of the team do, and compare what they make.
  running_network(const team_handle& team, const seed& s, std::span<const running_layer> layers)
      : team_(team), layers_(layers), parameters_(layers.size()) {
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
    f << s.value << text(s.path.data(), static_cast<int>(s.path.size())).hash;
    if (team_->inside())
      team_->agree(f.value(), "making a network", [&] { return fmt::format("making a network of {} layers, seed {} {}", layers.size(), s.value, s.path); });
  }
  running_network() = default;

  struct copying {};
  /// A network like another one, whose parameters begin with the values of that one's.
  running_network(const running_network& other, copying) : team_(other.team()), layers_(other.layers_), training_(other.training_) {
    for (const auto& layer : other.parameters_) {
      auto& mine = parameters_.emplace_back();
      for (const parameter& p : layer) mine.push_back(p.clone());
    }
  }

  /// The layers in turn on a tensor like the network's input.
  tensor<dyn> forward(const tensor<dyn>& x, call_site at) const {
    if (x.team()->shared_carrier() != team()->shared_carrier()) throw error(refusal{code::other_team}, team_->label());
    tensor<dyn> y = x;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const during now(*team_, {.what = layers_[i].name, .at = at});
      const layer_plan& p = plan_for(i, y);
      y = {team_, p.output, layers_[i].forward(team_, p, y.local(), parameters_[i])};
    }
    return y;
  }

 private:
  // The plan of a layer for the extents at hand, made by the function that the compiler used when they first come in. What a layer
  // hands to autograd may refer to it, so it stays as long as the network.
  const layer_plan& plan_for(std::size_t i, const tensor<dyn>& x) const {
    const layout input = team_->own(x.layout());
    fingerprint f;
    f << static_cast<index_t>(i) << input;
    auto& kept = plans_[f.value()];
    if (!kept) {
      layer_plan p = layers_[i].plan(tensor_value{input, x.type()});
      check(p.why, fmt::format("layer {}, {}", i, layers_[i].name));
      kept = std::make_unique<const layer_plan>(std::move(p));
    }
    return *kept;
  }

  team_handle team_;
  std::span<const running_layer> layers_;
  std::vector<std::vector<parameter>> parameters_;
  mutable std::unordered_map<std::uint64_t, std::unique_ptr<const layer_plan>> plans_;
  bool training_ = true;
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
      if constexpr (!TensorType<T>) return refusal{code::not_a_tensor};
      else if constexpr (!detail::described<T>::verdict::ok) return detail::described<T>::verdict_source::value;
      else return check_same(value_of<T>, value_of<In>);
    }();
  };
};

}  // namespace tessera::nn
