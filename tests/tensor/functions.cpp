#include "tests/support/functions.hpp"

#include <tessera/tensor/memory/memory_count.hpp>

#include <complex>
#include <map>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;
using namespace tessera::testing::of_functions;

namespace {

template <class... Entries>
using matrix = on_world<double, shape<tall, dim<5>>, Entries...>;

/// How often LibTorch differentiates what gives these elements.
int orders_of(const std::string& name, functions::engine::gives result) {
  if (result == functions::engine::gives::booleans || result == functions::engine::gives::indices) return 0;
  return name == "hardsigmoid" ? 1 : 2;
}

struct boxes_said {
  functions::engine::saved saves;
  index_t more;
};

/// What a function keeps for its backward and has beside its result forward and beside gradients backward, in boxes as
/// large as its result, against what it says.
template <class Call>
std::string takes_otherwise(const std::string& name, const boxes_said& said, const team<world>& t, int operands,
                            const Call& call) {
  const layout x = lying<blocks<ox>, whole>({64, 128});
  std::vector<tensor<dyn>> leaves;
  std::vector<at::Tensor> boxes;
  for (int i = 0; i < operands; ++i) {
    leaves.push_back(distribute(t, x, global_of({64, 128}, numbers{static_cast<std::uint64_t>(i)}) * 0.25 + 0.5));
    leaves.back().requires_grad();
    boxes.push_back(leaves.back().local());
  }
  memory_count count;
  std::int64_t began = 0, there = 0, kept = 0, back = 0, box = 0;
  const auto begin = [&] {
    began = count.now();
    count.restart_peak();
  };
  {
    const at::NoGradGuard no_record;
    begin();
    const at::Tensor y = call(leaves).local();
    box = static_cast<std::int64_t>(y.numel()) * 8;
    there = count.peak() - began - (count.now() == began ? 0 : box);
  }
  begin();
  std::vector<tensor<dyn>> operand;
  for (const tensor<dyn>& one : leaves) operand.push_back(one * 1.0);
  at::Tensor y = call(operand).local();
  if (!y.requires_grad()) return "";
  operand.clear();
  const at::Tensor seed = at::ones_like(y);
  const auto node = y.grad_fn();
  y.reset();
  kept = count.now() - began - box;
  const at::Tensor again = call(leaves).local();
  begin();
  for (const at::Tensor& g : torch::autograd::grad({again}, boxes, {seed}, false, false, true))
    if (g.defined() && g.storage().data() != seed.storage().data()) back -= box;
  back += count.peak() - began;
  const saved_tensors saves = functions::engine::footprint_of(said.saves);
  const bool own = functions::engine::keeps_its_own(said.saves);
  std::string wrong;
  const auto judge = [&](const char* what, std::int64_t found, index_t boxes_of_it) {
    const auto of_box = [&](std::int64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(box); };
    const auto wanted = static_cast<double>(boxes_of_it);
    if (of_box(found) > wanted + 0.06 || of_box(found) < wanted - 0.9)
      wrong += fmt::format("{} {} {:.3f} boxes and says {}; ", name, what, of_box(found), boxes_of_it);
  };
  judge("keeps", kept, (saves.operands != 0 ? operands : 0) + (saves.results != 0 ? 1 : 0) + (own ? 1 : 0));
  judge("has forward", there, own ? 1 : 0);
  judge("has backward", back, said.more);
  return wrong;
}

}  // namespace

TEST_CASE("what a function is said to keep and to have at once is what LibTorch is asked for", "[plan][runtime]") {
  CHECK(worst(in_team<world>([](const team<world>& t) -> std::string {
          std::string all;
          const auto judge = [&](const auto& f, int operands, const auto& call) {
            if (f.result == functions::engine::gives::booleans) return;
            all += takes_otherwise(f.name, {f.saves, f.more}, t, operands, call);
          };
          for (const case_of_one& f : all_of_one) judge(f, 1, [&](const auto& x) { return f.call(x[0]); });
          for (const case_of_one& f : all_of_a_number) judge(f, 1, [&](const auto& x) { return f.call(x[0]); });
          for (const case_of_one& f : all_activations) judge(f, 1, [&](const auto& x) { return f.call(x[0]); });
          for (const case_of_two& f : all_of_two) judge(f, 2, [&](const auto& x) { return f.call(x[0], x[1]); });
          return all;
        })) == "");
}

