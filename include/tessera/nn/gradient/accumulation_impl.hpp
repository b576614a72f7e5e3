#pragma once

#include <tessera/nn/gradient/accumulation.hpp>
#include <tessera/nn/gradient/held_gradients.hpp>

namespace tessera::nn {

TESSERA_INLINE accumulation::accumulation(std::shared_ptr<engine::held_gradients> of, bool last, between_passes how,
                                          call_site at)
    : of_(std::move(of)) {
  of_->open_window(last, how == between_passes::reduce, at);
}
TESSERA_INLINE accumulation::~accumulation() { of_->close_window(); }

}  // namespace tessera::nn
