#include "tests/support/tensors.hpp"

#include <range/v3/view/cartesian_product.hpp>

#include <array>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

/// A layout of these extents whose placements are rolled; sources may be pending, targets haloed.
layout roll_end(dice& d, const mesh_value& mesh, const static_vector<index_t, max_dimensions>& extents, bool source) {
  layout x = roll_layout(d, mesh, extents, {true, true, true, true, true});
  for (auto& dim : x.dims)
    if (source && dim.kind == cover::haloed) dim.kind = cover::pending;
  return x;
}

layout_pair roll_pair(dice& d) {
  const auto extents = roll_extents(d, 4, 5);
  const mesh_value first = roll_mesh(d, 3);
  const mesh_value second = d.once_in(3) ? roll_mesh(d, 3) : first;
  layout_pair p{roll_end(d, first, extents, true), roll_end(d, second, extents, false)};
  for (int k = 0; k < extents.count; ++k)  // a zigzag has no window around the end beside it
    for (const auto& [has, other] : {std::pair(&p.from, &p.to), std::pair(&p.to, &p.from)})
      if (has->dims[k].kind != cover::tiled && has->dims[k].needs.edge == boundary::periodic)
        other->dims[k].zigzag = false;
  return d.once_in(4) ? layout_pair{with_ones(d, p.from), with_ones(d, p.to)} : p;
}

/// What one worker saw of y = F x and of x* = F* y*.
struct seen {
  at::Tensor y;
  at::Tensor gradient;
  index_t there = 0;
  index_t back = 0;
  bool inputs_kept = false;
  bool view = false;
  bool linear = false;
};

struct trial {
  layout_pair pair;
  shards x;
  shards cotangents;  ///< y*, in the cotangent of the target
  outcome<seen> run;

  std::vector<at::Tensor> of(at::Tensor seen::* member) const {
    std::vector<at::Tensor> all;
    for (const auto& r : run.results) all.push_back((*r).*member);
    return all;
  }
  index_t bytes(index_t seen::* member) const {
    index_t n = 0;
    for (const auto& r : run.results) n += (*r).*member;
    return n;
  }
};

trial tried(const layout_pair& p, std::uint64_t salt, int memory, bool whole_numbers) {
  const int world = oracle::world_of(p.from, p.to);
  trial t{p, deal(p.from, world, numbers{salt, whole_numbers}),
          deal(cotangent(p.to), world, numbers{salt + 1, whole_numbers}), outcome<seen>(0)};
  t.run = on_workers(world, [&](const std::shared_ptr<transport>& carrier) {
    const auto r = static_cast<std::size_t>(carrier->rank());
    const auto team = std::make_shared<team_state>(carrier, p.from.mesh);
    const at::Tensor x = stored_as(t.x.local[r], memory).set_requires_grad(true);
    const at::Tensor seed = stored_as(t.cotangents.local[r], memory);
    seen s;
    s.y = change_layout(team, p.from, p.to, x);
    s.there = team->total.bytes;
    s.view = s.y.is_alias_of(x);
    s.gradient = torch::autograd::grad({s.y}, {x}, {seed})[0];
    s.back = team->total.bytes - s.there;
    s.y = s.y.detach().clone();
    s.inputs_kept = same_bits(x, t.x.local[r]) && same_bits(seed, t.cotangents.local[r]);
    const at::Tensor twice = change_layout(team, p.from, p.to, x.detach() * 2 + t.x.local[r] * 3);
    s.linear = (twice - s.y * 5).abs().sum().item<double>() <= (whole_numbers ? 0 : 1e-11) ||
               oracle::held(p.to, carrier->rank()).empty();
    return s;
  });
  return t;
}

index_t needed_and_not_held(const layout& wants, const layout& has, int world) {
  index_t n = 0;
  for (int r = 0; r < world; ++r) {
    const auto own = oracle::held(has, r);
    for (const auto& e : oracle::held(wants, r)) n += own.count(e) == 0;
  }
  return n;
}

