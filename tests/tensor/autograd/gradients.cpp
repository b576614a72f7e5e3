#include "tests/support/tensors.hpp"

#include <torch/csrc/autograd/forward_grad.h>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

/// First and second derivatives of S(x) = Σ w (F x)³, as inner products with directions u and v.
struct curvature {
  double value = 0;     ///< this worker's part of S(x)
  at::Tensor gradient;  ///< ∇S(x)
  at::Tensor second;    ///< ∇⟨∇S(x), v⟩
};

/// What one worker sees; all workers that hold a copy of an invariant count the same.
curvature curved(const team_handle& team, const layout_pair& p, const at::Tensor& at, const at::Tensor& weights,
                 const at::Tensor& v, bool twice) {
  const at::Tensor x = at.detach().clone().set_requires_grad(true);
  const at::Tensor y = change_layout(team, p.from, p.to, x);
  const at::Tensor s = (weights * y * y * y).sum();
  curvature c;
  c.value = s.item<double>();
  c.gradient = torch::autograd::grad({s}, {x}, {at::ones_like(s)}, true, twice)[0];
  if (!twice) return c;
  const at::Tensor along = (c.gradient * v).sum();
  c.second = torch::autograd::grad({along}, {x}, {at::ones_like(along)})[0];
  c.gradient = c.gradient.detach();
  return c;
}

struct derived {
  curvature here;
  curvature ahead;
  curvature behind;
};

std::vector<at::Tensor> gradients(const outcome<derived>& run, curvature derived::* which) {
  std::vector<at::Tensor> all;
  for (const auto& r : run.results) all.push_back(((*r).*which).gradient);
  return all;
}

/// S summed over the workers of a layout, copies of an invariant counted once.
double total(const layout& y, const outcome<derived>& run, curvature derived::* which) {
  double sum = 0;
  for (int r = 0; r < static_cast<int>(run.results.size()); ++r) {
    coordinates c;
    bool counts = y.mesh.locate(r, c);
    for (int a = 0; a < y.placements.count && counts; ++a)
      counts = y.placements[a].kind != placement::invariant || c[a] == 0;
    if (counts) sum += (run.of(r).*which).value;
  }
  return sum;
}

layout halves() {
  layout x;
  x.mesh.axes.push({text{"a"}, 3, 1});
  x.placements.resize(1);
  x.dims.resize(2);
  x.dims[0].extent = 7;
  x.dims[1].extent = 2;
  x.cut_by(0, 0);
  return x;
}

}  // namespace

