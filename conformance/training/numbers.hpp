#pragma once
// Tensors that a case expects, and how far others are from them.

#include "../cases.hpp"

#include <ATen/ATen.h>

namespace conformance::training {

/// |a − b| ≤ atol + rtol |b|, b being expected.
struct tolerance {
  double rtol = 0;
  double atol = 0;
};

/// A tensor as a case expects it: all its entries, or where it is large a digest, its sums and some entries.
class numbers {
 public:
  explicit numbers(const json& said);

  const integers& shape() const { return shape_; }
  /// What is wrong with a tensor, in words, or nothing; `figure` becomes the largest difference if that is larger.
  std::string fault_of(const at::Tensor& x, const tolerance& t, double& figure) const;

 private:
  integers shape_;
  at::Tensor entries_;  // of a digest those at `at_`
  at::Tensor at_;
  double sum_ = 0;
  double squares_ = 0;
  double weighted_ = 0;
};

}  // namespace conformance::training
