#pragma once

#include <tessera/plan/proof.hpp>
#include <tessera/topology/tensor_type.hpp>

namespace tessera::detail {

// Proves every cut of a static dimension: by the first axis, then each length that it leaves by the next.
template <index_t Least, index_t Most, int... Extents>
struct levels_proved {
  static constexpr bool value = true;
};
template <index_t Least, index_t Most, int P, int... Inner>
struct levels_proved<Least, Most, P, Inner...> {
  template <int... I>
  static constexpr bool lengths(indices<I...>) {
    return (laws::proved<Least + I, P> && ...);
  }
  static constexpr bool value =
      lengths(indices_below<Most - Least + 1>{}) && levels_proved<Least / P, (Most + P - 1) / P, Inner...>::value;
};

template <class Source>
struct layout_proved {
  template <int Dim, int... Level>
  static constexpr bool levels(indices<Level...>) {
    constexpr const dimension& d = Source::value.dims[Dim];
    constexpr index_t n = d.kind == cover::tiled ? d.extent : d.outputs;
    if constexpr (d.extent == dynamic || sizeof...(Level) == 0) return true;
    else {
      constexpr index_t units = ceil_divide(n, d.grain());
      if constexpr (d.zigzag) return laws::proved<units, d.chunks(Source::value.part_count(Dim))>;
      else
        return levels_proved<units, units, Source::value.mesh.axes[Source::value.cutter(Dim, Level)].extent...>::value;
    }
  }
  template <int... Dim>
  static constexpr bool dims(indices<Dim...>) {
    return (levels<Dim>(indices_below<Source::value.levels(Dim)>{}) && ...);
  }
  static constexpr bool value = dims(indices_below<Source::value.dims.count>{});
};

template <class T>
struct layout_source {
  static constexpr const layout& value = described<T>::value.layout;
};

template <class From, class To>
struct both_proved : std::conjunction<layout_proved<layout_source<From>>, layout_proved<layout_source<To>>> {};

}  // namespace tessera::detail
