#include "tests/support/catch.hpp"

#include <tessera/comm/box/copy_bytes.hpp>

#include <range/v3/view/cartesian_product.hpp>

#include <array>
#include <vector>

using namespace tessera;
using namespace tessera::engine;

TEST_CASE("bytes are copied from anywhere to anywhere, few and many, and nothing beside them", "[law]") {
  constexpr auto many = static_cast<std::size_t>(streamed_from);
  constexpr std::byte before{9};
  constexpr std::array<std::size_t, 5> counts{0, 100, many - 1, many, many + 100'077};
  constexpr std::array<std::size_t, 4> targets{0, 1, 63, 64};
  constexpr std::array<std::size_t, 2> sources{0, 5};
  for (const auto& [n, to, from] : ranges::views::cartesian_product(counts, targets, sources)) {
    std::vector<std::byte> x(n + 200), y(n + 200, before);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::byte>(i * 7 + i / 251);
    copy_bytes(y.data() + to, x.data() + from, n);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < y.size(); ++i) wrong += y[i] != (i >= to && i - to < n ? x[i - to + from] : before);
    CHECK(wrong == 0);
  }
}
