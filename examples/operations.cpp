// The programs of docs/adding-operations.md: an operation, a primitive and a layer of one's own, each held against one
// process.

// [what_all_three_share]
#include <tessera/tessera.hpp>
namespace ts = tessera;

struct ring : ts::axis<4> {};
using grid = ts::mesh<ring>;
struct batch : ts::dyn {};
// [end]

// [the_operation]
constexpr auto causal = ts::operation("qk->qk").whole("k").nonlinear();

using scores = ts::tensor<ts::partition<grid, ts::blocks<ring>, ts::whole>, ts::shape_of<10, 10>, double>;

scores attention(const scores& s) {
  return ts::apply<causal>(
      [](const ts::local_boxes& where, const at::Tensor& x) {
        const ts::local_box& mine = where.operands[0];
        // their global indices
        const at::Tensor queries = at::arange(mine.first(0), mine.first(0) + mine.size(0)).unsqueeze(1);
        const at::Tensor keys = at::arange(mine.extents[1]);
        return at::softmax(x.masked_fill(keys > queries, -1e30), 1);
      },
      s);
}
// [end]

// [the_operation_in_one_process]
at::Tensor serial_attention(const at::Tensor& s) {
  return at::softmax(s.masked_fill(at::ones_like(s).triu(1) == 1, -1e30), 1);
}
// [end]

// [the_primitive]
using rows = ts::tensor<ts::partition<grid, ts::blocks<ring>, ts::whole>, ts::shape_of<7, 5>, double>;
using at_root = ts::tensor<ts::partition<grid, ts::whole, ts::whole, ts::on<ring>>, ts::shape_of<7, 5>, double>;
using columns = ts::tensor<ts::partition<grid, ts::whole, ts::blocks<ring>>, ts::shape_of<7, 5>, double>;

struct over_the_root : ts::composition<ts::primitive<rows, at_root>, ts::primitive<at_root, columns>> {};

static_assert(std::is_same_v<ts::adjoint<over_the_root>::domain, columns>);  // a tiling is its own cotangent
static_assert(over_the_root::cost().total > ts::primitive<rows, columns>::cost().total);  // the direct way moves less
// [end]

// [the_layer]
constexpr auto scaled = ts::operation("nf,f->nf").multilinear();

struct gain {
  static constexpr const char* name = "gain";
  static constexpr ts::layer_plan plan(const ts::tensor_value& x) {
    return ts::plan_operation(scaled, x.layout,
                              ts::own_parameter{.name = "weight", .initial = ts::init::uniform(-1, 1)});
  }
  static at::Tensor forward(const ts::nn::call& c) { return c.operand() * (1 + c.weight(0)); }
};

using features = ts::partition<grid, ts::blocks<ring>, ts::whole>;
using net_type = ts::nn::sequential<ts::tensor<features, ts::shape<batch, ts::dim<6>>, double>,  //
                                    ts::nn::linear<5>, gain, ts::nn::relu, ts::nn::linear<3>>;
// [end]

// [the_layer_in_one_process]
at::Tensor serial_net(const at::Tensor& x, const std::map<std::string, at::Tensor>& w) {
  const at::Tensor hidden = at::linear(x, w.at("0.weight"), w.at("0.bias")) * (1 + w.at("1.weight"));
  return at::linear(at::relu(hidden), w.at("3.weight"), w.at("3.bias"));
}
// [end]

// [the_layer_with_state]
constexpr auto modulate = ts::operation("nf,nc,kfc->nf").whole("kc").nonlinear();

