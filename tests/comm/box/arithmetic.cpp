#include "tests/support/by_sockets.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/elements.hpp"

#include <cmath>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Elements and how they combine; tests/comm/mpi asks the same of processes, tests/tensor compares with LibTorch.

namespace {

template <class T>
T rounded(float f) {
  if constexpr (std::is_same_v<T, half>) return to_half(f);
  else return to_bfloat16(f);
}

/// The nearer of two neighbouring numbers, in double; ties to the even one.
template <class T>
bool nearest(float f) {
  const T r = rounded<T>(f);
  const auto distance = [&](int bits) {
    const float value = to_float(T{static_cast<std::uint16_t>(bits)});
    const double far = std::isinf(value) ? std::copysign(std::is_same_v<T, half> ? 65536.0 : 0x1p128, value) : value;
    return std::abs(far - static_cast<double>(f));
  };
  if (std::signbit(to_float(r)) != std::signbit(f)) return false;
  for (const int other : {r.bits - 1, r.bits + 1}) {
    if ((other & 0x7fff) == 0x7fff || (other ^ r.bits) & 0x8000 ||
        std::isnan(to_float(T{static_cast<std::uint16_t>(other)})))
      continue;
    if (distance(other) < distance(r.bits)) return false;
    if (distance(other) == distance(r.bits) && r.bits % 2 != 0) return false;
  }
  return true;
}

template <class T>
int wrong_of_all() {
  int wrong = 0;
  for (int bits = 0; bits < 65536; ++bits) {
    const T x{static_cast<std::uint16_t>(bits)};
    const float f = to_float(x);
    if (std::isnan(f)) {
      wrong += !std::isnan(to_float(rounded<T>(f)));
      continue;
    }
    wrong += !(rounded<T>(f) == x);
    if (std::isinf(f)) continue;
    // at and around the middle between neighbours
    const float next = to_float(T{static_cast<std::uint16_t>(bits + 1)});
    const auto middle = static_cast<float>((static_cast<double>(f) + next) / 2);
    if (std::isfinite(middle) && (bits & 0x7fff) != 0x7fff)
      for (const float near : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 2 * middle)})
        wrong += std::isfinite(near) && !nearest<T>(near);
  }
  return wrong;
}

}  // namespace

static_assert(to_half(1.0f).bits == 0x3c00 && to_half(65504.0f).bits == 0x7bff && to_half(65520.0f).bits == 0x7c00);
static_assert(to_half(0x1p-24f).bits == 1 && to_half(0x1p-25f).bits == 0 && to_half(0x1.8p-24f).bits == 2 &&
              to_half(-0.0f).bits == 0x8000);
static_assert(to_float(half{0x3555}) == 0.333251953125f && to_float(half{0x8001}) == -0x1p-24f);
static_assert(to_bfloat16(1.0f).bits == 0x3f80 && to_bfloat16(3.3895314e38f).bits == 0x7f7f &&
              to_bfloat16(3.4e38f).bits == 0x7f80);

TEST_CASE("half numbers are rounded to the nearest, ties to even, and come back as they were", "[law]") {
  CHECK(wrong_of_all<half>() == 0);
  CHECK(wrong_of_all<bfloat16>() == 0);
}

TEMPLATE_TEST_CASE("terms of every element combine as they do one after the other, to the bit", "[law][runtime]",
                   by_memory, by_sockets) {
  for (const int size : {1, 2, 3, 4, 9}) {
    const auto all =
        in_world<TestType>(size, [](const std::shared_ptr<transport>& carrier) { return every_fold(*carrier); });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
  }
}

namespace {

/// The last region = the others combined.
void combine_regions(const std::vector<region>& all, combine with) {
  std::vector<const index_t*> strides;
  std::vector<std::byte*> at;
  for (const region& r : all) {
    strides.push_back(r.strides.begin());
    at.push_back(r.data);
  }
  combine_rows({all[0].extents, strides}, all[0].element, at, with);
}

}  // namespace

TEST_CASE("many terms in memory with gaps and without combine as few do, to the bit", "[law]") {
  static constexpr index_t n = 2 * tessera::detail::at_once + 77;
  each_element([]<class T>(T) {
    for (const combine with : combines) {
      if (!check_combine(with, tessera::engine::element_of<T>).ok()) continue;
      for (const int count : {1, 2, 3, 9})
        for (const index_t every : {1, 2}) {
          std::deque<gapped<T>> terms;
          std::vector<region> where;
          for (int t = 0; t < count; ++t) {
            terms.emplace_back(n, every);
            for (index_t i = 0; i < n; ++i) terms.back().set(i, term<T>(i, t, with));
            where.push_back(terms.back().where(n));
          }
          gapped<T> out(n, 3 - every);
          where.push_back(out.where(n));
          combine_regions(where, with);
          int wrong = 0;
          for (index_t i = 0; i < n; ++i) {
            std::vector<T> all;
            for (const auto& t : terms) all.push_back(t.get(i));
            wrong += !same_bytes(out.get(i), serial(all, with));
          }
          INFO(name_of(tessera::engine::element_of<T>)
               << " combine " << static_cast<int>(with) << " of " << count << " terms");
          CHECK(wrong == 0);
        }
    }
  });
}

TEMPLATE_TEST_CASE("bits of every element arrive as they are, from and to memory with gaps", "[law][runtime]",
                   by_memory, by_sockets) {
  for (const int size : {1, 2, 3, 4}) {
    const auto all =
        in_world<TestType>(size, [](const std::shared_ptr<transport>& carrier) { return every_move(*carrier); });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
  }
}

TEST_CASE("what is no number is the maximum and the minimum, wherever it comes", "[runtime]") {
  for (const combine with : {combine::max, combine::min})
    for (const float other : {-1.0f, 1.0f}) {
      CHECK(std::isnan(tessera::detail::combined(std::nanf(""), other, with)));
      CHECK(std::isnan(tessera::detail::combined(other, std::nanf(""), with)));
    }
}

TEST_CASE("complex numbers have no maximum; everything else has all combines", "[refusal]") {
  each_element([]<class T>(T) {
    for (const combine with : combines) {
      const bool refused = is_complex_like<T> && (with == combine::max || with == combine::min);
      const step s{map::fold, on_line(2, 3, partial_by(with)), on_line(2, 3, {placement::cut}), with};
      std::string why;
      try {
        exchange_plan p(s, 0, tessera::engine::element_of<T>, {});
      } catch (const error& e) {
        why = e.code();
      }
      CHECK(why == (refused ? "tessera.combine.order" : ""));
      CHECK(check_combines(s.from, tessera::engine::element_of<T>).ok() == !refused);
    }
  });
}

TEST_CASE("only floating and complex elements have a cotangent", "[plan]") {
  each_element([]<class T>(T) {
    STATIC_REQUIRE(std::is_same_v<element_type<tessera::engine::element_of<T>>, T>);
    STATIC_REQUIRE(bytes_of(tessera::engine::element_of<T>) == sizeof(T));
    CHECK(has_cotangent(tessera::engine::element_of<T>) == !std::is_integral_v<T>);
  });
}
