#pragma once

#include <tessera/generated/nn.hpp>
#include <tessera/operation/function/losses.hpp>
#include <tessera/tensor/functions.hpp>

#include <string>
#include <vector>

namespace tessera::functions {

namespace engine {

/// The losses of what a worker holds.
struct local_losses {
  at::Tensor each;          ///< of its elements or samples
  double count = 1;         ///< of all workers
  at::Tensor divisor = {};  ///< what a mean divides by where only the elements say it, for each
  at::Tensor wrong = {};    ///< where a target is none
  at::Tensor labels = {};   ///< of which one is named then
  index_t classes = 0;
};

/// A few numbers for each, as an exchange takes them: a worker outside of it has none.
inline at::Tensor in_rows(const bound_exchanges& by, std::size_t exchange, const std::vector<at::Tensor>& rows) {
  const box_vector& held = by.exchanges[exchange].from->extents();
  const at::Tensor all = at::stack(rows);
  const bool outside = held[0] == 0;
  return outside ? all.flatten().narrow(0, 0, 0).reshape(at::IntArrayRef(held.begin(), held.end())) : all;
}

/// One of them, which a worker outside does not miss.
inline at::Tensor row(const at::Tensor& all, index_t i) { return all.size(0) == 0 ? all.sum(0) : all[i]; }

/// The reduced losses of all workers, by the exchange in this place.
at::Tensor reduced(const bound_exchanges& by, std::size_t exchange, nn::reduction how, const local_losses& mine,
                   at::ScalarType type);

/// Losses times weights that have no gradient; and the losses of each kind, of this worker's boxes.
local_losses weighted(local_losses l, const at::Tensor& weight);
local_losses losses_of(const bound_exchanges& by, const number& n, const class_numbers& list, bool of_scores,
                       const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight = {});
local_losses compute_cosine_embedding_loss(const bound_exchanges& by, const number& n, const at::Tensor& x,
                                           const at::Tensor& y, const at::Tensor& target);
local_losses compute_pos_weighted(const bound_exchanges& by, const at::Tensor& x, const at::Tensor& y,
                                  const at::Tensor& positive);

// The losses of each kind, weighted where there are weights.
#define TESSERA_LOSS(loss, of_probabilities, numbers, memory, computed)                                               \
  local_losses compute_##loss(const bound_exchanges& by, const number& n, const at::Tensor& x, const at::Tensor& y);  \
  inline local_losses losses_of(const loss& f, const bound_exchanges& by, const at::Tensor& x, const at::Tensor& y) { \
    return compute_##loss(by, f.n, x, y);                                                                             \
  }
/// Of elements, by the list of losses.
TESSERA_LOSSES(TESSERA_LOSS)
#undef TESSERA_LOSS
template <class Of>
local_losses losses_of(const Of& f, const bound_exchanges& by, const at::Tensor& x, const at::Tensor& y,
                       const at::Tensor& weight) {
  return weighted(losses_of(f, by, x, y), weight);
}
inline local_losses losses_of(const binary_cross_entropy_with_pos_weight&, const bound_exchanges& by,
                              const at::Tensor& x, const at::Tensor& y, const at::Tensor& positive) {
  return compute_pos_weighted(by, x, y, positive);
}
inline local_losses losses_of(const binary_cross_entropy_with_pos_weight&, const bound_exchanges& by,
                              const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight,
                              const at::Tensor& positive) {
  return weighted(compute_pos_weighted(by, x, y, positive), weight);
}
template <bool OfScores>
local_losses losses_of(const loss_of_classes<OfScores>& f, const bound_exchanges& by, const at::Tensor& x,
                       const at::Tensor& y) {
  return losses_of(by, f.n, f.weight, OfScores, x, y);
}
inline local_losses losses_of(const nll_loss& f, const bound_exchanges& by, const at::Tensor& x, const at::Tensor& y,
                              const at::Tensor& weight) {
  return losses_of(by, f.n, {}, false, x, y, weight);
}
inline local_losses losses_of(const cross_entropy& f, const bound_exchanges& by, const at::Tensor& x,
                              const at::Tensor& y, const at::Tensor& weight) {
  return losses_of(by, f.n, {}, true, x, y, weight);
}
inline local_losses losses_of(const cosine_embedding_loss& f, const bound_exchanges& by, const at::Tensor& x,
                              const at::Tensor& y, const at::Tensor& target) {
  return compute_cosine_embedding_loss(by, f.n, x, y, target);
}

/// A box of half elements in float, another as it is.
inline at::Tensor in_wide(const at::Tensor& x) {
  return at::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x;
}

}  // namespace engine

/// A loss of all workers: their losses, added or averaged by an exchange.
template <class Of, class... Rest>
at::Tensor compute(const engine::reduced_loss<Of>& f, const engine::bound_exchanges& by, const at::Tensor& x,
                   const Rest&... rest) {
  const Of& of = f;
  return engine::reduced(by, by.exchanges.size() - 1, f.how,
                         engine::losses_of(of, by, engine::in_wide(x), engine::in_wide(rest)...), x.scalar_type());
}

}  // namespace tessera::functions

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/losses_impl.hpp>
#endif
