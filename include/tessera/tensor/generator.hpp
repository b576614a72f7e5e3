#pragma once

#include <tessera/tensor/random.hpp>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

namespace tessera {

namespace detail {

/// A generator of LibTorch's where the tensors of a team lie, which begins at the n-th of the streams of a seed.
inline at::Generator generator_of(const team_state& team, const seed& s, std::uint64_t n) {
  // LibTorch's on the host looks at the low half alone: that differs too
  const std::uint64_t begins = stream_of(s, "generator") + n;
  const c10::Device device = device_of(team);
  if (device.is_cpu()) return at::make_generator<at::CPUGeneratorImpl>(begins);
  at::Generator own = at::globalContext().defaultGenerator(device).clone();
  own.set_current_seed(begins);
  return own;
}

}  // namespace detail

/// A generator of random numbers for this worker alone, by seed, path and place in the mesh. Workers draw different
/// numbers, the same in every run. LibTorch's default one is the process's, and workers that are threads share it.
///
///   at::Generator own = ts::worker_generator(team, ts::seed{7}.at("augmentation"));
///   const auto shift = at::randint(-2, 3, {n}, own);
inline at::Generator worker_generator(const team_handle& team, const seed& s) {
  const bool inside = team->inside();
  const auto n = static_cast<std::uint64_t>(inside ? team->mesh().number(team->at()) : team->size() + team->rank());
  return detail::generator_of(*team, s, 1 + n);
}

/// A generator that draws the same numbers on every worker, as long as all of them draw alike: what copies are made of.
inline at::Generator common_generator(const team_handle& team, const seed& s) {
  return detail::generator_of(*team, s, 0);
}

template <Mesh M>
at::Generator worker_generator(const team<M>& workers, const seed& s) {
  return worker_generator(workers.state(), s);
}
template <Mesh M>
at::Generator common_generator(const team<M>& workers, const seed& s) {
  return common_generator(workers.state(), s);
}

}  // namespace tessera
