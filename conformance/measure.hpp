#pragma once
// Numbers that all workers agree on before they judge.

#include "trial.hpp"

#include <tessera/tensor/verbs.hpp>

namespace conformance {

/// What a worker has, in double, where it is judged.
inline at::Tensor on_host(const at::Tensor& x) { return x.detach().to(at::kCPU, at::kDouble); }

/// The numbers that each worker hands in, combined over all of them.
inline std::vector<double> over_workers(const team_handle& team, const std::vector<double>& mine, combine with) {
  layout terms;
  terms.mesh = team->mesh();
  terms.placements.push(partial_by(with));
  terms.dims.push(uncut(static_cast<index_t>(mine.size())));
  layout all = terms;
  all.placements[0] = {};
  const at::Tensor sum =
      on_host(to(all, tensor<dyn>(team, terms, at::tensor(mine, at::kDouble).to(device_of(*team)))).local());
  return {sum.data_ptr<double>(), sum.data_ptr<double>() + sum.numel()};
}

inline double squares(const at::Tensor& x) { return on_host(x).square().sum().item<double>(); }
inline double product_of(const at::Tensor& x, const at::Tensor& y) {
  return (on_host(x) * on_host(y)).sum().item<double>();
}

/// How far two tensors are apart: the largest difference, and whether it is everywhere within the tolerance.
struct distance {
  double largest = 0;
  bool within = true;

  void add(const at::Tensor& a, const at::Tensor& b, double rtol, double atol) {
    if (a.sizes() != b.sizes()) {
      within = false;
      return;
    }
    if (a.numel() == 0) return;
    const at::Tensor x = on_host(a);
    const at::Tensor y = on_host(b);
    // a window of nothing but padding gives −∞ on both sides
    const at::Tensor off = at::where(x == y, 0, (x - y).abs());
    largest = std::max(largest, off.max().item<double>());
    within = within && (off <= atol + rtol * y.abs()).all().item<bool>();
  }
};

}  // namespace conformance