// x[n, f] · (1 + gain) + shift, both linear in y[n, c]; counts the samples that it was trained on.
struct film {
  static constexpr const char* name = "film";
  static constexpr ts::layer_plan plan(const ts::tensor_value& x, const ts::tensor_value& y) {
    ts::parameter_value w;
    w.name = "weight";
    w.used = ts::weight_for(x.layout, {2, x.layout.dims[1].extent, y.layout.dims[1].extent});
    for (int a = 0; a < x.layout.placements.count; ++a)
      if (x.layout.placements[a].kind == ts::placement::cut && x.layout.placements[a].dimension == 1)
        w.used.cut_by(1, a);
    w.stored = ts::stored_form(w.used);
    w.initial = ts::init::usual(y.layout.dims[1].extent);
    w.serial.factors = 2;  // [2, f, c] is [2 · f, c] in the serial model
    ts::static_vector<ts::operand, 4> operands;
    for (const ts::layout& each : {x.layout, y.layout, w.used}) operands.push({each});
    const ts::inferred z = ts::infer(modulate, operands);
    ts::layer_plan p;
    p.why = z.why;
    p.add_input(x.layout);
    p.add_input(y.layout);
    p.add_output(z.layout);
    p.add_parameter(w);
    p.add_product({p.raw_extents(), p.weight_extents().without(1)});  // 2 · c multiply-adds for each n and f
    p.add_buffer({"samples", ts::stored_form(ts::weight_for(x.layout, {})), ts::init::zeros(), ts::element::int64});
    return p;
  }
  static at::Tensor forward(const ts::nn::call& c) {
    if (c.training) c.buffer(0).set(c.buffer(0).value() + c.bound.boxes().operands[0].extents[0]);
    const at::Tensor w = c.weight(0);
    return c.operand(0) * (1 + at::linear(c.operand(1), w[0])) + at::linear(c.operand(1), w[1]);
  }
};
// [end]
using conditions = ts::tensor<ts::partition<grid, ts::blocks<ring>, ts::whole>, ts::shape<batch, ts::dim<3>>, double>;
using film_type = ts::nn::network<film, net_type::input, conditions>;

// [the_program]
int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [](ts::team<grid>& team) {
    const auto same = [](const char* what, const at::Tensor& here, const at::Tensor& serial) {
      if (!at::allclose(here, serial)) throw std::runtime_error(fmt::format("{} differs from one process", what));
    };

    const at::Tensor s = at::sin(at::arange(100, at::kDouble)).view({10, 10}).set_requires_grad(true);
    auto cut = ts::distribute<scores>(team, s);  // 10 queries over 4 workers: 3 2 3 2
    cut.requires_grad();
    const auto a = attention(cut);
    ts::sum(a * a).backward();
    at::square(serial_attention(s)).sum().backward();
    same("attention", ts::full_tensor(a), serial_attention(s));
    same("its gradient", ts::full_tensor(cut.grad()), s.grad());

    const at::Tensor m = at::cos(at::arange(35, at::kDouble)).view({7, 5});
    const auto x = ts::distribute<rows>(team, m);
    const auto y = ts::distribute<columns>(team, at::exp(m));
    same("the transposed cut", ts::full_tensor(ts::apply<over_the_root>(x)), m);
    const double there = ts::pairing(ts::apply<over_the_root>(x), y);
    const double back = ts::pairing(x, ts::apply<ts::adjoint<over_the_root>>(y));
    same("the adjoint", at::tensor(there), at::tensor(back));  // ⟨F x, y⟩ = ⟨x, F* y⟩

    net_type net{team, ts::seed{1}};
    const auto weights = ts::nn::state_of(net);  // global tensors, under the serial network's keys
    const at::Tensor samples = at::sin(at::arange(42, at::kDouble)).view({7, 6});
    const auto out = net(ts::distribute<net_type::input>(team, samples));
    same("the network", ts::full_tensor(out), serial_net(samples, weights));
    const auto error = ts::sum(out * out);
    error.backward();
    auto leaves = weights;
    for (auto& [key, leaf] : leaves) leaf.set_requires_grad(true);
    at::square(serial_net(samples, leaves)).sum().backward();
    net.each_parameter([&](const ts::nn::parameter& p) {
      const ts::tensor<ts::dyn> g(p.stored().team(), ts::cotangent(p.stored().layout()), p.stored().local().grad());
      same(p.path().c_str(), ts::full_tensor(g), leaves.at(p.path()).grad());
    });

    film_type modulated{team, ts::seed{1}};
    const auto state = ts::nn::state_of(modulated);  // "0.weight" [12, 3] and "0.samples"
    const at::Tensor by = at::cos(at::arange(21, at::kDouble)).view({7, 3});
    const auto z = modulated(ts::distribute<net_type::input>(team, samples), ts::distribute<conditions>(team, by));
    const auto both = at::linear(by, state.at("0.weight")).chunk(2, 1);
    same("the layer with state", ts::full_tensor(z), samples * (1 + both[0]) + both[1]);
    same("its buffer", ts::nn::state_of(modulated).at("0.samples"), at::tensor(7, at::kLong));
    if (team.first()) fmt::print("an operation, a primitive and a layer agree with one process\n");
  });
}
// [end]
