#include "tests/support/catch.hpp"
#include "tests/support/in_workers.hpp"

#include <tessera/comm/printing.hpp>

#include <sstream>

// What workers print.

namespace tessera::testing::printing_first {
namespace {

/// Tells when it is put into words.
struct told {
  int* times;
};
std::ostream& operator<<(std::ostream& to, const told& one) {
  ++*one.times;
  return to << "told";
}

}  // namespace

TEST_CASE("the first worker of a team prints, the others put nothing into words", "[runtime]") {
  for (const int size : {1, 3})
    for (const int first : {0, 1}) {
      mesh_value on;
      on.axes.push({text{"a"}, size, 1});
      on = row_major(on);
      on.first = first;
      std::string printed[4];
      int words[4]{};
      const auto all = in_world(size + first, [&](const std::shared_ptr<transport>& carrier) {
        const auto r = static_cast<std::size_t>(carrier->rank());
        const team_state team(carrier, on);
        std::ostringstream to;
        printing(team, to) << "loss " << 0.5 << ' ' << std::string("x") << '\n';
        printing out(team, to);
        out.precision(3);
        out << 2.0 / 3 << std::hex << 255;
        // a stream that writes nothing still puts a type of one's own together, up to its first insertion
        if (out) out << told{&words[r]};
        printed[r] = to.str();
        return true;
      });
      REQUIRE(all.well());
      for (int r = 0; r < size + first; ++r) {
        const auto i = static_cast<std::size_t>(r);
        CHECK(printed[i] == (r == first ? "loss 0.5 x\n0.667fftold" : ""));
        CHECK(words[i] == (r == first ? 1 : 0));
      }
    }
}

TEST_CASE("the first worker of a typed team prints", "[runtime]") {
  struct row : axis<3> {};
  using line = mesh<row>;
  std::string printed[3];
  const auto all = in_world(3, [&](const std::shared_ptr<transport>& carrier) {
    const team<line> t(std::make_shared<team_state>(carrier, line::value));
    std::ostringstream to;
    printing(t, to) << "loss " << 0.5;
    printed[carrier->rank()] = to.str();
    return true;
  });
  REQUIRE(all.well());
  CHECK(printed[0] == "loss 0.5");
  CHECK((printed[1].empty() && printed[2].empty()));
}

}  // namespace tessera::testing::printing_first