TEST_CASE("double backward agrees with central differences", "[law][gradient]") {
  constexpr std::uint64_t seed = 47;
  constexpr double step = 1e-3;
  dice d{seed};
  int failures = 0;
  int judged = 0;
  for (int round = 0; round < trials(400) && failures < 3; ++round) {
    const auto extents = roll_extents(d, 3, 4);
    const mesh_value mesh = roll_mesh(d, 3);
    // A cube takes no terms, so nothing becomes partial; what is partial or pending before is summed on the way.
    layout_pair p{roll_layout(d, mesh, extents, {true, true, true, true, true}),
                  roll_layout(d, d.once_in(4) ? roll_mesh(d, 3) : mesh, extents, {false, true, true, true, true})};
    for (auto& dim : p.from.dims)
      if (dim.kind == cover::haloed) dim.kind = cover::pending;
    if (!check_change(p.from, p.to).ok()) continue;
    const int world = oracle::world_of(p.from, p.to);
    const std::uint64_t salt = d.next();
    const shards x = deal(p.from, world, numbers{salt});
    const shards u = deal(p.from, world, numbers{salt + 1});
    const shards v = deal(p.from, world, numbers{salt + 2});
    // Weights of a replicate target may differ from copy to copy; here they are the cotangent's terms.
    shards w = deal(p.to, world, numbers{salt + 3});
    for (int r = 0; r < world; ++r)
      if (oracle::held(p.to, r).empty()) w.local[static_cast<std::size_t>(r)].zero_();
    const auto run = on_workers(world, [&](const std::shared_ptr<transport>& carrier) {
      const auto r = static_cast<std::size_t>(carrier->rank());
      const auto team = std::make_shared<team_state>(carrier, p.from.mesh);
      const auto at = [&](double h) { return x.local[r] + u.local[r] * h; };
      derived all;
      all.here = curved(team, p, at(0), w.local[r],
                        v.local[r] * (oracle::held(p.from, carrier->rank()).empty() ? 0 : 1), true);
      all.ahead = curved(team, p, at(step), w.local[r], v.local[r], false);
      all.behind = curved(team, p, at(-step), w.local[r], v.local[r], false);
      return all;
    });
    std::string why = run.errors();
    if (run.well()) {
      ++judged;
      std::vector<at::Tensor> second;
      for (const auto& r : run.results) second.push_back(r->here.second);
      const double curve = paired(p.from, u.local, second);
      const double bend = (paired(p.from, v.local, gradients(run, &derived::ahead)) -
                           paired(p.from, v.local, gradients(run, &derived::behind))) /
                          (2 * step);
      const double slope = paired(p.from, u.local, gradients(run, &derived::here));
      const double rise = (total(p.to, run, &derived::ahead) - total(p.to, run, &derived::behind)) / (2 * step);
      const double scale =
          1 + paired(p.from, u.local, second, true) + paired(p.from, u.local, gradients(run, &derived::here), true);
      if (std::abs(curve - bend) > 1e-9 * scale)
        why = fmt::format("second derivative {}, by differences {}", curve, bend);
      if (std::abs(slope - rise) > 1e-4 * scale) why = fmt::format("derivative {}, by differences {}", slope, rise);
    }
    if (!why.empty()) {
      ++failures;
      UNSCOPED_INFO("seed " << seed << " round " << round << ": " << why << "\n  " << shown(p.from) << "\n  "
                            << shown(p.to));
    }
  }
  CHECK(failures == 0);
  CHECK(judged > trials(200));
}

TEST_CASE("a halo exchange whose input another branch uses too adds both gradients", "[gradient]") {
  const layout from = halves();
  layout to = from;
  const sliding three{3, 1, 1, 1, 1};
  to.dims[0].kind = cover::haloed;
  to.dims[0].outputs = 7;
  to.dims[0].needs = three.needs();
  const shards x = deal(from, 3, numbers{1});
  const shards c = deal(cotangent(to), 3, numbers{2});
  const auto run = on_workers(3, [&](const std::shared_ptr<transport>& carrier) {
    const auto r = static_cast<std::size_t>(carrier->rank());
    const auto team = std::make_shared<team_state>(carrier, from.mesh);
    const at::Tensor leaf = x.local[r].clone().set_requires_grad(true);
    const at::Tensor other = leaf * leaf;
    const at::Tensor first = change_layout(team, from, to, leaf);
    const at::Tensor again = change_layout(team, from, to, leaf);
    const at::Tensor loss = (first * c.local[r]).sum() + other.sum() + (again * c.local[r]).sum();
    loss.backward();
    return leaf.grad();
  });
  REQUIRE(run.well());
  CHECK(distance(from, {run.of(0), run.of(1), run.of(2)}, 2 * x.global + 2 * c.global) < 1e-14);
}

TEST_CASE("gradients that are one number seen many times are carried like any other", "[gradient]") {
  const layout from = halves();
  layout to = from;
  to.set_placement(0, {});
  const shards x = deal(from, 3, numbers{5});
  const auto run = on_workers(3, [&](const std::shared_ptr<transport>& carrier) {
    const auto team = std::make_shared<team_state>(carrier, from.mesh);
    const at::Tensor leaf = x.local[static_cast<std::size_t>(carrier->rank())].clone().set_requires_grad(true);
    change_layout(team, from, to, leaf).sum().backward();  // sum hands back an expanded number
    return leaf.grad();
  });
  REQUIRE(run.well());
  CHECK(distance(from, {run.of(0), run.of(1), run.of(2)}, at::full({7, 2}, 3.0, at::kDouble)) == 0);
}

