#pragma once

#include <tessera/nn/kernel/label_rows.hpp>
#include <tessera/tensor/change/change.hpp>

#include <array>
#include <optional>

namespace tessera::detail {

/// Σ exp(x − m) over a part of the classes of x[n, c, d…], and x − m at the label of each row, 0 where another part has
/// it. Nothing of x's size is kept but x.
struct class_sums {
  at::Tensor exponents, at_label;
};

/// The gradient of both, exp(x − m) and one element a row, made in the memory that becomes it.
class class_sums_backward final : public torch::autograd::Node {
 public:
  class_sums_backward(const at::Tensor& x, const at::Tensor& most, const label_rows& rows)
      : x_(x, false), most_(most), rows_(rows) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    if (!gradients[0].defined() && !gradients[1].defined()) return {at::Tensor()};
    const at::Tensor x = x_.unpack();
    at::Tensor back;
    if (!gradients[0].defined()) back = at::zeros_like(x);
    else if (c10::GradMode::is_enabled()) back = at::exp(x - most_.unsqueeze(1)) * gradients[0].unsqueeze(1);
    else back = (x - most_.unsqueeze(1)).exp_().mul_(gradients[0].unsqueeze(1));
    return {gradients[1].defined() ? rows_.add(back, gradients[1]) : back};
  }
  void release_variables() override { x_.reset_data(); }
  std::string name() const override { return "tessera::class_sums"; }

 private:
  torch::autograd::SavedVariable x_;
  at::Tensor most_;
  label_rows rows_;
};

/// These sums, less the constants m of the rows.
inline class_sums sums_of_classes(const at::Tensor& x, const at::Tensor& most, const label_rows& rows) {
  if (x._fw_grad(0).defined()) throw error(refusal{code::forward_mode});
  const class_sums y = [&] {
    const c10::AutoGradMode no_record(false);
    return class_sums{(x - most.unsqueeze(1)).exp_().sum(1),
                      (rows.of(x) - most).masked_fill_(rows.here().logical_not(), 0)};
  }();
  if (!c10::GradMode::is_enabled() || !x.requires_grad()) return y;
  const auto node = make_node<class_sums_backward>(x, most, rows);
  record(y.exponents, x, node);
  torch::autograd::set_history(y.at_label, node);
  return y;
}

}  // namespace tessera::detail
