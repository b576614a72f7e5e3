#include "tests/support/quarter.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/network/program.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

using lower = fixed<quarter, north, 1>;
using on_lower = partition<lower, whole>;

}  // namespace

TEST_CASE("only workers that hold a scalar can be steered by it", "[refusal][regression]") {
  CHECK(satisfied<quarter>([](team<quarter>& t) {
          auto x = distribute<on_all>(t, at::ones({6}, at::kDouble));
          const auto s = sum(to<on_lower>(x));
          const std::string code = told([&] { return item(s); });
          return code == (t.coordinate<north>() == 1 ? "none" : "tessera.value.outside");
        }) == 4);
}

TEST_CASE("a maximum of sums is no tensor, and only a change takes the terms of a maximum", "[refusal][regression]") {
  CHECK(satisfied<quarter>([](team<quarter>& t) {
          layout x = layout_of_partition<partition<quarter, whole, partial<north, max>, partial<east, max>>>;
          x.dims[0].extent = 6;
          const tensor<dyn> most(t.state(), x, at::full({6}, t.rank(), at::kDouble));
          layout all = x;
          all.placements[0] = all.placements[1] = {};
          const bool combined = at::equal(to(all, most).local(), at::full({6}, 3, at::kDouble));
          const std::string scaled =
              told([&] { apply(operation("n->n").linear(), [](const at::Tensor& y) { return -y; }, most); });
          x.placements[0].with = combine::sum;
          const std::string mixed = told([&] { tensor<dyn>(t.state(), x, at::ones({6}, at::kDouble)); });
          return combined && scaled == "tessera.rule.nonlinear" && mixed == "tessera.partial.combine";
        }) == 4);
}

TEST_CASE("a sparse, packed or missing tensor is refused where it comes in, and where an operation gives it",
          "[refusal][regression]") {
  const at::Tensor global = at::ones({6}, at::kDouble);
  using single = tensor<partition<quarter, whole>, shape_of<6>>;
  CHECK(refusals<quarter>("tessera.tensor.strided",
                          [&](const team<quarter>& t) { distribute<on_all>(t, global.to_sparse()); }) == 4);
  CHECK(refusals<quarter>("tessera.tensor.strided", [&](const team<quarter>& t) {
          from_local<single>(t, global.to(at::kFloat).to_mkldnn());
        }) == 4);
  for (const bool tracked : {false, true}) {
    const auto maps_to = [&](const team<quarter>& t, auto&& f) {
      auto x = distribute<on_all>(t, global);
      if (tracked) x.requires_grad();
      map_elements(x, f);
    };
    CHECK(refusals<quarter>("tessera.tensor.strided", [&](const team<quarter>& t) {
            maps_to(t, [](const at::Tensor& x) { return x.to_sparse(); });
          }) == 4);
    CHECK(refusals<quarter>("tessera.tensor.undefined", [&](const team<quarter>& t) {
            maps_to(t, [](const at::Tensor&) { return at::Tensor(); });
          }) == 4);
  }
}

TEST_CASE("initial values of an extent that is not known are refused", "[refusal][regression]") {
  struct batch : dyn {};
  const layout open = value_of<tensor<partition<quarter, whole>, shape<batch>>>.layout;
  const auto drawn = [](const layout& x) {
    return tessera::detail::initial_box(init::uniform(), x, element::float32, 0, seed{1}, "w");
  };
  CHECK(told([&] { drawn(open); }) == "tessera.shape.unbound");
  CHECK(drawn(bound(open, binding<batch>::tag, 3)).numel() == 3);
}

TEST_CASE("tensors of two teams that do not carry each other's boxes are refused by functions and by networks",
          "[refusal][regression]") {
  const auto run = on_workers(1, [](const std::shared_ptr<transport>& carrier) {
    mesh_value one;
    one.axes.push({text("line"), 1, 1});
    layout x;
    x.mesh = row_major(one);
    x.placements.push({});
    x.dims.resize(1);
    x.dims[0].extent = 3;
    const auto here = std::make_shared<team_state>(carrier, x.mesh);
    const auto there =
        std::make_shared<team_state>(std::make_shared<in_process>(std::make_shared<thread_rendezvous>(1), 0), x.mesh);
    const tensor<dyn> a = distribute(here, x, at::ones({3}));
    const tensor<dyn> b = distribute(there, x, at::ones({3}));
    nn::program p;
    p.output(relu(p.input({x, element::float32})));
    const nn::dynamic_network net{here, seed{1}, p};
    return std::vector{told([&] { a + b; }), told([&] { net(b); }), told([&] { net(a); })};
  });
  REQUIRE(run.well());
  CHECK(run.of(0) == std::vector<std::string>{"tessera.tensor.team", "tessera.tensor.team", "none"});
}

TEST_CASE("a local tensor that is not the box is refused where it comes in", "[refusal][regression]") {
  CHECK(satisfied<quarter>([](team<quarter>& t) {
          const layout& from = value_of<on_all>.layout;
          const layout& whole_everywhere = value_of<tensor<partition<quarter, whole>, shape_of<6>, double>>.layout;
          const auto go = [&](const at::Tensor& x) {
            return told([&] { change_layout(t.state(), from, whole_everywhere, x); });
          };
          return go(at::ones({5}, at::kDouble)) == "tessera.tensor.shape" &&
                 go(at::Tensor()) == "tessera.tensor.undefined" &&
                 go(at::empty({2}, at::TensorOptions().dtype(at::kDouble).device(at::kMeta))) ==
                     "tessera.tensor.device" &&
                 go(at::ones({2}, at::kDouble).to_sparse()) == "tessera.tensor.strided";
        }) == 4);
}

}  // namespace tessera::testing
