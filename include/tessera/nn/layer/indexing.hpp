#pragma once

#include <tessera/nn/layer/losses.hpp>
#include <tessera/operation/function/indexing.hpp>

namespace tessera::functions {

namespace engine {

/// What functions of indices compute of this worker's boxes, after all have told of an index of nothing.
at::Tensor compute_index_select(const bound_exchanges& by, const at::Tensor& x, const at::Tensor& indices, int dim);
at::Tensor compute_take_along(const bound_exchanges& by, const at::Tensor& x, const at::Tensor& indices, int dim);
at::Tensor compute_scatter_add(const bound_exchanges& by, const at::Tensor& x, const at::Tensor& indices, int dim);

}  // namespace engine

template <int Dim>
at::Tensor compute(const index_select<Dim>&, const engine::bound_exchanges& by, const at::Tensor& x,
                   const at::Tensor& indices) {
  return engine::compute_index_select(by, x, indices, Dim);
}
template <int Dim, bool Judged>
at::Tensor compute(const take_along<Dim, Judged>&, const engine::bound_exchanges& by, const at::Tensor& x,
                   const at::Tensor& indices) {
  return engine::compute_take_along(by, x, indices, Dim);
}
template <int Dim>
at::Tensor compute(const scatter_add_to<Dim>&, const engine::bound_exchanges& by, const at::Tensor& x,
                   const at::Tensor& indices) {
  return engine::compute_scatter_add(by, x, indices, Dim);
}
at::Tensor compute(const one_hot_of& f, const engine::bound_exchanges& by, const at::Tensor& indices);

}  // namespace tessera::functions

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/indexing_impl.hpp>
#endif
