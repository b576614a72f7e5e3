#pragma once

#include <tessera/nn/gradient/reduce_gradients.hpp>

namespace tessera::nn {

/// The gradients' treatment in passes that are not the last of a window.
enum class between_passes : signed char {
  wait,   ///< they add up where layers take parameters, which over tiles is ZeRO-1
  reduce  ///< each pass reduces its own, so no worker keeps more than its tiles, which is ZeRO-2
};

/// A window of backwards before a step: `const nn::accumulation window(net, last);`.
///
/// While it lives, backwards leave the gradients of held parameters in place, and nothing moves. The `last` pass brings
/// the sums of all passes since the step before, bundle by bundle during backward. They are equal to the bit to those
/// of `reduce_gradients` behind it. All workers open it, one at a time for a network.
class [[nodiscard]] accumulation {
 public:
  template <class Network>
  accumulation(const Network& net, bool last, between_passes how = between_passes::wait,
               call_site at = call_site::here())
      : accumulation(tessera::detail::gradients_of(net), last, how, at) {}
  ~accumulation();
  accumulation(const accumulation&) = delete;
  accumulation& operator=(const accumulation&) = delete;

 private:
  accumulation(std::shared_ptr<engine::held_gradients> of, bool last, between_passes how, call_site at);

  std::shared_ptr<engine::held_gradients> of_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/accumulation_impl.hpp>
#endif
