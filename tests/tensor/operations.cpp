#include "tests/support/tensors.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

struct ox : axis<2> {};
struct oy : axis<3> {};
using world = mesh<ox, oy>;
struct tall : dyn {};
using extents_7x5 = shape<tall, dim<5>>;

using cut_xy = tensor<partition<world, blocks<ox>, blocks<oy>>, extents_7x5, double>;
using copies = tensor<partition<world, whole, whole>, extents_7x5, double>;
using terms = tensor<partition<world, blocks<ox>, whole, partial<oy>>, extents_7x5, double>;
using alike = tensor<partition<world, whole, whole, invariant<ox, oy>>, extents_7x5, double>;
using cut_rows = tensor<partition<world, blocks<oy>, whole>, shape<dim<5>, dim<4>>, double>;

at::Tensor numbers_7x5(std::uint64_t salt) { return global_of({7, 5}, numbers{salt}); }
bool close(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && (a - b).abs().sum().item<double>() < 1e-12 * (1 + b.abs().sum().item<double>());
}

bool on_all(const outcome<bool>& all) {
  bool good = true;
  for (const auto& r : all.results) good = good && r && *r;
  return good;
}

/// The gradient of Σ x², from a loss with this partition of its scalar.
template <class P>
bool seeded(const team<world>& t) {
  auto x = distribute<cut_xy>(t, numbers_7x5(1));
  x.requires_grad();
  const auto loss = to<P>(sum(x * x));
  loss.backward();
  return close(full_tensor(x.grad()), 2 * numbers_7x5(1)) &&
         close(full_tensor(loss), at::sum(at::square(numbers_7x5(1))));
}

}  // namespace

TEST_CASE("operands and verbs meet on meshes that differ by an axis of extent 1", "[refusal][runtime]") {
  struct one : axis<1> {};
  using wider = mesh<ox, one, oy>;
  using same_cut = tensor<partition<wider, blocks<one, ox>, blocks<oy>>, extents_7x5, double>;
  using whole_rows = partition<wider, blocks<ox>, whole, partial<one>>;
  const at::Tensor a = numbers_7x5(1);
  const at::Tensor b = numbers_7x5(2);
  CHECK(on_all(in_team<world>([&](const team<world>& t) {
    auto x = distribute<cut_xy>(t, a);
    auto y = distribute<same_cut>(t, b);
    x.requires_grad();
    y.requires_grad();
    static_assert(std::is_same_v<decltype(x * y), cut_xy>);
    static_assert(std::is_same_v<decltype(y + x)::mesh_type, wider>);
    const tensor<dyn> untyped = y.dynamic() + x.dynamic();
    const auto rows = all_gather<whole_rows>(x * y);
    const auto kept = shard<partition<world, blocks<ox>, blocks<oy>>>(rows);
    to<partition<world, invariant<ox, oy>>>(sum(kept)).backward();
    return close(full_tensor(x * y), a * b) && close(full_tensor(y + x), a + b) && close(full_tensor(untyped), a + b) &&
           close(full_tensor(rows), a * b) && close(full_tensor(x.grad()), b) && close(full_tensor(y.grad()), a);
  })));
  using line = tensor<partition<mesh<oy>, blocks<oy>, whole>, extents_7x5, double>;
  CHECK(refusals<world>("tessera.rule.mesh", [&](const team<world>& t) {
          const auto x = distribute<same_cut>(t, a);
          const auto y = distribute<line>(t, b);
          x.dynamic() + y.dynamic();
        }) == 6);
}

