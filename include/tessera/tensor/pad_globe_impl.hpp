#pragma once

#include <tessera/tensor/autograd/empty_result.hpp>
#include <tessera/tensor/pad_globe.hpp>

#include <initializer_list>

namespace tessera::functions::engine {

TESSERA_INLINE at::Tensor compute_pad_globe(const bound_exchanges& by, const at::Tensor& x, const globe_padding& f) {
  std::vector<at::Tensor> brought;
  for (std::size_t i = 0; i < 3; ++i) brought.push_back(by.exchanged(x, i));
  const local_box& result = by.boxes.result;
  if (result.empty()) return tessera::detail::empty_result(result.held, brought, x.scalar_type());
  const int lat = result.extents.count - 2, lon = lat + 1;
  const index_t rows = f.rows, columns = f.columns;
  const index_t n = result.extents[lat] - 2 * rows, around = result.extents[lon] - 2 * columns;
  const auto chosen = [&x](const at::Tensor& of, int d, const std::vector<index_t>& places) {
    const auto count = static_cast<index_t>(places.size());
    bool in_order = true;
    for (std::size_t i = 1; i < places.size(); ++i) in_order = in_order && places[i] == places[i - 1] + 1;
    return in_order ? of.narrow(d, count == 0 ? 0 : places[0], count)
                    : of.index_select(d, at::tensor(places, at::kLong).to(x.device()));
  };
  std::vector<at::Tensor> parts;
  // beyond the first pole, in place, beyond the other
  for (const std::size_t e : std::initializer_list<std::size_t>{1, 0, 2}) {
    const holding has = tessera::engine::held_by(by.exchanges[e].to->layout(), by.team->rank());
    const index_t turn = e == 0 ? 0 : around / 2;
    std::vector<index_t> from_rows, from_columns;
    for (index_t i = 0; i < result.size(lat); ++i) {
      const index_t p = result.global(lat, i);
      if (e == (p < rows ? 1 : p >= rows + n ? 2 : 0))
        from_rows.push_back(position(has[lat], e == 0 ? p - rows : (e == 1 ? rows : 2 * n + rows) - 1 - p));
    }
    for (index_t i = 0; i < result.size(lon); ++i)
      from_columns.push_back(
          position(has[lon], tessera::detail::modulo(result.global(lon, i) - columns + turn, around)));
    const at::Tensor read = chosen(chosen(brought[e], lat, from_rows), lon, from_columns);
    parts.push_back(f.negated && e != 0 ? read.neg() : read);
  }
  return at::cat(parts, lat);
}

}  // namespace tessera::functions::engine
