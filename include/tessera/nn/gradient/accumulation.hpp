#pragma once

#include <tessera/nn/gradient/reduce_gradients.hpp>

namespace tessera::nn {

/// A window of backwards before a step: `const nn::accumulation window(net, last);`.
///
/// While it lives, backwards leave the gradients of parameters that are held where they are, and nothing moves; those
/// of the `last` pass bring the sums of all since the step before, bundle by bundle while backward goes on, equal to
/// the bit to `reduce_gradients` behind it. All workers open it, one at a time for a network.
class [[nodiscard]] accumulation {
 public:
  template <class Network>
  accumulation(const Network& net, bool last, call_site at = call_site::here())
      : accumulation(tessera::detail::gradients_of(net), last, at) {}
  ~accumulation();
  accumulation(const accumulation&) = delete;
  accumulation& operator=(const accumulation&) = delete;

 private:
  accumulation(std::shared_ptr<engine::held_gradients> of, bool last, call_site at);

  std::shared_ptr<engine::held_gradients> of_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/accumulation_impl.hpp>
#endif
