#pragma once

#include <tessera/nn/layer/forward.hpp>

#include <cmath>

namespace tessera::detail {

/// How a convolution goes over its operand.
struct convolving {
  const std::vector<index_t>&step, &padding, &dilation;
  bool transposed;
  const std::vector<index_t>& further;
  index_t groups;

  at::Tensor of(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& bias) const {
    return at::convolution(x, w, bias, step, padding, dilation, transposed, further, groups);
  }
};

/// A convolution of any element. LibTorch's kernels take real numbers, so a complex convolution is three real ones, as
/// in LibTorch's own function. Parts are taken of the operands in their order, so that backward has their gradients in
/// the order in which other workers have them.
inline at::Tensor convolved(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& bias,
                            const convolving& how) {
  if (!x.is_complex()) return how.of(x, w, bias);
  const auto of = [&](const auto& part, bool biased) {
    const at::Tensor of_x = part(x), of_w = part(w);
    return how.of(of_x, of_w, biased && bias ? std::optional(part(*bias)) : std::nullopt);
  };
  const at::Tensor re = of([](const at::Tensor& z) { return at::real(z); }, true);
  const at::Tensor im = of([](const at::Tensor& z) { return at::imag(z); }, false);
  const at::Tensor both = of([](const at::Tensor& z) { return at::real(z) + at::imag(z); }, true);
  return at::complex(re - im, both - re - im);
}

}  // namespace tessera::detail

