#pragma once

#include <tessera/operation/program/layer.hpp>
#include <tessera/topology/check_layout.hpp>

namespace tessera {

namespace engine {

/// A tensor where it is met: where that lies on one coordinate of an axis along which this has copies, so does this.
constexpr layout lying_with(layout w, const layout& met) {
  if (!(w.mesh == met.mesh)) return w;
  for (int a = 0; a < w.placements.count; ++a) {
    const placement own = w.placements[a].kind;
    if (met.placements[a].kind == placement::on && (own == placement::replicate || own == placement::invariant))
      w.set_placement(a, met.placements[a]);
  }
  return w;
}

/// A parameter that is a tensor by itself.
struct free_parameter {};

/// Plans one: it is used as `w` lies, and stored invariant wherever it is not cut.
constexpr layer_plan plan_free_parameter(const tensor_value& at, const tensor_value& w, const initial_value& initial) {
  const layout used = lying_with(w.layout, at.layout), stored = stored_form(used);
  layer_plan p;
  p.why = first_of(check(w.layout), check_known(stored), check(initial, stored), check_gradient(w.element));
  p.add_input(at.layout);
  p.add_output(used, w.element);
  p.saves = saved_tensors::saving(0);
  p.add_parameter({"", stored, used, initial, true, w.element});
  p.add_product({});  // nothing is computed
  return p;
}

/// A buffer that is a tensor by itself.
struct free_buffer {};

/// Plans one, likewise; it has no gradient.
constexpr layer_plan plan_free_buffer(const tensor_value& at, const tensor_value& w, const initial_value& initial) {
  const layout used = lying_with(w.layout, at.layout), stored = stored_form(used);
  layer_plan p;
  p.why = first_of(check(w.layout), check_known(stored), check(initial, stored));
  p.add_input(at.layout);
  p.add_output(stored, used, w.element);
  p.saves = saved_tensors::saving(0);
  p.add_buffer({"", stored, initial, w.element});
  p.add_product({});  // nothing is computed
  return p;
}

}  // namespace engine

namespace detail {

/// Plans a tensor that begins as a type says.
template <class T, class Begins, auto Plan>
constexpr layer_plan plan_free(const tensor_value& x) {
  if constexpr (!TensorType<T>) return refused_layer(check_kinds<kind::layer, kind::tensor, T>());
  else if constexpr (!described<T>::verdict::ok) return refused_layer(described<T>::verdict_source::value);
  else if constexpr (requires { Begins::initial; }) return Plan(x, value_of<T>, Begins::initial);
  else return Plan(x, value_of<T>, {});
}

// The mesh of a tensor type, where it is one.
template <class T>
struct mesh_of_tensor {};
template <TensorType T>
struct mesh_of_tensor<T> {
  using mesh_type = typename described<T>::mesh_type;
};

}  // namespace detail

namespace nn {

/// A parameter that a module uses as it likes: `const auto factors = x | nn::named<struct scale, nn::weight<T>>{};`
/// is a flow of this tensor, and its key is the name.
///
/// `T` says how it is used: replicate along the axes that cut what it meets. It begins as zeros, or as
/// `Begins::initial`. What `x` holds does not matter.
template <class T, class Begins = void>
struct weight : layer<weight<T, Begins>>, tessera::detail::mesh_of_tensor<T> {
  static constexpr const char* name = "weight";
  static constexpr engine::free_parameter description() { return {}; }
  static constexpr layer_plan plan(const tensor_value& x) {
    return tessera::detail::plan_free<T, Begins, engine::plan_free_parameter>(x);
  }
};

/// The same as a buffer, which has no gradient and is in the state dict: class weights of a loss, `x | nn::named<struct
/// classes, nn::constant<T, begins>>{}`.
template <class T, class Begins = void>
struct constant : layer<constant<T, Begins>>, tessera::detail::mesh_of_tensor<T> {
  static constexpr const char* name = "constant";
  static constexpr engine::free_buffer description() { return {}; }
  static constexpr layer_plan plan(const tensor_value& x) {
    return tessera::detail::plan_free<T, Begins, engine::plan_free_buffer>(x);
  }
};

}  // namespace nn

template <class T, class Begins>
inline constexpr kind engine::kind_of<nn::weight<T, Begins>> = kind::layer;
template <class T, class Begins>
inline constexpr kind engine::kind_of<nn::constant<T, Begins>> = kind::layer;

}  // namespace tessera
