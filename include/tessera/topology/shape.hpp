#pragma once

#include <tessera/meta/kind.hpp>
#include <tessera/topology/layout.hpp>

#include <type_traits>

namespace tessera {

/// An extent known while compiling.
template <index_t N>
struct dim : detail::is_a<kind::extent> {
  static constexpr index_t extent = N < 0 ? 0 : N;
  static constexpr index_t missing = extent - N;  // what has a negative extent is refused
};

/// An extent known at run time has a name too: users derive a type of their own. `struct batch : dyn {};`
struct dyn : detail::is_a<kind::extent> {
  static constexpr index_t extent = dynamic;
};

/// The global extents of a tensor: `shape<batch, dim<784>>`.
template <class... Dims>
struct shape {
  static constexpr int rank = sizeof...(Dims);
};
template <class... Dims>
inline constexpr kind kind_of<shape<Dims...>> = kind::shape;

/// A shape whose extents are all static: `shape_of<64, 784>`.
template <index_t... N>
using shape_of = shape<dim<N>...>;

/// The value of one dynamic extent: `bind<batch>(64)`.
template <class Tag>
struct binding {
  static constexpr text tag = short_name_of<Tag>();
  static constexpr bool accepted = kind_of<Tag> == kind::extent;
  index_t extent = 0;
};
template <class Tag>
inline constexpr kind kind_of<binding<Tag>> = kind::binding;

template <class Tag>
constexpr binding<Tag> bind(index_t extent) {
  using verdict = detail::argument_verdict<kind::call, 0, kind::extent, Tag>;
  verdict::template refuse<verdict>();
  if (extent < 0) stop(refusal{code::extent_negative, 0, extent});  // [tessera.shape.negative] an extent is at least 0
  return {extent};
}

namespace detail {

constexpr layout bound_all(layout x) { return x; }
template <class Tag, class... Rest>
constexpr layout bound_all(const layout& x, const binding<Tag>& first, const Rest&... rest) {
  return bound_all(bound(x, first.tag, first.extent), rest...);
}

template <class D>
constexpr void set_extent(dimension& into) {
  into.extent = D::extent;
  if constexpr (D::extent == dynamic) into.tag = short_name_of<D>();
}

template <class D>
constexpr refusal check_extent(int d) {
  if constexpr (requires { D::missing; })
    if (D::missing > 0) return refusal{code::extent_negative, d, -D::missing};
  return {};
}

// The place of a dynamic extent of the same name, but another type.
template <class D, class... Dims>
constexpr int namesake() {
  if constexpr (D::extent == dynamic) {
    int place = 0;
    const auto other = [&]<class Other>(std::type_identity<Other>) {
      if constexpr (Other::extent != dynamic || std::is_same_v<D, Other>) return ++place, false;
      else return short_name_of<D>() == short_name_of<Other>() || (++place, false);
    };
    if ((other(std::type_identity<Dims>{}) || ...)) return place;
  }
  return -1;
}

template <class... Dims>
constexpr refusal check_extents() {
  refusal why;
  [[maybe_unused]] int d = 0;
  static_cast<void>(((why = check_extent<Dims>(d++)).ok() && ...));
  if (!why.ok()) return why;
  const int others[]{namesake<Dims, Dims...>()..., -1};
  for (int i = 0; i < static_cast<int>(sizeof...(Dims)); ++i)
    if (others[i] >= 0) return refusal{code::extents_of_one_name, i, others[i]};
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
    int d = 0;
    (..., (d < x.dims.count ? set_extent<Dims>(x.dims[d++]) : void()));
  }
};

}  // namespace detail
}  // namespace tessera
