#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"

#include <tessera/nn/kernel/row_loops.hpp>

#include <cmath>
#include <random>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::detail;

// Loops over rows, of each set of instructions, against sums and products in long double that are written out here.
// Boxes of some megabytes are written past the caches, rows that do not lie on lanes are not.

namespace {

/// Numbers of a row or a column, in the order of a box's elements.
template <class Real>
struct row_numbers {
  std::vector<Real> of;
  bool along;
  long double at(const row_shape& shape, index_t i) const {
    return of.empty()
               ? 0
               : static_cast<long double>(of[static_cast<std::size_t>(along ? i % shape.columns : i / shape.columns)]);
  }
};

/// How far `found` is from `expected`, in units of the largest of what was added to each.
template <class Found>
double distance_of_sums(const std::vector<Found>& found, const std::vector<long double>& expected,
                        const std::vector<long double>& added) {
  double most = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    most = std::max(most, static_cast<double>(std::fabs(static_cast<long double>(found[i]) - expected[i]) /
                                              std::max(added[i], 1e-30L)));
  return most;
}

template <class Real>
void judge_loops(const row_loops<Real>& loops, const row_shape& shape, std::size_t offset) {
  std::mt19937 engine(7);
  std::uniform_real_distribution<double> between(-2, 2);
  const auto roll = [&](index_t n) {
    std::vector<Real> all(static_cast<std::size_t>(n));
    for (Real& x : all) x = static_cast<Real>(between(engine));
    return all;
  };
  const index_t n = shape.elements();
  const std::vector<Real> x = roll(n), g = roll(n);
  const auto of_groups = [&] { return row_numbers<Real>{roll(shape.numbers()), shape.groups_along}; };
  const auto of_parameters = [&] {
    return row_numbers<Real>{roll(shape.parameters_along ? shape.columns : shape.rows), shape.parameters_along};
  };
  const row_numbers<Real> origin = of_groups(), scale = of_groups(), shift = of_groups(), slope = of_groups(),
                          offsets = of_groups(), weight = of_parameters(), bias = of_parameters();
  const row_operands<Real> all{shape,           x.data(),         g.data(),       origin.of.data(), scale.of.data(),
                               shift.of.data(), weight.of.data(), bias.of.data(), slope.of.data(),  offsets.of.data()};

  const index_t half = shape.rows / 2;  // in two calls, as threads do
  const auto sums = [&](auto loop, const auto& terms, bool of_rows, bool of_columns) {
    std::vector<double> rows(static_cast<std::size_t>(of_rows ? 2 * shape.rows : 0)),
        columns(static_cast<std::size_t>(of_columns ? 2 * shape.columns : 0));
    loop(all, 0, half, rows.data(), columns.data());
    loop(all, half, shape.rows, rows.data(), columns.data());
    std::vector<long double> expected[2], added[2];
    for (int w = 0; w < 2; ++w)
      expected[w].resize(w == 0 ? rows.size() : columns.size()), added[w].resize(expected[w].size());
    for (index_t i = 0; i < n; ++i) {
      const auto [first, second, by] = terms(i);
      const auto add = [&, first = first, second = second](int w, index_t line, index_t lines, long double weighted) {
        for (int t = 0; t < 2; ++t) {
          const long double term = (t == 0 ? first : second) * weighted;
          expected[w][static_cast<std::size_t>(t * lines + line)] += term;
          added[w][static_cast<std::size_t>(t * lines + line)] += std::fabs(term);
        }
      };
      if (of_rows) add(0, i / shape.columns, shape.rows, by);
      if (of_columns) add(1, i % shape.columns, shape.columns, 1);
    }
    return std::max(distance_of_sums(rows, expected[0], added[0]), distance_of_sums(columns, expected[1], added[1]));
  };
  const auto standardised = [&](index_t i) {
    return (static_cast<long double>(x[static_cast<std::size_t>(i)]) - origin.at(shape, i)) * scale.at(shape, i) +
           shift.at(shape, i);
  };
  const auto gradient = [&](index_t i) { return static_cast<long double>(g[static_cast<std::size_t>(i)]); };
  const auto elements = [&](auto loop, const auto& of) {
    std::vector<Real> room(static_cast<std::size_t>(n) + 64, Real{77});
    Real* to = room.data();
    while (reinterpret_cast<std::uintptr_t>(to) % 64 != 0) ++to;
    to += offset;
    loop(all, 0, half, to);
    loop(all, half, shape.rows, to);
    bool within = to[n] == Real{77} && (offset == 0 || to[-1] == Real{77});
    double most = 0;
    for (index_t i = 0; i < n; ++i)
      most = std::max(most, static_cast<double>(std::fabs(static_cast<long double>(to[i]) - of(i)) / 64));
    return within ? most : 1e300;
  };

  const double eps = static_cast<double>(std::numeric_limits<Real>::epsilon());
  const bool weighted = shape.parameters_along && !shape.groups_along;
  CHECK(sums(
            loops.moments,
            [&](index_t i) {
              const long double d = static_cast<long double>(x[static_cast<std::size_t>(i)]) - origin.at(shape, i);
              return std::array<long double, 3>{d, d * d, 1};
            },
            !shape.groups_along, shape.groups_along) < 64 * std::numeric_limits<double>::epsilon());
  CHECK(sums(
            loops.products,
            [&](index_t i) {
              return std::array<long double, 3>{gradient(i), gradient(i) * standardised(i),
                                                weighted ? weight.at(shape, i) : 1};
            },
            !shape.groups_along, shape.parameters_along) < 16 * eps);
  CHECK(elements(loops.result, [&](index_t i) { return standardised(i) * weight.at(shape, i) + bias.at(shape, i); }) <
        eps);
  CHECK(elements(loops.gradient, [&](index_t i) {
          return gradient(i) * weight.at(shape, i) * scale.at(shape, i) +
                 (standardised(i) * slope.at(shape, i) + offsets.at(shape, i));
        }) < eps);
}

}  // namespace

TEMPLATE_TEST_CASE("loops over rows are exact sums to rounding, for each set of instructions", "[law]", float, double) {
  const bool groups = GENERATE(false, true);
  const bool parameters = groups || GENERATE(false, true);
  const auto [rows, columns, offset] = GENERATE(table<index_t, index_t, std::size_t>({{5, 1, 0},
                                                                                      {1, 7, 1},
                                                                                      {3, 8, 0},
                                                                                      {70, 33, 0},
                                                                                      {130, 1000, 3},
                                                                                      {2, 5000, 0},
                                                                                      {1030, 1024, 0},
                                                                                      {1030, 1024, 1},
                                                                                      {1100, 1001, 0}}));
  if (testing::tried_of > 1 && rows * columns > 1000000 && !groups) return;  // megabytes, with what differs by group
  const row_shape shape{rows, columns, groups, parameters};
  CAPTURE(rows, columns, groups, parameters, offset);
  judge_loops(of_any_machine::loops<TestType>, shape, offset);
  judge_loops(loops_here<TestType>(), shape, offset);
}
