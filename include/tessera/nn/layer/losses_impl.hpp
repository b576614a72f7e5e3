#pragma once

#include <tessera/nn/call/check_indices.hpp>
#include <tessera/nn/kernel/class_sums.hpp>
#include <tessera/nn/layer/losses.hpp>

#include <limits>

namespace tessera::functions::engine {

TESSERA_INLINE at::Tensor reduced(const bound_exchanges& by, std::size_t exchange, nn::reduction how,
                                  const local_losses& mine, at::ScalarType type) {
  const bool reduces = how != nn::reduction::none;
  std::vector<at::Tensor> rows;
  const auto add = [&](const at::Tensor& each) { rows.push_back(each.sum(at::kDouble)); };
  if (reduces) add(mine.each);
  if (how == nn::reduction::mean && mine.divisor.defined()) add(mine.divisor);
  if (mine.wrong.defined()) rows.push_back(at::count_nonzero(mine.wrong).to(at::kDouble));
  const at::Tensor sums = rows.empty() ? at::Tensor() : by.exchanged(in_rows(by, exchange, rows), exchange);
  if (mine.wrong.defined())
    if (const auto wrong = row(sums, static_cast<index_t>(rows.size()) - 1).item<double>(); wrong > 0) {
      const crew& workers = by.team->crew_of(by.exchanges[exchange].to->layout());
      if (mine.labels.defined())
        tessera::detail::check_indices(by.team, workers, mine.labels, mine.classes, code::label_out_of_range);
      throw error(refusal{code::loss_of_no_probability, static_cast<index_t>(wrong)}, by.team->label());
    }
  if (!reduces) return mine.each.to(type);
  const auto batch = [&] {
    const auto& extents = by.boxes.operands[0].extents;
    return extents.empty() ? 1 : static_cast<double>(extents[0]);
  };
  switch (how) {
    case nn::reduction::mean:
      return (mine.divisor.defined() ? row(sums, 0) / row(sums, 1).detach() : row(sums, 0) / mine.count).to(type);
    case nn::reduction::batch_mean: return (row(sums, 0) / batch()).to(type);
    default: return row(sums, 0).to(type);
  }
}

TESSERA_INLINE local_losses weighted(local_losses l, const at::Tensor& weight) {
  l.each = l.each * weight.detach();
  return l;
}

/// Of losses of elements, what is told of them besides.
inline local_losses of_elements(const bound_exchanges& by, const at::Tensor& losses) {
  local_losses l{losses};
  for (const index_t n : by.boxes.operands[0].extents) l.count *= static_cast<double>(n);
  return l;
}

/// Where x is no probability: below 0, above 1 or not a number.
inline at::Tensor outside(const at::Tensor& x) { return at::logical_and(x >= 0, x <= 1).logical_not(); }

#define TESSERA_LOSS(loss, of_probabilities, numbers, memory, computed)                                               \
  TESSERA_INLINE local_losses compute_##loss(const bound_exchanges& by, [[maybe_unused]] const number& n,             \
                                             const at::Tensor& given, const at::Tensor& target) {                     \
    constexpr auto each = at::Reduction::None;                                                                        \
    const at::Tensor wrong = of_probabilities ? at::logical_or(outside(given), outside(target)) : at::Tensor();       \
    const bool fits = !of_probabilities || !wrong.any().item<bool>(); /* LibTorch would throw on this worker alone */ \
    const at::Tensor x = fits ? given : at::zeros_like(given);                                                        \
    const at::Tensor y = fits ? target : at::zeros_like(target);                                                      \
    local_losses l = of_elements(by, computed);                                                                       \
    l.wrong = wrong;                                                                                                  \
    return l;                                                                                                         \
  }
TESSERA_LOSSES(TESSERA_LOSS)
#undef TESSERA_LOSS

TESSERA_INLINE local_losses compute_pos_weighted(const bound_exchanges& by, const at::Tensor& x, const at::Tensor& y,
                                                 const at::Tensor& positive) {
  return of_elements(by, at::binary_cross_entropy_with_logits(x, y, {}, positive.detach(), at::Reduction::None));
}

TESSERA_INLINE local_losses compute_cosine_embedding_loss(const bound_exchanges& by, const number& n,
                                                          const at::Tensor& x, const at::Tensor& y,
                                                          const at::Tensor& target) {
  constexpr double least = 1e-12;  // LibTorch's: a row of zeros has a direction too
  const auto products = [](const at::Tensor& a, const at::Tensor& b) { return (a * b).sum(1); };
  const at::Tensor sums = by.exchanged(in_rows(by, 0, {products(x, y), products(x, x), products(y, y)}), 0);
  const at::Tensor cosine = row(sums, 0) / at::sqrt((row(sums, 1) + least) * (row(sums, 2) + least));
  const at::Tensor none = at::zeros_like(cosine);
  return {at::where(target == 1, 1 - cosine, none) + at::where(target == -1, (cosine - n.re).clamp_min(0), none),
          static_cast<double>(by.boxes.operands[0].extents[0])};
}

