#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/nn/layer/attention_step.hpp>
#include <tessera/tensor/box/element_type.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace tessera::detail {

inline constexpr double no_weight = -std::numeric_limits<double>::infinity();

/// All dimensions before the last ones as one; there may be no elements.
inline at::Tensor samples_first(const at::Tensor& x, int last) {
  std::vector<index_t> sizes{c10::multiply_integers(x.sizes().slice(0, static_cast<std::size_t>(x.dim() - last)))};
  for (int d = last; d > 0; --d) sizes.push_back(x.size(-d));
  return x.reshape(sizes);
}

/// Keys or values [n…, s, g, d] by head, each as often as it has queries: [n, g · r, s, d]. Features that are no heads
/// yet become so many.
inline at::Tensor by_head(const at::Tensor& given, index_t each, index_t split = 0) {
  const at::Tensor x = split > 0 ? given.unflatten(-1, {split, given.size(-1) / split}) : given;
  const at::Tensor all = samples_first(x, 3).unsqueeze(3).expand({-1, -1, -1, each, -1});
  return all.reshape({all.size(0), all.size(1), all.size(2) * each, all.size(4)}).transpose(1, 2);
}
/// The same back, of gradients: those of a head are added.
inline at::Tensor by_sample(const at::Tensor& x, index_t each, at::IntArrayRef sizes) {
  return x.transpose(1, 2).unflatten(2, {x.size(1) / each, each}).sum(3).reshape(sizes);
}

/// What is excluded of a block: by a mask [n, t, s], by the places of queries and keys, or nothing.
inline at::Tensor excluded_of(const at::Tensor& mask, index_t queries, index_t keys, bool diagonal,
                              const at::TensorOptions& of) {
  at::Tensor all = mask.defined() ? mask.unsqueeze(1) : at::Tensor();
  if (!diagonal) return all;
  const at::Tensor later = at::ones({queries, keys}, of.dtype(at::kBool)).triu(1);
  return all.defined() ? all.logical_or(later) : later;
}

/// Whether LibTorch's fused kernel of the host takes these.
inline bool is_fused(const at::Tensor& q, const at::Tensor& v) {
  return q.is_cpu() && q.size(-1) == v.size(-1) && q.numel() > 0 && v.numel() > 0;
}
/// How many keys of a piece are met at once: the fused kernel has its own blocks, else 1 MiB of scores is held.
inline index_t keys_at_once(const at::Tensor& q, const at::Tensor& v, const engine::interval& keys) {
  const index_t queries = q.size(0) * q.size(1) * q.size(2);
  return is_fused(q, v) ? std::max<index_t>(1, keys.size()) : larger(1, (index_t{1} << 18) / larger(1, queries));
}
inline double scale_of(const at::Tensor& q) { return 1 / std::sqrt(static_cast<double>(q.size(-1))); }

/// The scores of a block in the element in which they are added; −∞ where something is excluded.
inline at::Tensor scores_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& excluded) {
  const at::Tensor s = at::matmul(q, k.transpose(-2, -1)) * scale_of(q);
  return excluded.defined() ? s.masked_fill(excluded, no_weight) : s;
}

/// A mask as the fused kernel adds it.
inline std::optional<at::Tensor> added_mask(const at::Tensor& mask, const at::Tensor& q, index_t keys, bool diagonal) {
  if (!mask.defined()) return std::nullopt;
  const at::Tensor excluded = excluded_of(mask, q.size(-2), keys, diagonal, q.options());
  return at::zeros(excluded.sizes(), q.options()).masked_fill_(excluded, no_weight);
}

struct attended {
  at::Tensor y, l;
};

/// Attention to a block alone, and the logarithm of the sum of its weights; 0 and −∞ of queries that see nothing.
inline attended attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                       bool diagonal) {
  attended a;
  const at::Tensor excluded = mask.defined() || !is_fused(q, v)
                                  ? excluded_of(mask, q.size(-2), k.size(-2), diagonal, q.options())
                                  : at::Tensor();
  if (is_fused(q, v)) {
    std::tie(a.y, a.l) = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, diagonal && !mask.defined(),
                                                                         added_mask(mask, q, k.size(-2), diagonal));
  } else {
    const at::ScalarType sums = added_in(q.scalar_type());
    const at::Tensor s = scores_of(q.to(sums), k.to(sums), excluded);
    a.l = at::logsumexp(s, {-1});
    a.y = at::matmul(at::softmax(s, -1), v.to(sums));
  }
  if (excluded.defined()) {
    const at::Tensor nothing = excluded.all(-1);
    a.y = a.y.masked_fill(nothing.unsqueeze(-1), 0);
    a.l = a.l.masked_fill(nothing, no_weight);
  }
  return a;
}

