#pragma once

#include <tessera/nn/gradient/bundled_gradients.hpp>
#include <tessera/nn/parameter/refusing_gradient.hpp>

#include <utility>

namespace tessera::nn::engine {

TESSERA_INLINE bundled_gradients::bundled_gradients(const team_handle& team, std::vector<named_leaf> leaves,
                                                    gradient_rule how, call_site at)
    : leaf_gradients(team, std::move(leaves), std::move(how), "averaging gradients", at),
      before_(this->leaves().size()) {
  pack({}, [&](index_t elements) { return flat_layout(team->mesh(), elements, placement::invariant); }, false);
}

TESSERA_INLINE std::vector<state_value> bundled_gradients::values() const {
  std::vector<state_value> all;
  for (std::size_t i = 0; i < leaves().size(); ++i) {
    const named_leaf& one = leaves()[i];
    all.push_back({one.name, whole_everywhere(team(), one.leaf), true, true, {}, waiting_of(i)});
  }
  return all;
}

TESSERA_INLINE void bundled_gradients::open_window() {
  for (std::size_t i = 0; i < before_.size(); ++i) check_readable(gradient_of(i));
  for (std::size_t i = 0; i < before_.size(); ++i) before_[i] = std::exchange(gradient_of(i), {});
}

TESSERA_INLINE void bundled_gradients::give(const std::vector<std::size_t>& leaves, std::vector<at::Tensor> sums) {
  for (std::size_t m = 0; m < sums.size(); ++m) {
    if (at::Tensor& before = before_[leaves[m]]; before.defined()) sums[m].add_(std::exchange(before, {}));
    gradient_of(leaves[m]) = std::move(sums[m]);
  }
}

}  // namespace tessera::nn::engine
