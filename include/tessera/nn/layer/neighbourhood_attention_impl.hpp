#pragma once

#include <tessera/nn/layer/attention_impl.hpp>
#include <tessera/nn/layer/neighbourhood_attention.hpp>

#include <cmath>

namespace tessera::detail {

/// Queries side by side along a dimension, and the keys that they read. Their windows advance with them, or at an edge
/// all of them have the same.
struct query_stretch {
  index_t first, count;  ///< of this worker's queries
  index_t reads;         ///< where the first window begins, in what this worker has of the keys
  bool alike;

  index_t windows() const { return alike ? 1 : count; }
};

/// Up to three stretches: those whose windows would reach beyond the first key, those between, and the others.
inline std::vector<query_stretch> query_stretches(const interval& queries, const interval& keys, index_t n,
                                                  index_t seen) {
  const index_t around = seen / 2, low = larger(around + 1, n - 1 - around);
  std::vector<query_stretch> all;
  const auto add = [&](index_t lo, index_t hi, index_t begins, bool alike) {
    const interval i = overlap(queries, {lo, hi});
    if (!i.empty()) all.push_back({i.lo - queries.lo, i.size(), (alike ? begins : i.lo - around) - keys.lo, alike});
  };
  add(0, around + 1, 0, true);
  add(around + 1, n - 1 - around, 0, false);
  add(low, n, n - seen, true);
  return all;
}

/// Attention of windows, of queries [n, s…, g, r, d], keys [n, s…, g, d] and values [n, s…, g, e].
class windowed_attention {
 public:
  static_vector<index_t, 3> seen;  ///< how many keys along each dimension
  std::vector<std::vector<query_stretch>> stretches;

  at::Tensor operator()(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const {
    std::vector<query_stretch> at;
    return of_stretches(q, k, v, at);
  }

 private:
  at::Tensor of_stretches(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          std::vector<query_stretch>& at) const {
    const std::size_t i = at.size();
    if (i == stretches.size()) return of_taps(q, k, v, at);
    const auto d = static_cast<index_t>(1 + i);
    std::vector<at::Tensor> parts;
    for (const query_stretch& s : stretches[i]) {
      const index_t read = s.windows() - 1 + seen[static_cast<int>(i)];
      at.push_back(s);
      parts.push_back(
          of_stretches(q.narrow(d, s.first, s.count), k.narrow(d, s.reads, read), v.narrow(d, s.reads, read), at));
      at.pop_back();
    }
    return parts.size() == 1 ? parts[0] : at::cat(parts, d);
  }

  /// Of each query the key, or value, at one place of its window, beside the queries of a head.
  at::Tensor at_tap(at::Tensor x, index_t tap, const std::vector<query_stretch>& at) const {
    for (std::size_t i = at.size(); i-- > 0;) {
      const index_t keys = seen[static_cast<int>(i)];
      x = x.narrow(static_cast<index_t>(1 + i), tap % keys, at[i].windows());
      tap /= keys;
    }
    return x.unsqueeze(-2);
  }

  at::Tensor of_taps(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const std::vector<query_stretch>& at) const {
    index_t taps = 1;
    for (index_t keys : seen) taps *= keys;
    at::Tensor all;  // one list of scores at a time, and then one tensor of them
    {
      std::vector<at::Tensor> scores;
      for (index_t t = 0; t < taps; ++t) scores.push_back((q * at_tap(k, t, at)).sum(-1));
      all = at::stack(scores, -1);
    }
    const std::vector<at::Tensor> weights =
        at::softmax(all.div_(std::sqrt(static_cast<double>(q.size(-1)))), -1).unbind(-1);
    all.reset();
    at::Tensor y;
    for (index_t t = 0; t < taps; ++t) {
      const at::Tensor term = weights[static_cast<std::size_t>(t)].unsqueeze(-1) * at_tap(v, t, at);
      y = t == 0 ? term : y.add_(term);
    }
    return y;
  }
};

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE at::Tensor forward(const call& c, const engine::neighbourhood_description& layer) {
  const std::vector<at::Tensor> used{c.used(0), c.used(1), c.used(2)};
  if (c.bound.is_empty) return c.bound.leaving(tessera::detail::empty_result(c.bound.outputs, used));
  const local_boxes& boxes = c.bound.boxes();
  const int space = layer.window.count, first = layer.first(boxes.operands[0].held.count);
  tessera::detail::windowed_attention f;
  f.seen = layer.window;
  for (int d = first; d < first + space; ++d)
    f.stretches.push_back(tessera::detail::query_stretches(boxes.operands[0].held[d][0], boxes.operands[1].held[d][0],
                                                           boxes.operands[0].extents[d], layer.window[d - first]));
  engine::attention_form form;
  form.heads = layer.heads;
  std::vector<at::Tensor> x = tessera::detail::with_heads(c, used, form);
  for (std::size_t i = 0; i < 3; ++i) x[i] = tessera::detail::samples_first(x[i], space + (i == 0 ? 3 : 2));
  const at::Tensor y = tessera::detail::in_float(f, x[0], x[1], x[2]);
  return c.bound.leaving(c.bound.depends_on_all(y.reshape(c.bound.sizes), used));
}

}  // namespace tessera::nn
