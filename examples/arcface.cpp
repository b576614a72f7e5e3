// Trains a classifier of handwritten digits by an angular margin (ArcFace), over workers that divide samples and
// classes, and the same classifier serially beside it.
#include "digits/steps.hpp"

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <numbers>

namespace {

namespace ts = tessera;
namespace nn = tessera::nn;

struct batch : ts::dyn {};
constexpr ts::index_t classes = 10, width = 32;
constexpr nn::angular_margin_options arc{.margin = 0.5, .scale = 64};

/// The classifier over so many workers of each axis.
template <int Data, int Model>
struct over {
  struct data : ts::axis<Data> {};    // cuts samples
  struct model : ts::axis<Model> {};  // cuts classes
  using grid = ts::mesh<data, model>;
  // [classifier]
  using images =
      ts::tensor<ts::partition<grid, ts::blocks<data>, ts::whole, ts::whole, ts::whole, ts::invariant<model>>,
                 ts::shape<batch, ts::dim<1>, ts::dim<8>, ts::dim<8>>, double>;
  using labels =
      ts::tensor<ts::partition<grid, ts::blocks<data>, ts::invariant<model>>, ts::shape<batch>, std::int64_t>;
  using met = ts::partition<grid, ts::blocks<data>, ts::whole, ts::replicate<model>>;
  using centres = ts::tensor<ts::partition<grid, ts::blocks<model>, ts::whole, ts::replicate<data>>,
                             ts::shape_of<classes, width>, double>;

  /// The cosines of an image's features and the centre of each class.
  struct classifier {
    constexpr auto operator()(auto x) const {
      const auto lines = relu(x | nn::named<struct first, nn::conv<8, ts::kernel<3, 3>, ts::padding<1, 1>>>{});
      const auto shapes = relu(lines | nn::max_pool<ts::kernel<2, 2>>{} |
                               nn::named<struct second, nn::conv<16, ts::kernel<3, 3>, ts::padding<1, 1>>>{});
      return shapes | nn::max_pool<ts::kernel<2, 2>>{} | nn::flatten{} |
             nn::named<struct features, nn::linear<width>>{} |
             nn::named<struct head, nn::cosine_linear<centres, met>>{};
    }
  };
  using network = nn::network<classifier, images>;
  // [end]
};

/// The loss, with a margin of the label's angle; images are read without one.
struct with_margin {
  static auto ours(const auto& cosines, const auto& labels) {
    return nn::cross_entropy(nn::angular_margin(cosines, labels, arc), labels);
  }
  static at::Tensor theirs(const at::Tensor& cosines, const at::Tensor& labels) {
    const at::Tensor angle = at::acos(cosines) + arc.margin;
    const at::Tensor wider =
        at::where(angle < std::numbers::pi, at::cos(angle), cosines - arc.margin * std::sin(arc.margin));
    return at::cross_entropy_loss(arc.scale * at::where(at::one_hot(labels, classes) == 1, wider, cosines), labels);
  }
};

struct serial_classifier : torch::nn::Module {
  torch::nn::Conv2d first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).padding(1)));
  torch::nn::Conv2d second =
      register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 16, 3).padding(1)));
  torch::nn::Linear features = register_module("features", torch::nn::Linear(64, width));
  torch::nn::Linear head =
      register_module("head", torch::nn::Linear(torch::nn::LinearOptions(width, classes).bias(false)));

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor shapes = at::relu(second(at::max_pool2d(at::relu(first(x)), 2)));
    const at::Tensor z = features(at::max_pool2d(shapes, 2).flatten(1));
    const auto rows_of_one = [](const at::Tensor& t) { return t / t.norm(2, 1, true).clamp_min(1e-12); };
    return rows_of_one(z).mm(rows_of_one(head->weight).t());
  }
};

template <int Data, int Model>
constexpr auto run = digits::by_steps::run<typename over<Data, Model>::network, typename over<Data, Model>::labels,
                                           serial_classifier, with_margin>;

}  // namespace

int main(int argc, char** argv) {
  return digits::by_steps::main_of(
      argc, argv,
      "Trains a classifier of 1,797 handwritten digits by an angular margin, over workers that divide samples and "
      "classes.",
      {.name = "arcface",
       .title = "Digits by cosines with an angular margin, classes cut",
       .axes = "data x model",
       .mesh = "2x2",
       .learning_rate = 3e-3,
       .adam = true,
       .epochs = 10},
      {{"2x2", run<2, 2>}, {"1x4", run<1, 4>}});
}