TEST_CASE("typed sums, products and functions give what whole tensors give", "[runtime]") {
  const at::Tensor a = numbers_7x5(1);
  const at::Tensor b = numbers_7x5(2);
  const auto all = in_team<world>([&](const team<world>& t) {
    const auto x = distribute<cut_xy>(t, a);
    const auto y = distribute<cut_xy>(t, b);
    const auto p = distribute<terms>(t, a);
    const auto q = distribute<terms>(t, b);
    bool good =
        close(full_tensor(x + y), a + b) && close(full_tensor(x - y), a - b) && close(full_tensor(x * y), a * b);
    good = good && close(full_tensor(x * 3.0), a * 3) && close(full_tensor(0.5 * x), a * 0.5);
    good = good && close(full_tensor(p + q), a + b) && close(full_tensor(p - q), a - b) &&
           close(full_tensor(p * 2.0), a * 2);
    good = good && close(full_tensor(relu(x)), at::relu(a)) && close(full_tensor(exp(x)), at::exp(a)) &&
           close(full_tensor(tanh(x)), at::tanh(a));
    good = good && close(full_tensor(map_elements(x, [](const at::Tensor& v) { return at::sin(v); })), at::sin(a));
    good = good && close(full_tensor(sum(x)), a.sum()) && close(full_tensor(sum<0>(x)), a.sum(0)) &&
           close(full_tensor(sum<1>(x)), a.sum(1));
    return good && close(full_tensor(sum(distribute<alike>(t, a))), a.sum());
  });
  INFO(all.errors());
  CHECK(on_all(all));
}

TEST_CASE("a product over a dimension that both cut alike is a sum of terms", "[runtime]") {
  const at::Tensor a = numbers_7x5(3);
  const at::Tensor b = global_of({5, 4}, numbers{4});
  const auto all = in_team<world>([&](const team<world>& t) {
    auto x = distribute<cut_xy>(t, a);
    auto y = distribute<cut_rows>(t, b);
    x.requires_grad();
    y.requires_grad();
    const auto z = matmul(x, y);
    static_assert(
        std::is_same_v<std::remove_const_t<decltype(z)>,
                       tensor<partition<world, blocks<ox>, whole, partial<oy>>, shape<tall, dim<4>>, double>>);
    const auto whole_z = to<partition<world, blocks<ox>, whole, invariant<oy>>>(z);
    to<partition<world, invariant<ox, oy>>>(sum(whole_z * whole_z)).backward();
    const at::Tensor g = 2 * a.mm(b);
    return close(full_tensor(z), a.mm(b)) && close(full_tensor(x.grad()), g.mm(b.t())) &&
           close(full_tensor(y.grad()), a.t().mm(g));
  });
  INFO(all.errors());
  CHECK(on_all(all));
}

TEST_CASE("backward starts from a scalar of any placement with the same gradient", "[gradient]") {
  const auto all = in_team<world>([](const team<world>& t) {
    return seeded<partition<world, invariant<ox, oy>>>(t) && seeded<partition<world>>(t) &&
           seeded<partition<world, partial<ox, oy>>>(t) && seeded<partition<world, on<ox>, on<oy, 2>>>(t) &&
           seeded<partition<world, invariant<ox>, partial<oy>>>(t) && seeded<partition<world, on<ox, 1>>>(t);
  });
  INFO(all.errors());
  CHECK(on_all(all));
}

TEST_CASE("value is a number that all workers have alike", "[runtime]") {
  const auto all = in_team<world>([](const team<world>& t) {
    const auto s = sum(distribute<cut_xy>(t, numbers_7x5(5)));
    const double a = item(to<partition<world, invariant<ox, oy>>>(s));
    const double b = item(to<partition<world>>(s));
    return a == b && std::abs(a - numbers_7x5(5).sum().item<double>()) < 1e-12;
  });
  CHECK(on_all(all));
}

TEST_CASE("empty workers hold empty boxes and take part in everything", "[runtime]") {
  const auto all = in_team<world>([](const team<world>& t) {
    const at::Tensor one = at::full({1, 5}, 2.0, at::kDouble);  // one row over two, five columns over three
    auto x = distribute<cut_xy>(t, one);
    x.requires_grad();
    const bool empty = t.coordinate<ox>() == 1;
    const auto loss = to<partition<world, invariant<ox, oy>>>(sum(x * x));
    loss.backward();
    return (x.local().numel() == 0) == empty && x.local().dim() == 2 && item(loss) == 20 &&
           close(full_tensor(x.grad()), 2 * one);
  });
  INFO(all.errors());
  CHECK(on_all(all));
}

