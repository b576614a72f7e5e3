#pragma once

#include <tessera/generated/meta.hpp>

#include <type_traits>

namespace at {

class Tensor;

}  // namespace at

namespace tessera {

struct tensor_value;

/// The kind of a type: each template takes one kind of type at each place, and refuses any other there.
///
/// The last ones are never wanted: they say what was given.
enum class kind : signed char {
  axis,
  group,  ///< `along<…>`, `except<…>`
  mesh,
  cover,  ///< one that is a tiling
  halo,   ///< a cover of copies or terms: `haloed<…>`, `pending<…>`
  placement,
  combine,
  partition,
  extent,
  shape,
  element,
  tensor,
  dynamic_tensor,  ///< tensor<dyn>: what it is, only run time knows
  flow,            ///< what stands for a tensor in a module, without elements
  flows,           ///< several of them
  binding,
  primitive,
  verb,
  function,  ///< of tensors, as a value: functions::relu
  operation,
  option,
  layer,
  module,  ///< a function of flows
  network,
  team,
  seed,
  libtorch_tensor,  ///< a LibTorch tensor: one worker's part, or what everybody has
  call,             ///< a function: its place 0 is the type that it is told, `bind<…>`, and its arguments follow
  nothing,
  incomplete_class,
  private_axis,  ///< derives from an axis or an extent, but not publicly
  private_extent,
  something_else
};

namespace detail {

/// The base class of a user's type says its kind.
template <kind K>
struct is_a {};

template <class T, kind K>
inline constexpr bool derives = std::is_convertible_v<const T*, const is_a<K>*>;

template <class T>
constexpr kind kind_by_members() {
  if constexpr (!std::is_class_v<T>) return std::is_void_v<T> ? kind::nothing : kind::something_else;
  else if constexpr (!requires { sizeof(T); }) return kind::incomplete_class;
  else if constexpr (derives<T, kind::axis>) return kind::axis;
  else if constexpr (derives<T, kind::extent>) return kind::extent;
  else if constexpr (derives<T, kind::function>) return kind::function;
  else if constexpr (std::is_base_of_v<is_a<kind::axis>, T>) return kind::private_axis;
  else if constexpr (std::is_base_of_v<is_a<kind::extent>, T>) return kind::private_extent;
  else if constexpr (requires {
                       typename T::domain;
                       typename T::codomain;
                       typename T::adjoint;
                     })
    return kind::primitive;
  else if constexpr (requires {
                       typename T::input;
                       typename T::output;
                       T::program;
                     })
    return kind::network;
  else if constexpr (
      requires {
        T::name;
        &T::plan;
      } ||
      requires(const tensor_value& x) {
        T::plan(x);
        T::name;
      })
    return kind::layer;
  else return kind::something_else;
}

}  // namespace detail

namespace engine {

/// The kind of a type; each template of the library says its own beside it.
template <class T>
inline constexpr kind kind_of = detail::kind_by_members<T>();
template <>
inline constexpr kind kind_of<at::Tensor> = kind::libtorch_tensor;

}  // namespace engine

/// The verdict on a template argument of the wrong kind: what it is an argument of, its position from 0, the wanted
/// kind, the given kind.
template <kind Of, int Argument, kind Wanted, kind Given>
struct wrong_argument : verdicts::wrong_kind<> {
  static constexpr bool ok = false;
};

namespace detail {

template <>
struct verdict_for<&code::wrong_kind> {
  template <class Why>
  using type = wrong_argument<static_cast<kind>(Why::number(0)), static_cast<int>(Why::number(1)),
                              static_cast<kind>(Why::number(2)), static_cast<kind>(Why::number(3))>;
};

template <kind Of, kind Wanted>
constexpr refusal refused_kind(int argument, kind given) {
  return refusal{code::wrong_kind, static_cast<int>(Of), argument, static_cast<int>(Wanted), static_cast<int>(given)};
}

/// The verdict on one argument.
template <kind Of, int Argument, kind Wanted, class Given>
using argument_verdict =
    std::conditional_t<kind_of<Given> == Wanted, fits, wrong_argument<Of, Argument, Wanted, kind_of<Given>>>;

/// Refuses the first of these arguments of an `Of` that is not of the wanted kind; they stand at `argument` and behind.
template <kind Of, kind Wanted, class... Given>
constexpr refusal check_kinds(int argument = 0) {
  constexpr kind given[]{kind_of<Given>..., Wanted};
  for (kind k : given) {
    if (k != Wanted) return refused_kind<Of, Wanted>(argument, k);
    ++argument;
  }
  return {};
}

}  // namespace detail
}  // namespace tessera