TEST_CASE("an all_reduce of a transposed tensor sums element by element", "[runtime]") {
  layout from = halves();
  from.set_placement(0, {placement::partial});
  layout to = from;
  to.set_placement(0, {placement::invariant});
  const auto run = on_workers(3, [&](const std::shared_ptr<transport>& carrier) {
    const auto team = std::make_shared<team_state>(carrier, from.mesh);
    const at::Tensor x = at::arange(14, at::kDouble).view({2, 7}).t() * (carrier->rank() + 1);
    return at::Tensor(change_layout(team, from, to, x.contiguous().t().contiguous().t()));
  });
  REQUIRE(run.well());
  for (int r = 0; r < 3; ++r) CHECK(at::equal(run.of(r), at::arange(14, at::kDouble).view({2, 7}).t() * 6));
}

TEST_CASE("a worker that uses none of what arrived takes part in backward", "[gradient]") {
  const layout from = halves();
  layout to = from;
  to.set_placement(0, {});
  const auto run = on_workers(3, [&](const std::shared_ptr<transport>& carrier) {
    const auto team = std::make_shared<team_state>(carrier, from.mesh);
    const at::Tensor leaf =
        at::ones(tessera::detail::sizes_of(held_by(from, carrier->rank())), at::kDouble).set_requires_grad(true);
    const at::Tensor y = change_layout(team, from, to, leaf);
    const at::Tensor loss = carrier->rank() == 1 ? (y * 2).sum() : y.narrow(0, 0, 0).sum();
    loss.backward();
    return leaf.grad();
  });
  REQUIRE(run.well());
  CHECK(distance(from, {run.of(0), run.of(1), run.of(2)}, at::full({7, 2}, 2.0, at::kDouble)) == 0);
}

namespace {

struct vertical : axis<2> {};
struct horizontal : axis<3> {};
using plane = mesh<vertical, horizontal>;
using copies = partition<plane, whole, whole>;
using shared_by_all = partition<plane, whole, whole, invariant<vertical, horizontal>>;
using by_rows = partition<plane, blocks<vertical>, whole>;
template <class P>
using table = tensor<P, shape_of<3, 2>, double>;

/// Whether what `make` gives of a tensor may be written, and so may the tensor, and neither changes the other; `part`
/// is what LibTorch makes of this worker's box.
template <class P, class Team, class Make, class Part>
bool lies_in_its_own_memory(const Team& t, Make&& make, Part&& part) {
  const at::Tensor global = global_of({3, 2}, numbers{1});
  const auto constant = [&] { return distribute<table<P>>(t, global); };
  const auto leaf = [&] {
    auto x = constant();
    x.requires_grad();
    return x;
  };
  const at::Tensor box = constant().local();
  bool good = true;
  for (const bool guarded : {false, true}) {
    const at::AutoGradMode records(!guarded);
    const auto x = constant();
    const auto y = make(x);
    const at::Tensor given = y.local().clone();
    y.local().mul_(10);
    good = good && at::equal(x.local(), box) && at::equal(y.local(), given * 10);
    const auto z = make(x);
    x.local().mul_(3);
    good = good && at::equal(z.local(), given) && at::equal(make(x).local(), part(box * 3));
    const auto tracked = leaf() * 1.0;
    make(tracked).local().mul_(10);
    good = good && at::equal(tracked.local(), box);
  }
  const auto gradient = [&](bool written) {  // it is that of what was computed, whatever is written later
    const auto x = leaf();
    const auto twice = x * 2.0;
    const auto y = make(twice);
    if (written) twice.local().mul_(7);
    const at::Tensor loss = (y.local() * 3).sum();
    if (written) y.local().mul_(5);
    return torch::autograd::grad({loss}, {x.local()})[0];
  };
  return good && at::equal(gradient(false), gradient(true));
}

struct only : axis<1> {};
using one_worker = mesh<only>;

}  // namespace