TEST_CASE("distribute, from_local and full_tensor are inverse, and equal spellings convert", "[runtime]") {
  const at::Tensor a = numbers_7x5(6);
  const auto all = in_team<world>([&](const team<world>& t) {
    using spelled = tensor<partition<world, whole, whole, replicate<ox>>, extents_7x5, double>;
    const spelled same_thing = distribute<copies>(t, a);
    const auto x = distribute<cut_xy>(t, a);
    const auto again = from_local<cut_xy>(t, x.local().clone(), bind<tall>(7));
    x.local().add_(1);  // a part is the worker's own: the tensor it came from stays
    return close(full_tensor(again), a) && close(full_tensor(same_thing), a) && close(a, numbers_7x5(6)) &&
           close(full_tensor(distribute<terms>(t, a)), a);
  });
  INFO(all.errors());
  CHECK(on_all(all));
}

TEST_CASE("what does not fit a tensor's type is refused on every worker with its code", "[refusal]") {
  const at::Tensor a = numbers_7x5(7);
  CHECK(refusals<world>("tessera.tensor.element", [&](const auto& t) { distribute<cut_xy>(t, a.to(at::kFloat)); }) ==
        6);
  CHECK(refusals<world>("tessera.shape.dimensions", [&](const auto& t) { distribute<cut_xy>(t, a.sum(0)); }) == 6);
  CHECK(refusals<world>("tessera.shape.extent", [&](const auto& t) { distribute<cut_xy>(t, a.t()); }) == 6);
  CHECK(refusals<world>("tessera.tensor.undefined", [&](const auto& t) { distribute<cut_xy>(t, at::Tensor{}); }) == 6);
  CHECK(refusals<world>("tessera.tensor.undefined",
                        [&](const auto& t) { from_local<cut_xy>(t, at::Tensor{}, bind<tall>(7)); }) == 6);
  CHECK(refusals<world>("tessera.tensor.undefined", [&](const auto&) { cut_xy{}.local(); }) == 6);
  CHECK(refusals<world>("tessera.tensor.shape", [&](const auto& t) {
          from_local<cut_xy>(t, at::zeros({9, 9}, at::kDouble), bind<tall>(7));
        }) == 6);
  CHECK(refusals<world>("tessera.tensor.element", [&](const auto& t) {
          from_local<cut_xy>(t, at::zeros({4, 2}, at::kLong), bind<tall>(7));
        }) == 6);
  CHECK(refusals<world>("tessera.element.unknown", [&](const auto& t) {
          tensor<dyn>(t.state(), value_of<copies>.layout, at::zeros({7, 5}, at::kComplexHalf));
        }) == 6);
  CHECK(refusals<world>("tessera.shape.extent", [&](const auto& t) {
          distribute<cut_xy>(t, a) + distribute<cut_xy>(t, at::cat({a, a}));
        }) == 6);
  CHECK(refusals<world>("tessera.tensor.partition",
                        [&](const auto& t) { cut_xy(distribute<copies>(t, a).dynamic()); }) == 6);
}

