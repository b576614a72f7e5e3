// A pre-norm transformer block, tensor parallel over heads and data parallel over samples, held against one process:
// forward, gradients, five steps.
#include <tessera/tessera.hpp>

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "beside_serial.hpp"
namespace ts = tessera;
namespace nn = tessera::nn;

struct data : ts::axis<2> {};
struct model : ts::axis<2> {};
using grid = ts::mesh<data, model>;
struct batch : ts::dyn {};

// [serial]
struct serial_block : torch::nn::Module {  // 6 heads of 4 features, 2 of them to one key
  torch::nn::LayerNorm before_attention =
      register_module("before_attention", torch::nn::LayerNorm(torch::nn::LayerNormOptions({12})));
  torch::nn::Linear qkv = register_module("qkv", torch::nn::Linear(12, 24 + 12 + 12));
  torch::nn::Linear mixed = register_module("mixed", torch::nn::Linear(24, 12));
  torch::nn::LayerNorm before_gate =
      register_module("before_gate", torch::nn::LayerNorm(torch::nn::LayerNormOptions({12})));
  torch::nn::Linear gated = register_module("gated", torch::nn::Linear(12, 2 * 24));
  torch::nn::Linear down = register_module("down", torch::nn::Linear(24, 12));

  at::Tensor forward(const at::Tensor& x) {
    const auto by_head = [](const at::Tensor& t, std::int64_t times) {
      return t.unflatten(-1, {-1, 4}).transpose(1, 2).repeat_interleave(times, 1);
    };
    const auto parts = qkv(before_attention(x)).split_with_sizes({24, 12, 12}, -1);
    const at::Tensor a = at::scaled_dot_product_attention(by_head(parts[0], 1), by_head(parts[1], 2),
                                                          by_head(parts[2], 2), std::nullopt, 0, true);
    const at::Tensor y = x + mixed(a.transpose(1, 2).flatten(-2));
    const auto both = gated(before_gate(y)).chunk(2, -1);
    return y + down(at::silu(both[0]) * both[1]);
  }
};
// [end]

// [block]
using column = ts::cut_out<model>;  // what comes in is whole, what goes out is cut
using row = ts::cut_in<model>;      // what comes in is cut, what goes out is summed
using stream = ts::partition<grid, ts::blocks<data>, ts::whole, ts::whole, ts::invariant<model>>;

template <ts::index_t Width, ts::index_t Heads, ts::index_t KeyHeads>
struct block {
  constexpr auto operator()(auto x) const {
    const auto before = x | nn::named<struct before_attention, nn::layer_norm<>>{};
    const auto [q, k, v] = before | nn::named<struct qkv, nn::heads<Heads, KeyHeads, 4, column>>{};
    const auto a = nn::attention<ts::causal>{}(q, k, v);
    const auto y = x + (a | nn::named<struct mixed, nn::linear<Width, row, ts::output_as<stream>>>{});
    const auto normed = y | nn::named<struct before_gate, nn::layer_norm<>>{};
    const auto [gate, up] = normed | nn::named<struct gated, nn::gated<2 * Width, column>>{};
    return y + (silu(gate) * up | nn::named<struct down, nn::linear<Width, row, ts::output_as<stream>>>{});
  }
};

using sequences = ts::tensor<stream, ts::shape<batch, ts::dim<7>, ts::dim<12>>, double>;
using net_type = nn::network<block<12, 6, 3>, sequences>;  // three groups of two heads over two workers: 2 1
// two sums over `model`, both ways
static_assert(ts::traffic<net_type>(ts::bind<batch>(4)).forward.bytes == 2 * (4 * 7 * 12 * 8) * 2);
// [end]

int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [](ts::team<grid>& team) {
    serial_block serial;
    const double far = apart_in_five_steps<net_type>(
        team, serial, torch::optim::SGDOptions(0.05).momentum(0.9),
        [](int step) { return at::sin(at::arange(3 * 7 * 12, at::kDouble) * (1 + step)).view({3, 7, 12}); });
    if (!(far <= 1e-12))
      throw std::runtime_error(fmt::format("a transformer block differs from one process by {}", far));
    if (team.first())
      fmt::print(
          "a transformer block agrees with one process over five steps\nlargest difference from serial: {:.2e}\n", far);
  });
}
