#include "tests/support/tensors.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

struct up : axis<2> {};
struct across : axis<3> {};
using grid = mesh<up, across>;
struct rows : dyn {};
struct columns : dyn {};
using learned_boxes = tensor<partition<grid, lengths<up>, lengths<across>>, shape<rows, columns>, double>;
using balanced = partition<grid, blocks<across>, whole>;

/// The box of a worker, cut at these places out of one global tensor.
at::Tensor box_at(const at::Tensor& global, const std::vector<index_t>& by_row, const std::vector<index_t>& by_column,
                  int r) {
  const auto i = static_cast<std::size_t>(r / 3);
  const auto j = static_cast<std::size_t>(r % 3);
  return global.narrow(0, by_row[i], by_row[i + 1] - by_row[i])
      .narrow(1, by_column[j], by_column[j + 1] - by_column[j]);
}

}  // namespace

TEST_CASE("boxes of any lengths become a tensor, move, and their gradients come back to the boxes",
          "[runtime][gradient]") {
  const std::vector<index_t> by_row{0, 5, 7};
  const std::vector<index_t> by_column{0, 0, 4, 9};
  const at::Tensor global = at::arange(63, at::kDouble).reshape({7, 9});
  const auto run = in_team<grid>([&](team<grid>& t) {
    const at::Tensor mine = box_at(global, by_row, by_column, t.rank()).clone().set_requires_grad(true);
    const learned_boxes x = from_local<learned_boxes>(t, mine);
    auto y = to<balanced>(x);
    const at::Tensor weights = distribute<decltype(y)>(t, global * 2).local();
    auto loss = sum(map_elements(y, [&](const at::Tensor& a) { return a * weights; }));
    loss.backward();
    bool right = x.layout().dims[0].extent == 7 && x.layout().dims[1].extent == 9;
    right = right && at::equal(y.local(), distribute<decltype(y)>(t, global).local());
    // Along `up` y is replicate, so the loss is counted on the first of each two.
    return right && at::equal(mine.grad(), 2 * mine.detach());
  });
  REQUIRE(run.well());
  for (int r = 0; r < 6; ++r) CHECK(run.of(r));
}

TEST_CASE("learned lengths stay with their axis and lead nowhere else", "[refusal][runtime]") {
  const auto run = in_team<grid>([&](team<grid>& t) {
    const auto x = from_local<learned_boxes>(t, at::ones({1 + t.rank() / 3, 2}, at::kDouble));
    using only_rows = partition<grid, lengths<up>, whole>;
    const auto gathered = all_gather<only_rows>(x);
    bool right = gathered.local().size(0) == 1 + t.rank() / 3 && gathered.local().size(1) == 6;
    try {
      to<partition<grid, whole, lengths<up>>>(gathered);
      right = false;
    } catch (const error& e) {
      right = right && std::string(e.code()) == "tessera.lengths.unknown";
    }
    return right;
  });
  REQUIRE(run.well());
  for (int r = 0; r < 6; ++r) CHECK(run.of(r));
}

TEST_CASE("a layout that was learned outlives the lists it was learned from", "[runtime][gradient]") {
  const auto run = in_team<grid>([&](team<grid>& t) {
    at::Tensor y;
    {
      std::vector<index_t> bounds{0, 1, 4, 6};
      layout x = value_of<tensor<partition<grid, whole, blocks<across>>, shape_of<2, 6>, double>>.layout;
      x.dims[1].bounds = bounds.data();
      const index_t n =
          bounds[static_cast<std::size_t>(t.rank() % 3 + 1)] - bounds[static_cast<std::size_t>(t.rank() % 3)];
      at::Tensor leaf = at::ones({2, n}, at::kDouble).set_requires_grad(true);
      layout even = x;
      even.dims[1].bounds = nullptr;
      y = change_layout(t.state(), x, even, leaf);
      bounds.assign(4, -77);
    }
    y.sum().backward();  // the way back is planned only now
    return y.size(1);
  });
  REQUIRE(run.well());
  for (int r = 0; r < 6; ++r) CHECK(run.of(r) == 2);
}

