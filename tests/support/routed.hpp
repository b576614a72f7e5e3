#pragma once
// Rows that choose experts, row by row in one process.

#include "tests/support/tensors.hpp"

#include <tessera/operation/plan/routing.hpp>

namespace tessera::testing {

using namespace engine;

/// What became of rows: their experts and gates, and which of them found room.
struct routed_serially {
  at::Tensor chosen;          ///< [row, choice]
  at::Tensor gates;           ///< alike
  std::vector<bool> kept;     ///< row by row
  std::vector<double> loads;  ///< rows that chose each expert
};

/// Groups are of these many rows, one after the other. Biases are added for the choice alone.
inline routed_serially routed(const routing& how, const at::Tensor& scores, const std::vector<index_t>& groups,
                              const at::Tensor& bias = {}) {
  const at::Tensor all = how.sigmoid ? at::sigmoid(scores) : at::softmax(scores, -1);
  const at::Tensor by = bias.defined() ? all.detach() + bias : scores.detach();
  const index_t rows = scores.size(0), k = how.choices;
  routed_serially r;
  r.chosen = at::empty({rows, k}, at::kLong);
  r.loads.assign(static_cast<std::size_t>(how.experts), 0);
  for (index_t t = 0; t < rows; ++t) {
    std::vector<bool> taken(static_cast<std::size_t>(how.experts));
    for (index_t j = 0; j < k; ++j) {
      index_t best = -1;
      for (index_t e = 0; e < how.experts; ++e)
        if (!taken[static_cast<std::size_t>(e)] && (best < 0 || by[t][e].item<double>() > by[t][best].item<double>()))
          best = e;
      taken[static_cast<std::size_t>(best)] = true;
      r.chosen[t][j] = best;
      ++r.loads[static_cast<std::size_t>(best)];
    }
  }
  r.gates = all.gather(1, r.chosen);
  if (how.normalised) r.gates = r.gates / r.gates.sum(-1, true);
  r.kept.assign(static_cast<std::size_t>(rows * k), false);
  index_t begin = 0;
  for (const index_t n : groups) {
    for (index_t e = 0; e < how.experts; ++e) {
      std::vector<index_t> here;
      for (index_t j = 0; j < k; ++j)
        for (index_t t = begin; t < begin + n; ++t)
          if (r.chosen[t][j].item<index_t>() == e) here.push_back(t * k + j);
      if (how.by_score)
        std::stable_sort(here.begin(), here.end(), [&](index_t a, index_t b) {
          return r.gates.flatten()[a].item<double>() > r.gates.flatten()[b].item<double>();
        });
      const index_t room = how.is_limited ? static_cast<index_t>(std::ceil(how.capacity * static_cast<double>(n * k) /
                                                                           static_cast<double>(how.experts)))
                                          : n;
      for (std::size_t i = 0; i < here.size() && static_cast<index_t>(i) < room; ++i)
        r.kept[static_cast<std::size_t>(here[i])] = true;
    }
    begin += n;
  }
  return r;
}

/// Σ gate · f(expert, row) over what was kept.
template <class F>
at::Tensor combined(const routed_serially& r, const at::Tensor& x, index_t out, const F& f) {
  std::vector<at::Tensor> rows;
  const index_t k = r.chosen.size(1);
  for (index_t t = 0; t < x.size(0); ++t) {
    at::Tensor y = at::zeros({out}, x.options());
    for (index_t j = 0; j < k; ++j)
      if (r.kept[static_cast<std::size_t>(t * k + j)]) y = y + r.gates[t][j] * f(r.chosen[t][j].item<index_t>(), x[t]);
    rows.push_back(y);
  }
  return rows.empty() ? at::zeros({0, out}, x.options()) + x.sum() : at::stack(rows);
}

}  // namespace tessera::testing
