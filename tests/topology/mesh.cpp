#include "tests/support/catch.hpp"

#include <tessera/core.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

struct row : axis<2> {};
struct col : axis<3> {};
struct one : axis<1> {};
using grid = mesh<row, col>;

}  // namespace

TEST_CASE("one coordinate of an axis is the sub-mesh with that axis fixed", "[plan]") {
  using whole_mesh = tensor<partition<grid, whole, blocks<col>, on<row, 1>>, shape_of<4, 7>>;
  using sub_mesh = tensor<partition<fixed<grid, row, 1>, whole, blocks<col>>, shape_of<4, 7>>;
  STATIC_REQUIRE(same(value_of<whole_mesh>.layout, value_of<sub_mesh>.layout));
  CHECK(box_of(value_of<sub_mesh>.layout, 4)[1] == interval{3, 5});
  CHECK(box_of(value_of<sub_mesh>.layout, 1)[1].empty());
}

TEST_CASE("meshes are placed, strided, fixed and found again", "[plan]") {
  using later = placed<grid, 4>;
  using columns_first = placed<grid, 0, 1, 2>;
  STATIC_REQUIRE(later::value.rank(later::value.at(5)) == 9);
  STATIC_REQUIRE(columns_first::value.rank(columns_first::value.at(1)) == 2);
  for (const mesh_value& m : {later::value, columns_first::value, fixed<grid, col, 2>::value}) {
    for (int i = 0; i < m.size(); ++i) {
      coordinates c;
      REQUIRE(m.locate(m.rank(m.at(i)), c));
      CHECK(m.number(c) == i);
    }
    CHECK_FALSE(m.contains(99));
  }
  CHECK(detail::mesh_check<placed<grid, 0, 1, 1>>::value.is(code::placement_overlaps));
  CHECK(check(columns_first::value).ok());
}

TEST_CASE("groups name axes of a mesh, and lines are sub-meshes", "[plan]") {
  struct deep : axis<2> {};
  using m = mesh<row, col, deep>;
  STATIC_REQUIRE(group_in<along<deep, row>>(m::value).count == 2);
  STATIC_REQUIRE(group_in<along<one>>(m::value).count == 0);  // a mesh that lacks an axis counts it as extent 1
  STATIC_REQUIRE(group_in<except<col>>(m::value)[1] == 2);
  const mesh_value line = line_through(m::value, m::value.at(9), group_in<along<col>>(m::value));
  REQUIRE(line.size() == 3);
  for (int i = 0; i < 3; ++i) CHECK(line.rank(line.at(i)) == 6 + 2 * i + 1);
  using x = tensor<partition<m, whole, blocks<row>, invariant<except<row>>>, shape_of<4, 7>>;
  using y = tensor<partition<m, whole, blocks<row>, invariant<col, deep>>, shape_of<4, 7>>;
  STATIC_REQUIRE(std::is_same_v<canonical_tensor<x>, y>);
}

TEST_CASE("a mesh by a list of ranks is found by the same questions", "[plan]") {
  static constexpr int ranks[]{5, 0, 3};
  mesh_value m;
  m.axes.push({text("k"), 3, 1});
  m.ranks = ranks;
  coordinates c;
  REQUIRE(m.locate(0, c));
  CHECK(c[0] == 1);
  CHECK_FALSE(m.contains(1));
}

TEST_CASE("a list that is full, a mesh too large and ranks outside the world are refused with their code",
          "[refusal]") {
  const auto code_of = [](auto&& what) {
    try {
      what();
    } catch (const refused_value& e) {
      return e.why.because;
    }
    return static_cast<const reason*>(nullptr);
  };
  static_vector<int, 2> two;
  two.push(1);
  CHECK(code_of([&] { two.push(2); }) == nullptr);
  CHECK(code_of([&] { two.push(3); }) == &code::list_full);
  CHECK(code_of([] { static_cast<void>(bind<dyn>(-8)); }) == &code::extent_negative);

  mesh_value m;
  m.axes.push({text("x"), 1 << 16, 1});
  m.axes.push({text("y"), 1 << 15, 1});
  CHECK(check(row_major(m)).is(code::mesh_too_large));
  m.axes[0].extent = 1 << 15;
  CHECK(check(row_major(m)).ok());
  CHECK(check(row_major(m, -1)).is(code::rank_outside));
  CHECK(check(row_major(m, 1 << 30)).ok());
  CHECK(check(row_major(m, INT32_MAX - 1)).is(code::rank_outside));
}

TEST_CASE("a product has coordinates of its own, and turns add up", "[plan]") {
  struct both : product<row, col> {};
  const mesh_value& m = grid::value;
  for (int i = 0; i < m.size(); ++i) {
    CHECK(coordinate_along<both>(m, m.at(i)) == i);
    CHECK(coordinate_along<col>(m, m.at(i)) == m.at(i)[1]);
  }
  using twice = tensor<partition<grid, rotated<rotated<blocks<both>, 2>, 5>>, shape_of<12>>;
  using once = tensor<partition<grid, rotated<blocks<both>, 1>>, shape_of<12>>;
  STATIC_REQUIRE(same(value_of<twice>.layout, value_of<once>.layout));
  using far = tensor<partition<grid, rotated<rotated<blocks<both>, INT32_MAX>, INT32_MIN>>, shape_of<12>>;  // −1 in all
  using back = tensor<partition<grid, rotated<blocks<both>, -1>>, shape_of<12>>;
  STATIC_REQUIRE(same(value_of<far>.layout, value_of<back>.layout));
  layout large;  // 2^30 parts, of which the last two are turned to the first workers
  large.mesh.axes.push({text{"a"}, 1 << 30, 1});
  large.placements.resize(1);
  large.dims.push({});
  large.dims[0].extent = 1 << 30;
  large.cut_by(0, 0);
  large.dims[0].turned = INT32_MAX;
  const coordinates last = large.mesh.at((1 << 30) - 1);
  CHECK(parts{large, 0}.at(last) == (1 << 30) - 2);
}

}  // namespace tessera::testing
