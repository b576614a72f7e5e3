// The programs of docs/from-torchshard.md: a classifier whose classes are cut, held against the same on one worker.
#include <tessera/nn/serial/cut_state.hpp>
#include <tessera/tessera.hpp>

#include <cmath>
#include <stdexcept>

namespace ts = tessera;
namespace nn = tessera::nn;

namespace {

/// Every worker calls it; the first one that finds a number wrong ends the program.
void expect_equal(const at::Tensor& got, const at::Tensor& wanted, const char* what) {
  if (got.sizes() != wanted.sizes() || !at::allclose(got, wanted, 1e-10, 1e-12)) throw std::runtime_error(what);
}

// [groups]
struct data : ts::axis<2> {};
struct model : ts::axis<2> {};  // init_process_group(2): workers 0 1, and workers 2 3
using grid = ts::mesh<data, model>;
// [end]

// [partitions]
using invariant = ts::partition<grid, ts::blocks<data>, ts::whole, ts::invariant<model>>;
using replicate = ts::partition<grid, ts::blocks<data>, ts::whole, ts::replicate<model>>;
using columns = ts::partition<grid, ts::blocks<data>, ts::blocks<model>>;
using samples = ts::tensor<invariant, ts::shape_of<5, 6>, double>;
using labels = ts::tensor<ts::partition<grid, ts::blocks<data>, ts::invariant<model>>, ts::shape_of<5>, std::int64_t>;
// [end]

at::Tensor some(ts::index_t rows, ts::index_t features, double faster) {
  return at::sin(at::arange(rows * features, at::kDouble) * faster).view({rows, features});
}

void collectives(const ts::team<grid>& team) {
  using rows =
      ts::tensor<ts::partition<grid, ts::blocks<model>, ts::whole, ts::replicate<data>>, ts::shape_of<6, 7>, double>;
  const at::Tensor whole = some(5, 6, 1), weight = some(6, 7, 0.7);
  auto x = ts::distribute<samples>(team, whole);
  x.requires_grad();
  const auto w = ts::distribute<rows>(team, weight);
  // [calls]
  const auto used = ts::copy_in<replicate>(x);         // copy(x)
  const auto part = ts::shard<columns>(used);          // scatter(x, -1)
  const auto terms = ts::matmul(part, w);              // of a weight that is cut by its inputs
  const auto sums = ts::all_reduce<invariant>(terms);  // reduce(x)
  const auto cut = ts::shard<columns>(sums);
  const auto all = ts::all_gather<invariant>(cut);  // gather(x, -1)
  // [end]
  expect_equal(ts::full_tensor(all).detach(), whole.mm(weight), "a product of cut rows");
  ts::sum(all * all).backward();
  const at::Tensor leaf = whole.clone().requires_grad_();
  leaf.mm(weight).square().sum().backward();
  expect_equal(ts::full_tensor(x.grad()), leaf.grad(), "the gradient through the verbs");
}

// [classifier]
/// ParallelLinear(6, 12, dim=-1), GELU, ParallelLinear(12, 6, dim=0).
struct block {
  constexpr auto operator()(auto x) const {
    const auto wide = x | nn::named<struct first, nn::linear<12, ts::cut_out<model>>>{};
    return gelu(wide) | nn::named<struct second, nn::linear<6, ts::cut_in<model>, ts::output_as<invariant>>>{};
  }
};

/// ParallelArcLinear(6, 9), ParallelArcLoss: 5 and 4 classes.
struct recognition {
  using weights =
      ts::tensor<ts::partition<grid, ts::blocks<model>, ts::whole, ts::replicate<data>>, ts::shape_of<9, 6>, double>;
  constexpr auto operator()(auto x, auto y) const {
    const auto features = x | nn::named<struct body, block>{};
    const auto cosines = features | nn::named<struct head, nn::cosine_linear<weights, replicate>>{};
    return nn::cross_entropy(nn::angular_margin(cosines, y, {.margin = 0.5, .scale = 64}), y);
  }
};
using net_type = nn::network<recognition, samples, labels>;
// [end]

/// The loss of one worker.
at::Tensor serial(const nn::state_dict& w, const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor wide = at::gelu(at::linear(x, w.at("body.first.weight"), w.at("body.first.bias")));
  const at::Tensor z = at::linear(wide, w.at("body.second.weight"), w.at("body.second.bias"));
  const at::Tensor& head = w.at("head.weight");
  const at::Tensor cosine = (z / z.norm(2, 1, true)).mm((head / head.norm(2, 1, true)).t());
  const at::Tensor angle = at::acos(cosine) + 0.5;
  const at::Tensor margin = at::where(angle < std::acos(-1), at::cos(angle), cosine - 0.5 * std::sin(0.5));
  return at::cross_entropy_loss(64 * at::where(at::one_hot(y, 9) == 1, margin, cosine), y);
}

void classifier(const ts::team<grid>& team) {
  net_type net{team, ts::seed{1}};
  const at::Tensor whole = some(5, 6, 2), label = at::tensor({0, 8, 4, 5, 2}, at::kLong);
  auto x = ts::distribute<samples>(team, whole);
  x.requires_grad();
  // [step]
  const auto loss = net(x, ts::distribute<labels>(team, label));
  loss.backward();  // of the mean over all samples: no factor to take back
  // [end]

  // [state]
  const nn::state_dict all = nn::state_of(net);  // collect_state_dict
  const nn::cut_table cuts{
      {"body.first", {.dimension = 0}}, {"body.second", {.dimension = 1}}, {"head", {.dimension = 0}}};
  const nn::state_dict mine =
      nn::cut_state(all, cuts, 2, team.coordinate<model>());  // relocate_state_dict, as files have it
  nn::assign(net, all);                                       // relocate_state_dict, of this network
  // [end]
  expect_equal(mine.at("head.weight"),
               all.at("head.weight").tensor_split(2).at(static_cast<std::size_t>(team.coordinate<model>())), "a part");

  const at::Tensor leaf = whole.clone().requires_grad_();
  const at::Tensor wanted = serial(all, leaf, label);
  wanted.backward();
  expect_equal(loss.local().detach(), wanted.detach(), "the loss");
  expect_equal(ts::full_tensor(x.grad()), leaf.grad(), "the gradient of samples");
  expect_equal(nn::state_of(net).at("head.weight"), all.at("head.weight"), "a state that was assigned");
}

}  // namespace

int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [](ts::team<grid>& team) {
    collectives(team);
    classifier(team);
    if (team.first()) fmt::print("a classifier whose classes are cut is that of one worker\n");
  });
}
