#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/nn/kernel/attention_step.hpp>
#include <tessera/nn/kernel/fused_attention.hpp>
#include <tessera/nn/kernel/unwritten_rows.hpp>
#include <tessera/tensor/box/element_type.hpp>

#include <tessera/tensor/box/aten.hpp>

#include <algorithm>
#include <cmath>

namespace tessera::detail {

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
  const at::Tensor all = samples_first(x, 3).transpose(1, 2);
  return all.unsqueeze(2).expand({-1, -1, each, -1, -1}).flatten(1, 2);
}
/// The same back, of gradients: those of a head are added.
inline at::Tensor by_sample(const at::Tensor& x, index_t each, at::IntArrayRef sizes) {
  const at::Tensor all = x.transpose(1, 2);
  return (each == 1 ? all : all.unflatten(2, {x.size(1) / each, each}).sum(3)).reshape(sizes);
}

/// A tensor [n…, s, g, d], or [n…, s, g · d], seen as [n, s, g, d].
inline at::Tensor heads_of(const at::Tensor& x, index_t split) {
  const at::Tensor all = split > 0 ? x.unflatten(-1, {split, x.size(-1) / split}) : x;
  const std::size_t batch = static_cast<std::size_t>(all.dim() - 3);
  return all.view({c10::multiply_integers(all.sizes().slice(0, batch)), all.size(-3), all.size(-2), all.size(-1)});
}
/// Terms [n, g · r, s, d] as [n, s, g, d]: those of the r queries of a key are added, in this element.
inline at::Tensor of_each(const at::Tensor& x, index_t each, at::ScalarType sums) {
  const at::Tensor all = x.transpose(1, 2);
  return each == 1 ? all : at::sum(all.unflatten(2, {x.size(1) / each, each}), {3}, false, sums);
}

/// What a block hides of its keys, or adds to their scores, of [n, 1, t, s]; nothing where undefined.
struct hidden_keys {
  at::Tensor excluded, bias;
  const nn::engine::dropped_weights* drops = nullptr;
  interval queries, keys;  ///< the places of those whose weights are dropped

  /// Weights, of which some are dropped.
  at::Tensor dropped(const at::Tensor& weights) const {
    return drops == nullptr ? weights : weights.masked_fill(drops->of(queries, keys), 0).mul_(drops->scale());
  }
};
/// The places of a block that its queries do not see.
inline at::Tensor excluded_by_place(const nn::engine::attended_block& b, const engine::attention_form& form,
                                    const at::TensorOptions& of) {
  const at::TensorOptions whole = of.dtype(at::kLong);
  const at::Tensor ahead = at::arange(b.queries.lo, b.queries.hi, whole).unsqueeze(1) -
                           at::arange(b.first_key, b.first_key + b.keys.size(), whole);
  if (b.sees == nn::engine::attended_block::shape::diagonal) return ahead < 0;
  return (ahead > form.before).logical_or_(ahead < -form.after);
}

/// What is met at once. Where scores are held these take 1 MiB, or on a device what the queries take. LibTorch's kernel
/// of the host meets 512 keys at once, also behind a query's own place.
inline nn::engine::attended_queries::limits limits_of(const at::Tensor& q, const engine::interval& keys, bool fused) {
  const index_t queries = larger(1, q.size(0) * q.size(1) * q.size(2));
  const index_t held = larger(q.is_cpu() ? 1 : q.size(-1), engine::scores_of_block / queries);
  return {fused ? larger(1, keys.size()) : held, q.is_cpu() ? engine::queries_of_block : larger(1, keys.size())};
}
inline double scale_of(const at::Tensor& q) { return 1 / std::sqrt(static_cast<double>(q.size(-1))); }

/// The scores of a block in the element in which they are added; −∞ where something is excluded.
inline at::Tensor scores_of(const at::Tensor& q, const at::Tensor& k, const hidden_keys& hidden) {
  at::Tensor s = at::matmul(q, k.transpose(-2, -1)) * scale_of(q);
  if (hidden.bias.defined()) s = s + hidden.bias;
  return hidden.excluded.defined() ? s.masked_fill(hidden.excluded, no_weight) : s;
}