TEST_CASE("what a verb gives lies in memory of its own, whether it moves something or not, of many workers and of one",
          "[runtime]") {
  const auto as_it_is = [](const at::Tensor& x) { return x; };
  CHECK(satisfied<plane>([&](team<plane>& t) {
          return lies_in_its_own_memory<copies>(
                     t, [](const auto& x) { return shard<by_rows>(x); },
                     [&](const at::Tensor& x) {
                       return t.coordinate<vertical>() == 0 ? x.narrow(0, 0, 2) : x.narrow(0, 2, 1);
                     }) &&
                 lies_in_its_own_memory<shared_by_all>(
                     t, [](const auto& x) { return copy_in<copies>(x); }, as_it_is) &&
                 lies_in_its_own_memory<copies>(
                     t, [](const auto& x) { return to_invariant<shared_by_all>(x); }, as_it_is) &&
                 lies_in_its_own_memory<copies>(
                     t, [](const auto& x) { return to_root<partition<plane, whole, whole, on<horizontal, 1>>>(x); },
                     [&](const at::Tensor& x) {
                       return t.coordinate<horizontal>() == 1 ? x : x.narrow(0, 0, 0).narrow(1, 0, 0);
                     }) &&
                 lies_in_its_own_memory<copies>(
                     t, [](const auto& x) { return finish(start<by_rows>(x)); },
                     [&](const at::Tensor& x) {
                       return t.coordinate<vertical>() == 0 ? x.narrow(0, 0, 2) : x.narrow(0, 2, 1);
                     }) &&
                 lies_in_its_own_memory<copies>(t, [](const auto& x) { return to<copies>(x); }, as_it_is);
        }) == 6);
  CHECK(satisfied<one_worker>([&](team<one_worker>& t) {
          using alone = partition<one_worker, blocks<only>, whole>;
          using held = partition<one_worker, whole, whole>;
          using pending = partition<one_worker, whole, whole, partial<only>>;
          const auto x = distribute<table<alone>>(t, at::ones({3, 2}, at::kDouble));
          const auto y = distribute<table<pending>>(t, at::ones({3, 2}, at::kDouble));
          all_gather<held>(x).local().mul_(10);
          all_reduce<held>(y).local().mul_(10);
          return at::equal(x.local(), at::ones({3, 2}, at::kDouble)) && at::equal(y.local(), x.local()) &&
                 lies_in_its_own_memory<alone>(
                     t, [](const auto& z) { return to<held>(z); }, as_it_is) &&
                 lies_in_its_own_memory<held>(t, [](const auto& z) { return finish(start<alone>(z)); }, as_it_is);
        }) == 1);
  CHECK(satisfied<one_worker>([&](team<one_worker>& t) {
          const auto x = distribute<table<partition<one_worker, whole, whole>>>(t, at::ones({3, 2}, at::kDouble));
          full_tensor(x).mul_(10);
          return at::equal(x.local(), at::ones({3, 2}, at::kDouble));
        }) == 1);
}

TEST_CASE("an array of the caller's is copied where LibTorch could not share its memory until it is written",
          "[runtime]") {
  CHECK(satisfied<plane>([&](team<plane>& t) {
          std::vector<double> mine(6, 1.0);
          const auto x = from_local<table<copies>>(t, at::from_blob(mine.data(), {3, 2}, at::kDouble));
          to_invariant<shared_by_all>(x).local().mul_(10);
          return mine == std::vector<double>(6, 1.0) && x.local().data_ptr() == mine.data();
        }) == 6);
}

TEST_CASE("where something moves no worker has a view, even if its part was its own", "[runtime]") {
  CHECK(satisfied<plane>([](team<plane>& t) {
          using shorter = partition<plane, lengths<vertical, dim<2>, dim<1>>, whole>;
          using longer = partition<plane, lengths<vertical, dim<3>, dim<0>>, whole>;
          auto x = distribute<table<shorter>>(t, at::ones({3, 2}, at::kDouble));
          const auto y = to<shorter>(to<longer>(x));
          x.requires_grad();
          const auto z = to<longer>(x * 1.0);
          z.local().mul_(2);  // its own
          return !y.local().is_alias_of(x.local()) && at::equal(x.local(), at::ones_like(x.local()));
        }) == 6);
}

