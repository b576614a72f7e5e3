#pragma once

#include <tessera/topology/canonical.hpp>
#include <tessera/topology/tensor_type.hpp>

namespace tessera {

namespace detail {

// The extent among `Dims` with a tag: which it is, and its type; `dyn` where there is none.
template <class... Dims>
constexpr int tag_place(const text& tag) {
  const text* const tags[]{&tag_of<Dims>..., nullptr};
  for (int i = 0; i < static_cast<int>(sizeof...(Dims)); ++i)
    if (tag.size > 0 && *tags[i] == tag) return i;
  return -1;
}
template <int Index, class... Dims>
struct dim_at {
  using type = dyn;
};
template <class D, class... Dims>
struct dim_at<0, D, Dims...> {
  using type = D;
};
template <int Index, class D, class... Dims>
  requires(Index > 0)
struct dim_at<Index, D, Dims...> : dim_at<Index - 1, Dims...> {};

template <index_t Extent, int Index, class... Dims>
struct dim_named {
  using type = dim<Extent>;
};
template <int Index, class... Dims>
struct dim_named<dynamic, Index, Dims...> : dim_at<Index, Dims...> {};

// The shape type that a layout value names: tags of `S` stay, other dynamic extents are `dyn`.
template <class S, class Source, class Dims>
struct shape_named;
template <class... Tags, class Source, int... Dim>
struct shape_named<shape<Tags...>, Source, indices<Dim...>> {
  using type = shape<typename dim_named<Source::value.dims[Dim].extent, tag_place<Tags...>(Source::value.dims[Dim].tag),
                                        Tags...>::type...>;
};

template <class T, class Source>
struct layout_only {
  static constexpr const layout& value = Source::value.layout;
};

// Whether two layouts differ in nothing but extents, so that one partition names both: neither has windows or lists of
// lengths, which speak of extents.
constexpr bool cut_alike(const layout& a, const layout& b) {
  if (!(a.mesh == b.mesh) || !(a.placements == b.placements) || a.dims.count != b.dims.count) return false;
  for (int d = 0; d < a.dims.count; ++d) {
    const dimension& p = a.dims[d];
    const dimension& q = b.dims[d];
    if (p.kind != cover::tiled || q.kind != cover::tiled || p.bounds != nullptr || q.bounds != nullptr) return false;
    if (p.glued != q.glued || p.turned != q.turned || p.zigzag != q.zigzag) return false;
  }
  return true;
}

/// A tensor type that is cut as the canonical tensor type `Like` is, with the extents of `Source::value`.
template <class Like, class Source>
struct resized {
  using plain = layout_only<Like, Source>;
  using type = tensor<
      typename described<Like>::partition_type,
      typename shape_named<typename described<Like>::shape_type, plain, indices_below<plain::value.dims.count>>::type,
      tessera::engine::element_type<Source::value.element>>;
};

/// The tensor type whose value is `Source::value`, on a mesh type and with the names of extents of tensor type `Like`.
template <class Like, class Source, class Mesh = typename described<Like>::mesh_type>
struct tensor_named {
  using plain = layout_only<Like, Source>;
  using type = tensor<
      partition_from<Mesh, plain>,
      typename shape_named<typename described<Like>::shape_type, plain, indices_below<plain::value.dims.count>>::type,
      tessera::engine::element_type<Source::value.element>>;
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

// The result of an operation or a layer as a tensor type. `Result` has its value and, if it is refused, the refusal.
// Names of extents come from tensor type `Like`, and so do the mesh's unless it is given.
template <class Like, class Result, class Mesh = typename described<Like>::mesh_type>
struct named_result {
  struct verdict_source {
    static constexpr refusal value = Result::why;
  };
  using verdict = verdict_of<verdict_source, Like, Result>;
  using type = typename named_or_refused<Like, Result, Mesh, verdict::ok>::type;
};

}  // namespace detail

namespace engine {

/// The canonical spelling of a tensor type: equal values give equal types.
template <class T>
using canonical_tensor = typename detail::named_unless_refused<typename detail::named_tensor<T>::type,
                                                               detail::itself<detail::as_tensor<T>>>::type;

}  // namespace engine

/// The type of the cotangent: replicate and partial, haloed and pending change places.
template <class T>
using cotangent_type = typename detail::named_unless_refused<typename detail::named_tensor<T>::type,
                                                             detail::cotangent_source<detail::as_tensor<T>>>::type;

}  // namespace tessera
