#include "tests/support/catch.hpp"

#include <tessera/comm/base/error.hpp>
#include <tessera/operation/refusals.hpp>
#include <tessera/primitive/refusals.hpp>
#include <tessera/topology/refusals.hpp>

using namespace tessera;
using namespace tessera::engine;

TEST_CASE("an error is the same behind a text that another process reads, and elsewhere", "[refusal]") {
  const auto alike = [](const error& one, const error& other) {
    return std::string(one.what()) == other.what() && std::string(one.code()) == other.code() &&
           one.numbers() == other.numbers() && one.where() == other.where();
  };
  for (const char* where : {"", "worker 3", "two\n\nlines [and brackets]"}) {
    const error longest(refusal{code::kernel_too_wide, 2, -8, 1, INT64_MAX}, where);
    CHECK(alike(error::unpacked(longest.packed()), longest));
    CHECK(alike(longest.at("here").at(where), longest));
    CHECK(longest.is(code::kernel_too_wide));
    CHECK(longest.numbers() == std::vector<index_t>{2, -8, 1, INT64_MAX});
    const error shortest(refusal{code::call_finished}, where);
    CHECK(alike(error::unpacked(shortest.packed()), shortest));
    CHECK(!shortest.is(code::worker_lost));
    CHECK(shortest.numbers().empty());
  }
  const std::string cut = error(refusal{code::worker_lost, 1, 2}, std::string(2000, 'x')).packed().substr(0, 1023);
  CHECK(error::unpacked(cut).is(code::worker_lost));
  CHECK(error::unpacked(cut).numbers() == std::vector<index_t>{1, 2});
}

TEST_CASE("an error names axes, verbs and elements, and says what each number is", "[refusal]") {
  const auto ends = [](const refusal& why, std::string_view told) {
    return std::string_view(error(why).what()).ends_with(told);
  };
  CHECK(ends(refusal{code::mixed_combines, text("col"), -1}, "first (axis col, dimension none)"));
  CHECK(ends(refusal{code::not_a_tiling, text(), 1}, "first (axis none, dimension 1)"));
  CHECK(ends(refusal{code::not_this_verb, verb::all_gather, verb::scatter},
             "find it (wanted verb all_gather, found verb scatter)"));
  CHECK(ends(refusal{code::wrong_element, element::float16, -1},
             "convert it (expected element half, given element another)"));
  CHECK(ends(refusal{code::extents_differ, 0, -1, 7}, "the same (dimension 0, first -1, second 7)"));
  CHECK(ends(refusal{code::call_finished}, "each call once"));
}
