#include "subjects.hpp"

#include <tessera/nn/layer/class_losses.hpp>
#include <tessera/nn/layer/cross_entropy.hpp>

namespace conformance::training {
namespace {

/// Copies to be used differently, whatever they were alike along.
layout used_apart(layout x) {
  for (engine::axis_placement& r : x.placements)
    if (r.kind == placement::invariant) r = {};
  return x;
}

tensor<dyn> loss_of(const std::string& reduction, const tensor<dyn>& logits, const tensor<dyn>& target) {
  if (reduction == "none") return nn::cross_entropy<nn::reduction::none>(logits, target);
  if (reduction == "sum") return nn::cross_entropy<nn::reduction::sum>(logits, target);
  return nn::cross_entropy<nn::reduction::mean>(logits, target);
}

}  // namespace

/// Softmax with an additive angular margin over cut classes: cosines are a product of boxes, margin and loss are the
/// library's.
task margin(reading& c) {
  const recipe features = c.tensor("features");
  const recipe weight = c.tensor("weight");
  const recipe target = c.tensor("target");
  const bool easy = c.given().flag("easy_margin");
  const double by = c.number("margin", 0.5);
  const double scale = c.number("scale", 64);
  const std::string reduction = c.word("reduction", {"none", "mean", "sum"});
  const std::optional<recipe> cotangent = c.maybe("cotangent");
  const std::optional<numbers> expected = c.result("logits");
  const std::optional<numbers> loss = c.result("loss");
  const std::map<std::string, numbers> gradients = c.gradients({"features", "weight"});
  if (features.shape().size() != 2 || weight.shape().size() != 2)
    throw unbuilt("features or a weight that are no matrices");
  if (!gradients.empty() && (reduction == "none") != cotangent.has_value())
    throw unbuilt("a gradient without its cotangent");
  return c.in_each_world([=](world& w) -> body {
    const layout rows = w.lying("features", features.shape());
    const layout classes = w.lying("weight", weight.shape());
    const layout labels = w.lying("target", target.shape());
    const layout product = w.lying("logits", {features.shape()[0], weight.shape()[0]});
    return [=](attempt& a) {
      const tensor<dyn> x = a.leaf(features, rows);
      const tensor<dyn> y = a.leaf(weight, classes);
      const tensor<dyn> of = a.given(target, labels, at::kLong);
      const auto unit = [](const tensor<dyn>& v) { return tessera::normalize<1>(to(used_apart(v.layout()), v)); };
      const tensor<dyn> cosines{a.team, product, unit(x).local().matmul(unit(y).local().t())};
      const tensor<dyn> logits = nn::angular_margin(cosines, of, {.margin = by, .scale = scale, .easy = easy});
      a.compare("logits", logits, expected);
      const tensor<dyn> found = loss_of(reduction, logits, of);
      a.compare("the loss", found, loss);
      if (gradients.empty()) return;
      if (cotangent) a.backward(found, *cotangent);
      else found.backward();
      const auto wanted = [&](const char* name) {
        return gradients.count(name) == 0 ? std::nullopt : std::optional(gradients.at(name));
      };
      a.compare("the gradient of features", attempt::gradient(x), wanted("features"));
      a.compare("the gradient of weight", attempt::gradient(y), wanted("weight"));
    };
  });
}

}  // namespace conformance::training
