#include "tests/support/layers.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

static_vector<index_t, max_dimensions> of_extents(std::initializer_list<index_t> list) {
  static_vector<index_t, max_dimensions> e;
  for (index_t n : list) e.push(n);
  return e;
}

/// An operation of one's own as a layer, so that it is tried as layers are: y = op(used), used = x under another cut if
/// it must.
template <class Compute, class Serial>
layer_case own_case(const layout& x, const layout& used, const signature& what, Compute compute, Serial serial) {
  layer_case c;
  c.plan = plan_operation(what, used);
  if (c.plan.why.ok()) c.plan.set_given(x);
  c.forward = [what, compute](const team_handle& team, const layer_plan& p, const at::Tensor& in,
                              const std::vector<nn::parameter>&) {
    const tensor<dyn> y = apply(what, compute, to(p.used(), tensor<dyn>(team, p.given(), in)));
    if (!(y.layout() == p.output())) throw std::runtime_error("the result lies elsewhere than planned");
    return y.local();
  };
  c.serial = [serial](const at::Tensor& in, const std::vector<at::Tensor>&) { return serial(in); };
  return c;
}
template <class Compute, class Serial>
layer_case own_case(const layout& x, const signature& what, Compute compute, Serial serial) {
  return own_case(x, x, what, compute, serial);
}

at::Tensor positions(const local_box& b, int dim) {
  std::vector<index_t> all;
  for (index_t i = 0; i < b.size(dim); ++i) all.push_back(b.global(dim, i));
  return at::tensor(all, at::kDouble);
}

/// A function of the global index of every element, and of the extents of the whole.
at::Tensor code_of(const at::Tensor& rows, const at::Tensor& columns, index_t n, index_t m) {
  return at::sin(rows.unsqueeze(1) * 0.7 + static_cast<double>(n)) +
         at::cos(columns.unsqueeze(0) * 1.3 + static_cast<double>(m));
}
at::Tensor code_of(const local_box& b) { return code_of(positions(b, 0), positions(b, 1), b.extents[0], b.extents[1]); }
at::Tensor serial_code(const at::Tensor& x) {
  return code_of(at::arange(x.size(0), at::kDouble), at::arange(x.size(1), at::kDouble), x.size(0), x.size(1));
}

layout two_dimensions(dice& d, const mesh_value& mesh, kinds allow) {
  return roll_layout(d, mesh, of_extents({d.roll(1, 7), d.roll(1, 7)}), allow);
}

template <class Roll>
void try_all(std::uint64_t seed, int rounds, Roll&& roll) {
  layer_trials trials;
  trials.run(seed, rounds, roll);
  INFO(trials.said);
  CHECK(trials.failures == 0);
  CHECK(trials.accepted > 20);
}

}  // namespace

