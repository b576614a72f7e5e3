#pragma once

#include <tessera/operation/function/reduced_loss.hpp>

namespace tessera {

namespace nn {

/// Options of losses, by LibTorch's names.
struct smooth_l1_options {
  double beta = 1;  ///< from where on |x − y| counts as it is
};
struct huber_options {
  double delta = 1;  ///< the same
};
struct poisson_nll_options {
  bool log_input = true;  ///< x is the logarithm of the rate
  bool full = false;      ///< with Stirling's term for the targets above 1
  double eps = 1e-8;      ///< what a rate has more before its logarithm is taken
};
struct kl_div_options {
  bool log_target = false;  ///< y is a logarithm too
};
struct hinge_embedding_options {
  double margin = 1;
};
struct cosine_embedding_options {
  double margin = 0;
};

}  // namespace nn

namespace detail {

template <class Of, nn::reduction By>
constexpr auto loss_with(const functions::engine::number& n, const call_site& at) {
  functions::engine::loss<Of, By> f;
  f.n = n;
  f.at = at;
  return f;
}

}  // namespace detail

// Those who call losses find them in nn, where `call` is another thing.
namespace losses {

/// How a loss of elements becomes one number.
using nn::reduction;

/// |x − y|.
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto l1_loss(const X& x, const Y& y, call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::l1_loss, By>({}, at), x, y);
}

/// (x − y)².
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto mse_loss(const X& x, const Y& y, call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::mse_loss, By>({}, at), x, y);
}

/// (x − y)² / 2β where |x − y| < β, else |x − y| − β/2.
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto smooth_l1_loss(const X& x, const Y& y, const nn::smooth_l1_options& how = {},
                              call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::smooth_l1_loss, By>(how.beta, at), x, y);
}

/// (x − y)² / 2 where |x − y| ≤ δ, else δ (|x − y| − δ/2).
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto huber_loss(const X& x, const Y& y, const nn::huber_options& how = {}, call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::huber_loss, By>(how.delta, at), x, y);
}

/// exp x − y x, of a rate x that is no logarithm x − y log(x + eps).
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto poisson_nll_loss(const X& x, const Y& y, const nn::poisson_nll_options& how = {},
                                call_site at = call_site::here()) {
  functions::engine::number n = how.eps;
  n.whole = how.log_input + 2 * how.full;
  return call(tessera::detail::loss_with<functions::poisson_nll_loss, By>(n, at), x, y);
}

/// y (log y − x), with x the logarithm of what is compared with y.
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto kl_div(const X& x, const Y& y, const nn::kl_div_options& how = {}, call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::kl_div, By>(how.log_target, at), x, y);
}

/// −y log x − (1 − y) log(1 − x) of probabilities, logarithms no less than −100; weights multiply it. An operand that
/// is no probability is an error on all workers.
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto binary_cross_entropy(const X& x, const Y& y, call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::binary_cross_entropy, By>({}, at), x, y);
}
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y, engine::AnyTensor W>
constexpr auto binary_cross_entropy(const X& x, const Y& y, const W& weight, call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::binary_cross_entropy, By>({}, at), x, y, weight);
}

/// Weights of elements whose target is 1.
template <engine::AnyTensor W>
struct pos_weight {
  W of;
  constexpr explicit pos_weight(const W& w) : of(w) {}
};

/// The same of sigmoid(x): (1 − y) x + (1 + (p − 1) y) log(1 + exp −x) with p the weights of what is 1, 1 unless said;
/// weights multiply it.
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto binary_cross_entropy_with_logits(const X& x, const Y& y, call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::binary_cross_entropy_with_logits, By>({}, at), x, y);
}
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y, engine::AnyTensor W>
constexpr auto binary_cross_entropy_with_logits(const X& x, const Y& y, const W& weight,
                                                call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::binary_cross_entropy_with_logits, By>({}, at), x, y, weight);
}
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y, engine::AnyTensor P>
constexpr auto binary_cross_entropy_with_logits(const X& x, const Y& y, const pos_weight<P>& positive,
                                                call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::binary_cross_entropy_with_pos_weight, By>({}, at), x, y,
              positive.of);
}
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y, engine::AnyTensor W,
          engine::AnyTensor P>
constexpr auto binary_cross_entropy_with_logits(const X& x, const Y& y, const W& weight, const pos_weight<P>& positive,
                                                call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::binary_cross_entropy_with_pos_weight, By>({}, at), x, y, weight,
              positive.of);
}

/// x where y is 1, max(0, margin − x) where it is −1.
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto hinge_embedding_loss(const X& x, const Y& y, const nn::hinge_embedding_options& how = {},
                                    call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::hinge_embedding_loss, By>(how.margin, at), x, y);
}

/// 1 − cos of the rows of x and y where the target is 1, max(0, cos − margin) where it is −1; features may be cut.
template <reduction By = reduction::mean, engine::AnyTensor X, engine::AnyTensor Y, engine::AnyTensor T>
constexpr auto cosine_embedding_loss(const X& x, const Y& y, const T& target,
                                     const nn::cosine_embedding_options& how = {}, call_site at = call_site::here()) {
  return call(tessera::detail::loss_with<functions::cosine_embedding_loss, By>(how.margin, at), x, y, target);
}

}  // namespace losses

namespace nn {

using namespace losses;

}  // namespace nn
}  // namespace tessera