/// Merges what queries read of two disjoint sets of keys.
inline void merge(const at::Tensor& y, const at::Tensor& l, const attended& more) {
  const at::Tensor both = at::logaddexp(l, more.l.to(l.scalar_type()));
  const at::Tensor finite = both.masked_fill(both == no_weight, 0);  // nothing was seen: weights of 0
  y.mul_(at::exp(l - finite).unsqueeze(-1)).add_(more.y * at::exp(more.l - finite).unsqueeze(-1));
  l.copy_(both);
}

inline at::Tensor rows_of(const at::Tensor& x, int dim, const engine::interval& i) {
  return x.narrow(dim, i.lo, i.size());
}
inline at::Tensor mask_of(const at::Tensor& mask, const engine::interval& rows, const engine::interval& keys) {
  if (!mask.defined()) return mask;
  return rows_of(rows_of(samples_first(mask, 2), 1, rows), 2, keys);
}

/// A piece's share of the gradients of queries, keys and values, composed of functions that have derivatives of every
/// order. Operands are those of the step, its results, and their gradients.
inline std::vector<at::Tensor> composed_shares(const nn::engine::attended_queries& of, const std::vector<at::Tensor>& x,
                                               const engine::interval& where) {
  const std::size_t results = of.masked ? 4 : 3;
  const at::ScalarType sums = added_in(x[0].scalar_type());
  const at::Tensor q = x[0].to(sums), k = by_head(x[1].to(sums), of.each, of.split),
                   v = by_head(x[2].to(sums), of.each, of.split);
  const at::Tensor mask = of.masked ? x[3] : at::Tensor();
  const at::Tensor y = x[results].to(sums), l = x[results + 1], dy = x[results + 2].to(sums), dl = x[results + 3];
  const at::Tensor finite = l.masked_fill(l == no_weight, 0);
  const at::Tensor level = (dy * y).sum(-1) - dl;
  std::vector<at::Tensor> shares{q * 0, k * 0, v * 0};
  of.each_block(
      where, keys_at_once(q, v, where), [&](const engine::interval& rows, const engine::interval& keys, bool diagonal) {
        const at::Tensor own = rows_of(q, 2, rows), other = rows_of(k, 2, keys), g = rows_of(dy, 2, rows);
        const at::Tensor excluded =
            excluded_of(mask_of(mask, rows, keys), rows.size(), keys.size(), diagonal, q.options());
        const at::Tensor weights = at::exp(scores_of(own, other, excluded) - rows_of(finite, 2, rows).unsqueeze(-1));
        const at::Tensor of_scores =
            weights * (at::matmul(g, rows_of(v, 2, keys).transpose(-2, -1)) - rows_of(level, 2, rows).unsqueeze(-1)) *
            scale_of(q);
        const auto add = [](at::Tensor& to, const engine::interval& at, const at::Tensor& more) {
          to = to + at::constant_pad_nd(more, {0, 0, at.lo, to.size(2) - at.hi});
        };
        add(shares[0], rows, at::matmul(of_scores, other));
        add(shares[1], keys, at::matmul(of_scores.transpose(-2, -1), own));
        add(shares[2], keys, at::matmul(weights.transpose(-2, -1), g));
      });
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) shares[i] = by_sample(shares[i], of.each, x[i].sizes());
  if (of.masked) shares.push_back(at::zeros_like(x[3]));
  return shares;
}

}  // namespace tessera::detail