TEST_CASE("an operation is told its box: a product with a function of the global index", "[law][runtime][gradient]") {
  const signature s = operation("ab->ab").linear();
  const auto told = [](const local_boxes& w, const at::Tensor& x) {
    return x * code_of(w.operands[0]) * code_of(w.result);
  };
  try_all(101, 12, [&](dice& d, const mesh_value& mesh) {
    return own_case(two_dimensions(d, mesh, {true, true, true, false}), s, told,
                    [](const at::Tensor& x) { return x * at::square(serial_code(x)); });
  });
}
TEST_CASE("a non-linear one with a whole dimension: a causal softmax over uneven and empty parts",
          "[law][runtime][gradient]") {
  const signature s = operation("qk->qk").whole("k").nonlinear();
  const auto masked = [](const at::Tensor& x, const at::Tensor& rows) {
    const at::Tensor keys = at::arange(x.size(1), at::kDouble);
    return at::softmax(x.masked_fill(keys.unsqueeze(0) > rows.unsqueeze(1), -1e30), 1);
  };
  try_all(102, 16, [&](dice& d, const mesh_value& mesh) {
    return own_case(
        two_dimensions(d, mesh, {false, true, true, false}), s,
        [masked](const local_boxes& w, const at::Tensor& x) { return masked(x, positions(w.result, 0)); },
        [masked](const at::Tensor& x) { return masked(x, at::arange(x.size(0), at::kDouble)); });
  });
}
TEST_CASE("a sum over a cut dimension is terms", "[law][runtime][gradient]") {
  const signature s = operation("ab->a").multilinear();
  const auto weighted = [](const local_boxes& w, const at::Tensor& x) { return (x * code_of(w.operands[0])).sum(1); };
  try_all(103, 12, [&](dice& d, const mesh_value& mesh) {
    return own_case(two_dimensions(d, mesh, {true, true, true, false}), s, weighted,
                    [](const at::Tensor& x) { return (x * serial_code(x)).sum(1); });
  });
}
TEST_CASE("a window pads what lies beyond the edge, told by its boxes", "[law][runtime][gradient]") {
  const sliding three{3, 2, 1, 1, 1};
  const signature s = operation("ab->ab").windowed('b', three).nonlinear();
  const auto taps = [](const at::Tensor& x, index_t before, index_t after) {
    const at::Tensor y = at::constant_pad_nd(x, {before, after});
    return at::exp(y.unfold(1, 3, 2).sum(2));
  };
  try_all(104, 12, [&](dice& d, const mesh_value& mesh) {
    const layout x = two_dimensions(d, mesh, {false, true, true, false});
    layout used = x;
    const refusal none = tessera::detail::hold_windows(used, 1, &three, 1);
    REQUIRE(none.ok());
    return own_case(
        x, used, s,
        [taps](const local_boxes& w, const at::Tensor& in) {
          const index_t first = 2 * w.result.first(1) - 1;
          const index_t last = 2 * (w.result.first(1) + w.result.size(1) - 1) + 2;
          const local_box& held = w.operands[0];
          return taps(in, held.first(1) - first, last - (held.first(1) + held.size(1)));
        },
        [taps](const at::Tensor& in) { return taps(in, 1, 1); });
  });
}
TEST_CASE("a range of a cut dimension stays where it is, and a change balances it", "[law][runtime][gradient]") {
  try_all(111, 12, [&](dice& d, const mesh_value& mesh) {
    const index_t n = d.roll(1, 9);
    const index_t begin = d.roll(0, static_cast<int>(n) - 1);
    const index_t end = d.roll(static_cast<int>(begin), static_cast<int>(n));
    const layout x = roll_layout(d, mesh, of_extents({d.roll(1, 3), n}), {true, true, true, false});
    const signature range = operation("ab->ab").narrowed('b', begin, end).linear();
    layer_case c = own_case(
        x, range,
        [begin](const local_boxes& w, const at::Tensor& in) {
          return in.narrow(1, w.result.first(1) + begin - w.operands[0].first(1), w.result.size(1));
        },
        [begin, end](const at::Tensor& in) { return in.narrow(1, begin, end - begin); });
    if (d.once_in(2) || !c.plan.why.ok()) return c;
    layout blocks = c.plan.output();
    blocks.dims[1].tile();
    blocks.dims[1].balance(1);
    c.plan.set_output(blocks);
    c.forward = [in_place = c.forward, blocks](const team_handle& team, const layer_plan& p, const at::Tensor& in,
                                               const std::vector<nn::parameter>& w) {
      layer_plan unmoved = p;
      unmoved.set_output(p.raw());
      return to(blocks, tensor<dyn>(team, p.raw(), in_place(team, unmoved, in, w))).local();
    };
    return c;
  });
}
TEST_CASE("a range of which each worker holds what its part reads comes out in balanced parts",
          "[law][runtime][gradient]") {
  try_all(105, 12, [&](dice& d, const mesh_value& mesh) {
    const index_t n = d.roll(1, 9);
    const index_t begin = d.roll(0, static_cast<int>(n) - 1);
    const index_t end = d.roll(static_cast<int>(begin), static_cast<int>(n));
    const layout x = roll_layout(d, mesh, of_extents({d.roll(1, 3), n}), {true, true, true, false});
    layout used = x;
    if (used.levels(1) > 0) {
      dimension& dim = used.dims[1];
      dim.kind = cover::haloed;
      dim.balance(1);
      dim.outputs = end - begin;
      dim.needs = {1, begin, begin, 1};
    }
    return own_case(
        x, used, operation("ab->ab").narrowed('b', begin, end).linear(),
        [begin](const local_boxes& w, const at::Tensor& in) {
          return in.narrow(1, w.result.first(1) + begin - w.operands[0].first(1), w.result.size(1));
        },
        [begin, end](const at::Tensor& in) { return in.narrow(1, begin, end - begin); });
  });
}
TEST_CASE("a cut in grains becomes a cut of the outer dimension, and back", "[law][runtime][gradient]") {
  try_all(106, 12, [&](dice& d, const mesh_value& mesh) {
    const index_t inner = d.roll(1, 3);
    layout x = roll_layout(d, mesh, of_extents({d.roll(1, 3), inner * d.roll(1, 5)}), {true, true, true, false});
    if (x.levels(1) > 0 && !d.once_in(4)) x.dims[1].balance(inner * d.roll(1, 2));
    return own_case(
        x, operation("nz->nab").split('z', 'a', 'b', inner).linear(),
        [](const local_boxes& w, const at::Tensor& in) {
          return in.reshape({in.size(0), w.result.size(1), w.result.size(2)});
        },
        [inner](const at::Tensor& in) { return in.reshape({in.size(0), -1, inner}); });
  });
  try_all(107, 12, [&](dice& d, const mesh_value& mesh) {
    const layout x = roll_layout(d, mesh, of_extents({d.roll(1, 3), d.roll(1, 4), d.roll(1, 3), d.roll(1, 2)}),
                                 {true, true, true, false});
    return own_case(
        x, operation("nabc->yz").merged("na", 'y').merged("bc", 'z').linear(),
        [](const local_boxes& w, const at::Tensor& in) { return in.reshape({w.result.size(0), w.result.size(1)}); },
        [](const at::Tensor& in) { return in.reshape({in.size(0) * in.size(1), -1}); });
  });
}
TEST_CASE("a parameter lies cut where the input is, and its gradient is summed over the rest",
          "[law][runtime][gradient]") {
  constexpr signature s = operation("nfg,gf->nfg").multilinear();
  layer_trials trials;
  trials.run(108, 16, [&](dice& d, const mesh_value& mesh) {
    layer_case c;
    c.plan = plan_operation(
        s, roll_layout(d, mesh, of_extents({d.roll(1, 4), d.roll(1, 5), d.roll(1, 3)}), {true, true, true, false}),
        own_parameter{"weight", init::usual(1)});
    c.forward = [s](const team_handle& team, const layer_plan& p, const at::Tensor& x,
                    const std::vector<nn::parameter>& w) {
      return apply(
                 s, [](const at::Tensor& u, const at::Tensor& v) { return u * v.t(); }, tensor<dyn>(team, p.used(), x),
                 tensor<dyn>(team, p.weight(0), w[0].use()))
          .local();
    };
    c.serial = [](const at::Tensor& x, const std::vector<at::Tensor>& w) { return x * w[0].t(); };
    return c;
  });
  INFO(trials.said);
  CHECK(trials.failures == 0);
  CHECK(trials.accepted > 100);
  CHECK(trials.refused == 0);
}