TEST_CASE("an extent that neither the type nor a binding tells is learned of the boxes, as a binding would give it",
          "[runtime]") {
  using even_rows = tensor<partition<grid, blocks<up>, whole>, shape<rows, columns>, double>;
  const at::Tensor global = at::arange(15, at::kDouble).reshape({5, 3});
  const auto run = in_team<grid>([&](team<grid>& t) {
    const at::Tensor mine = global.narrow(0, t.rank() < 3 ? 0 : 3, t.rank() < 3 ? 3 : 2);
    const even_rows of_boxes = from_local<even_rows>(t, mine);
    const even_rows bound = from_local<even_rows>(t, mine, bind<rows>(5));
    return same(of_boxes.layout(), bound.layout()) && at::equal(full_tensor(of_boxes), global) &&
           at::equal(full_tensor(bound), global);
  });
  REQUIRE(run.well());
  for (int r = 0; r < 6; ++r) CHECK(run.of(r));
}

TEST_CASE("boxes that are no product, or not what the partition says, are refused on every worker", "[refusal]") {
  struct fault {
    const char* code;
    std::function<at::Tensor(const team<grid>&)> box;
  };
  const auto sized = [](index_t n, index_t m) { return at::zeros({n, m}, at::kDouble); };
  const std::vector<fault> faults{
      {"tessera.adopt.product", [&](const team<grid>& t) { return sized(t.rank() == 4 ? 3 : 2, 2); }},
      {"tessera.agree.fingerprint",
       [&](const team<grid>& t) { return t.rank() == 4 ? at::zeros({2}, at::kDouble) : sized(2, 2); }},
  };
  for (const fault& f : faults) {
    const auto run = in_team<grid>([&](team<grid>& t) {
      try {
        from_local<learned_boxes>(t, f.box(t));
      } catch (const error& e) {
        return std::string(e.code());
      }
      return std::string("accepted");
    });
    for (int r = 0; r < 6; ++r) CHECK(run.of(r) == f.code);
  }
  using even_rows = tensor<partition<grid, blocks<up>, whole>, shape<rows, columns>, double>;
  const auto run = in_team<grid>([&](team<grid>& t) {
    try {
      from_local<even_rows>(t, sized(t.rank() < 3 ? 1 : 4, 2));
    } catch (const error& e) {
      return std::string(e.code());
    }
    return std::string("accepted");
  });
  for (int r = 0; r < 6; ++r) CHECK(run.of(r) == "tessera.tensor.shape");
}

TEST_CASE("a shift is a step of a ring, its adjoint the step back", "[refusal][runtime][gradient]") {
  using ring = tensor<partition<grid, whole, blocks<across>>, shape_of<2, 6>, double>;
  const at::Tensor global = at::arange(12, at::kDouble).reshape({2, 6});
  const auto run = in_team<grid>([&](team<grid>& t) {
    ring x = distribute<ring>(t, global);
    x.requires_grad();
    const ring y = shift<across>(x);
    const ring back = shift<across, -1>(y);
    bool right =
        at::equal(y.local(), distribute<ring>(t, global.roll(-2, 1)).local()) && at::equal(back.local(), x.local());
    const at::Tensor weights = distribute<ring>(t, global * global).local();
    (y.local() * weights).sum().backward();
    right = right && at::equal(x.local().grad(), distribute<ring>(t, (global * global).roll(2, 1)).local());
    const ring around = shift<across, 3>(x);
    const auto far = distribute<tensor<partition<grid, whole, blocks<up, across>>, shape_of<2, 6>, double>>(t, global);
    const auto moved = shift<up, INT32_MAX>(far);  // an odd number of steps on a ring of two
    right = right && at::equal(moved.local(), shift<up>(far).local()) &&
            at::equal(shift<up, INT32_MIN>(moved).local(), moved.local());
    return right && at::equal(around.local(), x.local());
  });
  REQUIRE(run.well());
  for (int r = 0; r < 6; ++r) CHECK(run.of(r));
  const auto uneven = in_team<grid>([&](team<grid>& t) {
    using odd = tensor<partition<grid, whole, blocks<across>>, shape_of<2, 7>, double>;
    const odd x = distribute<odd>(t, at::zeros({2, 7}, at::kDouble));
    try {
      shift(x.dynamic(), short_name_of<across>());
    } catch (const error& e) {
      return std::string(e.code());
    }
    return std::string("accepted");
  });
  for (int r = 0; r < 6; ++r) CHECK(uneven.of(r) == "tessera.shift.uneven");
  // Uneven parts go round under the name of their deal.
  const auto turned = in_team<grid>([&](team<grid>& t) {
    using odd = tensor<partition<grid, whole, blocks<across>>, shape_of<2, 7>, double>;
    using next = partition<grid, whole, rotated<blocks<across>, 1>>;
    const at::Tensor all = at::arange(14, at::kDouble).reshape({2, 7});
    auto y = to<next>(distribute<odd>(t, all));
    return at::equal(y.local(), distribute<decltype(y)>(t, all).local()) &&
           y.local().size(1) == (t.rank() % 3 == 2 ? 3 : 2);
  });
  REQUIRE(turned.well());
  for (int r = 0; r < 6; ++r) CHECK(turned.of(r));
}