TEST_CASE("every function of one tensor is LibTorch's, value and gradient, however the tensor lies",
          "[law][runtime][gradient]") {
  CHECK(worst(in_team<world>([](const team<world>& t) -> std::string {
          std::vector<case_of_one> all = all_of_one;
          all.insert(all.end(), all_activations.begin(), all_activations.end());
          int i = 0;
          for (const case_of_one& f : all)
            for (const layout& x : ways())
              for (const at::ScalarType e : some_elements) {
                if (!tried(i++)) continue;
                const at::Tensor n = numbers_for(x, e, 3);
                const tensor<dyn> given = distribute(t, x, n);
                if (!functions::engine::check_takes(f.elements, given.type()).ok()) {
                  if (told([&] { f.call(given); }) != "tessera.function.element")
                    return f.name + " takes what it should not";
                  continue;
                }
                const std::string said = differs(
                    t, f.name, [&](const auto& given) { return f.call(given[0]); },
                    [&](const auto& given) { return serial(f.name, given); }, {x}, {n}, orders_of(f.name, f.result));
                if (!said.empty()) return said;
              }
          return "";
        })) == "");
}

TEST_CASE("a hardsigmoid has the second derivative that LibTorch's lacks", "[gradient]") {
  constexpr double near = 0x1p-24;  // LibTorch's first derivative has a sixth in float
  const layout lies = lying<blocks<ox>, blocks<oy>>({7, 5});
  const at::Tensor n = numbers_for(lies, at::kDouble, 3) * 2;
  at::Tensor own = n.clone().set_requires_grad(true);
  const at::Tensor composed = at::hardtanh(own + 3, 0, 6) / 6;
  const at::Tensor slope = torch::autograd::grad({at::square(composed).sum()}, {own}, {}, true, true)[0];
  const at::Tensor wanted = torch::autograd::grad({at::square(slope).sum()}, {own})[0];
  const auto all = in_team<world>([&](const team<world>& t) {
    tensor<dyn> x = distribute(t, lies, n);
    x.requires_grad();
    const tensor<dyn> y = hardsigmoid(x);
    const tensor<dyn> g = to(lies, gradients(sum(y * y), {x}, true)[0]);
    return at::allclose(full_tensor(gradients(sum(g * g), {x}, false)[0]), wanted, near, near);
  });
  INFO(all.errors());
  for (const auto& r : all.results) CHECK((r && *r));
}

TEST_CASE("every function of two tensors is LibTorch's, with dimensions that one of them lacks or has one element of",
          "[law][runtime][gradient]") {
  const std::vector<std::pair<layout, layout>> pairs{
      {lying<blocks<ox>, blocks<oy>>({7, 5}), lying<blocks<ox>, blocks<oy>>({7, 5})},
      {lying<blocks<ox>, blocks<oy>>({7, 5}), lying<blocks<oy>>({5})},
      {lying<blocks<ox>, blocks<oy>>({7, 5}), lying<whole, blocks<oy>>({1, 5})},
      {lying<whole>({1}), lying<blocks<ox>, blocks<oy>>({3, 2})},
      {lying<blocks<ox>, whole>({4, 1}), lying<whole, blocks<oy>>({1, 5})},
      {lying<>({}), lying<blocks<oy, ox>>({4})},
      {lying<whole, whole, invariant<ox, oy>>({3, 4}), lying<whole, whole, invariant<ox, oy>>({3, 1})}};
  CHECK(worst(in_team<world>([&](const team<world>& t) -> std::string {
          int i = 0;
          for (const case_of_two& f : all_of_two)
            for (const auto& [x, y] : pairs)
              for (const at::ScalarType e : some_elements) {
                if (!tried(i++)) continue;
                const at::Tensor a = numbers_for(x, e, 3);
                at::Tensor b = numbers_for(y, e, 4);
                if (e == at::kLong) b = b.abs() + 1;  // a divisor, and an exponent
                const tensor<dyn> u = distribute(t, x, a);
                const tensor<dyn> v = distribute(t, y, b);
                if (!functions::engine::check_takes(f.elements, u.type()).ok()) {
                  if (told([&] { f.call(u, v); }) != "tessera.function.element")
                    return f.name + " takes what it should not";
                  continue;
                }
                const std::string said = differs(
                    t, f.name, [&](const auto& given) { return f.call(given[0], given[1]); },
                    [&](const auto& given) { return serial(f.name, given); }, {x, y}, {a, b},
                    orders_of(f.name, f.result));
                if (!said.empty()) return said;
              }
          return "";
        })) == "");
}

