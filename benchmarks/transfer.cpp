// Repartition and halo exchange between threads, against a memcpy of the same bytes by the same threads: reported, no
// bar.
#include <tessera/comm/workers.hpp>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace ts = tessera;
using ts::index_t;

namespace {

using seconds = std::chrono::duration<double>;

struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;

struct buffer {
  std::vector<double> data;
  ts::engine::region where;
  explicit buffer(const ts::box& b) : data(static_cast<std::size_t>(ts::engine::volume(b)), 1.0) {
    where.element = ts::element::float64;
    for (const ts::engine::interval& i : b) where.extents.push(i.size());
    where.strides = where.extents;
    where = where.packed_at(reinterpret_cast<std::byte*>(data.data()));
  }
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// Times one Move and a memcpy of the bytes that it delivers, in turns; one JSON line.
void measure(const char* name, index_t bytes, const ts::layout& from, const ts::layout& to) {
  const int rounds = bytes > (8 << 20) ? 15 : 301;
  std::barrier all(grid::value.size());
  std::vector<double> ratios;
  std::vector<double> moves;
  std::vector<double> copies;
  const auto worker = [&](ts::team<grid>& team) {
    const ts::engine::step s{ts::engine::map::move, from, to, ts::combine::sum};
    const auto bound = team.state()->bound(s, ts::element::float64);
    const buffer in(ts::box_of(from, team.rank()));
    const buffer out(ts::box_of(to, team.rank()));
    std::vector<double> plain(out.data.size(), 2.0);
    const auto timed = [&](auto&& act) {
      all.arrive_and_wait();
      const auto began = std::chrono::steady_clock::now();
      act();
      all.arrive_and_wait();
      return seconds(std::chrono::steady_clock::now() - began).count();
    };
    for (int i = 0; i < rounds; ++i) {
      const double move = timed([&] { bound->start(in.where, out.where).finish(); });
      const double copy = timed([&] { std::memcpy(plain.data(), out.data.data(), plain.size() * sizeof(double)); });
      if (!team.first()) continue;
      moves.push_back(move);
      copies.push_back(copy);
      ratios.push_back(move / copy);
    }
  };
  ts::run_workers<grid>(
      0, nullptr, {.transport = ts::transport_choice::in_process, .time_limit = std::chrono::seconds(60)}, worker);
  std::printf(
      "{\"name\": \"in_process.%s.%lldMiB\", \"ratio\": %.3f, \"bar\": null, \"ok\": true, \"microseconds\": %.1f, "
      "\"memcpy_microseconds\": %.1f}\n",
      name, static_cast<long long>(bytes >> 20), median(ratios), 1e6 * median(moves), 1e6 * median(copies));
}

}  // namespace

int main() {
  for (const index_t bytes : {index_t{1} << 20, index_t{64} << 20}) {
    const auto n = static_cast<index_t>(std::sqrt(static_cast<double>(bytes) / sizeof(double)));
    ts::layout tiles;
    tiles.mesh = grid::value;
    tiles.placements.resize(2);
    ts::engine::dimension d;
    d.extent = n;
    tiles.dims.push(d);
    tiles.dims.push(d);
    ts::layout columns = tiles;
    tiles.cut_by(0, 0);
    tiles.cut_by(1, 1);
    columns.cut_by(1, 0);
    columns.cut_by(1, 1);
    measure("repartition", bytes, tiles, columns);
    ts::layout haloed = tiles;
    const ts::sliding three{3, 1, 1, 1, 1};
    for (int k = 0; k < 2; ++k) {
      ts::engine::dimension h = haloed.dims[k];
      h.kind = ts::cover::haloed;
      h.outputs = n;
      h.needs = three.needs();
      haloed.dims[k] = h;
    }
    measure("halo_exchange", bytes, tiles, haloed);
  }
}
