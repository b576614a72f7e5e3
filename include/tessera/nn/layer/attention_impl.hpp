#pragma once

#include <tessera/nn/kernel/attention_step_impl.hpp>
#include <tessera/nn/layer/attention.hpp>
#include <tessera/tensor/autograd/recomposed.hpp>
#include <tessera/tensor/stream/stream.hpp>

#include <cmath>
#include <limits>

namespace tessera::detail {

/// softmax(q kᵀ / √d) v of heads [n, g, s, d] by functions that have derivatives of every order; half types are float
/// in it.
inline at::Tensor composed_attention(const std::vector<at::Tensor>& heads, bool causal) {
  return in_float(
      [causal](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
        if (causal)
          scores = scores.masked_fill(at::ones({q.size(-2), k.size(-2)}, q.options().dtype(at::kBool)).triu(1),
                                      -std::numeric_limits<double>::infinity());
        return at::matmul(at::softmax(scores, -1), v);
      },
      heads[0], heads[1], heads[2]);
}

/// Queries, keys and values as heads, of operands as the local operation takes them.
inline std::vector<at::Tensor> with_heads(const nn::call& c, const std::vector<at::Tensor>& used,
                                          const engine::attention_form& form) {
  std::vector<at::Tensor> all(used.begin(), used.begin() + 3);
  if (form.heads == 0) return all;
  for (std::size_t i = 0; i < 3; ++i) {
    const at::Tensor& x = all[i];
    const index_t each = c.bound.inputs[i].to->layout().dims[static_cast<int>(x.dim()) - 1].extent / form.heads;
    all[i] = x.unflatten(-1, {x.size(-1) / each, each});
  }
  all[0] = all[0].unsqueeze(-2);
  return all;
}

}  // namespace tessera::detail