namespace {

struct ox : axis<2> {};
struct oy : axis<3> {};
using world = mesh<ox, oy>;
struct tall : dyn {};
using rows = tensor<partition<world, blocks<ox, oy>, whole>, shape<tall, dim<5>>, double>;
using columns = tensor<partition<world, whole, blocks<ox, oy>>, shape<tall, dim<5>>, double>;
using at_root = tensor<partition<world, whole, whole, on<ox>, on<oy>>, shape<tall, dim<5>>, double>;

constexpr auto beside = operation("ni,nj->nz").concatenated("ij", 'z').linear();
constexpr auto counted = operation("ab->ab").nonlinear();

struct over_the_root : composition<primitive<rows, at_root>, primitive<at_root, columns>> {};
static_assert(Primitive<over_the_root>);
static_assert(over_the_root::bytes(bind<tall>(60)) == 8 * over_the_root::cost(bind<tall>(60)).total);
// the rows, then the columns, that the root has not or keeps
static_assert(over_the_root::cost(bind<tall>(60)).total == 250 + 240);
static_assert(std::is_same_v<operation_type<beside, rows, rows>,
                             tensor<partition<world, blocks<ox, oy>, whole>, shape<tall, dim<10>>, double>>);

struct own_layer {
  static constexpr const char* name = "own";
  static constexpr layer_plan plan(const tensor_value& x) {
    constexpr signature s = operation("nf,f,f->nf");
    return plan_operation(s, x.layout, own_parameter{"weight", init::usual(4)}, own_parameter{"bias"});
  }
  static at::Tensor forward(const nn::call& c) { return at::sigmoid(c.operand() * c.weight(0) + c.weight(1)); }
};

}  // namespace

