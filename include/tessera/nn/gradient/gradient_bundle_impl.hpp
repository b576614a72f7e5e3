#pragma once

#include <tessera/nn/gradient/gradient_bundle.hpp>
#include <tessera/tensor/change/lineage.hpp>

#include <cstring>
#include <utility>

namespace tessera::nn::engine {

TESSERA_INLINE gradient_bundle::gradient_bundle(const team_handle& team, const layout& terms, const layout& sums,
                                                std::vector<range> ranges, at::ScalarType type, bool in_one)
    : team_(team),
      terms_(terms),
      sums_(sums),
      ranges_(std::move(ranges)),
      elements_(terms.dims[0].extent),
      of_(tessera::detail::options_of(*team, type)),
      flat_(true),
      in_one_(in_one),
      moves_(terms.mesh.size() > 1) {}

TESSERA_INLINE gradient_bundle::gradient_bundle(const team_handle& team, const layout& terms, const layout& sums,
                                                at::ScalarType type)
    : team_(team),
      terms_(terms),
      sums_(sums),
      ranges_{{tessera::detail::sizes_of(held_by(terms, team->rank())), 0}},
      elements_(cutting{terms}.elements_of(team->rank())),
      of_(tessera::detail::options_of(*team, type)),
      flat_(false),
      in_one_(true),
      moves_(!change_between(terms, sums).steps.empty()),
      narrows_(moves_ && stays(change_between(terms, sums))) {}

/// Whether the host may copy the bytes of a tensor, which for few of them costs less than LibTorch's own copy.
inline bool is_plain(const at::Tensor& t, at::ScalarType type) {
  return t.is_cpu() && t.scalar_type() == type && t.layout() == at::kStrided && t.is_contiguous() && !t.is_conj() &&
         !t.is_neg() && !t._is_zerotensor();
}

TESSERA_INLINE at::Tensor gradient_bundle::packed(const std::vector<at::Tensor>& terms) const {
  if (terms.size() == 1 && terms[0].defined() && (moves_ || !flat_)) {
    const at::Tensor one = terms[0].contiguous().resolve_conj().resolve_neg();
    return flat_ ? one.view({elements_}) : one;
  }
  if (!flat_) return at::zeros(ranges_[0].sizes, of_);
  const at::Tensor all = at::empty({elements_}, of_);
  auto* const memory = all.is_cpu() ? static_cast<char*>(all.data_ptr()) : nullptr;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const at::Tensor& from = terms[i];
    if (memory != nullptr && from.defined() && is_plain(from, all.scalar_type())) {
      std::memcpy(memory + static_cast<std::size_t>(ranges_[i].begin) * all.itemsize(), from.const_data_ptr(),
                  from.nbytes());
    } else {
      const index_t size = c10::multiply_integers(ranges_[i].sizes);
      const at::Tensor to = all.narrow(0, ranges_[i].begin, size).view(ranges_[i].sizes);
      if (from.defined()) to.copy_(from);
      else to.zero_();
    }
  }
  return all;
}

TESSERA_INLINE void gradient_bundle::begin(std::vector<at::Tensor> terms, std::uint64_t learning, call_site at) {
  const at::NoGradGuard no_graph;
  if (!moves_ && !in_one_) {
    kept_ = std::move(terms);
    return;
  }
  at::Tensor all = packed(terms);
  terms.clear();
  if (moves_) {  // those who sum it count it: stages of one mesh have bundles of their own
    const std::uint64_t number = team_->crew_of(terms_, sums_).next_entry();
    const std::uint64_t lineage = tessera::detail::lineage_of(text("bundle").hash, {number, learning});
    sum_.emplace(start(sums_, tessera::detail::tensor_of(team_, terms_, all, lineage), at));
  } else {
    kept_ = {std::move(all)};
  }
}

TESSERA_INLINE std::vector<at::Tensor> gradient_bundle::ranges_of(const at::Tensor& all) const {
  std::vector<at::Tensor> each;
  each.reserve(ranges_.size());
  for (const range& one : ranges_) {  // no views: zero_grad(false) detaches gradients in place, which views refuse
    at::Tensor mine = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(all.storage()),
                                                               all.unsafeGetTensorImpl()->key_set(), all.dtype());
    mine.unsafeGetTensorImpl()->set_storage_offset(all.storage_offset() + one.begin);
    mine.unsafeGetTensorImpl()->set_sizes_contiguous(one.sizes);
    each.push_back(std::move(mine));
  }
  return each;
}

TESSERA_INLINE std::vector<at::Tensor> gradient_bundle::finish(double factor) {
  const at::NoGradGuard no_graph;
  std::vector<at::Tensor> sums = std::exchange(kept_, {});
  if (moves_) sums = {tessera::finish(std::move(*sum_)).local()};
  sum_.reset();
  if (narrows_) sums[0] = sums[0].clone(at::MemoryFormat::Contiguous);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (!sums[i].defined()) sums[i] = at::zeros(ranges_[i].sizes, of_);
    if (factor != 1) sums[i].mul_(factor);
  }
  return moves_ && !in_one_ ? ranges_of(sums[0]) : sums;
}

}  // namespace tessera::nn::engine
