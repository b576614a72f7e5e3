#pragma once

#include <tessera/nn/window/window_edges.hpp>
#include <tessera/operation/plan/layer_plan.hpp>
#include <tessera/tensor/autograd/graph_dependence.hpp>
#include <tessera/tensor/autograd/lasting_tensors.hpp>
#include <tessera/tensor/change/bound_exchanges.hpp>

#include <any>
#include <forward_list>
#include <optional>
#include <utility>

namespace tessera::nn::engine {

/// A layer's plan bound to a worker: what its calls need is found once.
class bound_layer {
 public:
  bound_layer(team_handle of, const layer_plan& plan, element first = element::float64);

  team_handle team;
  std::vector<redistribution> inputs;     ///< as they come → as the local operation takes them
  std::vector<redistribution> exchanges;  ///< between local operations
  std::vector<redistribution> results;    ///< as it gives them → as they leave
  holding outputs;                        ///< what the local operation gives on this worker, of the first result
  std::vector<index_t> sizes;             ///< of it
  std::vector<at::ScalarType> gives;      ///< the elements of the results
  std::vector<at::ScalarType> travels;    ///< those in which they leave
  bool is_empty = false;                  ///< this worker lacks what the operation takes, its weight, or what it gives
  bool some_are_empty = false;            ///< some worker does

  /// Values that follow from the binding and the layer, one of each type: found at the first call, reused by all
  /// others.
  template <class Found, class Find>
  const Found& once(const Find& find) const {
    for (const std::any& one : found_)
      if (const auto* it = std::any_cast<Found>(&one)) return *it;
    const tessera::detail::lasting_tensors now;
    return std::any_cast<const Found&>(found_.emplace_front(find()));
  }
  /// This worker's reading of inputs for its outputs, under the layer's kernels.
  const tessera::detail::window_reading& reads(int first, const static_vector<sliding, 8>& kernels,
                                               const at::Scalar& outside,
                                               builtin_padding by = builtin_padding::none) const;
  /// The first operand by its edges, which follow from `of`, where they serve: not where copies are compared, as then
  /// all of them must be there.
  template <class Edges, class... Of>
  std::optional<tessera::detail::box_by_edges<Edges>> by_edges(const at::Tensor& x, const Of&... of) const {
    using found = std::shared_ptr<const Edges>;
    if (some_are_empty || team->checks == checks::always) return {};
    const found& edges = once<found>([&]() -> found {
      const auto made = std::make_shared<const Edges>(inputs[0], team->rank(), outputs,
                                                      team->carrier().settings().edges_apart, of...);
      return made->serve() ? made : nullptr;
    });
    if (!edges) return {};
    return std::optional<tessera::detail::box_by_edges<Edges>>(std::in_place, team, inputs[0], x, edges);
  }
  /// The outputs that this worker's inputs give under the layer's transposed kernels.
  const tessera::detail::window_giving& gives_by(int first, const static_vector<sliding, 8>& kernels) const;
  /// Where the boxes of the local operation lie.
  const local_boxes& boxes() const;
  /// Those who run it: the workers of what the local operation takes, or gives where it takes nothing.
  const crew& workers() const;
  /// An operand as the local operation takes it.
  at::Tensor ready(const at::Tensor& x, std::size_t i = 0) const { return carried(x, inputs[i]); }
  at::Tensor ready(const at::Tensor& x, const tessera::detail::window_reading& reading) const {
    return is_empty ? ready(x) : reading.trimmed(carried(x, inputs[0], reading.around()));
  }
  /// Takes a value between local operations through its exchange.
  at::Tensor exchanged(const at::Tensor& x, std::size_t i) const { return carried(x, exchanges[i]); }
  /// A result as it leaves; one of a half type may be given in a wider element.
  at::Tensor leaving(const at::Tensor& y, std::size_t i = 0) const { return rounded(left(y, i), gives[i]); }
  /// The same before it is rounded: in the element in which it travels, or as it is given where it does not.
  at::Tensor left(const at::Tensor& y, std::size_t i = 0) const {
    return carried(results[i].from == results[i].to ? y : rounded(y, travels[i]), results[i]);
  }
  /// The result of a local operation that is not linear in all its operands.
  at::Tensor depends_on_all(const at::Tensor& y, const std::vector<at::Tensor>& operands) const {
    return some_are_empty ? tessera::detail::depends_on_all(y, operands) : y;
  }

 private:
  // Of numbers that float; what another element means is refused where it is checked.
  static at::Tensor rounded(const at::Tensor& y, at::ScalarType to) {
    return y.is_floating_point() && at::isFloatingType(to) ? y.to(to) : y;
  }
  // What changes nothing is asked no more: tensors were checked before they came here, results are when they leave.
  at::Tensor carried(const at::Tensor& x, const redistribution& by, const padded_box& around = {}) const {
    if (by.from != by.to || team->checks == checks::always) return change_layout(team, by.from, by.to, x, around, {});
    return around.empty() ? x : around.around(x);
  }

  mutable std::forward_list<std::any> found_;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/call/bound_layer_impl.hpp>
#endif
