#include "subjects.hpp"

#include <tessera/nn/layer/cross_entropy.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

namespace conformance::training {
namespace {

/// The loss with its reduction by name.
tensor<dyn> loss_of(const std::string& reduction, const tensor<dyn>& logits, const tensor<dyn>& target,
                    const nn::cross_entropy_options& how) {
  if (reduction == "none") return nn::cross_entropy<nn::reduction::none>(logits, target, how);
  if (reduction == "sum") return nn::cross_entropy<nn::reduction::sum>(logits, target, how);
  return nn::cross_entropy<nn::reduction::mean>(logits, target, how);
}

/// What a worker takes of memory at most, forward and backward, beyond logits and labels.
task memory_of(reading& c) {
  const index_t rows = c.given().integer("rows");
  const index_t classes = c.given().integer("classes");
  const std::vector<std::int64_t> most = c.expected("bytes_at_most").get<std::vector<std::int64_t>>();
  if (most.size() != c.worlds().size()) throw unbuilt("bytes of other worlds");
  const recipe logits(json{{"gen", {1, {rows, classes}}}});
  const recipe target(json{{"index", {2, {rows}}}, {"below", classes}});
  return c.in_each_world([&](world& w) -> body {
    const layout lies = w.lying("logits", logits.shape());
    const layout labels = w.lying("target", target.shape());
    const std::int64_t may = most.at(c.number_of(w).value());
    return [=](attempt& a) {
      const tensor<dyn> x = a.leaf(logits, lies);
      const tensor<dyn> y = a.given(target, labels, at::kLong);
      const memory_count taken;
      loss_of("mean", x, y, {}).backward();
      if (taken.peak() > may) a.fail(fmt::format("{} bytes are held, not {} at most", taken.peak(), may));
    };
  });
}

}  // namespace

/// Softmax cross-entropy over classes that may be cut.
task cross_entropy(reading& c) {
  if (c.kind() == "memory") return memory_of(c);
  const recipe logits = c.tensor("logits");
  const recipe target = c.tensor("target");
  const std::optional<recipe> cotangent = c.maybe("cotangent");
  const std::string reduction = c.word("reduction", {"none", "mean", "sum"});
  nn::cross_entropy_options how;
  if (const std::optional<recipe> weight = c.maybe("weight")) {
    const at::Tensor each = weight->whole().to(at::kDouble).contiguous();
    how.weight.assign(each.data_ptr<double>(), each.data_ptr<double>() + each.numel());
  }
  if (c.has("ignore_index")) how.ignore_index = c.given().integer("ignore_index");
  how.label_smoothing = c.number("label_smoothing", 0);
  const std::optional<numbers> loss = c.result("loss");
  const std::map<std::string, numbers> gradients = c.gradients({"logits"});
  if (!gradients.empty() && (reduction == "none") != cotangent.has_value())
    throw unbuilt("a gradient without its cotangent");
  const bool labels = target.shape() != logits.shape();
  return c.in_each_world([=](world& w) -> body {
    const layout lies = w.lying("logits", logits.shape());
    const layout beside = w.lying("target", target.shape());
    return [=](attempt& a) {
      const tensor<dyn> x = a.leaf(logits, lies);
      tensor<dyn> y = a.given(target, beside, labels ? at::kLong : a.type());
      if (!labels) y = to(lies, y);  // probabilities meet logits element by element
      const tensor<dyn> of = loss_of(reduction, x, y, how);
      a.compare("the loss", of, loss);
      if (gradients.empty()) return;
      if (cotangent) a.backward(of, *cotangent);
      else of.backward();
      a.compare("the gradient of logits", attempt::gradient(x), gradients.at("logits"));
    };
  });
}

}  // namespace conformance::training
