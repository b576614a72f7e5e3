#pragma once

#include <tessera/meta/kind.hpp>
#include <tessera/topology/layout.hpp>

#include <type_traits>

namespace tessera {

/// An extent known while compiling.
template <index_t N>
struct dim {
  static constexpr index_t extent = N < 0 ? 0 : N;
  static constexpr index_t missing = extent - N;  // what has a negative extent is refused
};

/// An extent known at run time has a name too: users derive a type of their own. `struct batch : dyn {};`
struct dyn : detail::is_a<kind::extent> {
  static constexpr index_t extent = dynamic;
};
static_assert(engine::unnamed == engine::short_name_of<dyn>());

/// The global extents of a tensor: `shape<batch, dim<784>>`.
template <class... Dims>
struct shape {
  static constexpr int rank = sizeof...(Dims);
};
template <index_t N>
inline constexpr kind engine::kind_of<dim<N>> = kind::extent;
template <class... Dims>
inline constexpr kind engine::kind_of<shape<Dims...>> = kind::shape;

/// A shape whose extents are all static: `shape_of<64, 784>`.
template <index_t... N>
using shape_of = shape<dim<N>...>;

/// The value of one dynamic extent: `bind<batch>(64)`.
template <class Tag>
struct binding {
  static constexpr text tag = engine::short_name_of<Tag>();
  static constexpr bool accepted = engine::kind_of<Tag> == kind::extent;
  index_t extent = 0;
};
template <class Tag>
inline constexpr kind engine::kind_of<binding<Tag>> = kind::binding;

/// Gives a dynamic extent its value, at least 0.
template <class Tag>
constexpr binding<Tag> bind(index_t extent) {
  using verdict = detail::argument_verdict<kind::call, 0, kind::extent, Tag>;
  verdict::template refuse<verdict>();
  if (extent < 0)
    engine::stop(refusal{code::extent_negative, 0, extent});  // [tessera.shape.negative] an extent is at least 0
  return {extent};
}

namespace engine {

/// Gives every dynamic extent named `tag` its value.
constexpr void bind_extent(layout& x, const text& tag, index_t extent) {
  for (int d = 0; d < x.dims.count; ++d)
    if (x.dims[d].extent == dynamic && x.dims[d].tag == tag) x.dims[d].extent = extent;
}
constexpr layout bound(layout x, const text& tag, index_t extent) {
  bind_extent(x, tag, extent);
  return x;
}

}  // namespace engine

namespace detail {

constexpr layout bound_all(layout x) { return x; }
template <class Tag, class... Rest>
constexpr layout bound_all(const layout& x, const binding<Tag>& first, const Rest&... rest) {
  return bound_all(bound(x, first.tag, first.extent), rest...);
}

// The name of a dynamic extent, short and whole; a static one has none.
template <class D>
inline constexpr text tag_of;
template <class D>
  requires(D::extent == dynamic)
inline constexpr text tag_of<D> = short_name_of<D>();
template <class D>
inline constexpr text full_tag_of;
template <class D>
  requires(D::extent == dynamic)
inline constexpr text full_tag_of<D> = full_name_of<D>();

template <class D>
inline constexpr index_t missing_of = 0;
template <index_t N>
inline constexpr index_t missing_of<dim<N>> = dim<N>::missing;

template <class D>
constexpr refusal check_extent(int d) {
  return missing_of<D> > 0 ? refusal{code::extent_negative, d, -missing_of<D>} : refusal{};
}

// Refuses negative extents, and dynamic ones of one name, but different types.
template <class... Dims>
constexpr refusal check_extents() {
  constexpr int count = sizeof...(Dims);
  const index_t missing[]{missing_of<Dims>..., 0};
  for (int d = 0; d < count; ++d)
    if (missing[d] > 0) return refusal{code::extent_negative, d, -missing[d]};
  const text* const tags[]{&tag_of<Dims>..., nullptr};
  const text* const types[]{&full_tag_of<Dims>..., nullptr};
  for (int i = 0; i < count; ++i)
    for (int other = 0; tags[i]->size > 0 && other < count; ++other)
      if (*tags[i] == *tags[other] && !(*types[i] == *types[other]))
        return refusal{code::extents_of_one_name, i, other};
  return {};
}

template <class Shape>
struct extents_of;
template <class... Dims>
struct extents_of<shape<Dims...>> {
  static constexpr refusal why = [] {
    constexpr refusal kinds = check_kinds<kind::shape, kind::extent, Dims...>();
    if constexpr (kinds.ok()) return check_extents<Dims...>();
    else return kinds;
  }();
  static constexpr void write(layout& x) {
    const index_t extents[]{Dims::extent..., 0};
    const text* const tags[]{&tag_of<Dims>..., nullptr};
    for (int d = 0; d < x.dims.count && d < static_cast<int>(sizeof...(Dims)); ++d) {
      x.dims[d].extent = extents[d];
      x.dims[d].tag = *tags[d];
    }
  }
};

}  // namespace detail
}  // namespace tessera
