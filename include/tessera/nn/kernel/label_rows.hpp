#pragma once

#include <tessera/tensor/box/aten.hpp>

#include <cstdint>

namespace tessera::detail {

/// The element of each row of x[n, c, d…] that its label names, where c is a part of the classes and may have it.
class label_rows {
 public:
  /// Labels count from the first class of the part, which has `held`, at least one.
  label_rows(const at::Tensor& label, std::int64_t held)
      : here_(at::logical_and(label >= 0, label < held)), at_(label.clamp(0, held - 1).unsqueeze(1)) {}

  /// Where the part has the element.
  const at::Tensor& here() const { return here_; }
  /// The elements; another where the part lacks it.
  at::Tensor of(const at::Tensor& x) const { return x.gather(1, at_).squeeze(1); }
  /// Writes them.
  at::Tensor put(at::Tensor x, const at::Tensor& each) const {
    return x.scatter_(1, at_, each.unsqueeze(1).to(x.scalar_type()));
  }
  /// Adds to them, where the part has them.
  at::Tensor add(at::Tensor x, const at::Tensor& each) const {
    return x.scatter_add_(1, at_, each.masked_fill(here_.logical_not(), 0).unsqueeze(1).to(x.scalar_type()));
  }

 private:
  at::Tensor here_, at_;
};

}  // namespace tessera::detail