TEST_CASE("typed tensors: two operands one behind the other; a primitive by its name; a layer in a network",
          "[runtime]") {
  const at::Tensor a = global_of({4, 5}, numbers{1});  // two of six workers have no row
  const at::Tensor b = global_of({4, 5}, numbers{2});
  const auto all = in_team<world>([&](const team<world>& t) {
    auto x = distribute<rows>(t, a);
    auto y = distribute<rows>(t, b);
    x.requires_grad();
    y.requires_grad();
    int asked = 0;
    const auto z = apply<beside>(
        [&asked](const at::Tensor& u, const at::Tensor& v) {
          ++asked;
          return at::cat({u, v}, 1);
        },
        x, y);
    if (asked != (x.local().numel() > 0 ? 1 : 0)) return false;
    sum(z * z).backward();
    bool good = at::equal(full_tensor(z), at::cat({a, b}, 1)) && at::allclose(full_tensor(x.grad()), 2 * a) &&
                at::allclose(full_tensor(y.grad()), 2 * b);

    auto u = distribute<rows>(t, a);
    u.requires_grad();
    const auto v = apply<over_the_root>(u);
    static_assert(std::is_same_v<std::remove_const_t<decltype(v)>, columns>);
    sum(v * distribute<columns>(t, b)).backward();
    good = good && at::equal(full_tensor(v), a) && at::allclose(full_tensor(u.grad()), b);
    good = good && at::equal(full_tensor(apply<adjoint<over_the_root>>(distribute<columns>(t, b))), b);

    nn::sequential<rows, own_layer, nn::linear<3>> net{t, seed{3}};
    const auto w = nn::state_of(net);
    const auto out = net(distribute<rows>(t, a));
    const at::Tensor serial =
        at::linear(at::sigmoid(a * w.at("0.weight") + w.at("0.bias")), w.at("1.weight"), w.at("1.bias"));
    return good && at::allclose(full_tensor(out), serial) && w.at("0.weight").abs().max().item<double>() <= 0.5 &&
           w.at("0.weight").abs().max().item<double>() > 0 && w.at("0.bias").abs().max().item<double>() == 0;
  });
  INFO(all.errors());
  for (const auto& r : all.results) CHECK((r && *r));
}

namespace {

constexpr auto chosen_rows = operation("n,rf->nf").whole("r");
constexpr auto kept_where = operation("nf,nf->nf");

template <class E, index_t Columns>
using six_rows = tensor<partition<world, blocks<ox>, whole>, shape_of<6, Columns>, E>;

at::Tensor kept(const at::Tensor& holds, const at::Tensor& x) { return at::where(holds, x, 0); }

// One that asks how its operand lies, and leads another there.
struct kept_as_it_lies {
  constexpr auto operator()(auto x, auto mask) const {
    static_assert(x.template extent<1>() == 5);
    return tessera::apply<kept_where, kept>(tessera::to<typename decltype(x)::partition>(mask), x) |
           nn::linear<x.template extent<0>() - 3>{};
  }
};

}  // namespace

