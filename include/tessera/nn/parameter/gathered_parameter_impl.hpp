#pragma once

#include <tessera/nn/parameter/gathered_parameter.hpp>
#include <tessera/nn/parameter/refusing_gradient.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/tensor/change/change.hpp>

#include <algorithm>

namespace tessera::nn::engine {

TESSERA_INLINE at::Tensor gathered_parameter::use(const shared_layout_handle& used, element as) {
  const at::Tensor& stored = stored_.local();
  if (stored._version() != version_) {
    check_reduced();
    leaves_.clear();
    version_ = stored._version();
  }
  auto now = std::find_if(leaves_.begin(), leaves_.end(), [&](const leaf& f) { return f.used == used && f.as == as; });
  if (now == leaves_.end()) {
    const at::NoGradGuard no_graph;
    const at::Tensor x = change_layout_rounded(stored_.team(), stored_.where(), used, stored.detach(), as);
    // No view, which LibTorch would make anew when its base is written to.
    now = leaves_.insert(leaves_.end(), {used, as, x.detach()});
    now->gathered.set_requires_grad(true).register_hook(
        [of = weak_from_this(), at = now->gathered.unsafeGetTensorImpl()](const at::Tensor&) {
          if (const auto self = of.lock()) self->arrives(at);
        });
  }
  if (now->gathered.requires_grad() != stored.requires_grad()) now->gathered.set_requires_grad(stored.requires_grad());
  return now->gathered;
}

TESSERA_INLINE at::Tensor gathered_parameter::kept(const shared_layout_handle& used, element as) const {
  for (const leaf& f : leaves_)
    if (f.used == used && f.as == as && stored_.local()._version() == version_) return f.gathered;
  throw error(refusal{code::parameter_changed}, path_);
}

TESSERA_INLINE void gathered_parameter::keep(const shared_layout_handle& used, element as, const at::Tensor& alias) {
  leaves_.push_back({used, as, alias});
  version_ = stored_.local()._version();
}

TESSERA_INLINE void gathered_parameter::arrives(const c10::TensorImpl* gathered) {
  const auto to = std::find_if(leaves_.begin(), leaves_.end(),
                               [&](const leaf& f) { return f.gathered.unsafeGetTensorImpl() == gathered; });
  if (to == leaves_.end() || stored_.local()._version() != version_)
    throw error(refusal{code::parameter_changed}, path_);
  if (!waits()) {
    for (leaf& f : leaves_) {
      f.gathered.mutable_grad().reset();
      f.has_gradient = false;
    }
    if (!refusing_.defined())
      refusing_ = refusing_gradient(stored_.local(), refusal{code::gradient_not_reduced}, path_);
    before_ = std::exchange(stored_.local().mutable_grad(), refusing_);
  }
  to->has_gradient = true;
}

TESSERA_INLINE bool gathered_parameter::waits() const {
  return refusing_.defined() && stored_.local().grad().is_same(refusing_);
}

TESSERA_INLINE void gathered_parameter::check_reduced() const {
  if (waits()) throw error(refusal{code::gradient_not_reduced}, path_);
}

TESSERA_INLINE void gathered_parameter::reduce() {
  const std::vector<leaf> gone = std::exchange(leaves_, {});
  if (!waits()) return;
  at::Tensor sum = std::exchange(before_, {});
  for (const leaf& f : gone) {
    if (!f.has_gradient) continue;
    const at::Tensor& came = f.gathered.grad();
    const at::Tensor g = came.defined() ? came : at::zeros_like(f.gathered);
    const at::Tensor part = change_layout(stored_.team(), cotangent(f.used->layout()), cotangent(stored_.layout()), g);
    sum = sum.defined() ? sum + part : part;
  }
  stored_.local().mutable_grad() = sum;
}

}  // namespace tessera::nn::engine
