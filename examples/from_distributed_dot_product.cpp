// The programs of docs/from-distributed-dot-product.md: products and attention over a cut time axis, each held against
// the same on one worker.
#include <tessera/tessera.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace ts = tessera;
namespace nn = tessera::nn;

namespace {

/// Every worker calls it; the first one that finds a number wrong ends the program.
void expect_equal(const at::Tensor& got, const at::Tensor& wanted, const char* what) {
  if (got.sizes() != wanted.sizes() || !at::allclose(got, wanted, 1e-12, 1e-12)) throw std::runtime_error(what);
}

// [products]
struct seq : ts::axis<4> {};  // four workers have 3, 3, 3 and 2 of 11 time steps
using workers = ts::mesh<seq>;
using rows = ts::partition<workers, ts::blocks<seq>, ts::whole>;
using features = ts::tensor<rows, ts::shape_of<11, 6>, double>;
using scores = ts::tensor<rows, ts::shape_of<11, 11>, double>;

constexpr auto nt = ts::operation("td,sd->ts").multilinear().streamed('s', 32);   // A · Bᵀ, 32 rows at a time
constexpr auto all = ts::operation("ts,sd->td").multilinear().streamed('s', 32);  // A · B
constexpr auto tn = ts::operation("ts,td->sd").multilinear().streamed('s');       // Aᵀ · B, rows as they fit
// [end]

void products(const ts::team<workers>& team) {
  const at::Tensor whole_a = at::sin(at::arange(66, at::kDouble)).view({11, 6});
  const at::Tensor whole_b = at::cos(at::arange(66, at::kDouble)).view({11, 6});
  auto a = ts::distribute<features>(team, whole_a.clone());
  auto b = ts::distribute<features>(team, whole_b.clone());
  a.requires_grad();
  b.requires_grad();
  // [calls]
  const scores c = ts::einsum<nt>(a, b);     // distributed_matmul_nt(a, b, 32)
  const features d = ts::einsum<all>(c, b);  // distributed_matmul_all(c, b, 32)
  const features e = ts::einsum<tn>(c, d);   // distributed_matmul_tn(c, d)
  // [end]
  const at::Tensor x = whole_a.clone().requires_grad_(), y = whole_b.clone().requires_grad_();
  const at::Tensor wanted_c = x.mm(y.t()), wanted_d = wanted_c.mm(y), wanted_e = wanted_c.t().mm(wanted_d);
  expect_equal(ts::full_tensor(c), wanted_c, "A · Bᵀ");
  expect_equal(ts::full_tensor(d), wanted_d, "A · B");
  expect_equal(ts::full_tensor(e), wanted_e, "Aᵀ · B");
  e.local().sum().backward();
  wanted_e.sum().backward();
  expect_equal(ts::full_tensor(a.grad()), x.grad(), "the gradient of A");
  expect_equal(ts::full_tensor(b.grad()), y.grad(), "the gradient of B");

  // [block]
  using columns = ts::tensor<ts::partition<workers, ts::whole, ts::blocks<seq>>, ts::shape_of<6, 11>, double>;
  const auto u = ts::distribute<columns>(team, whole_a.t());
  const auto sums = ts::all_reduce<ts::partition<workers, ts::whole, ts::whole>>(ts::matmul(u, b));  // ..._block(u, b)
  // [end]
  expect_equal(sums.local(), whole_a.t().mm(whole_b), "a product of blocks");
}

// [module]
/// DistributedDotProductAttn(key_dim, value_dim, query_dim, num_heads, add_bias, offset); query_dim is what comes in.
template <ts::index_t KeyDim, ts::index_t ValueDim, ts::index_t Heads, ts::index_t Offset = 32>
struct dot_product_attention {
  constexpr auto operator()(auto x, auto y, auto z, auto mask) const {
    const auto k = x | nn::named<struct keys, nn::linear<KeyDim, ts::no_bias>>{};
    const auto q = y | nn::named<struct queries, nn::linear<KeyDim, ts::no_bias>>{};
    const auto v = z | nn::named<struct values, nn::linear<ValueDim, ts::no_bias>>{};
    // the keys ask, and the queries are asked: rows of the result are those of the keys
    const auto a = nn::attention<ts::streamed<Offset>>{}(ts::unsqueeze<3>(ts::unflatten<2, KeyDim / Heads>(k)),
                                                         ts::unflatten<2, KeyDim / Heads>(q),
                                                         ts::unflatten<2, ValueDim / Heads>(v), mask);
    return a | nn::named<struct composition, nn::linear<ValueDim, ts::no_bias>>{};
  }
};

using sequence = ts::partition<workers, ts::whole, ts::blocks<seq>, ts::whole>;
using steps = ts::tensor<sequence, ts::shape_of<2, 11, 6>, double>;
using masks = ts::tensor<sequence, ts::shape_of<2, 11, 11>, bool>;
using net_type = nn::network<dot_product_attention<6, 6, 2>, steps, steps, steps, masks>;
// [end]

void attention(const ts::team<workers>& team) {
  const net_type net{team, ts::seed{1}};
  std::vector<at::Tensor> whole;
  for (int i = 0; i < 3; ++i) whole.push_back(at::sin(at::arange(132, at::kDouble) * (i + 1)).view({2, 11, 6}));
  const at::Tensor mask = at::sin(at::arange(242, at::kDouble)).view({2, 11, 11}) > 0.4;
  mask.select(1, 4).fill_(true);  // a row that sees nothing
  // [call]
  const auto y = net(ts::distribute<steps>(team, whole[0]), ts::distribute<steps>(team, whole[1]),
                     ts::distribute<steps>(team, whole[2]), ts::distribute<masks>(team, mask));
  y.local().square().sum().backward();
  // [end]
  const auto weights = nn::state_of(net);
  const auto through = [&](const at::Tensor& x, const char* name) { return x.matmul(weights.at(name).t()); };
  const auto by_head = [](const at::Tensor& x) { return x.unflatten(-1, {2, 3}).transpose(1, 2); };
  at::Tensor s =
      by_head(through(whole[0], "keys.weight")).matmul(by_head(through(whole[1], "queries.weight")).transpose(-2, -1));
  s = (s / std::sqrt(3.0)).masked_fill(mask.unsqueeze(1), -std::numeric_limits<double>::infinity());
  const at::Tensor p = at::softmax(s, -1).masked_fill(mask.all(-1).view({2, 1, 11, 1}), 0);
  const at::Tensor a = p.matmul(by_head(through(whole[2], "values.weight"))).transpose(1, 2).flatten(2);
  expect_equal(ts::full_tensor(y), through(a, "composition.weight"), "attention");
}

}  // namespace

int main(int argc, char** argv) {
  return ts::launch<workers>(argc, argv, [](ts::team<workers>& team) {
    products(team);
    attention(team);
    if (team.first()) fmt::print("products and attention over a cut time axis are those of one worker\n");
  });
}
