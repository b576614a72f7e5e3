#include "tests/support/tensors.hpp"

#include <tessera/nn/network/program.hpp>
#include <tessera/tensor/device/torch_boxes.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

struct north : axis<2> {};
struct east : axis<2> {};
using quarter = mesh<north, east>;
using lower = fixed<quarter, north, 1>;
using on_all = tensor<partition<quarter, blocks<north, east>>, shape_of<6>, double>;
using on_lower = partition<lower, whole>;
using terms_of_four = tensor<partition<quarter, whole, partial<north, east>>, shape_of<6>, double>;
using alike_on_four = partition<quarter, whole, invariant<north, east>>;

}  // namespace

TEST_CASE("backward through a sub-mesh is seeded where the sub-mesh is") {
  CHECK(satisfied<quarter>([](team<quarter>& t) {
          auto x = distribute<on_all>(t, at::arange(6, at::kDouble));
          x.requires_grad();
          sum(to<on_lower>(x)).backward();
          return at::equal(x.local().grad(), at::ones_like(x.local()));
        }) == 4);
}

TEST_CASE("only workers that hold a scalar can be steered by it") {
  CHECK(satisfied<quarter>([](team<quarter>& t) {
          auto x = distribute<on_all>(t, at::ones({6}, at::kDouble));
          const auto s = sum(to<on_lower>(x));
          const std::string code = told([&] { return item(s); });
          return code == (t.coordinate<north>() == 1 ? "none" : "tessera.value.outside");
        }) == 4);
}

