#pragma once

#include <tessera/operation/function/pad_globe.hpp>
#include <tessera/tensor/change/bound_exchanges.hpp>

namespace tessera::functions {

namespace engine {

/// A box of a padded grid: the rows in place, and those beyond each pole, of what three exchanges bring.
at::Tensor compute_pad_globe(const bound_exchanges& by, const at::Tensor& x, const globe_padding& f);

}  // namespace engine

inline at::Tensor compute(const globe_padding& f, const engine::bound_exchanges& by, const at::Tensor& x) {
  return engine::compute_pad_globe(by, x, f);
}
template <index_t Rows, index_t Columns, index_t Stride, bool Negated>
at::Tensor compute(const pad_globe<Rows, Columns, Stride, Negated>& f, const engine::bound_exchanges& by,
                   const at::Tensor& x) {
  return compute(f.numbers(), by, x);
}

}  // namespace tessera::functions

#ifndef TESSERA_COMPILED
#include <tessera/tensor/pad_globe_impl.hpp>
#endif
