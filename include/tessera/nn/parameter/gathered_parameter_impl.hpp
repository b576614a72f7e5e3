#pragma once

#include <tessera/nn/parameter/gathered_parameter.hpp>
#include <tessera/nn/parameter/refusing_gradient.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/tensor/autograd/lasting_tensors.hpp>
#include <tessera/tensor/change/change.hpp>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace tessera::nn::engine {

/// Hears that LibTorch has added the gradient of a leaf.
class gathered_parameter::arrival final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit arrival(std::weak_ptr<gathered_parameter> of) : of_(std::move(of)) {}
  void operator()(const at::Tensor& leaf) override {
    if (const auto self = of_.lock()) self->came(leaf.unsafeGetTensorImpl());
  }

 private:
  std::weak_ptr<gathered_parameter> of_;
};

/// Whether nothing was sent of a parameter, so that whoever steps it steps what layers take.
TESSERA_INLINE bool gathered_parameter::lies_in_stored(const leaf& f) const {
  const at::Tensor& stored = stored_.local();
  return f.gathered.is_alias_of(stored) && f.gathered.const_data_ptr() == stored.const_data_ptr();
}

TESSERA_INLINE at::Tensor gathered_parameter::use(const shared_layout_handle& used, element as) {
  const at::Tensor& stored = stored_.local();
  if (stored._version() != version_) {
    check_reduced();
    drop_gathered();
    version_ = stored._version();
  }
  auto now = std::find_if(leaves_.begin(), leaves_.end(), [&](const leaf& f) { return f.used == used && f.as == as; });
  const auto gathered = [&] {
    return change_layout_rounded(stored_.team(), stored_.where(), used, stored.detach(), as);
  };
  if (now != leaves_.end() && std::exchange(now->doubted, false)) {
    const tessera::detail::lasting_tensors plain;
    now->gathered.set_data(at::empty({0}, now->gathered.options().requires_grad(false)));  // one form at a time
    now->gathered.set_data(gathered());
  }
  if (now == leaves_.end()) {
    const tessera::detail::lasting_tensors plain;
    const at::Tensor x = gathered();
    // No view, which LibTorch would make anew when its base is written to.
    now = leaves_.insert(leaves_.end(), {used, as, x.detach()});
    now->gathered.set_requires_grad(true).register_hook(
        [of = weak_from_this(), at = now->gathered.unsafeGetTensorImpl()](const at::Tensor&) {
          if (const auto self = of.lock()) self->comes(at);
        });
    torch::autograd::impl::set_post_acc_grad_hooks(now->gathered, std::make_unique<arrival>(weak_from_this()));
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

TESSERA_INLINE gathered_parameter::leaf* gathered_parameter::find(const c10::TensorImpl* gathered) {
  for (leaf& f : leaves_)
    if (f.gathered.unsafeGetTensorImpl() == gathered) return &f;
  return nullptr;
}

TESSERA_INLINE void gathered_parameter::comes(const c10::TensorImpl* gathered) {
  leaf* const to = find(gathered);
  if (to == nullptr || stored_.local()._version() != version_) throw error(refusal{code::parameter_changed}, path_);
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
  may_step_ = false;
  if (const auto listener = listener_of(*to)) listener->comes();
}

TESSERA_INLINE void gathered_parameter::came(const c10::TensorImpl* gathered) {
  const leaf* const to = find(gathered);
  if (const auto listener = to == nullptr ? nullptr : listener_of(*to))
    listener->came({shared_from_this(), to->used, to->as});
}

TESSERA_INLINE bool gathered_parameter::waits() const {
  return refusing_.defined() && stored_.local().grad().is_same(refusing_);
}

TESSERA_INLINE void gathered_parameter::check_reduced() const {
  if (waits()) throw error(refusal{code::gradient_not_reduced}, path_);
}

TESSERA_INLINE at::Tensor gathered_parameter::take(const shared_layout_handle& used, element as) {
  for (leaf& f : leaves_)
    if (f.used == used && f.as == as) {
      at::Tensor terms = std::exchange(f.gathered.mutable_grad(), {});
      const bool counts = std::exchange(f.has_gradient, false) && waits();
      return counts ? terms : at::Tensor();
    }
  return {};
}

TESSERA_INLINE void gathered_parameter::give(const at::Tensor& reduced, bool last) {
  if (!stored_.local().requires_grad()) return;  // frozen since
  at::Tensor& gradient = stored_.local().mutable_grad();
  at::Tensor* to = waits() ? &before_ : &gradient;
  for (const auto& one : apart_)
    if (const auto other = one.lock(); other && other->waits()) to = &other->before_;
  *to = to->defined() ? *to + reduced : reduced;
  const bool others = std::any_of(leaves_.begin(), leaves_.end(), [](const leaf& f) { return f.has_gradient; });
  if (waits() && last && !others) gradient = std::exchange(before_, {});
}

TESSERA_INLINE void gathered_parameter::doubt() {
  if (!may_step_) return;
  for (leaf& f : leaves_) f.doubted = !waits() && !lies_in_stored(f);
}

TESSERA_INLINE void gathered_parameter::drop_gathered() {
  std::erase_if(leaves_, [&](const leaf& f) { return !lies_in_stored(f) && !(waits() && f.has_gradient); });
}

TESSERA_INLINE void gathered_parameter::let_go() {
  drop_gathered();
  may_step_ = true;
}

TESSERA_INLINE auto gathered_parameter::form_of(const shared_layout_handle& used, element as) const -> const form* {
  const auto found =
      std::find_if(forms_.begin(), forms_.end(), [&](const form& f) { return f.used == used && f.as == as; });
  return found == forms_.end() ? nullptr : &*found;
}

TESSERA_INLINE void gathered_parameter::add_form(const shared_layout_handle& used, element as) {
  if (form_of(used, as) == nullptr) forms_.push_back({used, as});
}

TESSERA_INLINE std::vector<held_member> gathered_parameter::forms() {
  std::vector<held_member> all;
  for (const form& f : forms_) all.push_back({shared_from_this(), f.used, f.as});
  return all;
}

TESSERA_INLINE bool gathered_parameter::is_heard(const held_member& one) const {
  const form* const known = form_of(one.used, one.as);
  return known != nullptr && !known->listener.expired();
}

TESSERA_INLINE void gathered_parameter::tell(const held_member& one, const std::weak_ptr<gradient_listener>& listener) {
  for (form& f : forms_)
    if (f.used == one.used && f.as == one.as && f.listener.expired()) f.listener = listener;
}

TESSERA_INLINE void gathered_parameter::tell_in_window(const held_member& one,
                                                       const std::weak_ptr<gradient_listener>& listener) {
  for (form& f : forms_)
    if (f.used == one.used && f.as == one.as) f.in_window = listener;
}

TESSERA_INLINE std::shared_ptr<gradient_listener> gathered_parameter::listener_of(const leaf& f) const {
  const form* const known = form_of(f.used, f.as);
  if (known == nullptr) return nullptr;
  const auto in_window = known->in_window.lock();
  return in_window ? in_window : known->listener.lock();
}

}  // namespace tessera::nn::engine
