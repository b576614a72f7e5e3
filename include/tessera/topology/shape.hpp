#pragma once

#include <tessera/topology/layout.hpp>

#include <type_traits>

namespace tessera {

/// An extent known while compiling.
template <index_t N>
struct dim {
  static constexpr index_t extent = N < 0 ? 0 : N;
  static constexpr index_t missing = extent - N;  // tensor types refuse a negative extent
};

/// An extent known at run time has a name too: users derive a type of their own. `struct batch : dyn {};`
struct dyn {
  static constexpr index_t extent = dynamic;
};

/// The global extents of a tensor: `shape<batch, dim<784>>`.
template <class... Dims>
struct shape {
  static constexpr int rank = sizeof...(Dims);
};

/// A shape whose extents are all static: `shape_of<64, 784>`.
template <index_t... N>
using shape_of = shape<dim<N>...>;

/// The value of one dynamic extent: `bind<batch>(64)`.
template <class Tag>
struct binding {
  static constexpr text tag = short_name_of<Tag>();
  index_t extent = 0;
};
template <class Tag>
constexpr binding<Tag> bind(index_t extent) {
  return {extent};
}

namespace detail {

template <class D>
constexpr void set_extent(dimension& into) {
  into.extent = D::extent;
  if constexpr (D::extent == dynamic) into.tag = short_name_of<D>();
}

template <class Shape>
struct extents_of;
template <class D>
constexpr void check_extent(refusal& why, int d) {
  if constexpr (requires { D::missing; })
    if (D::missing > 0) why = first_of(why, refusal{code::extent_negative, d, -D::missing});
}
template <class... Dims>
struct extents_of<shape<Dims...>> {
  static constexpr refusal check() {
    refusal why;
    [[maybe_unused]] int d = 0;
    (check_extent<Dims>(why, d++), ...);
    return why;
  }
  static constexpr void write(layout& x) {
    int d = 0;
    (..., (d < x.dims.count ? set_extent<Dims>(x.dims[d++]) : void()));
  }
};

}  // namespace detail
}  // namespace tessera
