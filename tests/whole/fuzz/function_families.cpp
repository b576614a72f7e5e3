#include "family.hpp"
#include "tests/support/routed.hpp"

#include <tessera/nn/layer/indexing.hpp>
#include <tessera/nn/network/program_parts.hpp>
#include <tessera/tensor/sorting.hpp>

namespace tessera::testing::fuzz {

using namespace engine;

namespace {

using file::json;
using ints = std::vector<index_t>;
using boxes = std::vector<tensor<dyn>>;

/// Takes a dimension whole, but now and then.
void hold_whole(roller& r, layout& x, int dim) {
  if (r.once_in(15)) return;
  while (x.levels(dim) > 0) x.set_placement(x.cutter(dim, x.levels(dim) - 1), {});
  x.dims[dim].tile();
  x.dims[dim].zigzag = false;
}

/// An operand that lies anyhow along all dimensions but one, which is an option.
void roll_whole(roller& r, int least, int most, bool linear) {
  ints extents = r.numbers(r.roll(least, most), 1, 6);
  const int dim = r.roll(0, static_cast<int>(extents.size()) - 1);
  if (r.once_in(15)) extents[static_cast<std::size_t>(r.roll(0, static_cast<int>(extents.size()) - 1))] = 0;
  r.say("dim", dim);
  r.take(extents, linear);
  hold_whole(r, r.c.operands[0].layout, dim);
}

/// Indices are constants: they lie as copies of any kind where x does, or on its coordinate.
void lie_beside(roller& r, const layout& x, layout& i) {
  for (int a = 0; a < x.placements.count; ++a) {
    const axis_placement& was = x.placements[a];
    if (i.placements[a].kind == placement::cut) continue;
    if (was.kind == placement::on) i.placements[a] = was;
    else i.placements[a] = {r.once_in(2) ? placement::invariant : placement::replicate};
  }
}
/// Axes along which x is replicate may cut a dimension that it lacks.
void cut_some(roller& r, const layout& x, layout& i, int dim) {
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::replicate && i.placements[a].kind != placement::cut && r.once_in(2))
      i.cut_by(dim, a);
}
layout over(const layout& x, const ints& extents) {
  layout i;
  i.mesh = x.mesh;
  i.placements.resize(x.mesh.axes.count);
  for (const index_t n : extents) {
    i.dims.push({});
    i.dims[i.dims.count - 1].extent = n;
  }
  return i;
}

void roll_selected(roller& r) {
  roll_whole(r, 1, 3, true);
  const layout x = r.c.operands[0].layout;
  layout i = over(x, r.numbers(r.roll(0, 2), 0, 5));
  if (i.dims.count > 0) cut_some(r, x, i, r.roll(0, i.dims.count - 1));
  lie_beside(r, x, i);
  r.take(i, element::int64);
}

/// Indices like x, but along one dimension.
layout like(roller& r, const layout& x, int dim, index_t n) {
  layout i = x;
  for (int a = 0; a < i.placements.count; ++a)
    if (i.placements[a].kind != placement::cut || i.placements[a].dimension == dim) i.set_placement(a, {});
  i.dims[dim] = {};
  i.dims[dim].extent = n;
  cut_some(r, x, i, dim);
  lie_beside(r, x, i);
  return i;
}

void roll_taken(roller& r) {
  roll_whole(r, 1, 4, true);
  const layout x = r.c.operands[0].layout;
  r.take(like(r, x, r.c.options.value("dim", 0), r.roll(0, 5)), element::int64);
}

void roll_added(roller& r) {
  const ints extents = r.numbers(r.roll(1, 4), 1, 6);
  const int dim = r.roll(0, static_cast<int>(extents.size()) - 1);
  r.say("dim", dim);
  r.say("extent", r.roll(1, 6));
  r.take(extents, true);
  const layout x = r.c.operands[0].layout;
  layout i = x;
  if (r.once_in(2)) {  // one index a row
    i = over(x, {x.dims[dim].extent});
    for (int level = 0; level < x.levels(dim); ++level) {
      const int a = x.cutter(dim, level);
      i.cut_by(0, a, x.placements[a].joined);
    }
    i.dims[0] = x.dims[dim];
  }
  lie_beside(r, x, i);
  r.take(i, element::int64);
}

/// Now and then one index is that of nothing.
at::Tensor names_in(const layer_case& c, const at::Tensor& x, index_t end) {
  at::Tensor all = (x.abs() * 16).remainder(std::max<index_t>(end, 1));
  if (c.salt % 20 == 0 && all.numel() > 0) all.view(-1).select(0, all.numel() / 2).fill_(c.salt % 40 == 0 ? end : -1);
  return all;
}
at::Tensor names_of_x(const layer_case& c, std::size_t operand, const at::Tensor& x) {
  return operand == 0 ? x : names_in(c, x, c.operands[0].layout.dims[c.options.value("dim", 0)].extent);
}
at::Tensor names_of_extent(const layer_case& c, std::size_t operand, const at::Tensor& x) {
  return operand + 1 < c.operands.size() ? x : names_in(c, x, c.options.value("extent", index_t{1}));
}

tensors selected(const serial_call& s) {
  const auto dim = s.option("dim", index_t{0});
  ints sizes = s.x[0].sizes().vec();
  sizes.erase(sizes.begin() + dim);
  sizes.insert(sizes.begin() + dim, s.x[1].sizes().begin(), s.x[1].sizes().end());
  return {s.x[0].index_select(dim, s.x[1].flatten()).reshape(sizes)};
}
tensors added(const serial_call& s) {
  const auto dim = s.option("dim", index_t{0});
  ints sizes = s.x[0].sizes().vec();
  sizes[static_cast<std::size_t>(dim)] = s.option("extent", index_t{1});
  const at::Tensor none = at::zeros(sizes, s.x[0].options());
  return {s.x[1].dim() == s.x[0].dim() ? none.scatter_add(dim, s.x[1], s.x[0]) : none.index_add(dim, s.x[1], s.x[0])};
}

tensors ordered(const serial_call& s) {
  const auto [values, places] =
      s.x[0].sort(std::optional<bool>(true), s.option("dim", index_t{0}), s.option("descending", false));
  return {values, places};
}
tensors first_of_order(const serial_call& s) {
  const auto dim = s.option("dim", index_t{0}), k = s.option("k", index_t{0});
  const auto [values, places] = s.x[0].sort(std::optional<bool>(true), dim, s.option("largest", true));
  return {values.narrow(dim, 0, k), places.narrow(dim, 0, k)};
}
template <class Two>
boxes both(const Two& y) {
  return {y.values, y.indices};
}

void roll_turned(roller& r) {
  ints extents = r.numbers(r.roll(2, 4), 1, 6);
  extents.back() = 2 * r.roll(0, 3);
  r.say("dim", r.roll(0, static_cast<int>(extents.size()) - 2));
  r.say_unless("base", r.one_of({1, 100}), 100);
  r.take(extents, true);
  hold_whole(r, r.c.operands[0].layout, r.c.operands[0].layout.dims.count - 1);
}
tensors rotated(const serial_call& s) { return {turned(s.x[0], s.option("dim", index_t{0}), s.option("base", 100.0))}; }

// Rows that go to experts which give them back. Slots are counted in groups of all rows, so meshes do not matter.
void roll_routed(roller& r) {
  ints extents = r.numbers(r.roll(1, 2), 1, 7);
  if (r.once_in(15)) extents[0] = 0;
  extents.push_back(r.roll(1, 4));
  const int experts = r.roll(1, 5);
  r.say("experts", experts);
  r.say_unless("choices", r.roll(1, experts), 1);
  if (r.once_in(2)) {
    r.say("capacity", r.one_of({0.25, 0.5, 1.0, 1.5, 9.0}));
    r.say("groups", r.roll(1, 5));
  }
  r.say_unless("sigmoid_gates", r.once_in(3), false);
  r.say_unless("normalised_gates", r.once_in(3), false);
  if (r.once_in(2)) r.say("over_experts", r.axes(2));
  r.take(extents);
  layout scores = r.c.operands[0].layout;
  const int last = scores.dims.count - 1;
  while (scores.levels(last) > 0) scores.set_placement(scores.cutter(last, scores.levels(last) - 1), {});
  scores.dims[last] = {};
  scores.dims[last].extent = experts;
  for (axis_placement& p : scores.placements)
    if (p.kind == placement::replicate && r.once_in(2)) p = {placement::invariant};
  r.take(scores, r.e);
}
nn::route_layer router_of(const json& o) {
  nn::route_layer how{.experts = o.value("experts", index_t{1}),
                      .choices = o.value("choices", index_t{1}),
                      .groups = o.value("groups", index_t{0}),
                      .sigmoid_gates = o.value("sigmoid_gates", false),
                      .normalised_gates = o.value("normalised_gates", false)};
  if (o.contains("capacity")) how.capacity = o.value("capacity", 1.0);
  return how;
}
boxes routed_there_and_back(const json& o, const boxes& x) {
  nn::route_layer how = router_of(o);
  const auto names = o.value("over_experts", std::vector<std::string>());
  static_vector<text, max_axes> over;
  for (const std::string& name : names) over.push(text(name.data(), static_cast<int>(name.size())));
  if (o.contains("over_experts")) how.over_experts = tessera::engine::axis_names(over);
  nn::program p;
  const auto rows = p.input({x[0].layout(), x[0].type()});
  const auto scores = p.input({x[1].layout(), x[1].type()});
  const auto [slots, gates, numbers, chosen] = how(rows, scores);
  p.output(nn::combine{}(slots, gates, numbers, chosen));
  return nn::dynamic_network{x[0].team(), seed{1}, p}({x[0], x[1]});
}
tensors routed_serially_back(const serial_call& s) {
  const index_t features = s.x[0].size(-1), all = s.x[1].numel() / s.x[1].size(-1);
  const nn::route_layer how = router_of(s.of.options);
  ints groups;
  for (index_t g = 0, n = std::max<index_t>(1, how.groups); g < n; ++g)
    groups.push_back(cut(all, n, g + 1) - cut(all, n, g));
  const at::Tensor x = s.x[0].reshape({all, features});
  const routed_serially r = routed(how.description(), s.x[1].reshape({all, s.x[1].size(-1)}), groups);
  const at::Tensor y = combined(r, x, features, [](index_t, const at::Tensor& row) { return row; });
  return {y.reshape(s.x[0].sizes()) + 0 * s.x[1].sum() + 0 * x.sum()};
}

}  // namespace

