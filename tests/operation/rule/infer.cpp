#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/images.hpp"
#include "tests/support/oracle.hpp"

#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("blocks that come out even are split as grains are", "[plan][refusal]") {
  static constexpr signature pairs = operation("z->ab").split('z', 'a', 'b', 4).linear();
  using even = tensor<partition<grid, blocks<row>>, shape_of<24>, double>;
  STATIC_REQUIRE(
      std::is_same_v<operation_type<pairs, even>, tensor<partition<grid, blocks<row>, whole>, shape_of<6, 4>, double>>);
  const auto refused = [](index_t n, index_t grain) {
    layout x = value_of<even>.layout;
    x.dims[0].extent = n;
    x.dims[0].set_grain(grain);
    static_vector<operand, 4> one = no_items<operand, 4>;
    one.push({x, false});
    return infer(pairs, one).why;
  };
  CHECK(refused(24, 2).ok());
  CHECK(refused(24, 4).ok());
  CHECK(refused(20, 1).is(code::split_through_part));
  CHECK(refused(20, 4).ok());
}

TEST_CASE("a cut that is merged with no element is a cut of none", "[plan][regression]") {
  static constexpr signature joins = operation("ab->z").merged("ab", 'z').linear();
  using rows = tensor<partition<grid, blocks<row>, whole>, shape_of<5, 0>, double>;
  STATIC_REQUIRE(
      std::is_same_v<operation_type<joins, rows>, tensor<partition<grid, blocks<row>>, shape_of<0>, double>>);
  const index_t uneven[]{0, 4, 5};
  for (const index_t* bounds : {static_cast<const index_t*>(nullptr), static_cast<const index_t*>(uneven)}) {
    layout x = value_of<rows>.layout;
    x.dims[0].bounds = bounds;
    static_vector<operand, 4> one = no_items<operand, 4>;
    one.push({x, false});
    const inferred y = infer(joins, one);
    REQUIRE(y.why.ok());
    REQUIRE(check(y.layout).ok());
    for (int w = 0; w < y.layout.mesh.size(); ++w) CHECK(box_of(y.layout, w)[0].empty());
  }
}

TEST_CASE("a cut that is merged with an open extent is right for all its values, or refused", "[law][refusal]") {
  struct many : dyn {};
  using rows = tensor<partition<grid, blocks<row>, whole>, shape<dim<6>, many>, double>;
  static constexpr signature joins = operation("ab->z").merged("ab", 'z').linear();
  const auto joined = [](const layout& x) {
    static_vector<operand, 4> one = no_items<operand, 4>;
    one.push({x, false});
    return infer(joins, one);
  };
  int accepted = 0;
  int refused = 0;
  for (index_t n = 0; n < 20; ++n)
    for (index_t grain = 1; grain < 4; ++grain)
      for (const bool zigzag : {false, true}) {
        layout x = value_of<rows>.layout;
        x.dims[0].extent = n;
        x.dims[0].set_grain(grain);
        x.dims[0].zigzag = zigzag;
        const inferred typed = joined(x);
        bool right = true;
        for (index_t m = 1; m < 7; ++m) {
          layout known = x;
          known.dims[1].extent = m;
          layout y = typed.why.ok() ? typed.layout : joined(known).layout;
          y.dims[0].extent = n * m;
          if (!typed.why.ok()) y.dims[0].set_grain(grain);
          right = right && same(canonical(y), canonical(joined(known).layout));
        }
        CHECK(right == typed.why.ok());
        if (!typed.why.ok()) CHECK(typed.why.is(code::grain_not_known));
        ++(typed.why.ok() ? accepted : refused);
      }
  CHECK(accepted > 10);
  CHECK(refused > 10);
}

