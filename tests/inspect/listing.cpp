#include <tessera/inspect/listing.hpp>

#include "tests/support/catch.hpp"

// Which of a network's layers a table lists.

namespace {

using namespace tessera::engine;

struct layer {
  std::string path;
  std::int64_t bytes;
};

const std::vector<layer> all{{"", 400},          {"body", 380},       {"body.0", 120},     {"body.0.attention", 80},
                             {"body.0.mlp", 40}, {"body.1", 250},     {"body.1.mlp", 160}, {"12", 7},
                             {"12.3", 250},      {"body.1.mlp.0", 9}, {"head", 20}};

std::string paths(const listing& how) {
  std::string s;
  for (const layer& one : listed(all, how)) s += one.path + " ";
  return s;
}

}  // namespace

TEST_CASE("numbers of a path are no depth", "[law]") {
  CHECK(scope_within("", 0) == "");
  CHECK(scope_within("body.0.attention", 0) == "");
  CHECK(scope_within("body.0.attention", 1) == "body.0");
  CHECK(scope_within("body.0.attention.2", 2) == "body.0.attention.2");
  CHECK(scope_within("0.1.2", 0) == "0.1.2");
  CHECK(scope_within("0.body", 0) == "0");
}

TEST_CASE("layers are listed by depth, least size and number, as they come or the largest first", "[law]") {
  CHECK(paths({.depth = 0}) == " 12 12.3 ");
  CHECK(paths({.depth = 1}) == " body body.0 body.1 12 12.3 head ");
  CHECK(paths({.depth = 2, .least_bytes = 40}) == " body body.0 body.0.attention body.0.mlp body.1 body.1.mlp 12.3 ");
  CHECK(paths({.by_bytes = true, .most = 5}) == " body body.1 12.3 body.1.mlp ");
  CHECK(paths({.least_bytes = 401}) == "");
}
