#pragma once

#include <tessera/nn/layer/losses.hpp>

#include <vector>

namespace tessera::nn {

/// The options of `nll_loss`, LibTorch's: of a label that is not counted there is no loss, and a mean is by the weights
/// of the labels.
struct nll_options {
  std::vector<double> weight = {};  ///< one for each class, all 1 unless said
  index_t ignore_index = -100;      ///< the label that is not counted
};

/// The options of `cross_entropy`.
struct cross_entropy_options {
  std::vector<double> weight = {};
  index_t ignore_index = -100;
  double label_smoothing = 0;  ///< the share of a label that all classes have
};

}  // namespace tessera::nn

namespace tessera::detail {

template <class Of, nn::reduction By, class Options>
constexpr auto loss_with(const Options& how, double smoothing, const call_site& at) {
  functions::engine::loss<Of, By> f;
  f.n.re = smoothing;
  f.n.whole = how.ignore_index;
  f.weight = {how.weight.data(), static_cast<index_t>(how.weight.size())};
  f.at = at;
  return f;
}

}  // namespace tessera::detail

namespace tessera::losses {

/// −x[label] of logarithms of probabilities x [n, c, d…] and labels [n, d…].
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto nll_loss(const X& x, const Y& labels, const nn::nll_options& how = {},
                        call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::nll_loss, By>(how, 0, at), x, labels);
}

/// The same with a tensor of class weights [c] that every worker has, as of a buffer that a module keeps.
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y, engine::AnyTensor W>
constexpr auto nll_loss(const X& x, const Y& labels, const W& weight, const nn::nll_options& how = {},
                        call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::nll_loss, By>(how, 0, at), x, labels, weight);
}

/// −log softmax(logits)[label] of logits [n, c, d…] and labels [n, d…], as over the pixels of images, or −Σ p log
/// softmax(logits) of probabilities [n, c, d…]. Anything may be cut, the classes too; a label of no class is told on
/// all workers.
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto cross_entropy(const X& logits, const Y& target, const nn::cross_entropy_options& how = {},
                             call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::cross_entropy, By>(how, how.label_smoothing, at), logits, target);
}
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y, engine::AnyTensor W>
constexpr auto cross_entropy(const X& logits, const Y& target, const W& weight,
                             const nn::cross_entropy_options& how = {}, call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::cross_entropy, By>(how, how.label_smoothing, at), logits, target,
              weight);
}

}  // namespace tessera::losses
