// Trains a vision transformer on handwritten digits, over workers that divide samples, patches and heads, and the same
// transformer serially beside it.
#include "digits/steps.hpp"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

namespace {

namespace ts = tessera;
namespace nn = tessera::nn;

struct batch : ts::dyn {};
constexpr ts::index_t width = 32, heads = 4, features = 8, hidden = 64, patches = 16, classes = 10;

/// The transformer over so many workers of each axis.
template <int Data, int Sequence, int Model>
struct over {
  struct data : ts::axis<Data> {};          // cuts samples
  struct sequence : ts::axis<Sequence> {};  // cuts rows of patches
  struct model : ts::axis<Model> {};        // cuts heads and hidden features
  using grid = ts::mesh<data, sequence, model>;
  // [vit]
  using same = ts::invariant<model>;
  using images = ts::tensor<ts::partition<grid, ts::blocks<data>, ts::whole, ts::blocks<sequence>, ts::whole, same>,
                            ts::shape<batch, ts::dim<1>, ts::dim<8>, ts::dim<8>>, double>;
  using labels =
      ts::tensor<ts::partition<grid, ts::blocks<data>, ts::invariant<sequence, model>>, ts::shape<batch>, std::int64_t>;
  using by_row = ts::grains<4, sequence>;
  using stream = ts::partition<grid, ts::blocks<data>, by_row, ts::whole, same>;
  using pooled = ts::partition<grid, ts::blocks<data>, ts::whole, ts::invariant<sequence, model>>;
  using column = ts::cut_out<model>;
  using row = ts::cut_in<model>;

  struct small {
    static constexpr auto initial = ts::init::normal(0, 0.02);
  };
  using places = nn::weight<
      ts::tensor<ts::partition<grid, ts::whole, by_row, ts::whole, same>, ts::shape_of<1, patches, width>, double>,
      small>;

  /// Attention and two linear layers, each on what is normalised and added to what came.
  struct block {
    constexpr auto operator()(auto x) const {
      const auto [q, k, v] = x | nn::named<struct norm1, nn::layer_norm<>>{} |
                             nn::named<struct qkv, nn::heads<heads, heads, features, column>>{};
      const auto y = x + (nn::attention<ts::streamed<>>{}(q, k, v) |
                          nn::named<struct mixed, nn::linear<width, row, ts::output_as<stream>>>{});
      const auto wide =
          y | nn::named<struct norm2, nn::layer_norm<>>{} | nn::named<struct up, nn::linear<hidden, column>>{};
      return y + (gelu(wide) | nn::named<struct down, nn::linear<width, row, ts::output_as<stream>>>{});
    }
  };

  /// Scores of the mean of all patches.
  struct transformer {
    constexpr auto operator()(auto x) const {
      const auto cells = x | nn::named<struct patch, nn::conv<width, ts::kernel<2, 2>, ts::stride<2, 2>>>{};
      const auto begin = ts::permute<0, 2, 1>(ts::flatten<2, 3>(cells)) + (x | nn::named<struct place, places>{});
      const auto end = begin | nn::named<struct block1, block>{} | nn::named<struct block2, block>{};
      const auto mean = ts::mean<1>(end | nn::named<struct norm, nn::layer_norm<>>{});
      return ts::to<pooled>(mean) | nn::named<struct head, nn::linear<classes>>{};
    }
  };
  using network = nn::network<transformer, images>;
  // [end]
};

struct serial_block : torch::nn::Module {
  torch::nn::LayerNorm norm1 = register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  torch::nn::Linear qkv = register_module("qkv", torch::nn::Linear(width, 3 * heads * features));
  torch::nn::Linear mixed = register_module("mixed", torch::nn::Linear(heads* features, width));
  torch::nn::LayerNorm norm2 = register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  torch::nn::Linear up = register_module("up", torch::nn::Linear(width, hidden));
  torch::nn::Linear down = register_module("down", torch::nn::Linear(hidden, width));

  at::Tensor forward(const at::Tensor& x) {
    const auto by_head = [](const at::Tensor& t) { return t.unflatten(-1, {heads, features}).transpose(1, 2); };
    const auto parts = qkv(norm1(x)).chunk(3, -1);
    const at::Tensor a = at::scaled_dot_product_attention(by_head(parts[0]), by_head(parts[1]), by_head(parts[2]));
    const at::Tensor y = x + mixed(a.transpose(1, 2).flatten(-2));
    return y + down(at::gelu(up(norm2(y))));
  }
};
struct serial_transformer : torch::nn::Module {
  torch::nn::Conv2d patch =
      register_module("patch", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, width, 2).stride(2)));
  at::Tensor place = register_parameter("place", at::zeros({1, patches, width}));
  std::shared_ptr<serial_block> block1 = register_module("block1", std::make_shared<serial_block>());
  std::shared_ptr<serial_block> block2 = register_module("block2", std::make_shared<serial_block>());
  torch::nn::LayerNorm norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(width, classes));

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor begin = patch(x).flatten(2).transpose(1, 2) + place;
    return head(norm(block2->forward(block1->forward(begin))).mean(1));
  }
};

template <int Data, int Sequence, int Model>
constexpr auto run = digits::by_steps::run<typename over<Data, Sequence, Model>::network,
                                           typename over<Data, Sequence, Model>::labels, serial_transformer>;

}  // namespace

int main(int argc, char** argv) {
  return digits::by_steps::main_of(
      argc, argv,
      "Trains a vision transformer on 1,797 handwritten digits, over workers that divide samples, patches and heads.",
      {.name = "vit",
       .title = "A vision transformer on digits, samples, patches and heads cut",
       .axes = "data x sequence x model",
       .mesh = "1x2x2",
       .learning_rate = 3e-3,
       .adam = true,
       .epochs = 24},
      {{"1x2x2", run<1, 2, 2>}, {"2x1x2", run<2, 1, 2>}, {"2x2x1", run<2, 2, 1>}, {"2x2x2", run<2, 2, 2>}});
}