namespace tessera::nn::engine {

TESSERA_INLINE void attended_queries::each_block(
    const interval& keys, const std::function<void(const interval&, const interval&, bool diagonal)>& f) const {
  index_t at = 0;
  for (const interval& row : rows) {
    const interval here{at, at + row.size()};
    at = here.hi;
    if (here.empty() || keys.empty()) continue;
    if (!causal) {
      f(here, {0, keys.size()}, false);
      continue;
    }
    const auto queries = [&](index_t lo, index_t hi) { return interval{here.lo + lo - row.lo, here.lo + hi - row.lo}; };
    const auto call = [&](index_t first, index_t last, index_t lo, index_t hi, bool diagonal) {
      if (first < last && lo < hi) f(queries(first, last), {lo - keys.lo, hi - keys.lo}, diagonal);
    };
    call(row.lo, row.hi, keys.lo, std::min(keys.hi, row.lo), false);  // before all of them
    const index_t lo = std::max(keys.lo, row.lo), hi = std::min(keys.hi, row.hi);
    call(lo, hi, lo, hi, true);
    call(std::max(lo, hi), row.hi, lo, keys.hi, false);  // what comes behind these keys
  }
}

TESSERA_INLINE void attended_queries::each_block(
    const interval& keys, index_t most,
    const std::function<void(const interval&, const interval&, bool diagonal)>& f) const {
  for (index_t lo = keys.lo; lo < keys.hi; lo += most) {
    const auto moved = [&](const interval& row, const interval& key, bool diagonal) {
      f(row, {key.lo + lo - keys.lo, key.hi + lo - keys.lo}, diagonal);
    };
    each_block({lo, std::min(keys.hi, lo + most)}, moved);
  }
}

TESSERA_INLINE void attention_step::add(const std::vector<at::Tensor>& pieces, const interval& where,
                                        const std::vector<stream_result>& results) const {
  using namespace tessera::detail;
  const at::Tensor &y = results[0].into, &l = results[1].into;
  if (results[0].fresh) {
    y.zero_();
    l.fill_(no_weight);
  }
  const at::Tensor k = by_head(pieces[1], q_.each, q_.split), v = by_head(pieces[2], q_.each, q_.split);
  const at::Tensor mask = q_.masked ? pieces[3] : at::Tensor();
  q_.each_block(where, keys_at_once(pieces[0], v, where),
                [&](const interval& rows, const interval& keys, bool diagonal) {
                  merge(tessera::detail::rows_of(y, 2, rows), tessera::detail::rows_of(l, 2, rows),
                        attend(tessera::detail::rows_of(pieces[0], 2, rows), tessera::detail::rows_of(k, 2, keys),
                               tessera::detail::rows_of(v, 2, keys), mask_of(mask, rows, keys), diagonal));
                });
}
TESSERA_INLINE std::shared_ptr<const stream_function> attention_step::gradient() const {
  return std::make_shared<attention_gradient>(q_);
}

TESSERA_INLINE void attention_gradient::add(const std::vector<at::Tensor>& pieces, const interval& where,
                                            const std::vector<stream_result>& results) const {
  using namespace tessera::detail;
  const std::size_t at = q_.masked ? 4 : 3;
  const at::Tensor &q = pieces[0], &y = pieces[at], &l = pieces[at + 1], &dl = pieces[at + 3];
  const at::Tensor dy = pieces[at + 2].defined() ? pieces[at + 2] : at::zeros_like(y);
  if (dl.defined() || !is_fused(q, pieces[2])) {  // a gradient of a gradient asks for that of the logarithm too
    std::vector<at::Tensor> x = pieces;
    x[at + 2] = dy;
    if (!dl.defined()) x[at + 3] = at::zeros_like(l);
    const std::vector<at::Tensor> shares = composed_shares(q_, x, where);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i].into.defined()) results[i].take(shares[i]);
    return;
  }
  const at::Tensor k = by_head(pieces[1], q_.each, q_.split), v = by_head(pieces[2], q_.each, q_.split);
  const at::Tensor mask = q_.masked ? pieces[3] : at::Tensor();
  const at::Tensor finite = mask.defined() ? l.masked_fill(l == no_weight, 0) : l;
  const at::ScalarType sums = added_in(q.scalar_type());
  at::Tensor of_keys = at::zeros(k.sizes(), k.options().dtype(sums));
  at::Tensor of_values = at::zeros(v.sizes(), v.options().dtype(sums));
  if (results[0].into.defined() && results[0].fresh) results[0].into.zero_();
  q_.each_block(where, [&](const interval& rows, const interval& keys, bool diagonal) {
    const auto of_rows = [&](const at::Tensor& x) { return tessera::detail::rows_of(x, 2, rows); };
    const auto of_piece = [&](const at::Tensor& x) { return tessera::detail::rows_of(x, 2, keys); };
    const at::Tensor hidden = mask_of(mask, rows, keys);
    const auto [a, b, c] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        of_rows(dy), of_rows(q), of_piece(k), of_piece(v), of_rows(y), of_rows(finite), 0,
        diagonal && !hidden.defined(), added_mask(hidden, of_rows(q), keys.size(), diagonal));
    if (results[0].into.defined()) of_rows(results[0].into).add_(a);
    of_piece(of_keys).add_(b);
    of_piece(of_values).add_(c);
  });
  if (results[1].into.defined()) results[1].take(by_sample(of_keys, q_.each, pieces[1].sizes()));
  if (results[2].into.defined()) results[2].take(by_sample(of_values, q_.each, pieces[2].sizes()));
}
TESSERA_INLINE std::shared_ptr<const stream_function> attention_gradient::gradient() const {
  const std::size_t operands = q_.masked ? 4 : 3;
  return tessera::engine::recorded_function(
             [q = q_](const std::vector<at::Tensor>& x, const interval& where) {
               return tessera::detail::composed_shares(q, x, where);
             },
             operands + 4, operands)
      .gradient();
}

}  // namespace tessera::nn::engine