/// Attention to a block alone, and the logarithm of the sum of its weights, in the element in which they are added.
inline attended composed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const hidden_keys& hidden) {
  const at::ScalarType sums = added_in(q.scalar_type());
  const at::Tensor s = scores_of(q.to(sums), k.to(sums), hidden);
  return {at::matmul(hidden.dropped(at::softmax(s, -1)), v.to(sums)), at::logsumexp(s, {-1})};
}

/// 0 and −∞ of queries that see nothing.
inline attended seeing(attended a, const at::Tensor& excluded) {
  if (!excluded.defined()) return a;
  const at::Tensor nothing = excluded.all(-1);
  return {a.y.masked_fill(nothing.unsqueeze(-1), 0), a.l.masked_fill(nothing, no_weight)};
}

/// Merges what queries read of two disjoint sets of keys.
inline void merge(const at::Tensor& y, const at::Tensor& l, const attended& more) {
  const at::Tensor both = at::logaddexp(l, more.l.to(l.scalar_type()));
  const at::Tensor finite = both.masked_fill(both == no_weight, 0);  // nothing was seen: weights of 0
  const auto weight = [&](const at::Tensor& of) { return (of - finite).exp_().unsqueeze(-1); };
  y.mul_(weight(l));
  y.addcmul_(more.y, weight(more.l));
  l.copy_(both);
}

/// What LibTorch has for these; kernels that drop weights draw them themselves.
inline fused_attention fused_kernel(const nn::engine::attended_queries& of, const at::Tensor& q, const at::Tensor& k,
                                    const at::Tensor& v) {
  return of.drops ? fused_attention() : fused_attention(q, k, v, of.masked);
}

inline at::Tensor rows_of(const at::Tensor& x, int dim, const engine::interval& i) {
  return x.narrow(dim, i.lo, i.size());
}
/// What is hidden of a block, by a mask of the piece and by places; a fused kernel knows a diagonal alone by itself.
inline hidden_keys hidden_of(const nn::engine::attended_queries& of, const at::Tensor& mask,
                             const nn::engine::attended_block& b, bool fused, const at::TensorOptions& as) {
  using shape = nn::engine::attended_block::shape;
  hidden_keys hidden{{}, {}, of.drops.get(), b.queries, {b.first_key, b.first_key + b.keys.size()}};
  if (mask.defined()) {
    const at::Tensor here = rows_of(rows_of(samples_first(mask, 2), 1, b.rows), 2, b.keys).unsqueeze(1);
    if (here.scalar_type() != at::kBool) hidden.bias = here.to(added_in(here.scalar_type()));
    hidden.excluded = hidden.bias.defined() ? here == no_weight : here;
  }
  if (b.sees == shape::band || (b.sees == shape::diagonal && (mask.defined() || !fused))) {
    const at::Tensor places = excluded_by_place(b, of.form, as);
    hidden.excluded = hidden.excluded.defined() ? hidden.excluded.logical_or(places) : places;
  }
  return hidden;
}

