#pragma once
// One run of a case: in one world, with one element type.

#include "numbers.hpp"
#include "recipe.hpp"
#include "world.hpp"

#include <tessera/tensor/verbs.hpp>

namespace conformance::training {

/// Bits of results by name, of the runs before.
using bits_so_far = std::map<std::string, at::Tensor>;

/// What a worker of the world's mesh sees of a run: it makes tensors, and holds what comes of them against what is
/// expected. All workers of the mesh make and compare the same things in one order; none throws, as what is wrong is
/// told at the end.
class attempt {
 public:
  attempt(team_handle of_world, tessera::element e, const tolerance& within, index_t at_a_time, bits_so_far* bits)
      : team(std::move(of_world)), element(e), chunk(at_a_time), within_(within), bits_(bits) {}

  const team_handle team;
  const tessera::element element;
  const index_t chunk;  ///< how many rows or features travel at a time, 0 where the world does not say

  at::ScalarType type() const { return tessera::detail::scalar_type_of(element); }

  /// A tensor by recipe, of the run's element or of another.
  tensor<dyn> given(const recipe& r, const layout& x) const { return given(r, x, type()); }
  tensor<dyn> given(const recipe& r, const layout& x, at::ScalarType of) const;
  /// The same as a leaf that has a gradient, where its element has one.
  tensor<dyn> leaf(const recipe& r, const layout& x) const;

  /// Runs backward from y with a cotangent by recipe, which lies as the adjoint of y's layout.
  void backward(const tensor<dyn>& y, const recipe& cotangent) const;
  /// The gradient of a leaf as a tensor that lies as the adjoint of its layout; zeros where it has none.
  static tensor<dyn> gradient(const tensor<dyn>& leaf);

  /// Holds a result against what is expected: its element, every worker's box against the global tensor that all
  /// together hold, and that against the numbers. Where bits matter they are compared with those of the runs before,
  /// numbers or not.
  void compare(const std::string& name, const tensor<dyn>& got, const std::optional<numbers>& expected) {
    compare(name, got, expected, element);
  }
  void compare(const std::string& name, const tensor<dyn>& got, const std::optional<numbers>& expected,
               tessera::element of);
  /// The same of a tensor that each worker of the mesh has whole.
  void compare_whole(const std::string& name, const at::Tensor& got, const std::optional<numbers>& expected);
  /// Holds this worker's box against the one expected of it.
  void compare_box(const std::string& name, const at::Tensor& got, const std::optional<numbers>& expected);

  /// Says that something is wrong on this worker; the first thing is told.
  void fail(const std::string& what);
  const std::string& fault() const { return fault_; }
  double figure() const { return figure_; }

 private:
  void compare_bits(const std::string& name, const at::Tensor& whole);

  tolerance within_;
  bits_so_far* bits_;
  std::string fault_;
  double figure_ = 0;
};

}  // namespace conformance::training
