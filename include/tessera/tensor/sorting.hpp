#pragma once

#include <tessera/operation/function/cumsum.hpp>
#include <tessera/operation/function/sorting.hpp>
#include <tessera/tensor/functions.hpp>

namespace tessera::functions {

template <int Dim, bool Descending>
at::Tensor compute(const argsort<Dim, Descending>&, const at::Tensor& x) {
  return std::get<1>(at::sort(x.detach(), std::optional<bool>(true), Dim, Descending));
}
template <int Dim, bool Largest>
at::Tensor compute(const topk_of<Dim, Largest>& f, const at::Tensor& x) {
  return compute(argsort<Dim, Largest>{}, x).narrow(Dim, 0, f.k).clone();
}

template <int Dim>
at::Tensor compute(const cumsum<Dim>&, const at::Tensor& x) {
  return at::cumsum(x, Dim);
}

}  // namespace tessera::functions