at::Tensor turned(const at::Tensor& x, index_t dim, double base) {
  const index_t half = x.size(-1) / 2;
  const at::Tensor turns = at::pow(base, at::arange(half, at::kDouble) / -static_cast<double>(half));
  ints sizes(static_cast<std::size_t>(x.dim()), 1);
  sizes[static_cast<std::size_t>(dim)] = x.size(dim);
  sizes.back() = half;
  const at::Tensor angles = at::outer(at::arange(x.size(dim), at::kDouble), turns).reshape(sizes).to(x.scalar_type()),
                   a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  return at::cat({a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()}, -1);
}

std::vector<family> function_families() {
  using call = const serial_call&;
  const std::vector<std::string> of_terms{"tessera.rule.nonlinear", "tessera.rule.whole"},
      of_names{"tessera.rule.whole", "tessera.function.index"},
      of_sums{"tessera.rule.haloed", "tessera.function.index"};
  return {
      {"routed",
       roll_routed,
       routed_serially_back,
       {"tessera.rule.nonlinear", "tessera.rule.haloed", "tessera.rule.on", "tessera.route.groups",
        "tessera.route.over"},
       {},
       {},
       routed_there_and_back},
      {"index_select",
       roll_selected,
       selected,
       of_names,
       {},
       names_of_x,
       [](const json& o, const boxes& x) {
         return along(o, [&]<int Dim>() -> boxes { return {index_select<Dim>(x[0], x[1])}; });
       }},
      {"take_along",
       roll_taken,
       [](call s) { return tensors{s.x[0].gather(s.option("dim", index_t{0}), s.x[1])}; },
       of_names,
       {},
       names_of_x,
       [](const json& o, const boxes& x) {
         return along(o, [&]<int Dim>() -> boxes { return {take_along<Dim>(x[0], x[1])}; });
       }},
      {"scatter_add",
       roll_added,
       added,
       of_sums,
       {},
       names_of_extent,
       [](const json& o, const boxes& x) {
         return along(
             o, [&]<int Dim>() -> boxes { return {scatter_add<Dim>(x[0], x[1], o.value("extent", index_t{1}))}; });
       }},
      {"one_hot",
       [](roller& r) {
         r.say("extent", r.roll(1, 5));
         r.take(r.numbers(r.roll(0, 3), 1, 5), element::int64);
       },
       [](call s) { return tensors{at::one_hot(s.x[0], s.option("extent", index_t{1})).to(at::kDouble)}; },
       {"tessera.rule.nonlinear", "tessera.function.index"},
       {},
       names_of_extent,
       [](const json& o, const boxes& x) { return boxes{one_hot<double>(x[0], o.value("extent", index_t{1}))}; }},
      {"cumsum",
       [](roller& r) { roll_whole(r, 1, 4, true); },
       [](call s) { return tensors{s.x[0].cumsum(s.option("dim", index_t{0}))}; },
       {"tessera.rule.whole"},
       {},
       {},
       [](const json& o, const boxes& x) { return along(o, [&]<int Dim>() -> boxes { return {cumsum<Dim>(x[0])}; }); }},
      {"sort",
       [](roller& r) {
         roll_whole(r, 1, 4, false);
         r.say_unless("descending", r.once_in(2), false);
       },
       ordered,
       of_terms,
       {},
       {},
       [](const json& o, const boxes& x) {
         return along(o, [&]<int Dim>() {
           return o.value("descending", false) ? both(sort<Dim, true>(x[0])) : both(sort<Dim>(x[0]));
         });
       }},
      {"topk",
       [](roller& r) {
         roll_whole(r, 1, 4, false);
         r.say("k", r.roll(0, static_cast<int>(r.c.operands[0].layout.dims[r.c.options.value("dim", 0)].extent)));
         r.say_unless("largest", r.once_in(2), true);
       },
       first_of_order,
       of_terms,
       {},
       {},
       [](const json& o, const boxes& x) {
         return along(o, [&]<int Dim>() {
           const auto k = o.value("k", index_t{0});
           return o.value("largest", true) ? both(topk<Dim>(x[0], k)) : both(topk<Dim, false>(x[0], k));
         });
       }},
      {"rotary",
       roll_turned,
       rotated,
       {"tessera.rule.whole"},
       {},
       {},
       [](const json& o, const boxes& x) {
         return along(o, [&]<int Dim>() -> boxes {
           return {o.value("base", 100) == 1 ? rotary<Dim, 1>(x[0]) : rotary<Dim, 100>(x[0])};
         });
       }},
  };
}

}  // namespace tessera::testing::fuzz