TEST_CASE("operands meet on meshes that differ by axes of extent 1", "[law]") {
  dice d{22};
  int accepted = 0;
  for (int i = 0; i < 6000; ++i) {
    const auto extents = roll_extents(d, 2);
    const mesh_value mesh = roll_mesh(d, 3);
    signature s;
    s.kind = static_cast<linearity>(d.roll(0, 2));
    s.operands.push(letters_of(extents.count));
    s.operands.push(s.operands[0]);
    s.result = d.once_in(2) ? letters{} : s.operands[0];
    const layout x = roll_layout(d, mesh, extents, {true, true, true, true});
    const layout y = d.once_in(2) ? x : roll_layout(d, mesh, extents, {true, true, true, true});
    const layout u = with_ones(d, x);
    const layout v = with_ones(d, y);
    const bool x_constant = d.once_in(5);
    const bool y_constant = d.once_in(5);
    const auto result = [&](const layout& left, const layout& right) {
      static_vector<operand, 4> operands;
      operands.push({left, x_constant});
      operands.push({right, y_constant});
      return infer(s, operands);
    };
    const inferred plain = result(x, y);
    const inferred other = result(u, v);
    INFO(i);
    REQUIRE(plain.why.because == other.why.because);
    REQUIRE(!plain.why.is(code::meshes_differ));
    if (!plain.why.ok()) continue;
    ++accepted;
    CHECK(other.layout.mesh == u.mesh);
    CHECK(same(plain.layout, other.layout));
  }
  CHECK(accepted > 1000);
}

TEST_CASE("operands on meshes that differ otherwise are refused", "[refusal]") {
  struct one : axis<1> {};
  struct wide : axis<3> {};
  struct other_row : axis<2> {};
  const auto code_of = [](const mesh_value& left, const mesh_value& right) {
    signature s;
    s.kind = linearity::additive;
    s.operands.push(letters{});
    s.operands.push(letters{});
    static_vector<operand, 4> operands;
    for (const mesh_value* m : {&left, &right}) {
      layout x;
      x.mesh = *m;
      x.placements.resize(m->axes.count);
      operands.push({x, false});
    }
    return infer(s, operands).why.because;
  };
  const mesh_value two = mesh<row, col>::value;
  CHECK(code_of(two, mesh<row, one, col>::value) == nullptr);
  CHECK(code_of(mesh<one, row, col>::value, two) == nullptr);
  CHECK(code_of(two, mesh<row>::value) == &code::meshes_differ);
  CHECK(code_of(two, mesh<row, wide>::value) == &code::meshes_differ);
  CHECK(code_of(two, mesh<row, other_row>::value) == &code::meshes_differ);
  CHECK(code_of(two, mesh<col, row>::value) == &code::meshes_differ);
  CHECK(code_of(two, placed<mesh<one, row, col>, 4>::value) == &code::meshes_differ);
  CHECK(code_of(two, placed<mesh<row, one, col>, 0, 4, 7, 1>::value) == &code::meshes_differ);
  CHECK(code_of(two, placed<mesh<row, one, col>, 0, 2, 7, 1>::value) == nullptr);
  static constexpr int ranks[]{0, 1, 2, 3};
  mesh_value listed = mesh<row, one, col>::value;
  listed.ranks = ranks;
  CHECK(code_of(two, listed) == nullptr);
  static constexpr int turned[]{0, 2, 1, 3};
  listed.ranks = turned;
  CHECK(code_of(two, listed) == &code::meshes_differ);
}

