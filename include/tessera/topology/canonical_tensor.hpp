#pragma once

#include <tessera/topology/canonical.hpp>
#include <tessera/topology/tensor_type.hpp>

namespace tessera {

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
  static constexpr bool found = [] {
    if constexpr (D::extent == dynamic) return short_name_of<D>() == Tag;
    else return false;
  }();
  using type = typename std::conditional_t<found, std::type_identity<D>, tag_find<Tag, Dims...>>::type;
};

template <class Source, int Dim, class... Dims>
struct dim_named {
  static constexpr const dimension& d = Source::value.dims[Dim];
  static constexpr text tag = d.tag;
  using type = typename std::conditional_t<d.extent != dynamic, std::type_identity<dim<d.extent>>, tag_find<tag, Dims...>>::type;
};

template <class... Tags, class Source, int... Dim>
struct shape_named<shape<Tags...>, Source, indices<Dim...>> {
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
                           indices_below<plain::value.dims.count>>::type,
      tessera::element_type<Source::value.element>>;
};

template <class T>
struct itself {
  static constexpr tensor_value value = described<T>::value;
};
template <class T>
struct cotangent_source {
  static constexpr tensor_value value{tessera::cotangent(described<T>::value.layout), described<T>::value.element};
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
struct named_result {
  struct verdict_source {
    static constexpr refusal value = Result::why;
  };
  using verdict = verdict_of<verdict_source, Like, Result>;
  using type = typename named_or_refused<Like, Result, Mesh, verdict::ok>::type;
};

}  // namespace detail

/// The canonical spelling of a tensor type: equal values give equal types.
template <class T>
using canonical_tensor =
    typename detail::named_unless_refused<typename detail::named_tensor<T>::type, detail::itself<detail::as_tensor<T>>>::type;

/// The type of the cotangent: replicate and partial, haloed and pending change places.
template <class T>
using cotangent_type =
    typename detail::named_unless_refused<typename detail::named_tensor<T>::type, detail::cotangent_source<detail::as_tensor<T>>>::type;

}  // namespace tessera
