#pragma once

#include <tessera/comm/box/copy_bytes.hpp>
#include <tessera/meta/machine.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera::detail {

/// A box as rows of neighbours in memory. Its groups have a number for each row, or for each column; so have its
/// parameters, by the same or by columns.
struct row_shape {
  index_t rows = 0;
  index_t columns = 0;
  bool groups_along = false;  ///< a number for each column
  bool parameters_along = false;

  index_t numbers() const { return groups_along ? columns : rows; }
  index_t elements() const { return rows * columns; }
  double elements_of_a_line() const { return static_cast<double>(groups_along ? rows : columns); }
};

/// A box of elements and the numbers that loops over its rows read. Standardised is (x − origin) · scale + shift.
template <class Real>
struct row_operands {
  row_shape shape;
  const Real* x = nullptr;
  const Real* gradient = nullptr;  ///< of the result
  const Real* origin = nullptr;
  const Real* scale = nullptr;
  const Real* shift = nullptr;
  const Real* weight = nullptr;  ///< where one of rows is missing, it is 1; bias and offset are 0
  const Real* bias = nullptr;
  const Real* slope = nullptr;
  const Real* offset = nullptr;
};

/// The loops of a normalisation over rows [begin, end) of a box, each in one pass over memory, by one set of
/// instructions. Sums of rows are written, two numbers each, sums of columns are added to those that are there.
template <class Real>
struct row_loops {
  using operands = row_operands<Real>;
  using sums = void (*)(const operands&, index_t begin, index_t end, double* of_rows, double* of_columns);
  using elements = void (*)(const operands&, index_t begin, index_t end, Real* to);

  sums moments;       ///< the distances from origins and their squares
  sums products;      ///< the gradient, and by what was standardised; over rows by the weight, where that is of columns
  elements result;    ///< standardised · weight + bias
  elements gradient;  ///< gradient · weight · scale + standardised · slope + offset
};

#define TESSERA_LOOPS <tessera/nn/kernel/row_loops.inc>
#include <tessera/meta/each_machine.inc>
#undef TESSERA_LOOPS

/// The loops for this machine.
template <class Real>
const row_loops<Real>& loops_here() {
#ifdef __x86_64__
  if (has_avx2()) return of_avx2::loops<Real>;
#endif
  return of_any_machine::loops<Real>;
}

}  // namespace tessera::detail
