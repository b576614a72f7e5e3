#pragma once

#include <tessera/nn/windowed.hpp>
#include <tessera/operation/layer_plan.hpp>
#include <tessera/tensor/tied.hpp>

#include <optional>
#include <utility>

namespace tessera::nn {

/// A layer's plan bound to a worker: what its calls need is found once.
class bound_layer {
 public:
  bound_layer(team_handle of, const layer_plan& planned)
      : team(std::move(of)),
        plan(planned),
        input(team->place(plan.input)),
        used(team->place(plan.used)),
        raw(team->place(plan.raw)),
        output(team->place(plan.output)),
        outputs(held_by(raw->layout(), team->rank())),
        sizes(tessera::detail::sizes_of(outputs)) {
    for (int r = 0; r < team->carrier().size(); ++r) {
      const auto empty = [r](const layout& x) { return cutting{x}.elements_of(r) == 0; };
      bool none = empty(used->layout()) || empty(raw->layout());
      if (!plan.parameters.empty()) none = none || empty(plan.parameters[0].used);  // the weight; others are added to what it gives
      some_are_empty = some_are_empty || none;
      if (r == team->rank()) is_empty = none;
    }
  }

  team_handle team;
  layer_plan plan;
  placement_handle input, used, raw, output;  ///< the layouts of the plan
  holding outputs;                            ///< what the local operation gives on this worker
  std::vector<index_t> sizes;                 ///< of it
  bool is_empty = false;                      ///< this worker lacks what the operation takes, its weight, or what it gives
  bool some_are_empty = false;                ///< some worker does

  /// What this worker's outputs read under kernels, which are the layer's; asked at every call, found at the first.
  const tessera::detail::window_reading& reads(int first, const static_vector<sliding, 8>& kernels, const at::Scalar& outside) const {
    if (!reads_) reads_.emplace(used->layout(), team->rank(), outputs, first, kernels, outside);
    return *reads_;
  }
  /// input → used, as the local operation takes it.
  at::Tensor ready(const at::Tensor& x) const { return change_layout(team, input, used, x); }
  at::Tensor ready(const at::Tensor& x, const tessera::detail::window_reading& reading) const {
    return is_empty ? ready(x) : reading.trimmed(change_layout(team, input, used, x, reading.around()));
  }
  /// The result of a local operation that is not linear in all its operands.
  at::Tensor tied(const at::Tensor& y, const std::vector<at::Tensor>& operands) const {
    return some_are_empty ? tessera::detail::tied(y, operands) : y;
  }

 private:
  mutable std::optional<tessera::detail::window_reading> reads_;
};

}  // namespace tessera::nn