namespace {

struct case_of_dims {
  std::string name;
  functions::engine::takes elements;
  int orders;           ///< how often it has a gradient
  int orders_over_cut;  ///< where a reduced dimension is cut
  tensor<dyn> (*call)(const tensor<dyn>&);
  at::Tensor (*whole)(const at::Tensor&);
};

using functions::engine::takes;
constexpr double infinity = std::numeric_limits<double>::infinity();
#define TESSERA_CASE(elements, orders, over_cut, called, wanted) \
  {#called,                                                      \
   takes::elements,                                              \
   orders,                                                       \
   over_cut,                                                     \
   [](const tensor<dyn>& x) -> tensor<dyn> { return called; },   \
   [](const at::Tensor& w) -> at::Tensor { return wanted; }}
const std::vector<case_of_dims> of_dims{
    TESSERA_CASE(everything, 2, 2, sum<0>(x), w.sum(0)),
    TESSERA_CASE(everything, 2, 2, (sum<0, 1>(x, keep_dims)), w.sum(at::IntArrayRef{0, 1}, true)),
    TESSERA_CASE(fractions, 2, 2, mean(x), w.mean()),
    TESSERA_CASE(fractions, 2, 2, mean<1>(x, keep_dims), w.mean(1, true)),
    TESSERA_CASE(ordered, 2, 0, amax<0>(x), w.amax(0)),
    TESSERA_CASE(ordered, 2, 0, amax(x), w.amax()),
    TESSERA_CASE(ordered, 2, 0, amax<0>(amax<1>(x, keep_dims)), w.amax(1, true).amax(0)),
    TESSERA_CASE(ordered, 2, 0, amin<1>(x, keep_dims), w.amin(1, true)),
    TESSERA_CASE(everything, 2, 0, prod_over<0>(x), w.prod(0)),
    TESSERA_CASE(everything, 0, 0, any_over<1>(x), w.any(1)),
    TESSERA_CASE(everything, 0, 0, all_over(x), w.all()),
    TESSERA_CASE(ordered, 0, 0, argmax<0>(x), w.argmax(0)),
    TESSERA_CASE(ordered, 0, 0, argmin<1>(x), w.argmin(1)),
    TESSERA_CASE(reals, 2, 2, var<0>(x, 0), w.var(at::IntArrayRef{0}, false)),
    TESSERA_CASE(reals, 2, 2, var(x), w.var()),
    TESSERA_CASE(reals, 2, 2, norm<1>(x), at::linalg_vector_norm(w, 2, at::IntArrayRef{1})),
    TESSERA_CASE(reals, 2, 2, norm(x, 3), at::linalg_vector_norm(w, 3)),
    TESSERA_CASE(reals, 2, 2, norm(x, 1), at::linalg_vector_norm(w, 1)),
    TESSERA_CASE(reals, 2, 2, norm<0>(x, infinity), at::linalg_vector_norm(w, infinity, at::IntArrayRef{0})),
    TESSERA_CASE(reals, 2, 2, softmax<0>(x), w.softmax(0)),
    TESSERA_CASE(reals, 2, 2, softmax<1>(x), w.softmax(1)),
    TESSERA_CASE(reals, 2, 2, log_softmax<0>(x), w.log_softmax(0)),
    TESSERA_CASE(reals, 2, 2, log_softmax<1>(x), w.log_softmax(1)),
    TESSERA_CASE(everything, 2, 2, (permute<1, 0>(x)), w.permute({1, 0})),
    TESSERA_CASE(everything, 2, 2, (transpose<0, 1>(x)), w.t()),
    TESSERA_CASE(everything, 2, 2, (unsqueeze<1, 3>(x)), w.unsqueeze(1).unsqueeze(3)),
    TESSERA_CASE(everything, 2, 2, squeeze<1>(unsqueeze<1>(x)), w),
    TESSERA_CASE(everything, 2, 2, (expand<0, 3>(unsqueeze<0>(x))), w.unsqueeze(0).expand({3, w.size(0), w.size(1)})),
    TESSERA_CASE(everything, 2, 2, (stack<1>(x, x)), at::stack({w, w}, 1)),
    TESSERA_CASE(reals, 2, 2, tanhshrink(x), w - w.tanh()),
    TESSERA_CASE(reals, 2, 2, softmin<1>(x), (-w).softmax(1)),
    TESSERA_CASE(reals, 2, 2, leaky_relu(x, 0.25), at::leaky_relu(w, 0.25)),
    TESSERA_CASE(reals, 2, 2, elu(x, 0.5), at::elu(w, 0.5)),
    TESSERA_CASE(reals, 2, 2, celu(x, 2), at::celu(w, 2)),
    TESSERA_CASE(reals, 2, 2, hardshrink(x, 0.9), at::hardshrink(w, 0.9)),
    TESSERA_CASE(reals, 2, 2, softshrink(x, 0.2), at::softshrink(w, 0.2)),
    TESSERA_CASE(reals, 2, 2, hardtanh(x, -0.25, 0.5), at::hardtanh(w, -0.25, 0.5)),
    TESSERA_CASE(reals, 2, 2, softplus(x, 3, 1), at::softplus(w, 3, 1)),
    TESSERA_CASE(reals, 2, 2, threshold(x, 0.3, -2), at::threshold(w, 0.3, -2)),
    TESSERA_CASE(ordered, 2, 2, where(gt(neg(x), 0), x, square(x)), at::where(-w > 0, w, w* w)),
    TESSERA_CASE(ordered, 2, 2, clamp(x, -1, 1), w.clamp(-1, 1)),
};
#undef TESSERA_CASE

}  // namespace