TEST_CASE("a function that hands back its operand does not hand it out to be written into", "[runtime]") {
  CHECK(satisfied<plane>([](team<plane>& t) {
          const auto x = distribute<table<by_rows>>(t, at::ones({3, 2}, at::kDouble)).requires_grad() * 2;
          const auto same = map_elements(x, [](const at::Tensor& a) { return a; });
          const auto view = map_elements(x, [](const at::Tensor& a) { return a.view_as(a); });
          return told([&] { same.local().add_(1); }) == "other" && told([&] { view.local().add_(1); }) == "other" &&
                 told([&] { relu(x).local().add_(1); }) == "none";
        }) == 6);
}

TEST_CASE("terms that are no sum have no gradient, and detached ones combine", "[refusal]") {
  using most = partition<plane, whole, whole, partial<vertical, max>>;
  const at::Tensor global = -global_of({3, 2}, numbers{3}).abs();
  CHECK(satisfied<plane>([&](team<plane>& t) {
          const auto x = distribute<table<most>>(t, global);
          x.local().set_requires_grad(true);
          return told([&] { all_reduce<copies>(x); }) == "tessera.combine.gradient" &&
                 at::equal(all_reduce<copies>(detach(x)).local(), global);
        }) == 6);
}

TEST_CASE("a tensor without a gradient says so, and one of an empty box has one", "[refusal][gradient]") {
  CHECK(satisfied<plane>([](team<plane>& t) {
          auto x = distribute<tensor<partition<plane, blocks<horizontal>, whole>, shape_of<1, 2>, double>>(
              t, at::ones({1, 2}, at::kDouble));
          const auto without = [](auto&& f) { return told(f) == "tessera.tensor.gradient"; };
          const bool none = without([&] { x.grad(); }) && without([&] { sum(x * x).backward(); });
          x.requires_grad();
          const auto y = x * x;
          sum(exp(y) + y).backward();
          return none && told([&] { y.grad(); }) == "tessera.tensor.gradient" &&
                 x.grad().local().sizes() == x.local().sizes();
        }) == 6);
}

TEST_CASE("a graph of the gradient keeps the graph, whatever keep_graph says", "[gradient]") {
  CHECK(satisfied<plane>([](team<plane>& t) {
          auto x = distribute<table<by_rows>>(t, at::full({3, 2}, 3.0, at::kDouble));
          x.requires_grad();
          const auto y = all_gather<copies>(x);
          sum(y * y * y).backward(false, true);
          const auto first = detach(x.grad());
          const at::Tensor second = torch::autograd::grad({x.grad().local().sum()}, {x.local()})[0];
          x.local().mutable_grad().reset();
          const auto again = decltype(first)(tensor<dyn>(t.state(), first.layout(), second));
          return at::equal(full_tensor(first), at::full({3, 2}, 27.0, at::kDouble)) &&
                 at::equal(full_tensor(again), at::full({3, 2}, 18.0, at::kDouble));
        }) == 6);
}

TEST_CASE("a forward-mode tangent is refused before it is lost", "[refusal]") {
  const at::Tensor global = at::ones({3, 2}, at::kDouble);
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  CHECK(
      satisfied<plane>([&](team<plane>& t) {
        const at::Tensor dual = at::_make_dual(global.clone(), at::ones_like(global), static_cast<std::int64_t>(level));
        auto x = distribute<table<copies>>(t, global);
        x.requires_grad();
        const auto adds = [&](const at::Tensor& a) { return a + dual; };
        return told([&] { from_local<table<copies>>(t, dual); }) == "tessera.tensor.forward_mode" &&
               told([&] { change_layout(t.state(), x.layout(), x.layout(), dual); }) == "tessera.tensor.forward_mode" &&
               told([&] { map_elements(x, adds); }) == "tessera.tensor.forward_mode";
      }) == 6);
  torch::autograd::ForwardADLevel::release_idx(level);
}
