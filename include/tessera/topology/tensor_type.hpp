#pragma once

#include <tessera/topology/check_layout.hpp>
#include <tessera/topology/element.hpp>
#include <tessera/topology/partition.hpp>

namespace tessera {

/// A LibTorch tensor, one box of it on each worker, with partition, global shape and element type in its type.
///
/// Here only the name: layouts, plans and networks are known from it without LibTorch.
template <class Partition = void, class Shape = void, class Element = float>
class tensor;
template <class P, class S, class E>
inline constexpr kind engine::kind_of<tensor<P, S, E>> = kind::tensor;
template <>
inline constexpr kind engine::kind_of<tensor<dyn>> = kind::dynamic_tensor;

/// Layout and element of a tensor, as a value: what the engine and the static face of layers work on.
struct tensor_value {
  tessera::layout layout;
  tessera::element element = tessera::element::float32;

  friend constexpr bool operator==(const tensor_value&, const tensor_value&) = default;
};

namespace engine {

/// Refuses a combine that the element has not: complex numbers have no order.
constexpr refusal check_combine(combine with, element e, const text& axis = {}) {
  if (is_complex(e) && (with == combine::max || with == combine::min)) return refusal{code::no_order, axis};
  return {};
}

/// The same for every pending combine of a layout.
constexpr refusal check_combines(const layout& x, element e) {
  for (int a = 0; a < x.placements.count; ++a)
    if (const refusal why = check_combine(x.placements[a].with, e, x.mesh.axes[a].name);
        x.placements[a].kind == placement::partial && !why.ok())
      return why;
  return {};
}

/// Refuses a gradient where there is none: of integers, and of terms that are no sum.
constexpr refusal check_gradient(element e) {
  return has_cotangent(e) ? refusal{} : refusal{code::element_has_no_cotangent};
}
constexpr refusal check_combines_gradient(const layout& x) {
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::partial && x.placements[a].with != combine::sum)
      return refusal{code::combine_has_no_gradient, x.mesh.axes[a].name};
  return {};
}
constexpr refusal check_gradient(const layout& x, element e) {
  return first_of(check_gradient(e), check_combines_gradient(x));
}

}  // namespace engine

namespace detail {

template <class P, class S, class E>
constexpr refusal check_tensor() {
  if (const refusal why =
          first_of(check_kinds<kind::tensor, kind::partition, P>(0), check_kinds<kind::tensor, kind::shape, S>(1));
      !why.ok())
    return why;
  if constexpr (kind_of<P> == kind::partition && kind_of<S> == kind::shape) {
    if (const refusal why = first_of(partition_check<P>::value, extents_of<S>::why); !why.ok()) return why;
    if (P::dimensions != S::rank) return refusal{code::wrong_number_of_dimensions, P::dimensions, S::rank};
  }
  if (is_element<E>) return {};
  return kind_of<E> == kind::something_else ? refusal{code::element_unknown, bytes_of_type<E>()}
                                            : check_kinds<kind::tensor, kind::element, E>(2);
}

/// A tensor type as a value, and why it is refused, if it is: then it has no dimensions.
struct tensor_draft {
  tensor_value value;
  refusal why;
};

template <class T>
struct described;
template <class P, class S, class E>
  requires(kind_of<tensor<P, S, E>> == kind::tensor)  // tensor<dyn> is described by its value alone
struct described<tensor<P, S, E>> {
  using partition_type = P;
  using shape_type = S;
  using element_type = E;

  static constexpr tensor_draft draft = [] {
    tensor_draft t{{{}, element_of<E>}, {}};
    constexpr refusal why = check_tensor<P, S, E>();
    if constexpr (why.ok()) {
      layout x = partition_draft<P>::value.value;
      extents_of<S>::write(x);
      t.why = first_of(check(x), check_combines(x, element_of<E>));
      if (t.why.ok()) t.value.layout = x;
    } else {
      t.why = why;
    }
    return t;
  }();
  static constexpr const tensor_value& value = draft.value;

  struct verdict_source {
    static constexpr const refusal& value = draft.why;
  };
  using verdict = verdict_of<verdict_source, P>;
  using mesh_type = typename std::conditional_t<verdict::ok, P, partition<mesh<>>>::mesh_type;
};

/// The partition of what a refused operation or network gives.
struct refused_partition {
  using mesh_type = mesh<>;
  static constexpr int dimensions = 0;
};
template <class S, class E>
struct described<tensor<refused_partition, S, E>> {
  using mesh_type = refused_partition::mesh_type;
  using partition_type = refused_partition;
  using shape_type = S;
  using element_type = E;
  static constexpr tensor_value value{{}, element_of<E>};
  struct verdict_source {
    static constexpr refusal value{code::refused_before};
  };
  using verdict = refused_before;
};
// What a refused operation or network gives; every entry point takes it without another error.
template <class Element = float>
using refused_tensor = tensor<refused_partition, shape<>, Element>;
template <class Like>
using refused_like = refused_tensor<typename described<Like>::element_type>;

}  // namespace detail