namespace tessera::nn {

namespace engine {

/// The ends of its stream: queries [n, t, h, d], what comes, perhaps a mask, and the state of all queries.
inline stream attention_ends(const signature& op, const call& c, const std::vector<at::Tensor>& x, index_t features,
                             const stream_reach& reach) {
  std::vector<const layout*> lie;
  for (std::size_t i = 0; i < x.size(); ++i) lie.push_back(&c.bound.inputs[i].to->layout());
  stream s;
  s.keeps_results = true;
  s.reach = reach;
  s.readers = c.bound.inputs[0].to;
  std::size_t next = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    stream_end e{stream_role::all,
                 index_of(op.operands[static_cast<int>(i)], op.streams()),
                 {},
                 x[i].sizes().vec(),
                 x[i].scalar_type()};
    if (e.dim >= 0) e.role = stream_role::range;
    if (brought_dimension(op, static_cast<int>(i), *lie[i]) >= 0) {
      e.role = stream_role::part;
      e.lies = c.bound.exchanges[next++].from;
      if (next == 1)
        s.rows = rows_at_once(e.lies->layout(), e.dim, tessera::detail::element_of_scalar(e.type),
                              op.of(op.streams()).extent);
    }
    s.operands.push_back(std::move(e));
  }
  const at::ScalarType type = x[0].scalar_type();
  const index_t n = x[0].size(0), queries = x[0].size(1), heads = x[0].size(2);
  s.results.push_back({stream_role::all, -1, {}, {n, queries, heads, features}, type});
  s.results.push_back({stream_role::all, -1, {}, {n, heads, queries}, tessera::detail::added_in(type)});
  return s;
}

/// Where packed sequences begin and the last one ends, by cumulative lengths, which all workers have.
inline std::vector<index_t> sequences_of(const call& c, const at::Tensor& lengths, index_t rows) {
  const at::Tensor all = lengths.cpu().contiguous();
  const auto* first = all.const_data_ptr<std::int64_t>();
  const std::vector<index_t> at(first, first + all.numel());
  for (std::size_t i = 0; i < at.size(); ++i)
    if (at[i] < (i == 0 ? 0 : at[i - 1]) || (i == 0 && at[i] > 0) || (i + 1 == at.size() && at[i] != rows))
      throw error(refusal{code::packed_lengths_wrong, static_cast<index_t>(i), at[i], rows}, c.bound.team->label());
  if (at.empty()) throw error(refusal{code::packed_lengths_wrong, 0, 0, rows}, c.bound.team->label());
  return at;
}

inline bool drops(const call& c, const attention_description& layer) { return c.training && layer.form.dropped > 0; }

/// What is dropped now, of queries as heads [n…, t, g, r, d].
inline std::shared_ptr<const dropped_weights> weights_dropped(const call& c, const attention_description& layer,
                                                              const at::Tensor& q) {
  const int batch = static_cast<int>(q.dim()) - 4;
  const local_box& queries = c.bound.boxes().operands[0];
  tessera::detail::holding held;
  tessera::detail::global_index extents;
  for (int d = 0; d <= batch + 1; ++d) {
    held.push(queries.held[d]);
    extents.push(queries.extents[d]);
  }
  if (layer.form.heads > 0) {  // features, in grains of heads
    const index_t each = extents[batch + 1] / layer.form.heads;
    intervals heads;
    for (const interval& i : held[batch + 1]) heads.push({i.lo / each, i.hi / each});
    held[batch + 1] = heads;
    extents[batch + 1] = layer.form.heads;
  }
  const index_t keys = c.bound.boxes().operands[1].extents[batch];
  held.push({{{0, q.size(-2)}}, 1});
  held.push({{{0, keys}}, 1});
  extents.push(q.size(-2));
  extents.push(keys);
  return std::make_shared<dropped_weights>(c.drawn(), layer.form.dropped, held, extents);
}

/// Attention whose keys and values come part by part, or that has a mask or drops weights: a stream, also where nothing
/// is cut.
inline at::Tensor streamed_attention(const call& c, const std::vector<at::Tensor>& used,
                                     const attention_description& layer) {
  const std::vector<at::Tensor> given = tessera::detail::with_heads(c, used, layer.form);
  const at::Tensor& q = given[0];
  const int batch = static_cast<int>(q.dim()) - 4;
  const local_boxes& boxes = c.bound.boxes();
  const bool packed = used.size() > 3 && used[3].scalar_type() == at::kLong;
  const bool masked = used.size() > 3 && !packed;
  attended_queries of;
  of.each = tessera::detail::larger(1, q.size(-2));
  of.masked = masked;
  of.split = layer.form.heads > 0 ? given[1].size(-2) : 0;
  of.form = layer.form;
  const intervals& held = boxes.operands[0].held[batch];
  of.rows.assign(held.begin(), held.end());
  if (packed) of.sequences = sequences_of(c, used[3], boxes.operands[0].extents[batch]);
  if (drops(c, layer)) of.drops = weights_dropped(c, layer, q);  // behind what is refused: draws are kept
  attention_form form = layer.form;
  form.streamed = true;
  const signature op = tessera::detail::attention_signature(
      batch, form, masked ? tessera::detail::behind_values::mask : tessera::detail::behind_values::nothing);
  const at::Tensor each = tessera::detail::samples_first(q, 4);
  const at::Tensor queries = each.reshape({each.size(0), each.size(1), each.size(2) * each.size(3), each.size(4)});
  std::vector<at::Tensor> x{queries};
  x.insert(x.end(), used.begin() + 1, used.begin() + (masked ? 4 : 3));

  stream s = attention_ends(op, c, x, given[2].size(-1), tessera::detail::keys_read(form, batch));
  s.f = std::make_shared<attention_step>(std::move(of));
  return evaluate(c.bound.team, s, x)[0].reshape(c.bound.sizes);
}

}  // namespace engine

TESSERA_INLINE at::Tensor forward(const call& c, const engine::attention_description& layer) {
  std::vector<at::Tensor> used;
  for (std::size_t i = 0; i < c.operands.size(); ++i) used.push_back(c.used(i));
  const auto leaving = [&](const at::Tensor& y) { return c.bound.leaving(c.bound.depends_on_all(y, used)); };
  if (layer.form.streamed || layer.form.slides || used.size() > 3 || engine::drops(c, layer))
    return leaving(engine::streamed_attention(c, used, layer));
  if (c.bound.is_empty) return leaving(tessera::detail::empty_result(c.bound.outputs, used));
  const std::vector<at::Tensor> given = tessera::detail::with_heads(c, used, layer.form);
  const at::Tensor& q = given[0];
  const index_t keys = q.size(-3);
  const index_t queries_of_one = q.size(-2);
  const at::Tensor all_queries = q.reshape({-1, q.size(-4), keys * queries_of_one, q.size(-1)}).transpose(1, 2);
  const std::vector<at::Tensor> heads{all_queries, tessera::detail::by_head(given[1], queries_of_one),
                                      tessera::detail::by_head(given[2], queries_of_one)};
  const at::Tensor y = tessera::detail::recomposed(
      at::scaled_dot_product_attention(heads[0], heads[1], heads[2], std::nullopt, 0, layer.form.causal), heads,
      [causal = layer.form.causal](const std::vector<at::Tensor>& x) {
        return tessera::detail::composed_attention(x, causal);
      });
  return leaving(y.transpose(1, 2).reshape(c.bound.sizes));
}

}  // namespace tessera::nn
