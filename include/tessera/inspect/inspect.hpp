#pragma once

#include <tessera/inspect/json.hpp>
#include <tessera/inspect/network.hpp>
#include <tessera/inspect/picture.hpp>
#include <tessera/inspect/svg_network.hpp>
#include <tessera/inspect/svg_plan.hpp>
#include <tessera/primitive/primitive.hpp>

namespace tessera {

namespace detail {

// One more than the largest rank of a plan's workers.
inline int world_of(const change& c) {
  int last = -1;
  for (const step& s : c.steps)
    for (const mesh_value* m : {&s.from.mesh, &s.to.mesh}) last = std::max(last, ranks_of(*m).back());
  return last + 1;
}

}  // namespace detail

namespace engine {

/// A primitive with one plan: not a composition, whose parts have one each.
template <class F>
concept PlannedPrimitive = Primitive<F> && requires { F::verb; };

}  // namespace engine

// The same from types: `svg_of<tensor_type>()`, `svg_of<primitive<from, to>>(bind<batch>(64))`.

template <TensorType T, class... Bindings>
std::string picture(const Bindings&... bindings) {
  return picture(detail::bound_all(value_of<T>.layout, bindings...));
}
template <TensorType T, class... Bindings>
std::string svg_of(const Bindings&... bindings) {
  return svg_of(detail::bound_all(value_of<T>.layout, bindings...));
}
template <engine::PlannedPrimitive F, class... Bindings>
std::string plan_text(const Bindings&... bindings) {
  return plan_text(detail::bound_all(value_of<typename F::domain>.layout, bindings...),
                   detail::bound_all(value_of<typename F::codomain>.layout, bindings...));
}
template <engine::PlannedPrimitive F, class... Bindings>
std::string svg_of(const Bindings&... bindings) {
  return svg_of(F::plan(bindings...));
}
template <engine::PlannedPrimitive F, class... Bindings>
std::string plan_json(const Bindings&... bindings) {
  const change c = F::plan(bindings...);
  return plan_json(c, detail::world_of(c), engine::bytes_of(value_of<typename F::domain>.element));
}

}  // namespace tessera