/// A piece's share of the gradients of queries, keys and values, composed of functions that have derivatives of every
/// order. Operands are those of the step, its results, and their gradients.
inline std::vector<at::Tensor> composed_shares(const nn::engine::attended_queries& of, const std::vector<at::Tensor>& x,
                                               const engine::interval& where) {
  const std::size_t results = of.masked ? 4 : 3;
  const at::ScalarType sums = added_in(x[0].scalar_type());
  const at::Tensor q = x[0].to(sums).transpose(1, 2), k = by_head(x[1].to(sums), of.each, of.split),
                   v = by_head(x[2].to(sums), of.each, of.split);
  const at::Tensor mask = of.masked ? x[3] : at::Tensor();
  const at::Tensor y = x[results].to(sums).transpose(1, 2), dy = x[results + 2].to(sums).transpose(1, 2),
                   l = x[results + 1], dl = x[results + 3];
  const at::Tensor finite = l.masked_fill(l == no_weight, 0);
  const at::Tensor level = (dy * y).sum(-1) - dl;
  std::vector<at::Tensor> shares{at::zeros_like(q), at::zeros_like(k), at::zeros_like(v)};
  const bool adds = of.masked && mask.scalar_type() != at::kBool;
  at::Tensor of_mask;
  if (of.masked) of_mask = adds ? at::zeros_like(samples_first(mask, 2), sums) : at::zeros_like(mask);
  of.each_block(where, limits_of(q, where, false), [&](const nn::engine::attended_block& b) {
    const at::Tensor own = rows_of(q, 2, b.rows), other = rows_of(k, 2, b.keys), g = rows_of(dy, 2, b.rows);
    const hidden_keys hidden = hidden_of(of, mask, b, false, q.options());
    const at::Tensor weights = at::exp(scores_of(own, other, hidden) - rows_of(finite, 2, b.rows).unsqueeze(-1));
    const at::Tensor of_weights = hidden.dropped(at::matmul(g, rows_of(v, 2, b.keys).transpose(-2, -1)));
    const at::Tensor of_scores = weights * (of_weights - rows_of(level, 2, b.rows).unsqueeze(-1));
    const auto add = [](at::Tensor& to, const engine::interval& at, const at::Tensor& more) {
      if (at::GradMode::is_enabled()) to = to + at::constant_pad_nd(more, {0, 0, at.lo, to.size(-2) - at.hi});
      else rows_of(to, 2, at).add_(more);
    };
    add(shares[0], b.rows, at::matmul(of_scores, other) * scale_of(q));
    add(shares[1], b.keys, at::matmul(of_scores.transpose(-2, -1), own) * scale_of(q));
    add(shares[2], b.keys, at::matmul(hidden.dropped(weights).transpose(-2, -1), g));
    if (adds)
      of_mask = of_mask + at::constant_pad_nd(of_scores.sum(1), {b.keys.lo, of_mask.size(2) - b.keys.hi, b.rows.lo,
                                                                 of_mask.size(1) - b.rows.hi});
  });
  shares[0] = shares[0].transpose(1, 2);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) shares[i] = by_sample(shares[i], of.each, x[i].sizes());
  if (of.masked) shares.push_back(adds ? of_mask.reshape(mask.sizes()) : of_mask);
  return shares;
}

}  // namespace tessera::detail

