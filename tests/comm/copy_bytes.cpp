#include "tests/support/catch.hpp"

#include <tessera/comm/box/copy_bytes.hpp>

#include <vector>

using namespace tessera;

TEST_CASE("bytes are copied from anywhere to anywhere, few and many, and nothing beside them") {
  constexpr auto many = static_cast<std::size_t>(streamed_from);
  constexpr std::byte before{9};
  for (const std::size_t n : {std::size_t{0}, std::size_t{100}, many - 1, many, many + 100'077})
    for (const std::size_t to : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}})
      for (const std::size_t from : {std::size_t{0}, std::size_t{5}}) {
        std::vector<std::byte> x(n + 200), y(n + 200, before);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::byte>(i * 7 + i / 251);
        copy_bytes(y.data() + to, x.data() + from, n);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < y.size(); ++i) wrong += y[i] != (i >= to && i - to < n ? x[i - to + from] : before);
        CHECK(wrong == 0);
      }
}
