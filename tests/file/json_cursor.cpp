#include "tests/support/catch.hpp"

#include <tessera/file/json_cursor.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

/// Where and how a value is misread; empty where it is read.
template <class F>
std::string misread(const F& read) {
  try {
    static_cast<void>(read());
  } catch (const error& e) {
    if (e.is(code::file_misread)) return e.where();
    throw;
  }
  return "";
}

}  // namespace

TEST_CASE("a fault in a file names the path to its place, through objects and lists", "[refusal]") {
  const file::json all = file::json::parse(R"({"nodes": [{"of": "x"}, {"of": 7, "size": [3, -1]}]})");
  const file::json_cursor top(all, "net");
  const file::json_cursor node = top.at("nodes").list().item(1);
  CHECK(node.at("size").item(1).path() == "net.nodes[1].size[1]");
  CHECK(misread([&] { return node.at("of").word(); }) == "net.nodes[1].of: is no string");
  CHECK(misread([&] { return node.at("kernel"); }) == "net.nodes[1]: lacks the field \"kernel\"");
  CHECK(misread([&] { return node.at("of").at("deeper"); }) == "net.nodes[1].of: is no object");
  CHECK(misread([&] { return top.list(); }) == "net: is no list");
  CHECK(misread([&] { return node.only({"of"}); }) ==
        "net.nodes[1]: has a field \"size\" that the format does not know");
  CHECK(misread([&] { return node.only({"size", "stride", "of"}); }).empty());
}

TEST_CASE("a number in a file is whole and between its bounds, however large it is written", "[refusal]") {
  const auto read = [](const char* written, std::int64_t least, std::int64_t most) {
    const file::json value = file::json::parse(written);
    return misread([&] { return file::json_cursor(value, "n").number(least, most); });
  };
  CHECK(read("3", 3, 5).empty());
  CHECK(read("5", 3, 5).empty());
  CHECK(read("2", 3, 5) == "n: is not between 3 and 5");
  CHECK(read("6", 3, 5) == "n: is not between 3 and 5");
  CHECK(read("4.0", 3, 5) == "n: is no whole number");
  CHECK(read("true", 0, 1) == "n: is no whole number");
  CHECK(read("-9223372036854775808", INT64_MIN, INT64_MAX).empty());
  CHECK(read("9223372036854775807", INT64_MIN, INT64_MAX).empty());
  CHECK_FALSE(read("9223372036854775808", INT64_MIN, INT64_MAX).empty());  // one more than an index holds
  CHECK_FALSE(read("18446744073709551615", -1, 5).empty());                // which is no −1
}

}  // namespace tessera::testing