/// What is wrong with a trial, or nothing.
std::string wrong(const trial& t, double tolerance) {
  if (!t.run.well()) return t.run.errors();
  const auto& [from, to] = t.pair;
  const int world = static_cast<int>(t.x.local.size());
  if (const double d = distance(to, t.of(&seen::y), t.x.global); d > tolerance)
    return fmt::format("elements off by {}", d);
  // On the global tensor a change is the identity, so backwards too: x* means what y* means where y has elements.
  if (const double d = distance(cotangent(from), t.of(&seen::gradient), t.cotangents.global); d > tolerance)
    return fmt::format("gradient off by {}", d);
  const double left = paired(to, t.of(&seen::y), t.cotangents.local);
  const double right = paired(from, t.x.local, t.of(&seen::gradient));
  const double scale =
      paired(to, t.of(&seen::y), t.cotangents.local, true) + paired(from, t.x.local, t.of(&seen::gradient), true);
  if (std::abs(left - right) > tolerance * scale) return fmt::format("<Fx,y> = {} but <x,F*y> = {}", left, right);
  const change there = change_between(from, to);
  const change back = change_between(cotangent(to), cotangent(from));
  for (const auto& r : t.run.results)
    if (r->view != t.run.of(0).view || (r->view && cost_of(there).total > 0))
      return "a view on some workers, or of what moves";
  if (t.bytes(&seen::there) != 8 * cost_of(there).total || t.bytes(&seen::back) != 8 * cost_of(back).total)
    return fmt::format("moved {} and {} bytes, planned {} and {}", t.bytes(&seen::there), t.bytes(&seen::back),
                       8 * cost_of(there).total, 8 * cost_of(back).total);
  for (const change* c : {&there, &back}) {
    for (const step& s : c->steps) {
      const cost planned = cost_of(s.plan());
      const index_t least =
          s.kind == map::move ? needed_and_not_held(s.to, s.from, world) : needed_and_not_held(s.from, s.to, world);
      if (planned.total != planned.lower_bound || planned.lower_bound != least)
        return fmt::format("{} of {} elements, where {} need to move", s.kind == map::move ? "Move" : "Fold",
                           planned.total, least);
    }
  }
  for (const auto& r : t.run.results)
    if (!r->inputs_kept || !r->linear) return r->inputs_kept ? "not linear" : "an input was written to";
  return {};
}

std::string story(const char* what, std::uint64_t seed, int round, const layout_pair& p, const std::string& why) {
  return fmt::format("{}: seed {} round {}: {}\n  {}\n  {}", what, seed, round, why, shown(p.from), shown(p.to));
}

constexpr placement all_placements[]{placement::replicate, placement::partial, placement::invariant, placement::on,
                                     placement::cut};

/// A layout of one dimension [n], or two, whose axis `a` has a placement; other axes are as `rest` says.
layout with_placement(layout x, int a, placement what, int dim, int coordinate) {
  if (what == placement::cut) x.cut_by(dim, a);
  else x.placements[a] = what == placement::on ? held_on(coordinate) : axis_placement{what};
  return x;
}

}  // namespace

TEST_CASE("a change of layout puts every element in its place, and its backward is its adjoint",
          "[law][runtime][gradient]") {
  constexpr std::uint64_t seed = 41;
  dice d{seed};
  int failures = 0;
  int round = 0;
  for (; round < trials(3000) && failures < 3; ++round) {
    const layout_pair p = roll_pair(d);
    if (!check_change(p.from, p.to).ok()) continue;
    const bool whole_numbers = d.once_in(2);
    const trial t = tried(p, d.next(), d.roll(0, 3), whole_numbers);
    if (const std::string why = wrong(t, whole_numbers ? 0 : 1e-13); !why.empty()) {
      ++failures;
      UNSCOPED_INFO(story("change", seed, round, p, why));
    }
  }
  CHECK(failures == 0);
}

