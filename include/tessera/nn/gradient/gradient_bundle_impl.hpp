#pragma once

#include <tessera/nn/gradient/gradient_bundle.hpp>
#include <tessera/tensor/change/lineage.hpp>

#include <cstring>
#include <utility>

namespace tessera::nn::engine {

TESSERA_INLINE gradient_bundle::gradient_bundle(const team_handle& team, const mesh_value& over,
                                                std::vector<range> ranges, index_t elements, at::ScalarType type)
    : team_(team),
      terms_(flat_layout(over, elements, placement::partial)),
      sums_(flat_layout(over, elements, placement::invariant)),
      ranges_(std::move(ranges)),
      elements_(elements),
      of_(tessera::detail::options_of(*team, type)),
      flat_(true),
      moves_(over.size() > 1) {}

TESSERA_INLINE gradient_bundle::gradient_bundle(const team_handle& team, const layout& terms, const layout& sums,
                                                at::ScalarType type)
    : team_(team),
      terms_(terms),
      sums_(sums),
      ranges_{{tessera::detail::sizes_of(held_by(terms, team->rank())), 0}},
      elements_(cutting{terms}.elements_of(team->rank())),
      of_(tessera::detail::options_of(*team, type)),
      flat_(false),
      moves_(!stays(change_between(terms, sums))) {}

TESSERA_INLINE at::Tensor gradient_bundle::packed(const std::vector<at::Tensor>& terms) const {
  if (terms.size() == 1 && terms[0].defined()) {
    const at::Tensor one = terms[0].contiguous().resolve_conj().resolve_neg();
    return flat_ ? one.view({elements_}) : one;
  }
  if (!flat_) return at::zeros(ranges_[0].sizes, of_);
  const at::Tensor all = at::empty({elements_}, of_);
  auto* const memory = static_cast<char*>(all.data_ptr());
  index_t filled = 0;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const index_t begin = ranges_[i].begin, size = c10::multiply_integers(ranges_[i].sizes);
    if (begin > filled) all.narrow(0, filled, begin - filled).zero_();
    filled = begin + size;
    const at::Tensor& from = terms[i];
    const bool plain = from.defined() && all.is_cpu() && from.is_cpu() && from.layout() == at::kStrided &&
                       from.is_contiguous() && from.scalar_type() == all.scalar_type() && !from.is_conj() &&
                       !from.is_neg() && !from._is_zerotensor();
    if (plain) {  // of few bytes this costs less than LibTorch's own copy
      std::memcpy(memory + static_cast<std::size_t>(begin) * all.itemsize(), from.const_data_ptr(), from.nbytes());
    } else {
      const at::Tensor to = all.narrow(0, begin, size).view(ranges_[i].sizes);
      if (from.defined()) to.copy_(from);
      else to.zero_();
    }
  }
  return all;
}

TESSERA_INLINE void gradient_bundle::begin(const std::vector<at::Tensor>& terms, call_site at) {
  const at::NoGradGuard no_graph;
  const at::Tensor all = packed(terms);
  if (moves_)
    sum_.emplace(start(
        sums_, tessera::detail::tensor_of(team_, terms_, all, tessera::detail::next_lineage(*team_, terms_.mesh)), at));
  else kept_ = all;
}

TESSERA_INLINE std::vector<at::Tensor> gradient_bundle::finish(double factor) {
  const at::NoGradGuard no_graph;
  const at::Tensor sum = moves_ ? tessera::finish(std::move(*sum_)).local() : std::exchange(kept_, {});
  sum_.reset();
  if (factor != 1) sum.mul_(factor);
  if (!flat_) return {sum};
  std::vector<at::Tensor> all;
  for (const range& one : ranges_) {  // no views: zero_grad(false) detaches gradients in place, which views refuse
    at::Tensor mine = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(sum.storage()),
                                                               sum.unsafeGetTensorImpl()->key_set(), sum.dtype());
    mine.unsafeGetTensorImpl()->set_storage_offset(sum.storage_offset() + one.begin);
    mine.unsafeGetTensorImpl()->set_sizes_contiguous(one.sizes);
    all.push_back(std::move(mine));
  }
  return all;
}

}  // namespace tessera::nn::engine
