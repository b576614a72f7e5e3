#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/tensor/stream/streamed_products.hpp>

#include <ATen/TensorUtils.h>
#include <tessera/tensor/box/aten.hpp>

#include <array>
#include <optional>
#include <string>

namespace tessera::detail {

/// The letters of two factors as a product of matrices has them; none where one of them has another kind.
struct matrix_letters {
  std::array<std::vector<char>, 4> groups;  // of both and the result, of the result and either, of both alone

  static std::optional<matrix_letters> of(const letters& left, const letters& right, const letters& result) {
    matrix_letters m;
    for (char c : left) {
      const bool other = index_of(right, c) >= 0;
      const bool kept = index_of(result, c) >= 0;
      if (!other && !kept) return std::nullopt;
      m.groups[other ? (kept ? 0 : 3) : 1].push_back(c);
    }
    for (char c : right)
      if (index_of(left, c) < 0) {
        if (index_of(result, c) < 0) return std::nullopt;
        m.groups[2].push_back(c);
      }
    std::size_t there = 0;
    for (std::size_t g = 0; g < 3; ++g) there += m.groups[g].size();
    if (there != static_cast<std::size_t>(result.count)) return std::nullopt;
    return m;
  }
};

/// A tensor with its letters in the order of three groups, each as one dimension: a view, or a copy where `copies`.
inline std::optional<at::Tensor> as_groups(const at::Tensor& x, const letters& named, const matrix_letters& m,
                                           std::array<int, 3> order, bool copies) {
  std::vector<index_t> at, sizes;
  for (int g : order) {
    index_t n = 1;
    for (char c : m.groups[static_cast<std::size_t>(g)]) {
      at.push_back(index_of(named, c));
      n *= x.size(at.back());
    }
    sizes.push_back(n);
  }
  const at::Tensor y = x.permute(at);
  if (copies) return y.reshape(sizes);
  if (!at::detail::computeStride(y.sizes(), y.strides(), at::IntArrayRef(sizes))) return std::nullopt;
  return y.view(sizes);
}

/// Adds a product of two factors in place; false where it is no product of matrices, or its result no view as one.
inline bool add_matrices(const at::Tensor& x, const letters& left, const at::Tensor& y, const letters& right,
                         const engine::stream_result& to, const letters& result) {
  if (to.into.scalar_type() == at::kBool) return false;
  const std::optional<matrix_letters> m = matrix_letters::of(left, right, result);
  if (!m) return false;
  const std::optional<at::Tensor> into = as_groups(to.into, result, *m, {0, 1, 2}, false);
  if (!into) return false;
  const at::Tensor a = *as_groups(x, left, *m, {0, 1, 3}, true);
  const at::Tensor b = *as_groups(y, right, *m, {0, 3, 2}, true);
  const int before = to.fresh ? 0 : 1;
  if (!a.is_cpu() && at::isIntegralType(a.scalar_type(), true)) {  // devices have no product of matrices of these
    if (to.fresh) into->zero_();
    for (index_t i = 0; i < a.size(2); ++i) into->addcmul_(a.narrow(2, i, 1), b.narrow(1, i, 1));
  } else if (into->size(0) == 1) into->select(0, 0).addmm_(a.select(0, 0), b.select(0, 0), before, 1);
  else into->baddbmm_(a, b, before, 1);
  return true;
}

/// The same by LibTorch's general sum of products; a letter that only the result has is repeated.
inline void add_products(const std::vector<at::Tensor>& factors, const std::vector<letters>& named,
                         const engine::stream_result& to, const letters& result) {
  std::string text;
  letters all;
  for (const letters& l : named) {
    text.append(text.empty() ? "" : ",").append(l.begin(), l.end());
    for (char c : l)
      if (index_of(all, c) < 0) all.push(c);
  }
  text.append("->");
  std::vector<index_t> repeated;
  for (int d = 0; d < result.count; ++d) {
    if (index_of(all, result[d]) >= 0) text.push_back(result[d]);
    else repeated.push_back(d);
  }
  at::Tensor y = at::einsum(text, factors);
  for (index_t d : repeated) y = y.unsqueeze(d);
  to.take(y.expand_as(to.into));
}

}  // namespace tessera::detail

namespace tessera::engine {

TESSERA_INLINE void streamed_products::add(const std::vector<at::Tensor>& pieces, const interval&,
                                           const std::vector<stream_result>& results) const {
  std::vector<stream_result> to = results;
  for (const product_term& t : terms_) {
    stream_result& result = to[static_cast<std::size_t>(t.result)];
    if (!result.into.defined()) continue;
    const letters& kept = results_[static_cast<std::size_t>(t.result)];
    std::vector<at::Tensor> factors;
    std::vector<letters> named;
    for (const product_factor& f : t.of) {
      const at::Tensor x = pieces[static_cast<std::size_t>(f.operand)].to(result.into.scalar_type());
      factors.push_back(f.conjugate ? x.conj() : x);
      named.push_back(operands_[static_cast<std::size_t>(f.operand)]);
    }
    if (factors.size() != 2 || !tessera::detail::add_matrices(factors[0], named[0], factors[1], named[1], result, kept))
      tessera::detail::add_products(factors, named, result, kept);
    result.fresh = false;
  }
}
TESSERA_INLINE std::shared_ptr<const stream_function> streamed_products::gradient() const {
  std::vector<letters> operands = operands_;
  operands.insert(operands.end(), results_.begin(), results_.end());
  std::vector<product_term> terms;
  for (const product_term& t : terms_)
    for (std::size_t i = 0; i < t.of.size(); ++i) {
      const bool conjugate = t.of[i].conjugate;
      product_term one{t.of[i].operand, {}};
      for (std::size_t j = 0; j < t.of.size(); ++j)
        if (j != i) one.of.push_back({t.of[j].operand, t.of[j].conjugate == conjugate});
      one.of.push_back({static_cast<int>(operands_.size()) + t.result, conjugate});
      terms.push_back(std::move(one));
    }
  return std::make_shared<streamed_products>(std::move(operands), operands_, std::move(terms));
}

}  // namespace tessera::engine
