#pragma once
// One process's view of a trial: tensors put together from the workers' parts.

#include "grids.hpp"
#include "trial.hpp"

#include <tessera/tensor/box/element_type.hpp>

#include <ATen/CPUGeneratorImpl.h>

namespace conformance {

/// Random values lie on a grid of sixteenths, weights on one of 256ths: sums of their products are exact in float32
/// whatever the order, so a difference is no rounding.
inline at::Tensor filled(filling how, const integers& extents, element e, std::uint64_t seed, index_t fan = 1) {
  const auto type = tessera::detail::scalar_type_of(e);
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto on_grid = [](const at::Tensor& x, int steps = 16) { return at::floor(steps * x) / steps; };
  switch (how) {
    case filling::normal: return on_grid(at::randn(extents, generator, options)).to(type);
    case filling::ten_times_normal: return (10 * at::randn(extents, generator, options)).to(type);
    case filling::scaled_by_fan:
      return on_grid(at::randn(extents, generator, options) / std::sqrt(static_cast<double>(std::max<index_t>(1, fan))),
                     256)
          .to(type);
    // 0 has no logarithm
    case filling::uniform: return (on_grid(at::rand(extents, generator, options)) + 1.0 / 32).to(type);
    case filling::indices: return at::arange(volume_of(extents), at::kLong).reshape(extents);
    case filling::ones: return at::ones(extents, options).to(type);
    case filling::ten: return at::full(extents, 10, options).to(type);
    case filling::tenth: return at::full(extents, 0.1, options).to(type);
    case filling::zeros: break;
  }
  return at::zeros(extents, options).to(type);
}

/// The box of one worker: a function of the first copy's rank and of the seed alone, so that all can make it.
inline at::Tensor locals_of(const layout& x, filling how, element e, std::uint64_t seed, int rank) {
  return filled(how, tessera::detail::sizes_of(held_by(x, rank)), e,
                1000 * seed + static_cast<std::uint64_t>(first_copy(x, rank)));
}

inline at::Tensor part_of(const at::Tensor& global, const layout& x, int rank) {
  at::Tensor part = global;
  const box b = box_of(x, rank);
  for (int d = 0; d < b.count; ++d) part = part.narrow(d, b[d].lo, b[d].size());
  return part;
}

/// The global tensor that the workers' boxes mean: terms are added, what is cut is put together, copies are one.
inline at::Tensor assembled(const layout& x, filling how, element e, std::uint64_t seed, int world) {
  at::Tensor global = at::zeros(extents_of(x), filled(how, {0}, e, seed).options());
  for (int r = 0; r < world; ++r)
    if (x.mesh.contains(r) && first_copy(x, r) == r) part_of(global, x, r).add_(locals_of(x, how, e, seed, r));
  return global;
}

/// Parameters and buffers of a link as global tensors.
struct serial_state {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
};

inline serial_state state_of(const link& l, filling how, element e, std::uint64_t seed) {
  serial_state all;
  for (int i = 0; i < l.plan.parameters(); ++i) {
    const parameter_value p = l.plan.parameter(i);
    const filling mine = how == filling::zeros && std::string_view(p.name) == "bias" ? filling::normal : how;
    all.parameters.push_back(filled(mine, extents_of(p.stored), e, seed + all.parameters.size(), p.initial.fan_in));
  }
  for (int i = 0; i < l.plan.buffers(); ++i) {
    const buffer_value b = l.plan.buffer(i);
    const filling mine = std::string_view(b.name) == "running_var" ? filling::ones : filling::zeros;
    all.buffers.push_back(filled(mine, extents_of(b.stored), b.element, 0));
  }
  return all;
}

/// What a loss or the squares of a trial compare with, the same for a whole tensor and for a part of it.
inline at::Tensor target_of(const layout& y, element e) { return filled(filling::uniform, extents_of(y), e, 3); }

}  // namespace conformance