TEST_CASE("a maximum of sums is no tensor, and only a change takes the terms of a maximum") {
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

TEST_CASE("two leaves do not share one gradient") {
  CHECK(satisfied<quarter>([](team<quarter>& t) {
          auto a = distribute<terms_of_four>(t, at::ones({6}, at::kDouble));
          auto b = distribute<terms_of_four>(t, at::ones({6}, at::kDouble));
          a.requires_grad();
          b.requires_grad();
          sum(all_reduce<alike_on_four>(a) + all_reduce<alike_on_four>(b)).backward();
          return a.local().grad().data_ptr() != b.local().grad().data_ptr();
        }) == 4);
}

TEST_CASE("a value that backward needs is not overwritten where nothing moved") {
  CHECK(satisfied<quarter>([](team<quarter>& t) {
          using alike = tensor<alike_on_four, shape_of<6>, double>;
          auto v = distribute<alike>(t, at::ones({6}, at::kDouble));
          v.requires_grad();
          const auto copies = copy_in<partition<quarter, whole>>(v);
          const auto loss = sum(copies * copies);
          {
            const at::NoGradGuard step;
            v.local().mul_(100);
          }
          loss.backward();
          return at::equal(v.local().grad(), at::full({6}, 2.0, at::kDouble));  // of the ones that it was computed of
        }) == 4);
}

TEST_CASE("a sparse, packed or missing tensor is refused where it comes in, and where an operation gives it") {
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

TEST_CASE("initial values of an extent that is not known are refused") {
  struct batch : dyn {};
  const layout open = value_of<tensor<partition<quarter, whole>, shape<batch>>>.layout;
  const auto drawn = [](const layout& x) {
    return tessera::detail::initial_box(init::uniform(), x, element::float32, 0, seed{1}, "w");
  };
  CHECK(told([&] { drawn(open); }) == "tessera.shape.unbound");
  CHECK(drawn(bound(open, binding<batch>::tag, 3)).numel() == 3);
}

TEST_CASE("tensors of two teams that do not carry each other's boxes are refused by functions and by networks") {
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

namespace {

/// How a LibTorch older than the one here asks a device for its stream: what it gives does not say what CUDA calls it.
struct guard_of_old {
  static c10::Device getDevice() { return at::kCPU; }
  static c10::Stream getStream(c10::Device d) { return c10::Stream(c10::Stream::DEFAULT, d); }
};

}  // namespace

TEST_CASE("a LibTorch that does not say what CUDA calls its streams is refused") {
  CHECK(told([] { tessera::detail::current_stream_of(guard_of_old{}); }) == "tessera.device.stream");
}

TEST_CASE("a local tensor that is not the box is refused where it comes in") {
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

namespace {

/// A line of workers, from world rank `first` on, that cuts one dimension of a matrix or holds it in another placement.
layout matrix_over(int workers, int first, const std::vector<index_t>& extents, int cut_dimension,
                   axis_placement how = {}) {
  layout x;
  x.mesh.axes.push({text("line"), workers, 1});
  x.mesh.first = first;
  x.placements.push(how);
  for (const index_t n : extents) {
    dimension d;
    d.extent = n;
    x.dims.push(d);
  }
  if (cut_dimension >= 0) x.cut_by(cut_dimension, 0);
  return x;
}

at::Tensor piece_of(const layout& x, int rank, const at::Tensor& whole) {
  at::Tensor part = whole;
  int d = 0;
  for (const intervals& held : held_by(x, rank)) {
    part = part.narrow(d, held[0].lo, held[0].size());
    ++d;
  }
  return part;
}

}  // namespace

// COSTA loses parts of the destination where both layouts are row-major and a tile has other numbers of blocks in
// height and width.
TEST_CASE("row-major tiles are transposed whatever their height and width, and so is the gradient") {
  for (const auto& [before, after, first] :
       {std::array{1, 1, 0}, std::array{2, 2, 0}, std::array{4, 4, 0}, std::array{3, 4, 0}, std::array{2, 3, 1}})
    for (const auto& [n, m] : {std::pair<index_t, index_t>{300, 700}, {1030, 70}, {5, 3}}) {
      const at::Tensor a = global_of({n, m}, numbers{1});
      const at::Tensor c = global_of({m, n}, numbers{2});
      const layout rows = matrix_over(before, 0, {n, m}, 0);
      const layout columns = matrix_over(before, 0, {m, n}, 1);
      const layout rows_of_transposed = matrix_over(after, first, {m, n}, 0);
      const auto all = on_workers(std::max(before, first + after), [&, before = before, worker_mesh = rows.mesh](
                                                                       const std::shared_ptr<transport>& carrier) {
        const auto team = std::make_shared<team_state>(carrier, worker_mesh);
        const int r = carrier->rank();
        const at::Tensor mine = piece_of(rows, r, a).clone().set_requires_grad(true);
        const at::Tensor y = change_layout(team, columns, rows_of_transposed, mine.t());
        y.backward(piece_of(rows_of_transposed, r, c));
        return (before == 1 || y.is_contiguous()) && at::equal(y, piece_of(rows_of_transposed, r, a.t())) &&
               at::equal(mine.grad(), piece_of(rows, r, c.t()));
      });
      INFO(before << " to " << after << " from " << first << ": " << n << " x " << m << all.errors());
      REQUIRE(all.well());
      for (const auto& r : all.results) CHECK(*r);
    }
}

// DistDL 0.5 and 0.6 exchange halos in the gradient that came in, which the other term of a sum gets too.
TEST_CASE("a halo exchange leaves the gradient that it shares with another branch as it was") {
  const layout blocks = matrix_over(4, 0, {5, 5}, 0);
  layout halo = blocks;
  halo.dims[0].kind = cover::haloed;
  halo.dims[0].outputs = 5;
  halo.dims[0].needs = sliding{3, 1, 1, 1, 1}.needs();
  const layout terms = cotangent(halo);
  const shards seeds = deal(terms, 4, numbers{5});
  const shards x = deal(blocks, 4, numbers{6});
  const auto all = on_workers(4, [&](const std::shared_ptr<transport>& carrier) {
    const auto r = static_cast<std::size_t>(carrier->rank());
    const auto team = std::make_shared<team_state>(carrier, blocks.mesh);
    const at::Tensor mine = x.local[r].clone().set_requires_grad(true);
    const at::Tensor w = at::ones_like(seeds.local[r]).set_requires_grad(true);
    const at::Tensor seed = seeds.local[r].clone();
    (change_layout(team, blocks, halo, mine) + w * 1.0).backward(seed);
    return std::pair{mine.grad(), at::equal(w.grad(), seeds.local[r]) && at::equal(seed, seeds.local[r])};
  });
  INFO(all.errors());
  REQUIRE(all.well());
  std::vector<at::Tensor> gradients;
  for (const auto& r : all.results) {
    CHECK(r->second);
    gradients.push_back(r->first);
  }
  CHECK(distance(cotangent(blocks), gradients, seeds.global) < 1e-15);
}

// DistDL 0.5 and 0.6 sum a transposed tensor's memory instead of its elements.
TEST_CASE("an all_reduce of transposed terms has the sum, and a transposed gradient comes back as it is") {
  const layout terms = matrix_over(3, 0, {4, 7}, -1, {placement::partial});
  for (const placement kept : {placement::invariant, placement::replicate}) {
    const layout sums = matrix_over(3, 0, {4, 7}, -1, {kept});
    const at::Tensor a = global_of({7, 4}, numbers{3, true});
    const at::Tensor c = global_of({7, 4}, numbers{4, true});
    const auto all = on_workers(3, [&](const std::shared_ptr<transport>& carrier) {
      const auto team = std::make_shared<team_state>(carrier, terms.mesh);
      const at::Tensor mine = (a * (carrier->rank() + 1)).set_requires_grad(true);
      const at::Tensor y = change_layout(team, terms, sums, mine.t());
      y.backward((c * (kept == placement::invariant ? 1 : carrier->rank() + 1)).t());
      return at::equal(y, a.t() * 6) && at::equal(mine.grad(), c * (kept == placement::invariant ? 1 : 6));
    });
    INFO(all.errors());
    REQUIRE(all.well());
    for (const auto& r : all.results) CHECK(*r);
  }
}

// Where every replica's loss is seeded, gradients are larger by their number.
TEST_CASE("a loss that every worker has is back-propagated once") {
  using copies = partition<quarter, replicate<north, east>>;
  using shared = partition<quarter, replicate<north>, invariant<east>>;
  const auto seeded = [](auto of) {
    return satisfied<quarter>([&](team<quarter>& t) {
      auto x = distribute<on_all>(t, at::arange(6, at::kDouble));
      x.requires_grad();
      to<decltype(of)>(sum(x * x)).backward();
      return at::equal(x.local().grad(), 2 * x.local().detach());
    });
  };
  CHECK(seeded(copies{}) == 4);
  CHECK(seeded(shared{}) == 4);
}

}  // namespace tessera::testing
