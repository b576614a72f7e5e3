#pragma once

#include <tessera/nn/kernel/class_sums.hpp>
#include <tessera/nn/layer/angular_margin.hpp>
#include <tessera/nn/layer/linear_cross_entropy.hpp>

#include <limits>

namespace tessera::nn {

namespace engine {

/// The classes of this worker that a call looks at: their rows of the weight, and where a label stands among them.
struct looked_at_classes {
  at::Tensor rows;
  at::Tensor places;  ///< of each label; below 0 where another worker has its class
};

/// All of them, or those that are drawn by key, number of earlier draws and global index, and those of any worker's
/// labels.
inline looked_at_classes classes_of(const call& c, const linear_cross_entropy_description& layer,
                                    const at::Tensor& labels) {
  layout of_classes = c.state.parameters[0].used();
  of_classes.dims.resize(1);
  const int rank = c.bound.team->rank();
  const interval mine = box_of(of_classes, rank)[0];
  const at::Tensor w = c.weight(0);
  const at::Tensor places = labels - mine.lo;
  if (!c.training || !layer.scores.samples()) return {w, places};
  const at::Tensor all = c.exchanged(labels, 3).flatten() - mine.lo;
  const at::Tensor taken = c.drawn().below(of_classes, rank, layer.scores.sample_rate);
  if (mine.size() == 0) return {w, places};
  const auto here = [&](const at::Tensor& x) { return at::logical_and(x >= 0, x < mine.size()); };
  taken.index_fill_(0, all.masked_select(here(all)), true);
  const at::Tensor sample = taken.nonzero().squeeze(1);
  const at::Tensor among = at::searchsorted(sample, places);
  return {w.index_select(0, sample), at::where(here(places), among, -1)};
}

/// Rows of length 1, as `normalize` makes them.
inline at::Tensor of_length_one(const at::Tensor& x) {
  return functions::engine::over_length(x, (x * x).sum(1, false, at::kDouble), 1, 1e-12);
}

}  // namespace engine

TESSERA_INLINE at::Tensor forward(const call& c, const engine::linear_cross_entropy_description& layer) {
  namespace losses = functions::engine;
  const tessera::engine::class_scores& how = layer.scores;
  const at::Tensor given = c.used(0);
  const at::Tensor labels = c.used(1);
  const at::Tensor ignored = labels == layer.ignored;
  const at::Tensor label = labels.masked_fill(ignored, 0);
  const engine::looked_at_classes classes = engine::classes_of(c, layer, labels);
  const index_t held = classes.rows.size(0);
  const at::Tensor x = losses::in_wide(given), w = losses::in_wide(classes.rows);
  at::Tensor scores = how.cosines ? engine::of_length_one(x).mm(engine::of_length_one(w).t()) : x.mm(w.t());

  losses::local_losses l;
  l.wrong = at::logical_or(label < 0, label >= layer.classes);
  l.labels = label;
  l.classes = layer.classes;
  l.divisor = ignored.logical_not().to(scores.scalar_type());
  const losses::bound_exchanges by{c.bound.team, c.bound.boxes(), c.bound.exchanges, {}};
  const at::Tensor none = scores.narrow(1, 0, 0).sum(1);
  std::vector<at::Tensor> rows{none, none};
  if (held > 0) {
    const tessera::detail::label_rows at(classes.places, held);
    if (how.cosines)
      scores = losses::with_margin({how.margin, how.scale, how.easy, layer.ignored}, scores, at,
                                   at::logical_and(at.here(), ignored.logical_not()));
    const at::Tensor most = by.exchanged(at::amax(scores.detach(), 1), 0);
    const tessera::detail::class_sums sums = tessera::detail::sums_of_classes(scores, most, at);
    rows = {sums.exponents, sums.at_label};
  } else {
    by.exchanged(at::full_like(none, -std::numeric_limits<double>::infinity(), none.options().requires_grad(false)), 0);
  }
  const at::Tensor sums = by.exchanged(losses::in_rows(by, 1, rows), 1);
  l.each = (at::log(losses::row(sums, 0)) - losses::row(sums, 1)).masked_fill(ignored, 0);
  return c.bound.depends_on_all(losses::reduced(by, 2, reduction::mean, l, given.scalar_type()), {given, classes.rows});
}

}  // namespace tessera::nn
