#pragma once
// Transforms whose layouts are rolled at run time, held against LibTorch's in one process: results, gradients of two
// orders.

#include "layers.hpp"

namespace tessera::testing {

/// A complex tensor of these numbers, or a real one.
inline at::Tensor numbers_of(const std::vector<index_t>& extents, bool complex, std::uint64_t salt) {
  const at::Tensor re = global_of(extents, numbers{salt});
  return complex ? at::complex(re, global_of(extents, numbers{salt + 1})) : re;
}

/// The boxes of a real or complex tensor.
inline std::vector<at::Tensor> dealt(const layout& x, const at::Tensor& global, std::uint64_t salt) {
  const int world = x.mesh.size();
  if (!global.is_complex()) return deal(x, world, global, salt).local;
  const shards re = deal(x, world, at::real(global), salt), im = deal(x, world, at::imag(global), salt + 1);
  std::vector<at::Tensor> all;
  for (std::size_t i = 0; i < re.local.size(); ++i) all.push_back(at::complex(re.local[i], im.local[i]));
  return all;
}

inline double complex_distance(const layout& x, const std::vector<at::Tensor>& local, const at::Tensor& wanted) {
  for (const at::Tensor& t : local)
    if (t.is_complex() != wanted.is_complex()) return 1e300;
  if (!wanted.is_complex()) return distance(x, local, wanted);
  std::vector<at::Tensor> re, im;
  for (const at::Tensor& t : local) {
    re.push_back(at::real(t.detach().resolve_conj()));
    im.push_back(at::imag(t.detach().resolve_conj()));
  }
  const at::Tensor w = wanted.detach().resolve_conj();
  return std::max(distance(x, re, at::real(w)), distance(x, im, at::imag(w)));
}

/// What a function of one tensor gives, its gradient, and the gradient of that gradient along a direction.
struct of_two_orders {
  at::Tensor y, first, second;
};
template <class F>
of_two_orders two_orders(const at::Tensor& x, const at::Tensor& seed, const at::Tensor& along, const F& f) {
  using torch::autograd::grad;
  const at::Tensor leaf = x.detach().clone().set_requires_grad(true);
  const at::Tensor cotangent = seed.detach().clone().set_requires_grad(true);
  const at::Tensor y = f(leaf);
  const at::Tensor first = grad({y}, {leaf}, {cotangent}, true, true)[0];
  return {y.detach(), first.detach(), grad({first}, {cotangent}, {along})[0].detach()};
}

/// What a transform on a layout gives that one process does not, or nothing.
template <class Serial>
std::string transform_differs(const layer_plan& p, const fourier& f, bool complex, std::uint64_t salt,
                              const Serial& serial) {
  const element e = complex ? element::complex128 : element::float64;
  const bool gives_complex = is_complex(p.element_of(0, e));
  const at::Tensor x = numbers_of(extents_of(p.given()), complex, salt);
  const at::Tensor seed = numbers_of(extents_of(p.output()), gives_complex, salt + 2);
  const at::Tensor along = numbers_of(extents_of(p.given()), complex, salt + 4);
  const of_two_orders wanted = two_orders(x, seed, along, serial);
  const auto xs = dealt(p.given(), x, salt + 6), seeds = dealt(cotangent(p.output()), seed, salt + 8),
             alongs = dealt(p.given(), along, salt + 10);
  const auto run = on_workers(p.given().mesh.size(), [&](const std::shared_ptr<transport>& carrier) {
    const auto r = static_cast<std::size_t>(carrier->rank());
    const auto team = std::make_shared<team_state>(carrier, p.given().mesh);
    const nn::engine::bound_layer bound(team, p, e);
    return two_orders(xs[r], seeds[r], alongs[r], [&](const at::Tensor& in) {
      const std::vector<at::Tensor> operands{in};
      return nn::forward({bound, operands, {}}, f);
    });
  });
  if (!run.well()) return run.errors().substr(0, 400);
  std::string why;
  const auto judge = [&](const char* what, const layout& of, at::Tensor of_two_orders::* member) {
    std::vector<at::Tensor> all;
    for (const auto& r : run.results) all.push_back((*r).*member);
    const double d = complex_distance(of, all, wanted.*member);
    if (!(d < 1e-12)) why += fmt::format("{} off by {} ", what, d);
  };
  judge("result", p.output(), &of_two_orders::y);
  judge("gradient", cotangent(p.given()), &of_two_orders::first);
  judge("gradient's gradient", p.output(), &of_two_orders::second);
  return why;
}

}  // namespace tessera::testing
