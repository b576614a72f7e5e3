#include "family.hpp"

#include <tessera/nn/layer/cross_entropy.hpp>
#include <tessera/tensor/random.hpp>

namespace tessera::testing::fuzz {

using namespace engine;

namespace {

using file::json;
using nn::reduction;
using boxes = std::vector<tensor<dyn>>;

/// f of the reduction that options name, which types say.
template <class F>
boxes reduced(const json& o, const F& f) {
  const std::string how = o.value("reduction", "mean");
  if (how == "none") return {f.template operator()<reduction::none>()};
  if (how == "sum") return {f.template operator()<reduction::sum>()};
  if (how == "batchmean") return {f.template operator()<reduction::batch_mean>()};
  return {f.template operator()<reduction::mean>()};
}
std::int64_t in_libtorch(const serial_call& s) {
  const std::string how = s.option("reduction", std::string("mean"));
  return how == "none" ? at::Reduction::None : how == "mean" ? at::Reduction::Mean : at::Reduction::Sum;
}
/// LibTorch's batch mean is the sum divided by the samples.
tensors by_batch(const serial_call& s, const at::Tensor& y) {
  const bool means = s.option("reduction", std::string()) == "batchmean" && s.x[0].dim() > 0;
  return {means ? y / s.x[0].size(0) : y};
}

void say_reduction(roller& r) {
  r.say_unless("reduction", r.one_of<std::string>({"none", "mean", "sum", "batchmean"}), "mean");
}

std::vector<index_t> roll_sizes(roller& r, int dims) {
  std::vector<index_t> all = r.numbers(dims, 1, dims < 3 ? 7 : 4);
  if (!all.empty() && r.once_in(20)) all[0] = 0;
  return all;
}

// Losses of elements.

const char* const elementwise[]{"l1",  "mse",        "smooth_l1",  "huber",        "poisson_nll", "kl_div",
                                "bce", "bce_logits", "bce_weight", "bce_positive", "bce_both",    "hinge"};

/// Weights for x: cut as it is where they have its extents, repeated elsewhere.
layout roll_weights(roller& r, const layout& x) {
  const int lacking = r.roll(0, x.dims.count);
  layout w;
  w.mesh = x.mesh;
  bool kept[max_dimensions]{};
  for (int i = lacking; i < x.dims.count; ++i) {
    kept[i] = r.once_in(2);
    dimension one;
    one.extent = 1;
    w.dims.push(kept[i] ? x.dims[i] : one);
  }
  for (axis_placement role_of : x.placements) {
    // constants meet anything
    if (role_of.kind == placement::cut && !kept[role_of.dimension])
      role_of = {r.once_in(2) ? placement::invariant : placement::replicate};
    if (role_of.kind == placement::cut) role_of.dimension = static_cast<signed char>(role_of.dimension - lacking);
    w.placements.push(role_of);
  }
  return w;
}

void roll_elementwise(roller& r) {
  const std::string loss = elementwise[r.roll(0, 11)];
  r.say("loss", loss);
  say_reduction(r);
  if (loss == "smooth_l1") r.say("beta", 0.25 * r.roll(1, 6));
  if (loss == "huber") r.say("delta", 0.25 * r.roll(1, 6));
  if (loss == "hinge") r.say("margin", 0.25 * r.roll(1, 6));
  if (loss == "poisson_nll") {
    r.say_unless("log_input", r.once_in(2), true);
    r.say_unless("full", r.once_in(2), false);
    r.say("eps", 0.25e-3 * r.roll(1, 6));
  }
  if (loss == "kl_div") r.say_unless("log_target", r.once_in(2), false);
  r.take(roll_sizes(r, r.roll(0, 4)));
  const layout x = r.c.operands[0].layout;
  r.take(x, r.e);
  for (int weights = loss == "bce_both" ? 2 : loss == "bce_weight" || loss == "bce_positive"; weights > 0; --weights)
    r.take(roll_weights(r, x), r.e);
}

/// Targets that are signs, and now and then neither.
at::Tensor signs_of(const at::Tensor& x) {
  return at::where(x < 0, -1.0, at::where(x < 0.1, 0.5, 1.0)).to(at::kDouble);
}

at::Tensor elementwise_value(const layer_case& c, std::size_t operand, const at::Tensor& x) {
  const std::string loss = c.options.value("loss", "");
  const auto from_0_to_1 = [&] { return (x + 1) / 2; };
  const auto positive = [&] { return x.abs() + 0.0625; };
  if (operand > 1) return positive();
  const bool target = operand == 1;
  if (loss == "poisson_nll") return target || !c.options.value("log_input", true) ? positive() : x;
  if (loss == "kl_div") return target && !c.options.value("log_target", false) ? positive() : x;
  if (loss == "bce") return from_0_to_1() * 0.875 + 0.0625;
  if (loss.rfind("bce", 0) == 0) return target ? from_0_to_1() : x;
  if (loss == "hinge" && target) return signs_of(x);
  return x;
}

boxes elementwise_losses(const json& o, const boxes& x) {
  const std::string loss = o.value("loss", "");
  return reduced(o, [&]<reduction By>() -> tensor<dyn> {
    if (loss == "l1") return nn::l1_loss<By>(x[0], x[1]);
    if (loss == "mse") return nn::mse_loss<By>(x[0], x[1]);
    if (loss == "smooth_l1") return nn::smooth_l1_loss<By>(x[0], x[1], {.beta = o.value("beta", 1.0)});
    if (loss == "huber") return nn::huber_loss<By>(x[0], x[1], {.delta = o.value("delta", 1.0)});
    if (loss == "poisson_nll")
      return nn::poisson_nll_loss<By>(
          x[0], x[1],
          {.log_input = o.value("log_input", true), .full = o.value("full", false), .eps = o.value("eps", 1e-8)});
    if (loss == "kl_div") return nn::kl_div<By>(x[0], x[1], {.log_target = o.value("log_target", false)});
    if (loss == "bce") return nn::binary_cross_entropy<By>(x[0], x[1]);
    if (loss == "bce_logits") return nn::binary_cross_entropy_with_logits<By>(x[0], x[1]);
    if (loss == "bce_weight") return nn::binary_cross_entropy_with_logits<By>(x[0], x[1], x.at(2));
    if (loss == "bce_positive") return nn::binary_cross_entropy_with_logits<By>(x[0], x[1], nn::pos_weight(x.at(2)));
    if (loss == "bce_both")
      return nn::binary_cross_entropy_with_logits<By>(x[0], x[1], x.at(2), nn::pos_weight(x.at(3)));
    return nn::hinge_embedding_loss<By>(x[0], x[1], {.margin = o.value("margin", 1.0)});
  });
}

tensors serial_elementwise(const serial_call& s) {
  const std::string loss = s.option("loss", std::string());
  const std::int64_t how = in_libtorch(s);
  const at::Tensor &x = s.x[0], &y = s.x[1];
  const auto constant = [&](std::size_t i) { return s.x.at(i).detach(); };
  return by_batch(s, [&] {
    if (loss == "l1") return at::l1_loss(x, y, how);
    if (loss == "mse") return at::mse_loss(x, y, how);
    if (loss == "smooth_l1") return at::smooth_l1_loss(x, y, how, s.option("beta", 1.0));
    if (loss == "huber") return at::huber_loss(x, y, how, s.option("delta", 1.0));
    if (loss == "poisson_nll")
      return at::poisson_nll_loss(x, y, s.option("log_input", true), s.option("full", false), s.option("eps", 1e-8),
                                  how);
    if (loss == "kl_div") return at::kl_div(x, y, how, s.option("log_target", false));
    if (loss == "bce") return at::binary_cross_entropy(x, y, {}, how);
    if (loss == "bce_logits") return at::binary_cross_entropy_with_logits(x, y, {}, {}, how);
    if (loss == "bce_weight") return at::binary_cross_entropy_with_logits(x, y, constant(2), {}, how);
    if (loss == "bce_positive") return at::binary_cross_entropy_with_logits(x, y, {}, constant(2), how);
    if (loss == "bce_both") return at::binary_cross_entropy_with_logits(x, y, constant(2), constant(3), how);
    return at::hinge_embedding_loss(x, y, s.option("margin", 1.0), how);
  }());
}

// Losses of classes.

/// How labels, or targets of rows, lie beside scores: copies along the axes that cut classes.
layout beside(roller& r, const layout& x) {
  layout y = functions::detail::per_sample(x, {placement::invariant});
  for (int a = 0; a < y.placements.count; ++a)
    if (const placement was = x.placements[a].kind;
        (was == placement::cut && x.placements[a].dimension == 1) || was == placement::replicate)
      y.placements[a] = {r.once_in(2) ? placement::invariant : placement::replicate};
  return y;
}

void say_classes(roller& r, index_t classes, bool smooths) {
  say_reduction(r);
  if (r.once_in(2)) {
    std::vector<double> weight;
    for (index_t k = 0; k < classes; ++k) weight.push_back(0.25 * r.roll(1, 9));
    r.say("weight", weight);
  }
  if (smooths && r.once_in(2)) r.say("label_smoothing", 0.125);
}

std::optional<at::Tensor> class_weights(const serial_call& s) {
  const auto weight = s.option("weight", std::vector<double>{});
  return weight.empty() ? std::nullopt : std::optional(at::tensor(weight, at::kDouble).to(s.x[0].scalar_type()));
}

nn::cross_entropy_options class_options(const json& o) {
  return {.weight = o.value("weight", std::vector<double>{}),
          .ignore_index = o.value("ignore_index", index_t{-100}),
          .label_smoothing = o.value("label_smoothing", 0.0)};
}

void roll_labels(roller& r) {
  const bool of_scores = r.once_in(2);
  r.take(roll_sizes(r, r.roll(2, 4)));
  const layout x = r.c.operands[0].layout;
  r.say("loss", of_scores ? "cross_entropy" : "nll");
  say_classes(r, x.dims[1].extent, of_scores);
  if (r.once_in(2)) r.say("ignore_index", r.roll(0, static_cast<int>(x.dims[1].extent)));
  r.take(beside(r, x), element::int64);
}

/// Now and then one label is that of no class.
at::Tensor label_value(const layer_case& c, std::size_t operand, const at::Tensor& x) {
  if (operand == 0) return x;
  at::Tensor all = (x.abs() * 16).remainder(std::max<index_t>(c.operands[0].layout.dims[1].extent, 1));
  if (c.salt % 20 == 0 && all.numel() > 0)
    all.view(-1).select(0, all.numel() / 2).fill_(c.operands[0].layout.dims[1].extent + 1);
  return all;
}

boxes label_losses(const json& o, const boxes& x) {
  return reduced(o, [&]<reduction By>() -> tensor<dyn> {
    if (o.value("loss", "") == "cross_entropy") return nn::cross_entropy<By>(x[0], x[1], class_options(o));
    return nn::nll_loss<By>(x[0], x[1],
                            {.weight = class_options(o).weight, .ignore_index = class_options(o).ignore_index});
  });
}

tensors serial_labels(const serial_call& s) {
  const index_t ignored = s.option("ignore_index", index_t{-100});
  const bool of_scores = s.option("loss", std::string()) == "cross_entropy";
  return by_batch(s, of_scores ? at::cross_entropy_loss(s.x[0], s.x[1], class_weights(s), in_libtorch(s), ignored,
                                                        s.option("label_smoothing", 0.0))
                               : at::nll_loss_nd(s.x[0], s.x[1], class_weights(s), in_libtorch(s), ignored));
}

void roll_probabilities(roller& r) {
  r.take(roll_sizes(r, r.roll(2, 4)));
  const layout x = r.c.operands[0].layout;
  say_classes(r, x.dims[1].extent, true);
  r.take(x, r.e);
}

void roll_cosine(roller& r) {
  say_reduction(r);
  if (r.once_in(2)) r.say("margin", 0.125 * r.roll(0, 4));
  r.take(roll_sizes(r, 2));
  const layout x = r.c.operands[0].layout;
  r.take(x, r.e);
  r.take(functions::detail::per_sample(x, {}), r.once_in(2) ? element::int64 : r.e);
}

// Losses of classes that have a weight.

void roll_weighted_classes(roller& r) {
  r.say("classes", r.roll(1, 9));
  if (const auto out = r.axes(2); !out.empty()) r.say("cut_out", out);
  r.say_unless("sample_rate", r.one_of({0.125, 0.25, 0.5, 0.75, 1.0}), 1.0);
  const bool of_angles = r.once_in(3);
  if (of_angles) {
    r.say("arcface", true);
    r.say_unless("margin", 0.125 * r.roll(0, 4), 0.5);
    r.say("scale", r.roll(1, 8));
    r.say_unless("easy", r.once_in(2), false);
  }
  // angles of few features are often at an end of arccos, where LibTorch's slope is no number
  r.take({r.batch(7), r.roll(of_angles ? 4 : 0, 7)});
  const layout x = r.c.operands[0].layout;
  r.take(beside(r, x), element::int64);
}

/// Labels of classes, of which some do not count, and now and then one of no class.
at::Tensor weighted_value(const layer_case& c, std::size_t operand, const at::Tensor& x) {
  if (operand == 0) return x + 0.03125;  // no row is zero, which has no angle
  const index_t classes = c.options.value("classes", index_t{1});
  const at::Tensor all = (x.abs() * 16).remainder(classes);
  if (c.salt % 20 == 0 && all.numel() > 0) all.view(-1).select(0, all.numel() / 2).fill_(classes);
  return at::where(x > 0.5, -100.0, all);
}

/// The classes that a step looks at: those of labels, and in training those whose draw is below the rate.
at::Tensor looked_at(const serial_call& s) {
  const double rate = s.option("sample_rate", 1.0);
  const index_t classes = s.option("classes", index_t{1});
  at::Tensor taken = at::full({classes}, rate == 1.0 || !s.of.training, at::kBool);
  if (rate == 1.0 || !s.of.training) return taken;
  const auto number = [&](const char* key) { return static_cast<std::uint64_t>(s[key].item<std::int64_t>()); };
  const std::uint64_t stream = tessera::detail::bits_at(number("key"), number("draws"));
  s["draws"].add_(1);
  for (index_t c = 0; c < classes; ++c)
    if (tessera::detail::uniform_at(stream, static_cast<std::uint64_t>(c)) < rate) taken[c] = true;
  for (index_t i = 0; i < s.x[1].numel(); ++i)
    if (const auto c = s.x[1][i].item<index_t>(); c >= 0 && c < classes) taken[c] = true;
  return taken;
}

at::Tensor of_weighted_classes(const serial_call& s) {
  const at::Tensor &x = s.x[0], &label = s.x[1], w = s["weight"].to(s.x[0].scalar_type());
  at::Tensor scores = x.mm(w.t());
  if (s.option("arcface", false)) {
    const double margin = s.option("margin", 0.5);
    const at::Tensor cosine = (x / x.norm(2, 1, true)).mm((w / w.norm(2, 1, true)).t());
    const at::Tensor angle = at::acos(cosine) + margin;
    const bool easy = s.option("easy", false);
    const at::Tensor wider = easy ? at::where(cosine > 0, at::cos(angle), cosine)
                                  : at::where(angle < M_PI, at::cos(angle), cosine - margin * std::sin(margin));
    const at::Tensor hot = at::arange(w.size(0), at::kLong).unsqueeze(0) == label.unsqueeze(1);
    scores = s.option("scale", 64.0) * at::where(hot, wider, cosine);
  }
  return at::cross_entropy_loss(scores.masked_fill(looked_at(s).logical_not(), -INFINITY), label);
}

}  // namespace

std::vector<family> loss_families() {
  using call = const serial_call&;
  const std::vector<std::string> of_terms{"tessera.rule.nonlinear"},
      labels{"tessera.rule.nonlinear", "tessera.loss.label"};
  return {
      {"loss_of_elements", roll_elementwise, serial_elementwise, of_terms, {}, elementwise_value, elementwise_losses},
      {"loss_of_labels", roll_labels, serial_labels, labels, {}, label_value, label_losses},
      {"loss_of_probabilities",
       roll_probabilities,
       [](call s) {
         return by_batch(s, at::cross_entropy_loss(s.x[0], s.x[1], class_weights(s), in_libtorch(s), -100,
                                                   s.option("label_smoothing", 0.0)));
       },
       of_terms,
       {},
       [](const layer_case&, std::size_t operand, const at::Tensor& x) { return operand == 0 ? x : (x + 1) / 2; },
       [](const json& o, const boxes& x) {
         return reduced(o, [&]<reduction By>() {
           return nn::cross_entropy<By>(
               x[0], x[1], {.weight = class_options(o).weight, .label_smoothing = class_options(o).label_smoothing});
         });
       }},
      {"linear_cross_entropy",
       roll_weighted_classes,
       [](call s) { return tensors{of_weighted_classes(s)}; },
       {"tessera.rule.nonlinear", "tessera.loss.label", "tessera.rule.whole"},
       {},
       weighted_value},
      {"cosine_embedding_loss",
       roll_cosine,
       [](call s) {
         return by_batch(
             s, at::cosine_embedding_loss(s.x[0], s.x[1], s.x[2].detach(), s.option("margin", 0.0), in_libtorch(s)));
       },
       of_terms,
       {},
       [](const layer_case&, std::size_t operand, const at::Tensor& x) {  // rows of zeros have no angle
         return operand < 2 ? x + 1.125 : signs_of(x);
       },
       [](const json& o, const boxes& x) {
         return reduced(o, [&]<reduction By>() {
           return nn::cosine_embedding_loss<By>(x[0], x[1], x[2], {.margin = o.value("margin", 0.0)});
         });
       }},
  };
}

}  // namespace tessera::testing::fuzz
