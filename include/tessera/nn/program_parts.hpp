#pragma once

#include <tessera/nn/program.hpp>

namespace tessera::detail {

// A part in a scope that is its own.
template <class Part, DynamicFlow First, DynamicFlow... Rest>
auto added_alone(const Part& part, const First& first, const Rest&... rest) {
  if constexpr (kind_of<Part> == kind::layer) return first.in->add(part, false, first, rest...);
  else if constexpr (Wrapper<Part>) {
    return part.around([&](const auto&... x) { return added_alone(part.inside(), x...); }, first, rest...);
  } else {
    return part(first, rest...);
  }
}

// A part that somebody calls himself: a layer has its place, a module is what it adds.
template <class Part>
auto called_here(const Part& part, const auto&... x) {
  if constexpr (kind_of<Part> == kind::layer) return added(part, x...);
  else return part(x...);
}

}  // namespace tessera::detail

namespace tessera::nn {

/// A part under a name that is a value, in the keys of its parameters: `x | under("encoder", linear_layer{.out = 6})`. Those that are
/// shared under one name have one set of parameters.
template <class Part>
struct named_part {
  static constexpr bool sees_to_its_scope = true;
  std::string name;
  Part part;
  bool shared = false;

  template <DynamicFlow First, DynamicFlow... Rest>
  auto operator()(const First& first, const Rest&... rest) const {
    const auto back = first.in->enter(name, shared);
    const auto y = tessera::detail::added_alone(part, first, rest...);
    first.in->leave(back);
    return y;
  }
};
template <class Part>
named_part<Part> under(std::string name, const Part& part) {
  return {std::move(name), part};
}
template <class Part>
named_part<Part> shared_under(std::string name, const Part& part) {
  return {std::move(name), part, true};
}

/// `stored_over` with a part and axes that are values: `x | stored({"data"}, linear_layer{.out = 6})`, or `stored({"data"}, layer, gathered::held)`.
template <class Part>
struct stored_part {
  using wraps = Part;
  tiles_over over;
  Part part;

  const Part& inside() const { return part; }
  template <class Call, DynamicFlow First, DynamicFlow... Rest>
  auto around(const Call& call, const First& first, const Rest&... rest) const {
    return first.in->stored_over(over, [&] { return call(first, rest...); });
  }
  template <DynamicFlow... F>
  auto operator()(const F&... x) const {
    return around([&](const auto&... y) { return tessera::detail::called_here(part, y...); }, x...);
  }
};
template <class Part>
stored_part<Part> stored(const axis_names& over, const Part& part, gathered times = gathered::twice) {
  return {{over.list(), times}, part};
}

/// `recompute` of a part that is a value: `x | recomputed(linear_layer{.out = 6})`.
template <class Part>
struct recomputed_part {
  using wraps = Part;
  Part part;

  const Part& inside() const { return part; }
  template <class Call, DynamicFlow First, DynamicFlow... Rest>
  auto around(const Call& call, const First& first, const Rest&... rest) const {
    const int which = first.in->begin_recomputed();
    const auto y = call(first, rest...);
    first.in->end_recomputed(which);
    return y;
  }
  template <DynamicFlow... F>
  auto operator()(const F&... x) const {
    return around([&](const auto&... y) { return tessera::detail::called_here(part, y...); }, x...);
  }
};
template <class Part>
recomputed_part<Part> recomputed(const Part& part) {
  return {part};
}

}  // namespace tessera::nn
