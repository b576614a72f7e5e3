#pragma once

#include <tessera/nn/call/check_indices.hpp>
#include <tessera/nn/kernel/class_sums.hpp>
#include <tessera/nn/layer/class_losses.hpp>
#include <tessera/tensor/change/change.hpp>

#include <cmath>
#include <limits>

namespace tessera::functions::engine {

/// cos(arccos c + m), and its slope, of cosines c; beyond an end of them, what replaces it.
class widened_angle {
 public:
  explicit widened_angle(const nn::angular_margin_options& how)
      : how_(how), cosine_(std::cos(how.margin)), sine_(std::sin(how.margin)) {}

  at::Tensor of(const at::Tensor& c) const {
    const at::Tensor inside = open(c);
    const at::Tensor sine = at::where(inside, at::sqrt(squared_sine(c, inside)), 0);
    const at::Tensor beyond = how_.easy ? c : c - how_.margin * sine_;
    return at::where(widens(c), c * cosine_ - sine * sine_, beyond);
  }
  /// At ±1, where the angle has no slope by its cosine, that of c cos m.
  at::Tensor slope(const at::Tensor& c) const {
    const at::Tensor inside = open(c);
    const at::Tensor cotangent = at::where(inside, c / at::sqrt(squared_sine(c, inside)), 0);
    return at::where(widens(c), cosine_ + sine_ * cotangent, 1);
  }

 private:
  static at::Tensor open(const at::Tensor& c) { return (1 - c.detach()) * (1 + c.detach()) > 0; }
  static at::Tensor squared_sine(const at::Tensor& c, const at::Tensor& inside) {
    return at::where(inside, (1 - c) * (1 + c), 1);  // a root's slope at 0 is infinite, and times 0 no number
  }
  at::Tensor widens(const at::Tensor& c) const { return c > (how_.easy ? 0.0 : -cosine_); }

  nn::angular_margin_options how_;
  double cosine_, sine_;
};

/// The gradient: that of the result times the scale, but for one element a row. Only these elements are kept.
class margin_backward final : public torch::autograd::Node {
 public:
  margin_backward(const nn::angular_margin_options& how, const tessera::detail::label_rows& rows,
                  const at::Tensor& widens, const at::Tensor& at_label)
      : how_(how), rows_(rows), widens_(widens), at_label_(at_label, false) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const at::Tensor& g = gradients[0];
    if (!g.defined()) return {at::Tensor()};
    const at::Tensor slope = widened_angle(how_).slope(at_label_.unpack());
    const at::Tensor each = rows_.of(g).to(slope.scalar_type());
    return {rows_.put(g * how_.scale, at::where(widens_, slope * each, each) * how_.scale)};
  }
  void release_variables() override { at_label_.reset_data(); }
  std::string name() const override { return "tessera::angular_margin"; }

 private:
  nn::angular_margin_options how_;
  tessera::detail::label_rows rows_;
  at::Tensor widens_;
  torch::autograd::SavedVariable at_label_;
};

/// scale · cosines, with the margin at the label of each row that it widens.
inline at::Tensor with_margin(const nn::angular_margin_options& how, const at::Tensor& cosines,
                              const tessera::detail::label_rows& rows, const at::Tensor& widens) {
  if (cosines._fw_grad(0).defined()) throw error(refusal{code::forward_mode});
  const at::Tensor at_label = in_wide(rows.of(cosines));
  const at::Tensor y = [&] {
    const c10::AutoGradMode no_record(false);
    const at::Tensor widened = widened_angle(how).of(at_label);
    return rows.put(cosines * how.scale, at::where(widens, widened, at_label) * how.scale);
  }();
  if (c10::GradMode::is_enabled() && cosines.requires_grad())
    tessera::detail::record(y, cosines, tessera::detail::make_node<margin_backward>(how, rows, widens, at_label));
  return y;
}

}  // namespace tessera::functions::engine

namespace tessera::functions {

TESSERA_INLINE at::Tensor compute(const angular_margin& f, const engine::bound_exchanges& by, const at::Tensor& cosines,
                                  const at::Tensor& labels) {
  const nn::angular_margin_options how = f.options();
  const local_box& mine = by.boxes.operands[0];
  const index_t classes = mine.extents[1];
  const index_t held = cosines.size(1);
  const at::Tensor counted = labels != how.ignore_index;
  const at::Tensor label = labels.masked_fill(counted.logical_not(), 0);
  const at::Tensor wrong = at::count_nonzero(at::logical_or(label < 0, label >= classes)).to(at::kDouble);
  if (engine::row(by.exchanged(engine::in_rows(by, 0, {wrong}), 0), 0).item<double>() > 0)
    tessera::detail::check_indices(by.team, by.team->crew_of(by.exchanges[0].to->layout()), label, classes,
                                   code::label_out_of_range);
  if (cosines.numel() == 0) return cosines * how.scale;
  const tessera::detail::label_rows rows(label - mine.first(1), held);
  return engine::with_margin(how, cosines, rows, at::logical_and(rows.here(), counted));
}

}  // namespace tessera::functions

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
  const at::Tensor every = c.exchanged(labels, 3).flatten();
  const at::Tensor wrong = at::logical_and(every != layer.ignored, at::logical_or(every < 0, every >= layer.classes));
  if (wrong.any().item<bool>())  // before anything is drawn, which would be kept
    tessera::detail::check_indices(c.bound.team, c.bound.team->crew_of(c.bound.exchanges[2].to->layout()),
                                   labels.masked_fill(labels == layer.ignored, 0), layer.classes,
                                   code::label_out_of_range);
  const at::Tensor all = every - mine.lo;
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
