#pragma once
// One process's view of a trial: tensors put together from the workers' parts, and the serial layers of LibTorch.

#include "trial.hpp"

#include <tessera/tensor/element_type.hpp>

#include <ATen/CPUGeneratorImpl.h>

namespace conformance {

/// Random values lie on a grid of sixteenths, weights on one of 256ths: sums of their products are exact in float32 whatever the
/// order, so a difference is no rounding.
inline at::Tensor filled(filling how, const integers& extents, element e, std::uint64_t seed, index_t fan = 1) {
  const auto type = tessera::detail::scalar_type(e);
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto on_grid = [](const at::Tensor& x, int steps = 16) { return at::floor(steps * x) / steps; };
  switch (how) {
    case filling::normal: return on_grid(at::randn(extents, generator, options)).to(type);
    case filling::ten_times_normal: return (10 * at::randn(extents, generator, options)).to(type);
    case filling::scaled_by_fan:
      return on_grid(at::randn(extents, generator, options) / std::sqrt(static_cast<double>(std::max<index_t>(1, fan))), 256).to(type);
    case filling::uniform: return on_grid(at::rand(extents, generator, options)).to(type);
    case filling::ones: return at::ones(extents, options).to(type);
    case filling::ten: return at::full(extents, 10, options).to(type);
    case filling::tenth: return at::full(extents, 0.1, options).to(type);
    case filling::zeros: break;
  }
  return at::zeros(extents, options).to(type);
}

/// The box of one worker: a function of the worker's rank and of the seed alone, so that all can make it.
inline at::Tensor locals_of(const layout& x, filling how, element e, std::uint64_t seed, int rank) {
  return filled(how, tessera::detail::sizes_of(held_by(x, rank)), e, 1000 * seed + static_cast<std::uint64_t>(rank));
}

inline at::Tensor part_of(const at::Tensor& global, const layout& x, int rank) {
  at::Tensor part = global;
  const box b = box_of(x, rank);
  for (int d = 0; d < b.count; ++d) part = part.narrow(d, b[d].lo, b[d].size());
  return part;
}

/// The global tensor that the workers' boxes mean: terms are added, what is cut is put together.
inline at::Tensor assembled(const layout& x, filling how, element e, std::uint64_t seed, int world) {
  at::Tensor global = at::zeros(extents_of(x), at::TensorOptions().dtype(tessera::detail::scalar_type(e)));
  for (int r = 0; r < world; ++r)
    if (x.mesh.contains(r)) part_of(global, x, r).add_(locals_of(x, how, e, seed, r));
  return global;
}

/// The parameters of a link as global tensors.
inline std::vector<at::Tensor> parameters_of(const link& l, filling how, element e, std::uint64_t seed) {
  std::vector<at::Tensor> all;
  for (int i = 0; i < l.plan.parameters(); ++i) {
    const parameter_value p = l.plan.parameter(i);
    const filling mine = how == filling::zeros && std::string_view(p.name) == "bias" ? filling::normal : how;
    all.push_back(filled(mine, extents_of(p.stored), e, seed + all.size(), p.initial.fan_in));
  }
  return all;
}

/// Equal widths before and after each dimension as LibTorch wants them, the last dimension first.
inline integers both_sides(const integers& padding) {
  integers widths;
  for (std::size_t k = padding.size(); k-- > 0;) widths.insert(widths.end(), {padding[k], padding[k]});
  return widths;
}

/// The chain in one process, by LibTorch's own layers.
inline at::Tensor serially(const chain& links, at::Tensor x, const std::vector<std::vector<at::Tensor>>& parameters) {
  for (std::size_t i = 0; i < links.size(); ++i) {
    const link& l = links[i];
    if (l.what == link::kind::change) continue;
    integers kernel, step, padding, dilation;
    for (const sliding& s : l.what == link::kind::pooling ? l.pool.kernels : l.weights.kernels) {
      kernel.push_back(s.kernel);
      step.push_back(s.stride);
      padding.push_back(s.before);
      dilation.push_back(s.dilation);
    }
    if (l.what == link::kind::pooling) {
      const bool max = l.pool.what == pooling::kind::max;
      if (!max) {  // zeros count, and LibTorch's 3-D averages refuse an image that is smaller than the kernel before they pad it
        x = at::constant_pad_nd(x, both_sides(padding), 0);
        padding.assign(padding.size(), 0);
      }
      if (!max && std::any_of(dilation.begin(), dilation.end(), [](index_t d) { return d != 1; })) {
        // LibTorch's averages have no dilation: a convolution of each channel by itself with equal weights.
        integers ones{x.size(1), 1};
        ones.insert(ones.end(), kernel.begin(), kernel.end());
        const at::Tensor equal = at::full(ones, 1.0 / static_cast<double>(c10::multiply_integers(kernel)), x.options());
        x = at::convolution(x, equal, {}, step, padding, dilation, false, integers(kernel.size(), 0), x.size(1));
        continue;
      }
      switch (kernel.size()) {
        case 1: x = max ? at::max_pool1d(x, kernel, step, padding, dilation) : at::avg_pool1d(x, kernel, step, padding); break;
        case 2: x = max ? at::max_pool2d(x, kernel, step, padding, dilation) : at::avg_pool2d(x, kernel, step, padding); break;
        default: x = max ? at::max_pool3d(x, kernel, step, padding, dilation) : at::avg_pool3d(x, kernel, step, padding);
      }
      continue;
    }
    if (!kernel.empty() && l.weights.kernels[0].edge != boundary::zero) {
      constexpr const char* modes[]{"constant", "reflect", "replicate", "circular"};
      x = at::pad(x, both_sides(padding), modes[static_cast<int>(l.weights.kernels[0].edge)]);
      padding.assign(padding.size(), 0);
    }
    const at::Tensor bias = l.weights.bias ? parameters[i][1] : at::Tensor();
    x = kernel.empty()
            ? at::linear(x, parameters[i][0], bias)
            : at::convolution(x, parameters[i][0], bias, step, padding, dilation, false, integers(kernel.size(), 0),
                              l.weights.groups);
  }
  return x;
}

}  // namespace conformance
