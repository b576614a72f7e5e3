// A pre-norm transformer block, tensor parallel over heads and data parallel over samples, held against one process: forward, gradients, five steps.
#include <tessera/tessera.hpp>

#include <torch/optim/sgd.h>
namespace ts = tessera;

struct data : ts::axis<2> {};
struct model : ts::axis<2> {};
using grid = ts::mesh<data, model>;
struct batch : ts::dyn {};

// [block]
using column = ts::cut_out<model>;  // what comes in is whole, what goes out is cut
using row = ts::cut_in<model>;      // what comes in is cut, what goes out is summed
using stream = ts::partition<grid, ts::blocks<data>, ts::whole, ts::whole, ts::invariant<model>>;

template <ts::index_t Width, ts::index_t Heads, ts::index_t KeyHeads>
struct block {
  constexpr auto operator()(auto x) const {
    const auto [q, k, v] = x | ts::nn::layer_norm<>{} | ts::nn::heads<Heads, KeyHeads, 4, column>{};
    const auto y = x + (ts::nn::attention<ts::causal>{}(q, k, v) | ts::nn::linear<Width, row, ts::output_as<stream>>{});
    const auto [gate, up] = y | ts::nn::layer_norm<>{} | ts::nn::gated<2 * Width, column>{};
    return y + (silu(gate) * up | ts::nn::linear<Width, row, ts::output_as<stream>>{});
  }
};

using sequences = ts::tensor<stream, ts::shape<batch, ts::dim<7>, ts::dim<12>>, double>;
using net_type = ts::nn::network<block<12, 6, 3>, sequences>;  // three groups of two heads over two workers: 2 1
static_assert(ts::traffic<net_type>(ts::bind<batch>(4)).forward.bytes == 2 * (4 * 7 * 12 * 8) * 2);  // two sums over `model`, both ways
// [end]

using by_key = std::map<std::string, at::Tensor>;

at::Tensor serial_block(const at::Tensor& x, const by_key& w) {
  const auto linear = [&](const at::Tensor& in, const std::string& key) { return at::linear(in, w.at(key + ".weight"), w.at(key + ".bias")); };
  const auto norm = [&](const at::Tensor& in, const std::string& key) { return at::layer_norm(in, {12}, w.at(key + ".weight"), w.at(key + ".bias")); };
  const auto by_head = [](const at::Tensor& t) { return t.unflatten(-1, {-1, 4}).transpose(1, 2); };
  const std::vector<at::Tensor> qkv = linear(norm(x, "0"), "1").split_with_sizes({24, 12, 12}, -1);
  const at::Tensor a = at::scaled_dot_product_attention(by_head(qkv[0]), by_head(qkv[1]).repeat_interleave(2, 1), by_head(qkv[2]).repeat_interleave(2, 1),
                                                        std::nullopt, 0, true);
  const at::Tensor y = x + linear(a.transpose(1, 2).flatten(-2), "2");
  const std::vector<at::Tensor> both = linear(norm(y, "3"), "4").chunk(2, -1);
  return y + linear(at::silu(both[0]) * both[1], "5");
}

int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [](ts::team<grid>& team) {
    const auto same = [](const std::string& what, const at::Tensor& here, const at::Tensor& serial) {
      if (!here.sizes().equals(serial.sizes()) || (here - serial).abs().max().item<double>() > 1e-12)
        throw std::runtime_error(fmt::format("{} differs from one process", what));
    };
    net_type net{team, ts::seed{7}};
    by_key w = ts::nn::state_of(net);  // q, k and v are one tensor here, as in the serial model
    std::vector<at::Tensor> leaves;
    for (auto& [key, t] : w) leaves.push_back(t.set_requires_grad(true));
    const auto options = torch::optim::SGDOptions(0.001).momentum(0.9);
    torch::optim::SGD ours(net.parameters(), options);
    torch::optim::SGD theirs(leaves, options);
    for (int step = 0; step < 5; ++step) {
      const at::Tensor samples = at::sin(at::arange(3 * 7 * 12, at::kDouble) * (1 + step)).view({3, 7, 12}).set_requires_grad(true);
      ours.zero_grad();
      theirs.zero_grad();
      auto x = ts::take<sequences>(team, samples.detach());
      x.requires_grad();
      const auto y = net(x);
      const at::Tensor serial = serial_block(samples, w);
      ts::sum(y * y).backward();
      at::square(serial).sum().backward();
      same("the result", ts::global(y), serial.detach());
      same("the input's gradient", ts::global(x.grad()), samples.grad());
      net.each_parameter([&](const ts::nn::parameter& p) {
        const ts::tensor<ts::dyn> g(p.stored().team(), ts::cotangent(p.stored().layout()), p.stored().local().grad());
        same("the gradient of " + p.path(), ts::global(g), p.part_of(w.at(p.key()).grad()));
      });
      ours.step();
      theirs.step();
    }
    for (const auto& [key, values] : ts::nn::state_of(net)) same(key, values, w.at(key).detach());
    if (team.first()) fmt::print("a transformer block agrees with one process over five steps\n");
  });
}