TEST_CASE("an operation takes constants of other elements: indices and masks, typed, dynamic and in modules",
          "[runtime]") {
  const at::Tensor a = global_of({6, 5}, numbers{1}), mask = global_of({6, 5}, numbers{2}) > 0,
                   marks = at::arange(6).remainder(4);
  const at::Tensor table = global_of({6, 5}, numbers{3});
  const auto all = in_team<world>([&](const team<world>& t) -> std::string {
    auto x = distribute<six_rows<double, 5>>(t, a);
    x.requires_grad();
    const auto m = distribute<six_rows<bool, 5>>(t, mask);
    const auto y = apply<kept_where>(kept, m, x);
    static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, six_rows<double, 5>>);
    sum(y * y).backward();
    if (!at::equal(full_tensor(y), a * mask) || !at::allclose(full_tensor(x.grad()), 2 * a * mask)) return "typed";
    const tensor<dyn> z = apply(kept_where, kept, m.dynamic(), x.dynamic());
    if (z.type() != element::float64 || !at::equal(full_tensor(z), a * mask)) return "dynamic";
    auto w = distribute<tensor<partition<world, whole, whole>, shape_of<6, 5>, double>>(t, table);
    w.requires_grad();
    const auto found =
        apply<chosen_rows>([](const at::Tensor& i, const at::Tensor& of) { return of.index_select(0, i); },
                           distribute<tensor<partition<world, blocks<ox>>, shape_of<6>, std::int64_t>>(t, marks), w);
    sum(found).backward();
    const at::Tensor times = at::bincount(marks, {}, 6).to(at::kDouble).unsqueeze(1).expand({6, 5});
    return at::equal(full_tensor(found), table.index_select(0, marks)) && at::equal(full_tensor(w.grad()), times)
               ? ""
               : "indices";
  });
  INFO(all.errors());
  for (const auto& r : all.results) CHECK((r && *r == ""));

  using net_type = nn::network<kept_as_it_lies, six_rows<double, 5>,
                               tensor<partition<world, whole, blocks<ox>>, shape_of<6, 5>, bool>>;
  const auto nets = in_team<world>([&](const team<world>& t) {
    net_type net{t, seed{3}};
    const auto w = nn::state_of(net);
    const auto out = net(distribute<six_rows<double, 5>>(t, a),
                         distribute<tensor<partition<world, whole, blocks<ox>>, shape_of<6, 5>, bool>>(t, mask));
    sum(out).backward();
    return at::allclose(full_tensor(out), at::linear(a * mask, w.at("0.weight"), w.at("0.bias")));
  });
  INFO(nets.errors());
  for (const auto& r : nets.results) CHECK((r && *r));
}

namespace {

enum class gives { another_box, another_element, nothing, an_exception, an_error_of_libtorch };

template <gives What>
struct wrong_layer {
  static constexpr const char* name = "wrong_layer";
  static constexpr layer_plan plan(const tensor_value& x) { return plan_operation(counted, x.layout); }
  static at::Tensor forward(const nn::call& c) {
    const at::Tensor& x = c.operand();
    if (What == gives::nothing) return {};
    if (What == gives::an_exception) throw std::out_of_range("no such table");
    if (What == gives::an_error_of_libtorch) return x.view({x.numel() + 1});
    return What == gives::another_box ? at::cat({x, x}, 1) : x.to(at::kFloat);
  }
};

/// What the first of six workers is told, where all are told the same code.
template <class F>
std::string told_all(const std::string& code, F&& f) {
  const auto all = in_team<world>([&](const team<world>& t) {
    try {
      f(t);
    } catch (const error& e) {
      return code == e.code() ? std::string(e.what()) : "another code: " + std::string(e.what());
    }
    return std::string("nothing");
  });
  for (const auto& r : all.results)
    if (!r || r->find("[" + code) != 0) return r ? *r : "no result";
  return *all.results[0];
}

}  // namespace