// With scores less their largest, m, a constant: loss = T · log Σ exp(x − m) − Σ t (x − m) with T = Σ t, and of
// logarithms −Σ t x. Σ exp, Σ t x and of probabilities T are the only numbers of a sample that workers with other
// classes have terms of. Of labels that are not smoothed nothing of the scores' size is kept but these.
TESSERA_INLINE local_losses losses_of(const bound_exchanges& by, const number& n, const class_numbers& list,
                                      bool of_scores, const at::Tensor& x, const at::Tensor& y,
                                      const at::Tensor& weight) {
  const local_box& mine = by.boxes.operands[0];
  const index_t classes = mine.extents[1];
  const index_t held = x.size(1);
  const index_t first = held > 0 ? mine.first(1) : 0;
  const bool of_labels = y.dim() < x.dim();
  const bool lean = of_labels && of_scores && n.re == 0 && held > 0;
  std::vector<index_t> along(static_cast<std::size_t>(x.dim()), 1);
  along[1] = held;
  const auto plain = x.options().requires_grad(false);
  const at::Tensor weights =
      weight.defined() ? weight.detach()
      : list.count > 0 ? at::tensor(at::ArrayRef<double>(list.first, static_cast<std::size_t>(list.count)), plain)
                       : at::Tensor();  // of 1 each
  const bool weighs = weights.defined();
  const auto weighed = [&](const at::Tensor& each) {
    return weighs ? each * weights.narrow(0, first, held).view(along) : each;
  };
  const double smooth = n.re / static_cast<double>(classes);

  at::Tensor score = x;
  at::Tensor most;
  std::vector<at::Tensor> rows;
  if (of_scores) {
    const auto& sizes = by.exchanges[0].from->extents();
    const at::Tensor least =
        at::full(at::IntArrayRef(sizes.begin(), sizes.end()), -std::numeric_limits<double>::infinity(), plain);
    most = by.exchanged(held > 0 ? at::amax(x.detach(), 1) : least, 0);
    if (!lean) score = x - most.unsqueeze(1);
  }
  local_losses l;
  at::Tensor whole;  // T
  if (of_scores && !lean) rows.push_back(at::exp(score).sum(1));
  if (of_labels) {
    const at::Tensor ignored = y == n.whole;
    const at::Tensor label = y.masked_fill(ignored, 0);
    const at::Tensor share = weighs ? weights.index_select(0, label.clamp(0, classes - 1).flatten()).view(label.sizes())
                                    : at::ones_like(label, plain);
    at::Tensor taken;
    if (lean) {
      const tessera::detail::class_sums sums =
          tessera::detail::sums_of_classes(x, most, tessera::detail::label_rows(label - first, held));
      rows.push_back(sums.exponents);
      taken = weighs ? share * sums.at_label : sums.at_label;
    } else {
      taken = score.narrow(1, 0, 0).sum(1);
      if (held > 0) {
        const tessera::detail::label_rows here(label - first, held);
        const at::Tensor at_label = here.of(score);
        // not a product: another class may be masked with -inf
        taken = at::where(here.here(), weighs ? share * at_label : at_label, taken);
      }
    }
    whole = weighs ? (1 - n.re) * share + smooth * weights.sum() : share;
    rows.push_back(n.re == 0 ? taken : (1 - n.re) * taken + smooth * weighed(score).sum(1));
    l.divisor = share.masked_fill(ignored, 0);
    l.wrong = at::logical_or(label < 0, label >= classes);
    l.labels = label;
    l.classes = classes;
  } else {
    const at::Tensor target = weighed(n.re == 0 ? y : (1 - n.re) * y + smooth);
    rows.push_back((target * score).sum(1));
    rows.push_back(target.sum(1));
  }
  const std::size_t exchange = of_scores;
  const at::Tensor sums = by.exchanged(in_rows(by, exchange, rows), exchange);
  l.each = -row(sums, of_scores);
  if (of_scores) l.each = l.each + (of_labels ? whole : row(sums, 2)) * at::log(row(sums, 0));
  if (of_labels) {
    l.each = l.each.masked_fill(y == n.whole, 0);
  } else {
    l.divisor = at::ones_like(l.each);
    l.wrong = at::zeros_like(l.each);
  }
  return l;
}

}  // namespace tessera::functions::engine