TEST_CASE("errors name the elements that differ", "[refusal]") {
  const auto all = in_team<world>([&](const team<world>& t) {
    try {
      distribute<cut_xy>(t, numbers_7x5(7).to(at::kHalf));
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string();
  });
  REQUIRE(all.well());
  for (const auto& said : all.results)
    CHECK(said->find("(expected element double, given element half)") != std::string::npos);
}

TEST_CASE("a pairing of tensors whose dynamic extents differ names them", "[refusal]") {
  using open = tensor<cut_xy::partition_type, shape<tall, dim<5>>, double>;
  const auto pair = [](const team<world>& t) {
    pairing(distribute<open>(t, at::ones({7, 5}, at::kDouble)), distribute<open>(t, at::ones({6, 5}, at::kDouble)));
  };
  CHECK(refusals<world>("tessera.shape.extent", pair) == world::value.size());
}

TEST_CASE("the pairing counts an invariant once and a term where it is", "[runtime]") {
  const at::Tensor a = numbers_7x5(8);
  const at::Tensor b = numbers_7x5(9);
  const double wanted = (a * b).sum().item<double>();
  const auto all = in_team<world>([&](const team<world>& t) {
    const auto near = [&](double v) { return std::abs(v - wanted) < 1e-12; };
    using copies_along_y = tensor<partition<world, blocks<ox>, whole>, extents_7x5, double>;
    return near(pairing(distribute<alike>(t, a), distribute<alike>(t, b))) &&
           near(pairing(distribute<cut_xy>(t, a), distribute<cut_xy>(t, b))) &&
           near(pairing(distribute<copies_along_y>(t, a), distribute<terms>(t, b)));
  });
  INFO(all.errors());
  CHECK(on_all(all));
}

TEST_CASE("a number is of the tensor's element, and scales the terms of a sum alone", "[refusal][runtime]") {
  const at::Tensor a = numbers_7x5(10);
  const auto all = in_team<world>([&](const team<world>& t) {
    const auto x = distribute<cut_xy>(t, a);
    const auto p = distribute<terms>(t, a);
    return close(full_tensor(-x), -a) && close(full_tensor(x / 4), a / 4) && close(full_tensor(3 * p), 3 * a) &&
           close(full_tensor(-p / 2.0), -a / 2);
  });
  INFO(all.errors());
  CHECK(on_all(all));
  using small = tensor<partition<world, blocks<ox>>, shape_of<4>, std::int8_t>;
  const auto integers = in_team<world>([&](const team<world>& t) {
    const auto x = distribute<small>(t, at::arange(4, at::kChar));
    return at::equal(full_tensor(x * -2), at::arange(4, at::kChar) * -2) &&
           at::equal(full_tensor(2u * x), at::arange(4, at::kChar) * 2);
  });
  INFO(integers.errors());
  CHECK(on_all(integers));
  CHECK(refusals<world>("tessera.tensor.number",
                        [](const auto& t) { distribute<small>(t, at::zeros({4}, at::kChar)) * 128; }) == 6);
  CHECK(refusals<world>("tessera.tensor.number", [](const auto& t) {
          distribute<tensor<partition<world, whole>, shape_of<4>, std::uint8_t>>(t, at::zeros({4}, at::kByte)) * -1;
        }) == 6);
}

TEST_CASE("workers that give a dynamic extent different values are told so when the tensor enters", "[refusal]") {
  using by_column = tensor<partition<world, whole, blocks<oy>>, extents_7x5, double>;
  const auto uneven = [](const team<world>& t) { return index_t{t.coordinate<ox>() == 0 ? 7 : 6}; };
  CHECK(refusals<world>("tessera.agree.extent",
                        [&](const auto& t) { distribute<by_column>(t, at::zeros({uneven(t), 5}, at::kDouble)); }) == 6);
  CHECK(refusals<world>("tessera.agree.extent", [&](const auto& t) {
          from_local<by_column>(t, at::zeros({uneven(t), t.template coordinate<oy>() < 2 ? 2 : 1}, at::kDouble));
        }) == 6);
  CHECK(refusals<world>("tessera.agree.fingerprint", [&](const auto& t) {
          layout x = value_of<copies>.layout;
          x.dims[0].extent = uneven(t);
          tensor<dyn>(t.state(), x, at::zeros({uneven(t), 5}, at::kDouble));
        }) == 6);
}

TEST_CASE("a layout whose lengths are to be learned says nothing of its parts", "[refusal]") {
  using learned_rows = tensor<partition<world, lengths<ox>, whole>, extents_7x5, double>;
  layout x = value_of<learned_rows>.layout;
  x.dims[0].extent = 7;
  layout listed = x;
  const index_t bounds[]{0, 3, 7};
  listed.dims[0].bounds = bounds;
  CHECK_FALSE(same(x, listed));
  CHECK(refusals<world>("tessera.lengths.unknown",
                        [&](const auto& t) { tensor<dyn>(t.state(), x, at::zeros({7, 5}, at::kDouble)); }) == 6);
  CHECK(refusals<world>("tessera.lengths.unknown", [&](const auto& t) {
          team_state& team = *t.state();
          tessera::detail::bound_change_of(team, team.intern(x), team.intern(listed), element::float64, {});
        }) == 6);
  CHECK(refusals<world>("tessera.lengths.unknown", [&](const auto& t) {
          tessera::detail::distribute_value(t.state(), x, element::float64, at::zeros({7, 5}, at::kDouble));
        }) == 6);
}

TEST_CASE("every use of a tensor that was moved from is refused", "[refusal]") {
  const at::Tensor a = numbers_7x5(11);
  const auto gone = [](const std::string& wanted, auto&& use) {
    try {
      use();
    } catch (const error& e) {
      return wanted == e.code();
    }
    return false;
  };
  const auto all = in_team<world>([&](const team<world>& t) {
    const std::string code = "tessera.tensor.undefined";
    auto x = distribute<copies>(t, a);
    auto s = sum(x);
    const auto kept = std::move(x);
    const auto also = std::move(s);
    const tensor<dyn> none;
    return gone(code, [&] { x.local(); }) && gone(code, [&] { x.layout(); }) && gone(code, [&] { x.team(); }) &&
           gone(code, [&] { x.requires_grad(); }) && gone(code, [&] { x.grad(); }) &&
           gone(code, [&] { s.backward(); }) && gone(code, [&] { item(s); }) && gone(code, [&] { full_tensor(x); }) &&
           gone(code, [&] { x + kept; }) && gone(code, [&] { kept* x; }) && gone(code, [&] { 2 * x; }) &&
           gone(code, [&] { relu(x); }) && gone(code, [&] { to<partition<world, blocks<ox>, whole>>(x); }) &&
           gone(code, [&] { detach(x); }) && gone(code, [&] { copies(x.dynamic()); }) &&
           gone(code, [&] { none.layout(); }) && gone(code, [&] { none.type(); }) && gone(code, [&] { none.team(); }) &&
           gone(code, [&] { none.local(); }) && gone(code, [&] { tensor<dyn>({}, kept.layout(), kept.local()); });
  });
  INFO(all.errors());
  CHECK(on_all(all));
}

TEST_CASE("terms of any combine are taken so that they combine to what was given", "[runtime]") {
  const at::Tensor a = -numbers_7x5(12).abs() - 1;
  const auto all = in_team<world>([&](const team<world>& t) {
    const auto whole_again = [&](auto of) {
      return close(full_tensor(distribute<tensor<decltype(of), extents_7x5, double>>(t, a)), a);
    };
    return whole_again(partition<world, whole, whole, partial<ox, max>>{}) &&
           whole_again(partition<world, whole, blocks<oy>, partial<ox, min>>{}) &&
           whole_again(partition<world, whole, whole, partial<oy, prod>>{}) &&
           whole_again(partition<world, whole, whole, partial<ox, oy>>{});
  });
  INFO(all.errors());
  CHECK(on_all(all));
}

TEST_CASE("random numbers are those of the global index also where a worker holds two intervals", "[runtime]") {
  layout x = value_of<tensor<partition<world, blocks<oy>, whole>, shape_of<7, 5>, double>>.layout;
  x.dims[0].kind = cover::haloed;
  x.dims[0].outputs = 7;
  x.dims[0].needs = sliding{3, 1, 1, 1, 1, boundary::periodic}.needs();
  layout everything = value_of<tensor<partition<world, whole, whole>, shape_of<7, 5>, double>>.layout;
  const at::Tensor all =
      tessera::detail::initial_box(init::uniform(-1, 1), everything, element::float64, 0, seed{5}, "w");
  for (int r = 0; r < 3; ++r) {
    std::vector<index_t> rows;
    const holding mine = held_by(x, r);
    for (const interval& i : mine[0])
      for (index_t e = i.lo; e < i.hi; ++e) rows.push_back(e);
    const at::Tensor part = tessera::detail::initial_box(init::uniform(-1, 1), x, element::float64, r, seed{5}, "w");
    CHECK(at::equal(part, all.index_select(0, at::tensor(rows, at::kLong))));
  }
}
