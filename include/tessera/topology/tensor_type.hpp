#pragma once

#include <tessera/topology/canonical.hpp>
#include <tessera/topology/check_layout.hpp>
#include <tessera/topology/element.hpp>

namespace tessera {

/// A LibTorch tensor, one box of it on each worker, with partition, global shape and element type in its type.
///
/// Here only the name: layouts, plans and networks are known from it without LibTorch.
template <class Partition, class Shape = void, class Element = float>
class tensor;

/// Layout and element of a tensor, as a value: what the engine and the static face of layers work on.
struct tensor_value {
  tessera::layout layout;
  tessera::element element = tessera::element::float32;

  friend constexpr bool operator==(const tensor_value&, const tensor_value&) = default;
};

/// Refuses a combine that the element has not: complex numbers have no order.
constexpr refusal check_combine(combine with, element e, int axis = -1) {
  if (is_complex(e) && (with == combine::max || with == combine::min)) return refusal{code::no_order, axis};
  return {};
}

/// The same for every pending combine of a layout.
constexpr refusal check_combines(const layout& x, element e) {
  for (int a = 0; a < x.roles.count; ++a)
    if (const refusal why = check_combine(x.roles[a].with, e, a); x.roles[a].kind == role::partial && !why.ok()) return why;
  return {};
}

namespace detail {

template <class T>
struct described;
template <class P, class S, class E>
  requires requires { typename P::mesh_type; }  // tensor<dyn> is described by its value alone
struct described<tensor<P, S, E>> {
  using mesh_type = typename P::mesh_type;
  using partition_type = P;
  using shape_type = S;
  using element_type = E;

  static constexpr tensor_value value = [] {
    tensor_value t{layout_of_partition<P>, element_of<E>};
    extents_of<S>::write(t.layout);
    return t;
  }();