/// The type names a tensor: partition, shape and element.
template <class T>
concept TensorType = engine::kind_of<T> == kind::tensor;

namespace detail {

// A type that stands for a tensor; another one gives what something refused gives.
template <class T>
using as_tensor = std::conditional_t<TensorType<T>, T, tensor<refused_partition, shape<>>>;

template <kind Of, int Argument, class T>
struct tensor_check {
  static constexpr refusal value =
      first_of(check_kinds<Of, kind::tensor, T>(Argument), described<as_tensor<T>>::verdict_source::value);
};

// A tensor type that is accepted, with its value.
template <class T>
struct accepted_tensor {
  using verdict = verdict_of<tensor_check<kind::call, 0, T>>;
  static_assert((verdict::template refuse<verdict>(), true));
  static constexpr const tensor_value& value = described<as_tensor<T>>::value;
};

// The same where a refused tensor is taken for one, as it is refused elsewhere.
template <class T>
struct named_tensor {
  using verdict = argument_verdict<kind::call, 0, kind::tensor, T>;
  static_assert((verdict::template refuse<verdict>(), true));
  using type = as_tensor<T>;
};

}  // namespace detail

/// The value of a tensor type; one that is refused has none.
template <class T>
inline constexpr const tensor_value& value_of = detail::accepted_tensor<T>::value;

namespace detail {

// A layout whose extents are given; what the rest of it contradicts is refused by the code of a type that says so.
constexpr layout as_bound(const layout& x) {
  if (const refusal why = check(x); !why.ok()) stop(why);
  return x;
}

// The bindings with which a plan between tensor types is asked: one for each dynamic extent, and all lengths are known.
template <class From, class To, class... Bindings>
struct bindings_check {
  static constexpr refusal bound_in(const layout& x) {
    for (int d = 0; d < x.dims.count; ++d) {
      if (x.dims[d].extent == dynamic && !((x.dims[d].tag == Bindings::tag) || ...))
        return refusal{code::extent_not_bound, d};
      if (x.dims[d].bounds == learned) return refusal{code::lengths_not_known, d};
    }
    return {};
  }
  static constexpr refusal value = [] {
    constexpr refusal kinds = check_kinds<kind::call, kind::binding, Bindings...>(1);
    if constexpr (kinds.ok()) {
      if (!(Bindings::accepted && ...)) return refusal{code::refused_before};
      const text tags[]{Bindings::tag..., text()};
      for (int i = 0; i < static_cast<int>(sizeof...(Bindings)); ++i)
        for (int before = 0; before < i; ++before)
          if (tags[before] == tags[i]) return refusal{code::extent_bound_twice, before, i};
      return first_of(bound_in(described<From>::value.layout), bound_in(described<To>::value.layout));
    } else {
      return kinds;
    }
  }();
};

}  // namespace detail

namespace engine {

/// Refuses a tensor of another element, shape or partition than is wanted; spellings of one layout make no difference.
constexpr refusal check_same(const tensor_value& given, const tensor_value& wanted) {
  const int rank = wanted.layout.dims.count;
  if (given.element != wanted.element)
    return refusal{code::wrong_element, static_cast<int>(wanted.element), static_cast<int>(given.element)};
  if (given.layout.dims.count != rank) return refusal{code::ranks_differ, rank, given.layout.dims.count};
  for (int d = 0; d < rank; ++d)
    if (given.layout.dims[d].extent != wanted.layout.dims[d].extent)
      return refusal{code::extents_differ, d, wanted.layout.dims[d].extent, given.layout.dims[d].extent};
  if (same(given.layout, wanted.layout)) return {};
  const layout x = canonical(given.layout);
  const layout y = canonical(wanted.layout);
  for (int d = 0; d < rank; ++d) {
    bool alike = x.levels(d) == y.levels(d) && x.dims[d].kind == y.dims[d].kind &&
                 x.dims[d].grain() == y.dims[d].grain() && x.dims[d].zigzag == y.dims[d].zigzag;
    for (int level = 0; alike && level < x.levels(d); ++level)
      alike = x.mesh.axes[x.cutter(d, level)].name == y.mesh.axes[y.cutter(d, level)].name;
    if (!alike) return refusal{code::wrong_partition, text(), d};
  }
  for (int a = 0; a < x.placements.count; ++a) {
    const text& name = x.mesh.axes[a].name;
    const int other = y.mesh.find(name);
    if (other >= 0 && !(x.placements[a] == y.placements[other])) return refusal{code::wrong_partition, name, -1};
  }
  return refusal{code::wrong_partition, text(), -1};
}

}  // namespace engine

}  // namespace tessera
