#include "tests/support/catch.hpp"

#include <tessera/meta/text.hpp>

#include <string_view>

namespace tessera::testing {

using namespace engine;

namespace {

struct batch {};
template <class... T>
struct holds {
  struct inner {};
};

constexpr std::string_view seen(const text& t) { return {t.data, static_cast<std::size_t>(t.size)}; }

}  // namespace

TEST_CASE("a type's short name is the last part of its name, with its own arguments alone", "[plan]") {
  STATIC_REQUIRE(seen(short_name_of<batch>()) == "batch");
  STATIC_REQUIRE(seen(short_name_of<holds<batch>::inner>()) == "inner");
  CHECK(seen(short_name_of<holds<batch, holds<>>>()).substr(0, 6) == "holds<");
  STATIC_REQUIRE(seen(short_name_of<int>()) == "int");
  CHECK(seen(detail::full_name_of<batch>()).ends_with("::batch"));
}

TEST_CASE("texts are equal by what they say, wherever it stands, and have the published hash of it", "[law]") {
  static constexpr char twice[] = "row col row";
  STATIC_REQUIRE(text(twice, 3) == text(twice + 8, 3));
  STATIC_REQUIRE(text(twice, 3) == text{"row"});
  STATIC_REQUIRE(!(text{"row"} == text{"rows"}));
  STATIC_REQUIRE(!(text{"ab"} == text{"ba"}));
  // FNV-1a of 64 bits, as its authors list it.
  STATIC_REQUIRE(text{""}.hash == 0xcbf29ce484222325u);
  STATIC_REQUIRE(text{"a"}.hash == 0xaf63dc4c8601ec8cu);
  STATIC_REQUIRE(text{"foobar"}.hash == 0x85944171f73967e8u);
  STATIC_REQUIRE(text{"\xff"}.hash == (0xcbf29ce484222325u ^ 0xffu) * 0x100000001b3u);  // bytes have no sign
}

}  // namespace tessera::testing