TEST_CASE("constants count as copies, but not among terms", "[plan][refusal]") {
  struct a : axis<2> {};
  layout terms;
  terms.mesh = mesh<a>::value;
  terms.placements.push({placement::partial});
  layout copies = terms;
  copies.placements[0] = {placement::replicate};
  layout alike = terms;
  alike.placements[0] = {placement::invariant};
  const auto both = [](linearity kind, const layout& x, bool x_constant, const layout& y, bool y_constant) {
    signature s;
    s.kind = kind;
    s.operands.push(letters{});
    s.operands.push(letters{});
    static_vector<operand, 4> operands;
    operands.push({x, x_constant});
    operands.push({y, y_constant});
    return infer(s, operands);
  };
  CHECK(both(linearity::additive, terms, true, copies, true).why.is(code::replicate_added_to_partial));
  CHECK(both(linearity::additive, terms, false, alike, true).why.is(code::replicate_added_to_partial));
  CHECK(both(linearity::multilinear, terms, false, copies, true).layout.placements[0].kind == placement::partial);
  CHECK(both(linearity::multilinear, alike, false, copies, true).layout.placements[0].kind == placement::invariant);
}

TEST_CASE("a windowed operation on a cut dimension needs its own halo", "[plan][refusal]") {
  struct a : axis<2> {};
  layout x;
  x.mesh = mesh<a>::value;
  x.placements.resize(1);
  dimension d;
  d.extent = 8;
  x.dims.push(d);
  x.cut_by(0, 0);
  const sliding three{3, 1, 1, 1, 1};
  signature s;
  s.operands.push(named("i"));
  s.result = named("i");
  s.special.push({'i', treatment::windowed, three, 0});
  const auto of = [&](const layout& given) {
    static_vector<operand, 4> one;
    one.push({given, false});
    return infer(s, one);
  };
  CHECK(of(x).why.is(code::window_without_halo));
  dimension h = d;
  h.kind = cover::haloed;
  h.outputs = 8;
  h.needs = three.needs();
  x.dims[0] = h;
  CHECK(of(x).why.ok());
  h.needs = sliding{2, 1, 1, 0, 1}.needs();
  x.dims[0] = h;
  CHECK(of(x).why.is(code::window_without_halo));
  h.needs = sliding{5, 1, 2, 2, 1}.needs();  // the halo of two such windows in sequence: that of the second is left
  x.dims[0] = h;
  REQUIRE(of(x).why.ok());
  CHECK(of(x).layout.dims[0].kind == cover::haloed);
  CHECK(of(x).layout.dims[0].needs == three.needs());
}

TEST_CASE("what a window leaves out the only worker lacks, whether an axis of extent 1 cuts the dimension or none does",
          "[plan][refusal]") {
  struct one : axis<1> {};
  using whole_line = tensor<partition<mesh<one>, blocks<one>>, shape_of<9>, double>;
  for (const bool cut : {true, false}) {
    layout blocks = value_of<whole_line>.layout;
    if (!cut) blocks.release(0);
    const auto of = [&](const signature& s, const layout& x) {
      static_vector<operand, 4> operands;
      operands.push({x, false});
      if (s.operands.count == 2) operands.push({blocks, false});
      return infer(s, operands);
    };
    const sliding third{1, 3, 0, 0, 1};
    const layout some = blocks.halo(0, third);  // the elements [0, 7)
    CHECK(of(operation("i->i"), some).layout.dims[0].kind == cover::haloed);
    CHECK(of(operation("i->i").windowed('i', third), some).layout.dims[0].kind == cover::tiled);
    CHECK(of(operation("i->i").windowed('i', {2, 3, 0, 0, 1}), some).why.is(code::window_without_halo));
    CHECK(of(operation("i->i").whole("i"), some).why.is(code::dimension_needed_whole));
    CHECK(of(operation("i->").linear(), some).why.is(code::dimension_needed_whole));
    CHECK(of(operation("i,i->i"), some).why.is(code::dimension_needed_whole));
    CHECK_FALSE(same(some, blocks));
    const layout all = blocks.halo(0, {3, 3, 0, 0, 1});
    CHECK(same(all, blocks));
    for (const signature& s : {operation("i->i").whole("i"), operation("i->").linear(), operation("i,i->i")})
      CHECK(of(s, all).why.ok());
  }
}

