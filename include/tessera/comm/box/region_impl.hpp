#pragma once

#include <tessera/comm/box/copy_bytes.hpp>
#include <tessera/comm/box/region.hpp>

#include <cstring>

namespace tessera::engine {

TESSERA_INLINE common_rows::common_rows(const box_vector& extents, const std::vector<const index_t*>& strides)
    : steps_(strides.size()) {
  for (int d = 0; d < extents.count; ++d) {
    empty_ = empty_ || extents[d] == 0;
    if (extents[d] == 1) continue;
    const int last = n_.count - 1;
    bool follow = last >= 0;
    for (std::size_t i = 0; follow && i < strides.size(); ++i) follow = steps_[i][last] == strides[i][d] * extents[d];
    if (follow) n_[last] *= extents[d];
    else n_.push(extents[d]);
    for (std::size_t i = 0; i < strides.size(); ++i) {
      steps_[i].resize(n_.count);
      steps_[i][n_.count - 1] = strides[i][d];
    }
  }
  if (!n_.empty()) return;
  n_.push(1);
  for (box_vector& s : steps_) s.push(1);
}

TESSERA_INLINE void copy_rows(const common_rows& rows, index_t size, std::byte* from, std::byte* to) {
  detail::with_bytes(size, [&](auto zero) {
    constexpr index_t bytes = sizeof(zero);
    std::byte* at[]{from, to};
    const index_t n = rows.length();
    const index_t steps[]{rows.step(0) * bytes, rows.step(1) * bytes};
    const bool whole = steps[0] == bytes && steps[1] == bytes;
    rows.each(at, bytes, [&] {
      if (whole) copy_bytes(at[1], at[0], static_cast<std::size_t>(n * bytes));
      else
        for (index_t i = 0; i < n; ++i) std::memcpy(at[1] + i * steps[1], at[0] + i * steps[0], bytes);
    });
  });
}

TESSERA_INLINE void fill_neutral(const region& to, combine with) {
  detail::with_type(to.element, [&](auto zero) {
    using T = decltype(zero);
    const T value = detail::stored<T>(detail::neutral<decltype(detail::widened(zero))>(with));
    const common_rows rows(to.extents, {to.strides.begin()});
    std::byte* at[]{to.data};
    rows.each(at, sizeof(T), [&] {
      for (index_t i = 0; i < rows.length(); ++i) reinterpret_cast<T*>(at[0])[i * rows.step(0)] = value;
    });
  });
}

}  // namespace tessera::engine
