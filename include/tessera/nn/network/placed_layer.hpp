#pragma once

#include <tessera/nn/network/network.hpp>
#include <tessera/operation/layer/layer_values.hpp>
#include <tessera/operation/network/sharded_parameters.hpp>

#include <memory>
#include <vector>

namespace tessera::detail {

/// A layer as a value, at its place in a program.
class placed_node {
 public:
  placed_node(const placed_node&) = delete;
  virtual ~placed_node() = default;

  /// Stands where these operands come in, its parameters stored over axes, the outermost first.
  void stand(std::vector<tensor_value> operands, std::vector<tiles_over> over);

  nn::engine::node_record record;
  int results = 1;

  layer_plan plan() const;
  layer_plan plan_for(std::span<const tensor_value* const> x) const;

 protected:
  placed_node(const char* name, bool only_here, int given);

 private:
  /// The plan before its parameters are stored as tiles.
  virtual layer_plan plan_in_use(std::span<const tensor_value* const> x) const = 0;
  virtual std::vector<at::Tensor> forward(const nn::call& c) const = 0;

  std::vector<tensor_value> operands_;
  std::vector<tiles_over> over_;
};

/// What the layer itself says.
template <class L>
class placed_layer final : public placed_node {
 public:
  explicit placed_layer(const L& l) : placed_node(l.name, is_only_here<L>, result_count<L>()), layer_(l), runs_(l) {}

 private:
  layer_plan plan_in_use(std::span<const tensor_value* const> x) const override {
    layer_plan p;
    const bool fits = plan_of_count(p, x, indices_below<1>{}) || plan_of_count(p, x, indices_below<2>{}) ||
                      plan_of_count(p, x, indices_below<3>{}) || plan_of_count(p, x, indices_below<4>{});
    return fits ? p : refused_layer(refusal{code::wrong_number_of_operands, -1, x.size()});
  }
  // Plans where there are as many operands as indices, and the layer takes so many.
  template <int... Index>
  bool plan_of_count(layer_plan& p, std::span<const tensor_value* const> x, indices<Index...>) const {
    if constexpr (requires { layer_.plan(*x[Index]...); }) {
      if (x.size() != sizeof...(Index)) return false;
      p = layer_.plan(*x[Index]...);
      return true;
    } else {
      return false;
    }
  }
  std::vector<at::Tensor> forward(const nn::call& c) const override { return runs_(c); }

  L layer_;
  nn::engine::running_layer<L> runs_;
};

}  // namespace tessera::detail

namespace tessera::nn::engine {

/// A layer as a program places it. Programs own it by its base, so no layer has an owner of its own kind.
template <class L>
std::unique_ptr<tessera::detail::placed_node> placed(const L& layer) {
  return std::unique_ptr<tessera::detail::placed_node>(new tessera::detail::placed_layer<L>(layer));
}

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/network/placed_layer_impl.hpp>
#endif