TEST_CASE("all changes of placement along an axis of 2 to 4 workers, alone and beside other axes",
          "[law][runtime][gradient]") {
  constexpr std::array sizes{2, 3, 4};
  constexpr std::array alone_and_beside{false, true};
  constexpr std::array<index_t, 4> extents{0, 1, 5, 8};
  int failures = 0;
  int pairs = 0;
  for (const auto& [workers, beside, n, from, to] :
       ranges::views::cartesian_product(sizes, alone_and_beside, extents, all_placements, all_placements)) {
    layout x;
    x.mesh.axes.push({text{"a"}, workers, 1});
    if (beside) x.mesh.axes.push({text{"b"}, 2, 1});
    x.mesh = row_major(x.mesh);
    x.placements.resize(x.mesh.axes.count);
    for (const index_t extent : {n, index_t{3}}) {
      x.dims.push({});
      x.dims[x.dims.count - 1].extent = extent;
    }
    if (beside) x.cut_by(0, 1);
    const layout_pair p{with_placement(x, 0, from, 0, 0), with_placement(x, 0, to, n == 8 ? 1 : 0, workers - 1)};
    if (!testing::tried(pairs++)) continue;
    if (const std::string why = wrong(tried(p, static_cast<std::uint64_t>(pairs), pairs % 4, true), 0);
        !why.empty() && ++failures < 4)
      UNSCOPED_INFO(story("placement", 0, pairs, p, why));
  }
  CHECK(pairs == 3 * 2 * 4 * 25);
  CHECK(failures == 0);
}

TEST_CASE("an all_reduce of numbers that round gives all copies the same bits", "[runtime]") {
  for (const placement what : {placement::replicate, placement::invariant})
    for (const index_t n : {index_t{1}, index_t{2}, index_t{7}, index_t{64}}) {
      layout from;
      from.mesh.axes.push({text{"a"}, 3, 1});
      from.mesh.axes.push({text{"b"}, 2, 1});
      from.mesh = row_major(from.mesh);
      from.placements.resize(2);
      from.dims.resize(1);
      from.dims[0].extent = n;
      layout to = from;
      for (auto& r : from.placements) r = {placement::partial};
      for (auto& r : to.placements) r = {what};
      const trial t = tried({from, to}, 3, 0, false);
      REQUIRE(t.run.well());
      bool alike = true;
      for (int r = 1; r < 6; ++r) alike = alike && same_bits(t.run.of(0).y, t.run.of(r).y);
      CHECK(alike);
      CHECK(t.bytes(&seen::there) >= 8 * 2 * 5 * n);  // 2 (p - 1) n elements at least
    }
}

TEST_CASE("integers and booleans move exactly and ask for no gradient", "[law][runtime]") {
  constexpr std::uint64_t seed = 43;
  dice d{seed};
  int failures = 0;
  for (int round = 0; round < trials(1200) && failures < 3; ++round) {
    const at::ScalarType types[]{at::kLong, at::kInt,  at::kShort, at::kChar,
                                 at::kByte, at::kBool, at::kFloat, at::kDouble};
    const at::ScalarType type = types[round % 8];
    const auto extents = roll_extents(d, 3, 5);
    const mesh_value mesh = roll_mesh(d, 3);
    const kinds allow{type != at::kBool, true, true, true};
    layout_pair p{roll_layout(d, mesh, extents, {allow.partial, true, true, false}),
                  roll_layout(d, mesh, extents, allow)};
    const int world = oracle::world_of(p.from, p.to);
    // Whole numbers that no sum takes out of range; bytes without sign count up from 0.
    const bool positive = type == at::kByte || type == at::kBool;
    const auto f = [&](const oracle::element& e, int term) {
      const double v = numbers{static_cast<std::uint64_t>(round), true}(e, term);
      return type == at::kBool ? (v > 0 ? 1.0 : 0.0) : positive ? v + 4 : v;
    };
    const shards x = deal(p.from, world, f);
    const auto run = on_workers(world, [&](const std::shared_ptr<transport>& carrier) {
      const auto team = std::make_shared<team_state>(carrier, mesh);
      return change_layout(team, p.from, p.to, x.local[static_cast<std::size_t>(carrier->rank())].to(type));
    });
    std::string why = run.errors();
    std::vector<at::Tensor> y;
    for (const auto& r : run.results) {
      if (!r) continue;
      y.push_back(*r);
      if (r->scalar_type() != type || r->requires_grad()) why = "another element type, or a gradient";
    }
    if (why.empty() && distance(p.to, y, x.global) != 0) why = "elements differ";
    if (!why.empty()) {
      ++failures;
      UNSCOPED_INFO(story(at::toString(type), seed, round, p, why));
    }
  }
  CHECK(failures == 0);
}