TEST_CASE("a range of a cut dimension stays where it is: a tiling, or the copies that there were", "[law][plan]") {
  using cut = tensor<partition<grid, whole, blocks<row>>, shape_of<4, 10>, double>;
  static constexpr signature middle = operation("ab->ab").narrowed('b', 2, 9).linear();
  using range = operation_type<middle, cut>;
  STATIC_REQUIRE(
      std::is_same_v<range,
                     tensor<partition<grid, whole, haloed<blocks<row>, 10, 1, -2, -2>>, shape_of<4, 7>, double>>);
  STATIC_REQUIRE(
      std::is_same_v<
          cotangent_type<range>,
          tensor<partition<grid, whole, haloed<blocks<row>, 10, 1, -2, -2>, partial<col>>, shape_of<4, 7>, double>>);
  using balanced = primitive<range, tensor<partition<grid, whole, blocks<row>>, shape_of<4, 7>, double>>;
  STATIC_REQUIRE(balanced::verb == verb::repartition);
  STATIC_REQUIRE(balanced::cost().total == 2 * 4);  // 3 and 4 become 4 and 3, on both lines
  static constexpr signature everything = operation("ab->ab").narrowed('b', 0, 10).linear();
  STATIC_REQUIRE(std::is_same_v<operation_type<everything, cut>, cut>);
  static constexpr signature total = operation("ab->a").linear();
  STATIC_REQUIRE(
      std::is_same_v<operation_type<total, range>, tensor<partition<grid, whole, partial<row>>, shape_of<4>, double>>);

  dice d{20261121};
  int tilings = 0;
  int copies = 0;
  for (int round = 0; round < 2000; ++round) {
    const mesh_value m = roll_mesh(d, 3);
    static_vector<index_t, max_dimensions> extents;
    extents.push(d.roll(0, 3));
    extents.push(d.roll(0, 12));
    layout x = roll_layout(d, m, extents, {false, true, true, true});
    if (x.levels(1) > 0 && d.once_in(3)) {  // any window, with a divisor and elements out of reach
      dimension& any = x.dims[1];
      any.balance(1);
      any.kind = cover::haloed;
      any.outputs = d.roll(0, 15);
      any.needs = {d.roll(1, 3), d.roll(-4, 4), 0, d.roll(1, 3), d.roll(0, 3), d.roll(0, 3)};
      any.needs.b2 = any.needs.b + d.roll(0, 3);
    }
    const index_t begin = d.roll(0, static_cast<int>(extents[1]));
    const index_t end = d.roll(static_cast<int>(begin), static_cast<int>(extents[1]));
    static_vector<operand, 4> one;
    one.push({x, false});
    const inferred y = infer(operation("ab->ab").narrowed('b', begin, end), one);
    const dimension& from = x.dims[1];
    if (!y.why.ok()) {
      REQUIRE(y.why.is(code::window_without_halo));
      REQUIRE(from.needs.edge != boundary::zero);
      continue;
    }
    const dimension& to = y.layout.dims[1];
    REQUIRE(to.extent == end - begin);
    REQUIRE((!from.tiles() || to.tiles()));
    (from.tiles() ? tilings : copies) += x.levels(1) > 0;
    for (int w = 0; w < m.size(); ++w) {
      std::vector<index_t> kept;
      for (index_t e : oracle::held(x, 1, m.at(w)))
        if (e >= begin && e < end) kept.push_back(e - begin);
      REQUIRE(oracle::held(y.layout, 1, m.at(w)) == kept);
    }
    if (!from.tiles() || x.dims[0].kind != cover::tiled) continue;
    layout blocks = y.layout;
    blocks.dims[1].tile();
    blocks.dims[1].balance(1);
    REQUIRE(check_change(y.layout, blocks).ok());
    REQUIRE(same(cotangent(cotangent(y.layout)), y.layout));
    REQUIRE(cotangent(y.layout).dims[1].tiles());
  }
  CHECK(tilings > 400);
  CHECK(copies > 100);
}

}  // namespace tessera::testing
