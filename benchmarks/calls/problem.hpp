#pragma once
// What is measured: verbs on a matrix of doubles, as the boxes of each worker for what is written by hand and as
// layouts.

#include <tessera/comm/memory/shared_heap.hpp>
#include <tessera/topology/layout.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace calls {

using tessera::index_t;

/// Rows [top, bottom) and columns [left, right) of a matrix.
struct rectangle {
  index_t top = 0, bottom = 0, left = 0, right = 0;

  index_t rows() const { return bottom - top; }
  index_t columns() const { return right - left; }
  index_t count() const { return rows() * columns(); }
};

inline rectangle meet(const rectangle& a, const rectangle& b) {
  rectangle c{std::max(a.top, b.top), std::min(a.bottom, b.bottom), std::max(a.left, b.left),
              std::min(a.right, b.right)};
  if (c.rows() <= 0 || c.columns() <= 0) return {};
  return c;
}

enum class verb { repartition, halo, all_gather, reduce_scatter, all_reduce, broadcast, sum_reduce };
inline constexpr verb verbs[]{verb::repartition, verb::halo,      verb::all_gather, verb::reduce_scatter,
                              verb::all_reduce,  verb::broadcast, verb::sum_reduce};
inline constexpr const char* names[]{"repartition", "halo",      "all_gather", "reduce_scatter",
                                     "all_reduce",  "broadcast", "sum_reduce"};

/// A verb on a matrix, over workers in a row. The halo is one row wide.
struct problem {
  verb what = verb::repartition;
  index_t rows = 0, columns = 0;
  int workers = 1;

  std::string name() const { return names[static_cast<int>(what)]; }
  index_t bytes() const { return rows * columns * index_t{sizeof(double)}; }
  bool adds() const { return what == verb::reduce_scatter || what == verb::all_reduce || what == verb::sum_reduce; }

  rectangle all() const { return {0, rows, 0, columns}; }
  rectangle band(int rank) const { return {rows * rank / workers, rows * (rank + 1) / workers, 0, columns}; }

  /// What a worker has before and after.
  rectangle holds(int rank) const {
    if (adds()) return all();
    if (what == verb::broadcast) return rank == 0 ? all() : rectangle{};
    return band(rank);
  }
  rectangle gets(int rank) const {
    const rectangle mine = band(rank);
    switch (what) {
      case verb::repartition: return {0, rows, columns * rank / workers, columns * (rank + 1) / workers};
      case verb::halo: return {std::max<index_t>(0, mine.top - 1), std::min(rows, mine.bottom + 1), 0, columns};
      case verb::reduce_scatter: return mine;
      case verb::sum_reduce: return rank == 0 ? all() : rectangle{};
      default: return all();
    }
  }

  tessera::layout from() const {
    tessera::layout x = uncut();
    if (adds()) x.placements[0] = tessera::engine::partial_by(tessera::combine::sum);
    else if (what == verb::broadcast) x.placements[0] = tessera::engine::held_on(0);
    else x.cut_by(0, 0);
    return x;
  }
  tessera::layout to() const {
    tessera::layout x = uncut();
    if (what == verb::repartition) x.cut_by(1, 0);
    if (what == verb::sum_reduce) x.placements[0] = tessera::engine::held_on(0);
    if (what == verb::halo || what == verb::reduce_scatter) x.cut_by(0, 0);
    if (what == verb::halo) {
      x.dims[0].kind = tessera::cover::haloed;
      x.dims[0].outputs = rows;
      x.dims[0].needs = tessera::sliding{3, 1, 1, 1, 1}.needs();
    }
    return x;
  }

  /// The element at a place, as worker `rank` holds it: its term where terms are added.
  double held(index_t row, index_t column, int rank) const {
    return static_cast<double>((row * columns + column) % 1000 * (adds() ? rank + 1 : 1));
  }
  double got(index_t row, index_t column) const {
    return held(row, column, 0) * (adds() ? workers * (workers + 1) / 2 : 1);
  }

 private:
  tessera::layout uncut() const {
    tessera::layout x;
    x.mesh.axes.push({tessera::text{"worker"}, workers, 1});
    x.placements.resize(1);
    for (const index_t n : {rows, columns}) {
      tessera::engine::dimension d;
      d.extent = n;
      x.dims.push(d);
    }
    return x;
  }
};

/// Memory that is kept when it is given back, as that of tensors; in the node's heap where there is one.
inline tessera::engine::block_cache& kept() {
  static tessera::engine::private_pages alone;
  tessera::engine::shared_heap& heap = tessera::engine::shared_heap::of_process();
  static auto* const cache =
      heap.is_open() ? new tessera::engine::block_cache(heap) : new tessera::engine::block_cache(alone);
  return *cache;
}
template <class T>
struct keeping {
  using value_type = T;

  keeping() = default;
  template <class Other>
  keeping(const keeping<Other>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(kept().allocate(n * sizeof(T))); }
  void deallocate(T* x, std::size_t) { tessera::engine::block_cache::deallocate(x); }
  bool operator==(const keeping&) const = default;
};
using numbers = std::vector<double, keeping<double>>;

/// Memory for a result: fresh at every call, as that of tensors, while the result of the call before lasts.
class fresh_output {
 public:
  explicit fresh_output(std::size_t count) : bytes_(count * sizeof(double)) {}
  fresh_output(const fresh_output&) = delete;
  fresh_output& operator=(const fresh_output&) = delete;
  ~fresh_output() { tessera::engine::block_cache::deallocate(now_); }

  double* next() {
    void* const before = std::exchange(now_, kept().allocate(bytes_));
    tessera::engine::block_cache::deallocate(before);
    return now();
  }
  double* now() const { return static_cast<double*>(now_); }

 private:
  std::size_t bytes_;
  void* now_ = nullptr;
};

/// What a worker has and what it is to get.
struct matrices {
  problem of;
  int rank = 0;
  numbers in = numbers(static_cast<std::size_t>(of.holds(rank).count()));
  numbers out = numbers(static_cast<std::size_t>(of.gets(rank).count()));

  matrices(const problem& p, int r) : of(p), rank(r) {
    each(of.holds(rank), in, [&](index_t row, index_t column, double& x) { x = of.held(row, column, rank); });
  }

  /// Runs a method once and throws unless everything that it is to bring is there.
  template <class Method>
  void insist(const std::string& name, Method&& method) {
    std::fill(out.begin(), out.end(), -1.0);
    method();
    each(of.gets(rank), out, [&](index_t row, index_t column, const double& x) {
      if (x != of.got(row, column)) throw std::runtime_error(of.name() + ": " + name + " brings something else");
    });
  }

 private:
  template <class F>
  static void each(const rectangle& where, numbers& values, F&& f) {
    auto value = values.begin();
    for (index_t row = where.top; row < where.bottom; ++row)
      for (index_t column = where.left; column < where.right; ++column) f(row, column, *value++);
  }
};

}  // namespace calls