  struct verdict_source {
    static constexpr refusal value = [] {
      const refusal p = partition_check<P>::value;
      if (!p.ok()) return p;
      if (P::dimensions != S::rank) return refusal{code::wrong_number_of_dimensions, P::dimensions, S::rank};
      if (!is_element<E>) return refusal{code::element_unknown, sizeof(E)};
      return first_of(extents_of<S>::check(), check(described::value.layout), check_combines(described::value.layout, element_of<E>));
    }();
  };
  using verdict = verdict_of<verdict_source>;
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

// What a refused operation or network gives; every door takes it without another error.
template <class Element = float>
using refused_tensor = tensor<refused_partition, shape<>, Element>;
template <class Like>
using refused_like = refused_tensor<typename described<Like>::element_type>;

}  // namespace detail

/// The type names a tensor: partition, shape and element.
template <class T>
concept TensorType = requires { detail::described<T>::value; };

/// The value of a tensor type.
template <TensorType T>
inline constexpr const tensor_value& value_of = detail::described<T>::value;

namespace detail {

// The shape type that a layout value names: tags of `S` stay, other dynamic extents are `dyn`.
template <class Tags, class Source, class Dims>
struct shape_named;

template <const text& Tag, class... Dims>
struct tag_find {
  using type = dyn;
};
template <const text& Tag, class D, class... Dims>
struct tag_find<Tag, D, Dims...> {
  static auto found() {
    if constexpr (D::extent == dynamic) {
      if constexpr (short_name_of<D>() == Tag) return D{};
      else return typename tag_find<Tag, Dims...>::type{};
    } else {
      return typename tag_find<Tag, Dims...>::type{};
    }
  }
  using type = decltype(found());
};

template <class Source, int Dim, class... Dims>
struct dim_named {
  static constexpr const dimension& d = Source::value.dims[Dim];
  static constexpr text tag = d.tag;
  static auto named() {
    if constexpr (d.extent != dynamic) return dim<d.extent>{};
    else return typename tag_find<tag, Dims...>::type{};
  }
  using type = decltype(named());
};

template <class... Tags, class Source, int... Dim>
struct shape_named<shape<Tags...>, Source, std::integer_sequence<int, Dim...>> {
  using type = shape<typename dim_named<Source, Dim, Tags...>::type...>;
};

template <class T, class Source>
struct layout_only {
  static constexpr layout value = Source::value.layout;
};

/// The tensor type whose value is `Source::value`, on a mesh type and with the names of extents of tensor type `Like`.
template <class Like, class Source, class Mesh = typename described<Like>::mesh_type>
struct tensor_named {
  using plain = layout_only<Like, Source>;
  using type = tensor<
      partition_from<Mesh, plain>,
      typename shape_named<typename described<Like>::shape_type, plain,
                           std::make_integer_sequence<int, plain::value.dims.count>>::type,
      tessera::element_type<Source::value.element>>;
};

// Whether every dynamic extent of a tensor type is among the bindings.
template <class T, class... Bindings>
struct all_bound {
  static constexpr refusal value = [] {
    const layout& x = value_of<T>.layout;
    for (int d = 0; d < x.dims.count; ++d)
      if (x.dims[d].extent == dynamic && !((x.dims[d].tag == Bindings::tag) || ...)) return refusal{code::extent_not_bound, d};
    return refusal{};
  }();
};

template <class T>
struct itself {
  static constexpr tensor_value value = value_of<T>;
};
template <class T>
struct cotangent_source {
  static constexpr tensor_value value{tessera::cotangent(value_of<T>.layout), value_of<T>.element};
};

// A tensor type that is refused stays as it is written.
template <class T, class Source, bool Fits = described<T>::verdict::ok>
struct named_unless_refused : tensor_named<T, Source> {};
template <class T, class Source>
struct named_unless_refused<T, Source, false> {
  using type = T;
};

template <class Like, class Source, class Mesh, bool Fits>
struct named_or_refused : tensor_named<Like, Source, Mesh> {};
template <class Like, class Source, class Mesh>
struct named_or_refused<Like, Source, Mesh, false> {
  using type = refused_like<Like>;
};

// What an operation or a layer gives, as types: `Result` has its value and why it is refused, if it is; the names of extents,
// and of the mesh unless it is given, are those of tensor type `Like`.
template <class Like, class Result, class Mesh = typename described<Like>::mesh_type>
struct planned {
  struct verdict_source {
    static constexpr refusal value = Result::why;
  };
  using verdict = verdict_of<verdict_source>;
  using type = typename named_or_refused<Like, Result, Mesh, verdict::ok>::type;
};

}  // namespace detail

/// Refuses a tensor of another element, shape or partition than is wanted; spellings of one layout make no difference.
constexpr refusal check_same(const tensor_value& given, const tensor_value& wanted) {
  const int rank = wanted.layout.dims.count;
  if (given.element != wanted.element)
    return refusal{code::wrong_element, static_cast<int>(wanted.element), static_cast<int>(given.element)};
  if (given.layout.dims.count != rank) return refusal{code::wrong_number_of_dimensions, rank, given.layout.dims.count};
  for (int d = 0; d < rank; ++d)
    if (given.layout.dims[d].extent != wanted.layout.dims[d].extent)
      return refusal{code::extents_differ, d, wanted.layout.dims[d].extent, given.layout.dims[d].extent};
  if (same(given.layout, wanted.layout)) return {};
  const layout x = canonical(given.layout);
  const layout y = canonical(wanted.layout);
  for (int d = 0; d < rank; ++d) {
    bool alike = x.levels(d) == y.levels(d) && x.dims[d].kind == y.dims[d].kind && x.dims[d].grain() == y.dims[d].grain();
    for (int level = 0; alike && level < x.levels(d); ++level)
      alike = x.mesh.axes[x.cutting(d, level)].name == y.mesh.axes[y.cutting(d, level)].name;
    if (!alike) return refusal{code::wrong_partition, d};
  }
  return refusal{code::wrong_partition, -1};  // a meaning, or the mesh
}

/// The canonical spelling of a tensor type: equal values give equal types.
template <TensorType T>
using canonical_tensor = typename detail::named_unless_refused<T, detail::itself<T>>::type;

/// The type of the cotangent: replicate and partial, haloed and pending change places.
template <TensorType T>
using cotangent_type = typename detail::named_unless_refused<T, detail::cotangent_source<T>>::type;

}  // namespace tessera