TEST_CASE("reductions, softmax and shapes are LibTorch's over dimensions cut and whole, uneven and empty",
          "[law][runtime][gradient]") {
  CHECK(worst(in_team<world>([](const team<world>& t) -> std::string {
          int i = 0;
          for (const case_of_dims& f : of_dims)
            for (const layout& x : ways())
              for (const at::ScalarType e : some_elements) {
                if (!tried(i++)) continue;
                const at::Tensor n = numbers_for(x, e, 5);
                if (!functions::engine::check_takes(f.elements, tessera::detail::element_of_scalar(e)).ok()) {
                  if (told([&] { f.call(distribute(t, x, n)); }) != "tessera.function.element")
                    return f.name + " takes what it should not";
                  continue;
                }
                const bool cut = x.levels(0) + x.levels(1) > 0;
                const std::string said = differs(
                    t, f.name, [&](const auto& given) { return f.call(given[0]); },
                    [&](const auto& given) { return f.whole(given[0]); }, {x}, {n}, cut ? f.orders_over_cut : f.orders);
                if (!said.empty()) return said;
              }
          return "";
        })) == "");
}

namespace {

template <int Dim, class... Q>
tensor<dyn> put_end_to_end(const std::vector<tensor<dyn>>& x) {
  return x.size() == 2 ? concat<Dim, Q...>(x[0], x[1]) : concat<Dim, Q...>(x[0], x[1], x[2]);
}

}  // namespace

TEST_CASE(
    "tensors are put end to end as LibTorch does, along dimensions whole and cut, uneven and empty, and into a "
    "partition that is named",
    "[law][runtime][gradient]") {
  const std::vector<std::vector<layout>> lists{
      {lying<blocks<ox>, blocks<oy>>({7, 5}), lying<blocks<ox>, blocks<oy>>({7, 4})},
      {lying<blocks<ox>, blocks<oy>>({3, 1}), lying<blocks<ox>, blocks<oy>>({3, 8}),
       lying<blocks<ox>, blocks<oy>>({3, 2})},
      {lying<blocks<ox>, whole>({4, 3}), lying<blocks<ox>, blocks<oy>>({4, 6})},
      {lying<whole, blocks<oy, ox>>({2, 7}), lying<whole, blocks<oy>>({2, 3})},
      {lying<whole, whole, invariant<ox, oy>>({2, 3}), lying<whole, whole, invariant<ox, oy>>({2, 4})},
      {lying<blocks<ox>, grains<2, oy>>({2, 6}), lying<blocks<ox>, grains<2, oy>>({2, 5})},
      {lying<whole, blocks<oy>, on<ox, 1>>({2, 4}), lying<whole, blocks<oy>, on<ox, 1>>({2, 0})}};
  using turned = partition<world, blocks<oy>, blocks<ox>>;
  CHECK(worst(in_team<world>([&](const team<world>& t) -> std::string {
          for (const auto& lie : lists)
            for (const at::ScalarType e : some_elements) {
              std::vector<at::Tensor> whole_x;
              for (const layout& x : lie) whole_x.push_back(numbers_for(x, e, 3 + whole_x.size()));
              const auto serially = [](const auto& x) { return at::cat(x, 1); };
              std::string said = differs(t, "concat<1>", put_end_to_end<1>, serially, lie, whole_x);
              if (said.empty()) said = differs(t, "concat<1, Q>", put_end_to_end<1, turned>, serially, lie, whole_x);
              if (!said.empty()) return said;
            }
          return "";
        })) == "");
}