namespace tessera::nn::engine {

TESSERA_INLINE at::Tensor forward_contraction(const bound_layer& b, const contraction& layer, const at::Tensor& input,
                                              const std::vector<parameter>& parameters) {
  const bool slides = !layer.kernels.empty();
  const int first = layer.feature + 1;  // of what kernels slide over
  const detail::window_reading* reading =
      slides && !layer.transposed ? &b.reads(first, layer.kernels, 0, builtin_padding::any) : nullptr;
  auto edges = reading != nullptr
                   ? b.by_edges<detail::window_edges>(input, first, layer.kernels, builtin_padding::any, *reading)
                   : std::nullopt;
  auto added = layer.transposed ? b.by_edges<detail::given_edges>(input, first, layer.kernels) : std::nullopt;
  const at::Tensor x = edges || added ? input : reading != nullptr ? b.ready(input, *reading) : b.ready(input);
  const at::ScalarType e = x.scalar_type();
  const at::ScalarType sums = slides ? detail::convolved_in(x) : detail::multiplied_in(x);
  const auto weight = [&](std::size_t i) { return parameters[i].use({e, sums}); };
  const at::Tensor w = weight(0);
  const bool leaves = b.results[0].from == b.results[0].to;
  const bool adds_bias = layer.bias && leaves && sums == e;  // the operation itself does
  std::vector<at::Tensor> operands{x, w};
  if (adds_bias) operands.push_back(weight(1));
  const auto along = [&](const at::Tensor& y, const at::Tensor& bias) {
    std::vector<index_t> sizes(static_cast<std::size_t>(y.dim()), 1);
    if (layer.by_expert()) sizes.front() = bias.size(0);
    sizes[static_cast<std::size_t>(layer.feature < 0 ? y.dim() + layer.feature : layer.feature)] = bias.size(-1);
    return bias.view(sizes);
  };
  const std::optional<at::Tensor> bias = adds_bias && !b.is_empty ? std::optional(operands[2]) : std::nullopt;
  at::Tensor y;
  if (b.is_empty) {
    y = detail::empty_result(b.outputs, {x, w}, sums);
    if (adds_bias) y.add_(along(y, operands[2]));
  } else if (layer.transposed) {
    const index_t groups =
        layer.groups == 1 ? 1 : x.size(layer.feature) * layer.groups / b.boxes().operands[0].extents[layer.feature];
    const auto given = [&](const at::Tensor& read, const detail::window_giving& g, bool biased) {
      const bool inside = biased && g.takes_bias();
      const detail::convolving how{g.lists().step, g.cut(), g.lists().dilation, true, g.further(), groups};
      const at::Tensor made = detail::convolved(read.to(sums), w, inside ? bias : std::nullopt, how);
      if (biased && !inside && g.complete()) made.add_(along(made, *bias));
      const at::Tensor all = g.placed(made);
      if (biased && !g.complete()) all.add_(along(all, *bias));
      return all;
    };
    const auto of_part = [&](const at::Tensor& read, const detail::window_giving& g) {
      return given(read, g, adds_bias);
    };
    y = added ? added->compute(of_part, [&](const at::Tensor& read,
                                            const detail::window_giving& g) { return given(read, g, false); })
              : of_part(x, b.gives_by(first, layer.kernels));
  } else if (slides) {
    const auto convolved = [&](const at::Tensor& read, const detail::kernel_lists& k) {
      return detail::convolved(read.to(sums), w, bias,
                               {k.step, k.padding, k.dilation, false, k.zero, x.size(layer.feature) / w.size(1)});
    };
    y = edges ? edges->compute(convolved, convolved) : convolved(x, reading->lists());
  } else if (layer.by_expert()) {
    y = linear_of_each(x.to(sums), w, bias);
  } else {
    y = at::linear(x.to(sums), w, bias);
  }
  y = b.left(b.depends_on_all(y, operands));
  return adds_bias || !layer.bias ? y.to(e) : (y.to(sums) + along(y, weight(1))).to(e);
}

TESSERA_INLINE at::Tensor forward_pad(const bound_layer& b, const static_vector<sliding, 8>& widths,
                                      const at::Tensor& input) {
  const at::Tensor x = b.ready(input, b.reads(b.inputs[0].to->layout().dims.count - widths.count, widths, 0));
  if (b.is_empty) return detail::empty_result(b.outputs, {x});
  return x.clone();
}

TESSERA_INLINE at::Tensor forward_global_avg_pool(const call& c) {
  const local_boxes& where = c.bound.boxes();
  if (where.result.empty()) return c.bound.leaving(detail::empty_result(c.bound.outputs, {c.operand()}));
  std::vector<index_t> dims;
  for (index_t d = 2; d < c.operand().dim(); ++d) dims.push_back(d);
  const at::Tensor wide = c.operand().to(detail::added_in(c.operand().scalar_type()));
  return c.bound.leaving(functions::engine::compute_mean(where, wide, dims).reshape(c.bound.sizes));
}

TESSERA_INLINE at::Tensor forward_pixel_shuffle(const call& c, const pixel_shuffle_description& layer) {
  const at::Tensor x = c.used();
  const bool back = layer.back;
  const index_t r = layer.factor, space = x.dim() - 2;
  std::vector<index_t> apart{x.size(0), back ? x.size(1) : x.size(1) / layer.channels(static_cast<int>(space))},
      order{0, 1};
  if (!back) apart.insert(apart.end(), static_cast<std::size_t>(space), r);
  for (index_t i = 0; i < space; ++i) {
    apart.push_back(back ? x.size(2 + i) / r : x.size(2 + i));
    if (back) apart.push_back(r);
    else order.insert(order.end(), {2 + space + i, 2 + i});
  }
  for (const index_t first : {3, 2})
    for (index_t i = 0; back && i < space; ++i) order.push_back(first + 2 * i);
  return x.reshape(apart).permute(order).reshape(c.bound.sizes);
}

TESSERA_INLINE at::Tensor forward_unfold(const bound_layer& b, const unfold_description& layer,
                                         const at::Tensor& input) {
  const detail::window_reading& reading = b.reads(2, layer.kernels, 0);
  const at::Tensor x = b.ready(input, reading);
  if (b.is_empty) return detail::empty_result(b.outputs, {x});
  const detail::picture_lists k(layer.kernels);
  const at::ScalarType e = x.scalar_type(), sums = detail::added_in(e);
  return at::im2col(k.of(x.to(sums)), k.kernel, k.dilation, k.zero, k.step).view(b.sizes).to(e);
}

TESSERA_INLINE at::Tensor forward_fold(const bound_layer& b, const fold_description& layer, const at::Tensor& input) {
  auto added = b.by_edges<detail::given_edges>(input, 2, layer.gives.kernels);
  const at::Tensor x = added ? input : b.ready(input);
  const at::ScalarType sums = detail::added_in(x.scalar_type());
  if (b.is_empty) return b.leaving(b.depends_on_all(detail::empty_result(b.outputs, {x}, sums), {x}));
  const detail::picture_lists k(layer.windows.kernels);
  const auto folded = [&](const at::Tensor& read, const detail::window_giving& gives) {
    const detail::kernel_lists& reach = gives.lists();
    std::vector<index_t> cut(2, 0), size(2, 1), sizes{read.size(0), read.size(1) / layer.windows.taps()};
    const std::size_t line = 2 - reach.kernel.size();
    for (std::size_t i = 0; i < reach.kernel.size(); ++i) {
      cut[line + i] = gives.cut()[i];
      size[line + i] = (read.size(static_cast<index_t>(2 + i)) - 1) * reach.step[i] + reach.kernel[i] -
                       2 * gives.cut()[i] + gives.further()[i];
      sizes.push_back(size[line + i]);
    }
    return gives.placed(at::col2im(read.to(sums).flatten(2), size, k.kernel, k.dilation, cut, k.step).view(sizes));
  };
  const at::Tensor y = added ? added->compute(folded, folded) : folded(x, b.gives_by(2, layer.gives.kernels));
  return b.leaving(b.depends_on_all(y, {x}));
}

TESSERA_INLINE at::Tensor forward_prelu(const call& c) {
  const at::Tensor& x = c.operand();
  const at::Tensor w = c.weight(0);
  return c.bound.depends_on_all(c.bound.is_empty ? detail::empty_result(c.bound.outputs, {x, w}) : at::prelu(x, w),
                                {x, w});
}

TESSERA_INLINE at::Tensor forward_rrelu(const call& c, const rrelu_description& layer) {
  const at::Tensor& x = c.operand();
  const auto drawn = [&] { return c.drawn().uniform(c.bound.inputs[0].to->layout(), c.bound.team->rank()); };
  at::Tensor slope = c.training ? drawn().mul_(layer.upper - layer.lower).add_(layer.lower)
                                : at::full(x.sizes(), (layer.lower + layer.upper) / 2, x.options().dtype(at::kDouble));
  return x * slope.masked_fill_(x.detach() > 0, 1).to(x.scalar_type());
}

TESSERA_INLINE at::Tensor forward_dropout(const call& c, const dropout_description& layer) {
  const at::Tensor& x = c.operand();
  if (!c.training || layer.probability == 0) return x;
  const double kept = 1 - layer.probability;
  const double least = layer.alpha ? -1.7580993408473766 : 0;  // of a selu, −λα
  const double scale =
      kept > 0 ? 1 / (layer.alpha ? std::sqrt((least * least * layer.probability + 1) * kept) : kept) : 0;
  const layout over = detail::drawn_over(c.bound.inputs[0].to->layout(), layer);
  const at::Tensor dropped = c.drawn().below(over, c.bound.team->rank(), layer.probability);
  const at::Tensor y = x.masked_fill(dropped, least).mul_(scale);
  return layer.alpha ? y.add_(-least * scale * layer.probability) : y;
}

TESSERA_INLINE at::Tensor forward_of_nothing(const call& c) {
  return forward_of_all(c, tessera::detail::empty_result(c.bound.boxes().result.held, c.operands, c.bound.gives[0]));
}

TESSERA_INLINE at::Tensor forward_of_all(const call& c, const at::Tensor& y) {
  return y.is_floating_point() || y.is_complex() ? c.bound.depends_on_all(y, c.operands) : y;
}

}  // namespace tessera::nn::engine

#ifdef TESSERA_COMPILED
namespace tessera::nn::engine {

#define TESSERA_HELD(description) \
  template std::vector<at::Tensor> forward_described<description>(const void*, const call&);
TESSERA_DESCRIPTIONS(TESSERA_HELD)
#undef TESSERA_HELD

}  // namespace tessera::nn::engine
#endif
