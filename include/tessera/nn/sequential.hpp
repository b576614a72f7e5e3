#pragma once

#include <tessera/nn/forward.hpp>
#include <tessera/operation/network.hpp>

#include <array>

namespace tessera::nn {

/// Layers one after the other: what `network` knows from types, with parameters and a forward.
///
/// Initial values depend on seed, path and global index alone: every partition starts from the same bits.
template <TensorType In, Layer... Layers>
class sequential : public network<In, Layers...> {
  using base = network<In, Layers...>;

 public:
  using typename base::input;
  using typename base::output;

  /// Makes the parameters; all workers of the team do, and compare what they make.
  template <class Team>
  sequential(const Team& team, seed s) : team_(team.state()) {
    fingerprint f;
    base::layers::visit([&]<class On>(int place, int number, std::type_identity<On>) {
      for (const parameter_value& w : On::value.parameters) {
        parameters_[static_cast<std::size_t>(place)].emplace_back(team_, fmt::format("{}.{}", number, w.name), w,
                                                                  On::result::value.element, s);
        f << w.stored << w.used;
      }
      f << On::value.input << On::value.output;
    });
    f << s.value;
    if (team_->inside()) team_->agree(f.value());
  }

  /// The network's output; x may be spelled in any way that means the input's partition.
  output operator()(const input& x) const {
    return output((*this)(x.dynamic()));
  }

  /// The same on a tensor whose layout is a value.
  tensor<dyn> operator()(const tensor<dyn>& x) const {
    if (x.team()->shared_carrier() != team_->shared_carrier()) throw error(refusal{code::other_team}, team_->label());
    tensor<dyn> y = x;
    int i = 0;
    ((y = run<Layers>(i++, y)), ...);
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

 private:
  struct bound_plan {
    layout input;
    layer_plan plan;
  };

  // The plan for the extents at hand: computed when they change, by the function that the compiler used.
  template <class L>
  const layer_plan& plan_for(int i, const tensor<dyn>& x) const {
    bound_plan& b = plans_[static_cast<std::size_t>(i)];
    if (b.input.dims.count == 0 || !(b.input == x.layout())) {
      b.input = x.layout();
      b.plan = L::plan(tensor_value{x.layout(), x.type()});
      check(b.plan.why, fmt::format("layer {}, {}", i, L::name));
    }
    return b.plan;
  }

  template <class L>
  tensor<dyn> run(int i, const tensor<dyn>& x) const {
    const layer_plan& p = plan_for<L>(i, x);
    return {team_, p.output, nn::forward<L>(team_, p, x.local(), parameters_[static_cast<std::size_t>(i)])};
  }

  team_handle team_;
  std::array<std::vector<parameter>, sizeof...(Layers)> parameters_;
  mutable std::array<bound_plan, sizeof...(Layers)> plans_;
  bool training_ = true;
};

}  // namespace tessera::nn
