#pragma once
// Tensors of a case by recipe, and what each worker holds of them.

#include "../cases.hpp"

#include <ATen/ATen.h>

#include <optional>

namespace conformance::training {

/// u(seed, i) of the file's conventions.
std::uint64_t drawn(std::uint64_t seed, std::uint64_t i);

/// (u mod 33 − 16)/16 for each element: sixteenths in [−1, 1].
at::Tensor sixteenths(std::uint64_t seed, const integers& shape);

/// A tensor as a case gives it: a global one, or the box of each worker.
class recipe {
 public:
  recipe() = default;
  explicit recipe(const json& said);

  /// The extents of the global tensor.
  const integers& shape() const { return shape_; }
  bool is_complex() const { return whole_.is_complex(); }
  /// The global tensor, in double, complex double or whole numbers.
  const at::Tensor& whole() const { return whole_; }

  /// The same with its seeds raised by k.
  recipe raised(std::uint64_t k) const;

  /// What a worker holds of it: its part, or a term where the layout is partial. A layout of other extents with as many
  /// elements is that of the tensor seen so.
  at::Tensor box(const layout& x, int rank, at::ScalarType type) const;

  bool by_worker() const { return !boxes_.empty(); }
  /// Where boxes are given: one for each worker.
  std::size_t workers() const { return boxes_.size(); }

 private:
  at::Tensor term(const layout& x, int k, bool whole_numbers) const;

  json said_;
  integers shape_;
  at::Tensor whole_;
  std::vector<std::optional<at::Tensor>> boxes_;
};

/// Numbers nested in lists, in double; "nan" is one.
at::Tensor nested(const json& said);

}  // namespace conformance::training