TEST_CASE("a worker's box of a zigzag is its first chunk before its second, whatever makes it or reads it",
          "[runtime][gradient]") {
  using dealt = tensor<partition<grid, whole, zigzag<across>>, shape_of<2, 10>, double>;
  const at::Tensor global = at::arange(20, at::kDouble).reshape({2, 10}).sin();
  const std::vector<std::vector<index_t>> columns_of{{0, 1, 9}, {2, 3, 8}, {4, 5, 6, 7}};
  const auto run = in_team<grid>([&](team<grid>& t) {
    const at::Tensor mine = at::tensor(columns_of[static_cast<std::size_t>(t.rank() % 3)]);
    const auto part = [&](const at::Tensor& x) { return x.index_select(1, mine); };
    dealt x = distribute<dealt>(t, global);
    bool right = at::equal(x.local(), part(global)) && at::equal(full_tensor(x), global);
    // to blocks, and the gradient on the way back
    x.requires_grad();
    const auto y = to<partition<grid, whole, blocks<across>>>(x);
    right = right && at::equal(y.local(), distribute<std::decay_t<decltype(y)>>(t, global).local());
    const at::Tensor weights = distribute<std::decay_t<decltype(y)>>(t, global * global).local();
    (y.local() * weights).sum().backward();
    right = right && at::equal(x.local().grad(), part(global * global));
    // copies to a zigzag and back
    const auto copies = to<partition<grid, whole, whole>>(dealt(distribute<dealt>(t, global)));
    const auto again = to<partition<grid, whole, zigzag<across>>>(copies);
    right = right && at::equal(copies.local(), global) && at::equal(again.local(), part(global));
    // reductions over the dimension, and positions in the whole
    right = right && at::allclose(softmax<1>(again).local(), part(at::softmax(global, 1)), 1e-14, 1e-14) &&
            at::equal(full_tensor(argmax<1>(again)), at::argmax(global, 1));
    // initial values and draws are those of the elements, wherever they lie
    const initial_value v = init::normal(1, 2);
    const layout one = value_of<tensor<partition<grid, whole, whole>, shape_of<2, 10>, double>>.layout;
    const auto drawn = [&](const layout& l) {
      return tessera::detail::initial_box(v, l, element::float64, t.rank(), seed{11}, "w");
    };
    right = right && at::equal(drawn(x.layout()), part(drawn(one)));
    // of boxes whose lengths nobody knows beforehand
    using boxes = tensor<partition<grid, whole, zigzag<across>>, shape<dim<2>, columns>, double>;
    const boxes made = from_local<boxes>(t, part(global).clone());
    right = right && made.layout().dims[1].extent == 10 && at::equal(full_tensor(made), global);
    return right && told([&] { shift(x.dynamic(), short_name_of<across>()); }) == "tessera.deal.interval";
  });
  REQUIRE(run.well());
  for (int r = 0; r < 6; ++r) CHECK(run.of(r));
}