TEST_CASE("what is put end to end is cut alike elsewhere, and its type follows", "[plan][refusal]") {
  using x_type = on_world<double, shape<dim<4>, dim<6>>, blocks<ox>, blocks<oy>>;
  STATIC_REQUIRE(std::is_same_v<decltype(concat<1>(std::declval<x_type>(), std::declval<x_type>())),
                                on_world<double, shape<dim<4>, dim<12>>, blocks<ox>, blocks<oy>>>);
  CHECK(refusals<world>("tessera.rule.cut", [](auto& t) {
          concat<1>(distribute(t, lying<blocks<ox>, blocks<oy>>({4, 6}), at::ones({4, 6})),
                    distribute(t, lying<blocks<oy>, blocks<ox>>({4, 6}), at::ones({4, 6})));
        }) == 6);
  CHECK(refusals<world>("tessera.rule.cut", [](auto& t) {
          concat<1>(distribute(t, lying<whole, blocks<oy>>({4, 6}), at::ones({4, 6})),
                    distribute(t, lying<whole, whole, partial<oy>>({4, 6}), at::ones({4, 6})));
        }) == 6);
}

TEST_CASE("tensors whose layouts are values have what typed ones have", "[runtime]") {
  CHECK(worst(in_team<world>([](const team<world>& t) -> std::string {
          const layout cut = lying<blocks<ox>, blocks<oy>>({4, 6});
          const layout by_rows = lying<blocks<ox>, whole>({4, 6});
          const at::Tensor n = numbers_for(cut, at::kDouble, 7).requires_grad_(true);
          tensor<dyn> x = distribute(t.state(), cut, n.detach());
          x.requires_grad();
          const tensor<dyn> rows = to(verb::all_gather, by_rows, x);
          if (told([&] { to(verb::broadcast, by_rows, x); }) != "tessera.verb.pair") return "a verb of another name";
          const tensor<dyn> y = -(2 * rows - rows / 4 + exp(rows)) * finish(start(by_rows, x));
          const at::Tensor wanted = -(2 * n - n / 4 + n.exp()) * n;
          const tensor<dyn> loss = to(lying<whole, whole, invariant<ox, oy>>({4, 6}), y);
          const tensor<dyn> all = sum(square(loss));
          if (std::abs(item(all) - wanted.square().sum().item<double>()) > 1e-9) return "a value";
          all.backward();
          wanted.square().sum().backward();
          if (!alike(full_tensor(x.grad()), n.grad())) return "a gradient";
          if (detach(x).local().requires_grad()) return "a tensor without history";
          if (std::abs(pairing(x, x) - n.square().sum().item<double>()) > 1e-9) return "a pairing";
          return alike(full_tensor(shift(x, short_name_of<ox>())), at::roll(n.detach(), -2, 0)) ? "" : "a shift";
        })) == "");
}

TEST_CASE("vectors put end to end have a second derivative, also on workers that hold none of one",
          "[runtime][gradient][regression]") {
  const std::vector<std::vector<layout>> lists{{lying<blocks<oy>>({2}), lying<blocks<oy>>({2})},
                                               {lying<blocks<oy, ox>>({3}), lying<whole>({4})}};
  CHECK(worst(in_team<world>([&](const team<world>& t) -> std::string {
          for (const auto& lie : lists) {
            const std::vector<at::Tensor> whole_x{numbers_for(lie[0], at::kDouble, 3),
                                                  numbers_for(lie[1], at::kDouble, 4)};
            const std::string said = differs(
                t, "concat<0>", [](const auto& x) { return sin(concat<0>(x[0], sin(x[1]))); },
                [](const auto& x) { return at::sin(at::cat({x[0], at::sin(x[1])})); }, lie, whole_x);
            if (!said.empty()) return said;
          }
          return "";
        })) == "");
}

TEST_CASE("the only element of one coordinate becomes a number there", "[runtime][gradient][regression]") {
  CHECK(worst(in_team<world>([&](const team<world>& t) -> std::string {
          for (const layout& x : {lying<whole, on<ox, 1>>({1}), lying<whole, on<ox, 1>, on<oy, 2>>({1})}) {
            const std::string said = differs(
                t, "squeeze<0>", [](const auto& of) { return exp(squeeze<0>(of[0])); },
                [](const auto& of) { return at::exp(of[0].squeeze(0)); }, {x}, {numbers_for(x, at::kDouble, 3)});
            if (!said.empty()) return said;
          }
          return "";
        })) == "");
}
