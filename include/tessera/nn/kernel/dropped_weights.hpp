#pragma once

#include <tessera/tensor/random.hpp>

namespace tessera::nn::engine {

using tessera::engine::interval;

/// Which weights of attention are dropped, by their global places [n…, t, g, r, s]: samples, queries, heads of keys,
/// queries of each, keys. The same are dropped however the sequence is met.
class dropped_weights {
 public:
  /// `held` are the samples and heads of this worker; what it says of queries and keys does not matter.
  dropped_weights(const tessera::detail::drawn_numbers& now, double probability, const tessera::detail::holding& held,
                  const tessera::detail::global_index& extents)
      : now_(now), probability_(probability), held_(held), extents_(extents) {}

  /// Whether each weight of these queries and keys is dropped: [n, h, t, s].
  at::Tensor of(const interval& queries, const interval& keys) const {
    tessera::detail::holding here = held_;
    const int t = here.count - 4;
    here[t] = {{queries}, 1};
    here[t + 3] = {{keys}, 1};
    const at::Tensor all = now_.below(tessera::detail::box_runs(here, extents_), probability_);
    const index_t samples = c10::multiply_integers(all.sizes().slice(0, static_cast<std::size_t>(t)));
    return all.reshape({samples, queries.size(), all.size(t + 1) * all.size(t + 2), keys.size()}).transpose(1, 2);
  }
  /// By which the others are larger, so that their mean stays.
  double scale() const { return probability_ < 1 ? 1 / (1 - probability_) : 0; }

 private:
  tessera::detail::drawn_numbers now_;
  double probability_;
  tessera::detail::holding held_;
  tessera::detail::global_index extents_;
};

}  // namespace tessera::nn::engine