TEST_CASE("what a layer of one's own gives wrongly, and a parameter of another element, are refused by name",
          "[refusal]") {
  const at::Tensor a = global_of({6, 5}, numbers{1});
  const auto through = [&]<class Layer>(std::type_identity<Layer>) {
    return [&](const team<world>& t) { nn::sequential<rows, nn::relu, Layer>{t, seed{3}}(distribute<rows>(t, a)); };
  };
  const auto names = [](const std::string& said, const std::string& what) {
    INFO(said);
    CHECK(said.find(what) != std::string::npos);
  };
  names(told_all("tessera.tensor.shape", through(std::type_identity<wrong_layer<gives::another_box>>{})),
        ": layer 1 (wrong_layer) at own_operations.cpp:");
  names(told_all("tessera.tensor.element", through(std::type_identity<wrong_layer<gives::another_element>>{})),
        ": layer 1 (wrong_layer) at own_operations.cpp:");
  names(told_all("tessera.tensor.undefined", through(std::type_identity<wrong_layer<gives::nothing>>{})),
        ": layer 1 (wrong_layer) at own_operations.cpp:");
  names(told_all("tessera.network.layer", through(std::type_identity<wrong_layer<gives::an_exception>>{})),
        "[layer 1 (wrong_layer): no such table]");
  names(told_all("tessera.network.layer", through(std::type_identity<wrong_layer<gives::an_error_of_libtorch>>{})),
        "[layer 1 (wrong_layer): shape '");
  for (const bool own : {true, false})
    names(told_all("tessera.tensor.element",
                   [&](const team<world>& t) {
                     const auto run = [&](const auto& net) {
                       net.parameters()[0].set_data(net.parameters()[0].to(at::kFloat));
                       net(distribute<rows>(t, a));
                     };
                     if (own) run(nn::sequential<rows, own_layer>{t, seed{3}});
                     else run(nn::sequential<rows, nn::linear<3>>{t, seed{3}});
                   }),
          "(expected element double, given element float) [0.weight]");
}

TEST_CASE("run time refuses what the compiler would, and a function that gives another element or box", "[refusal]") {
  const auto plain = [](const at::Tensor& x) { return x; };
  const auto refused = [](const std::string& code, const std::function<void(const team<world>&)>& f) {
    INFO(code);
    CHECK(refusals<world>(code, f) == 6);
  };
  const at::Tensor a = global_of({6, 5}, numbers{1});
  const auto x = [&](const team<world>& t) { return distribute<rows>(t, a).dynamic(); };
  refused("tessera.signature.text", [&](const team<world>& t) { apply(operation("ab>ab"), plain, x(t)); });
  refused("tessera.signature.twice", [&](const team<world>& t) { apply(operation("aa->a"), plain, x(t)); });
  refused("tessera.signature.result", [&](const team<world>& t) { apply(operation("ab->ac"), plain, x(t)); });
  refused("tessera.signature.role", [&](const team<world>& t) { apply(operation("ab->ab").whole("c"), plain, x(t)); });
  refused("tessera.signature.operands", [&](const team<world>& t) { apply(operation("ab,ab->ab"), plain, x(t)); });
  refused("tessera.signature.range",
          [&](const team<world>& t) { apply(operation("ab->ab").narrowed('b', 3, 6), plain, x(t)); });
  refused("tessera.signature.split",
          [&](const team<world>& t) { apply(operation("ab->acd").split('b', 'c', 'd', 2), plain, x(t)); });
  refused("tessera.rule.whole", [&](const team<world>& t) { apply(operation("ab->ab").whole("a"), plain, x(t)); });
  layout around = value_of<rows>.layout;
  around.dims[0].extent = 6;
  around.dims[0].kind = cover::haloed;
  around.dims[0].outputs = 6;
  around.dims[0].needs = {1, -1, 1, 1, 0, 0, boundary::periodic};
  refused("tessera.rule.window",
          [&](const team<world>& t) { apply(operation("ab->ab").narrowed('a', 1, 4), plain, to(around, x(t))); });
  refused("tessera.tensor.element",
          [&](const team<world>& t) { apply(counted, [](const at::Tensor& u) { return u.to(at::kFloat); }, x(t)); });
  refused("tessera.tensor.shape",
          [&](const team<world>& t) { apply(counted, [](const at::Tensor& u) { return at::cat({u, u}, 1); }, x(t)); });
}