namespace tessera::nn::engine {

TESSERA_INLINE void attention_step::add(const std::vector<at::Tensor>& pieces, const interval& where,
                                        const std::vector<stream_result>& results) const {
  using namespace tessera::detail;
  const at::Tensor y = results[0].into.transpose(1, 2), &l = results[1].into;
  const at::Tensor q = pieces[0].transpose(1, 2), mask = q_.masked ? pieces[3] : at::Tensor();
  const at::Tensor k = by_head(pieces[1], q_.each, q_.split), v = by_head(pieces[2], q_.each, q_.split);
  const fused_attention fused = fused_kernel(q_, q, k, v);
  unwritten_rows rows(q.size(2), results[0].fresh);
  q_.each_block(where, limits_of(q, where, static_cast<bool>(fused)), [&](const attended_block& b) {
    const hidden_keys hidden = hidden_of(q_, mask, b, static_cast<bool>(fused), q.options());
    const attended block = seeing(
        fused ? fused.attend(b, hidden.excluded, hidden.bias)
              : composed_attention(tessera::detail::rows_of(q, 2, b.rows), tessera::detail::rows_of(k, 2, b.keys),
                                   tessera::detail::rows_of(v, 2, b.keys), hidden),
        hidden.excluded);
    rows.write(b.rows, [&](const interval& some, bool first) {
      const interval here{some.lo - b.rows.lo, some.hi - b.rows.lo};
      const attended more{tessera::detail::rows_of(block.y, 2, here), tessera::detail::rows_of(block.l, 2, here)};
      const at::Tensor to = tessera::detail::rows_of(y, 2, some), to_l = tessera::detail::rows_of(l, 2, some);
      if (first) to.copy_(more.y), to_l.copy_(more.l);
      else merge(to, to_l, more);
    });
  });
  for (const interval& some : rows.left()) {
    tessera::detail::rows_of(y, 2, some).zero_();
    tessera::detail::rows_of(l, 2, some).fill_(no_weight);
  }
}
TESSERA_INLINE std::shared_ptr<const stream_function> attention_step::gradient() const {
  return std::make_shared<attention_gradient>(q_);
}

TESSERA_INLINE void attention_gradient::add(const std::vector<at::Tensor>& pieces, const interval& where,
                                            const std::vector<stream_result>& results) const {
  using namespace tessera::detail;
  const std::size_t at = q_.masked ? 4 : 3;
  const at::Tensor q = pieces[0].transpose(1, 2), y = pieces[at].transpose(1, 2), &l = pieces[at + 1],
                   &dl = pieces[at + 3];
  const at::Tensor given = pieces[at + 2].defined() ? pieces[at + 2] : at::zeros_like(pieces[at]);
  const at::Tensor dy = given.transpose(1, 2);
  const at::Tensor k = by_head(pieces[1], q_.each, q_.split), v = by_head(pieces[2], q_.each, q_.split);
  const fused_attention fused = fused_kernel(q_, q, k, v);
  const bool of_mask = q_.masked && results[3].into.defined();
  if (dl.defined() || of_mask || !fused) {  // a gradient of a gradient asks for that of the logarithm too
    std::vector<at::Tensor> x = pieces;
    x[at + 2] = given;
    if (!dl.defined()) x[at + 3] = at::zeros_like(l);
    const std::vector<at::Tensor> shares = composed_shares(q_, x, where);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i].into.defined()) results[i].take(shares[i]);
    return;
  }
  const at::Tensor mask = q_.masked ? pieces[3] : at::Tensor();
  const at::Tensor finite = mask.defined() ? l.masked_fill(l == no_weight, 0) : l;
  struct sum {
    at::Tensor into;
    unwritten_rows rows;
  };
  std::vector<sum> sums;  // of heads behind rows
  for (std::size_t i = 0; i < 3; ++i) {
    const index_t rows = (i == 0 ? q : k).size(2);
    const bool wanted = results[i].into.defined();
    sums.push_back({wanted ? heads_of(results[i].into, i > 0 ? q_.split : 0) : at::Tensor(),
                    unwritten_rows(rows, wanted && results[i].fresh)});
  }
  q_.each_block(where, limits_of(q, where, true), [&](const attended_block& b) {
    const auto of_rows = [&](const at::Tensor& x) { return tessera::detail::rows_of(x, 2, b.rows); };
    const hidden_keys hidden = hidden_of(q_, mask, b, true, q.options());
    const std::array<at::Tensor, 3> terms =
        fused.gradients(b, of_rows(dy), {of_rows(y), of_rows(finite)}, hidden.excluded, hidden.bias);
    for (std::size_t i = 0; i < 3; ++i) {
      if (!sums[i].into.defined()) continue;
      const interval& all = i == 0 ? b.rows : b.keys;
      const at::Tensor more = of_each(terms[i], i == 0 ? 1 : q_.each, sums[i].into.scalar_type());
      sums[i].rows.write(all, [&](const interval& some, bool first) {
        const at::Tensor to = tessera::detail::rows_of(sums[i].into, 1, some),
                         from = tessera::detail::rows_of(more, 1, {some.lo - all.lo, some.hi - all.lo});
        first ? to.copy_(from) : to.add_(from);
      });
    }
  });
  for (const sum& one : sums)
    for (const interval& some : one.rows.left()) tessera::detail::rows_of(one.into, 1, some).zero_();
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
