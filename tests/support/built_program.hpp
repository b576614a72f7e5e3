#pragma once
// One network three times: as a module of types, put together of values, and as a file says it.

#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>

namespace tessera::testing {

using namespace engine;

struct frames : dyn {};

template <int R, int C>
struct built {
  struct up : axis<R> {};
  struct across : axis<C> {};
  using grid = mesh<up, across>;
  using image =
      tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>, shape<frames, dim<2>, dim<7>, dim<6>>, double>;
  using features = tensor<partition<grid, whole, blocks<up, across>>, shape<frames, dim<5>>, double>;
  using channels = partition<grid, whole, blocks<up, across>, whole, whole>;
  template <index_t Out>
  using three = nn::conv<Out, kernel<3, 3>, padding<1, 1>>;

  struct block {
    constexpr auto operator()(auto x) const {
      const auto y = x | three<3>{} | nn::relu{} | nn::conv<2, kernel<3, 3>, padding_at<2, 0, 0, 2>>{};
      return relu((x | nn::named<struct skip, nn::conv<2, kernel<1, 2>, padding_same, no_bias>>{}) + y);
    }
  };
  struct model {
    constexpr auto operator()(auto x, auto extra) const {
      const auto first = x | block{} | grown{} |
                         nn::conv_transpose<2, kernel<2, 2>, output_size<27, 22>, padding<1>, stride<2>, no_bias>{};
      const auto flat = first | nn::upsample<factor<3, 5>, divisor<2>, mode<interpolation::linear>, align_corners>{} |
                        nn::max_pool<kernel<2, 2>>{} |
                        nn::avg_pool<kernel<2, 2>, stride<1, 1>, padding_at<1, 0, 0, 1>>{} |
                        nn::repartition<channels>{} | nn::flatten{};
      const auto hidden =
          ((flat | nn::linear<5>{}) * 0.5 + tanh(extra)) | nn::shared<struct tied, nn::linear<5>>{} | nn::relu{};
      return flows{hidden | nn::shared<struct tied, nn::linear<5>>{}, first};
    }
  };
  using net = nn::network<model, image, features>;
  using grown = nn::conv_transpose<3, kernel<3, 2>, stride<2>, padding<1, 0>, output_padding<1, 0>, weights_as<double>>;

  // The same by hand, of values.
  static void write(nn::program& p) {
    const auto x = p.input<image>();
    const auto extra = p.input<features>();
    const auto block = [](const auto& in) {
      const auto y = in | nn::conv_layer{.out = 3, .kernel = {3, 3}, .padding = {1}} | nn::relu{} |
                     nn::conv_layer{.out = 2, .kernel = {3, 3}, .padding = {2, 0, 0, 2}};
      return relu(
          (in | nn::under("skip", nn::conv_layer{.out = 2, .kernel = {1, 2}, .bias = false, .padding_same = true})) +
          y);
    };
    const nn::conv_transpose_layer grown{.out = 3,
                                         .kernel = {3, 2},
                                         .stride = {2},
                                         .padding = {1, 0},
                                         .output_padding = {1, 0},
                                         .weights_as = element::float64};
    const auto first =
        x | block | grown |
        nn::conv_transpose_layer{
            .out = 2, .kernel = {2, 2}, .stride = {2}, .padding = {1}, .output_size = {27, 22}, .bias = false};
    const layout by_channel = value_of<tensor<channels, shape_of<1, 2, 1, 1>>>.layout;
    const auto flat = first |
                      nn::upsample_layer{.factors = {1.5, 2.5}, .mode = interpolation::linear, .align_corners = true} |
                      nn::max_pool_layer{.kernel = {2, 2}} |
                      nn::avg_pool_layer{.kernel = {2, 2}, .stride = {1}, .padding = {1, 0, 0, 1}} |
                      nn::repartition_layer{by_channel} | nn::flatten{};
    const auto tied = nn::shared_under("tied", nn::linear_layer{.out = 5});
    const auto hidden = ((flat | nn::linear_layer{.out = 5}) * 0.5 + tanh(extra)) | tied | nn::relu{};
    p.output(flows{hidden | tied, first});
  }
};

/// The same as a file says it, its nodes in any order.
inline constexpr const char* as_file = R"({
  "inputs": [
    {"name": "image", "shape": ["frames", 2, 7, 6], "element": "double",
     "dims": [{"whole": true}, {"whole": true}, {"blocks": ["up"]}, {"blocks": ["across"]}]},
    {"name": "extra", "shape": ["frames", 5], "element": "double", "dims": [{"whole": true}, {"blocks": ["up",
     "across"]}]}
  ],
  "nodes": [
    {"name": "scores", "of": "shown", "layer": "linear", "out_features": 5, "shared": "tied"},
    {"name": "a", "of": "image", "layer": "conv", "out_channels": 3, "kernel_size": [3, 3], "padding": 1,
     "path": "0.0"},
    {"name": "b", "of": "a", "layer": "relu"},
    {"name": "c", "of": "b", "layer": "conv", "out_channels": 2, "kernel_size": [3, 3], "padding": [2, 0, 0, 2],
     "path": "0.2"},
    {"name": "skip", "of": "image", "layer": "conv", "out_channels": 2, "kernel_size": [1, 2], "padding": "same",
     "bias": false, "path": "0.skip"},
    {"name": "sum", "of": ["skip", "c"], "function": "add"},
    {"name": "bent_sum", "of": "sum", "function": "relu"},
    {"name": "larger", "of": "first", "layer": "upsample", "scale_factor": [1.5, 2.5], "mode": "bilinear",
     "align_corners": true},
    {"name": "d", "of": "larger", "layer": "max_pool", "kernel_size": [2, 2]},
    {"name": "e", "of": "d", "layer": "avg_pool", "kernel_size": [2, 2], "stride": 1, "padding": [1, 0, 0, 1]},
    {"name": "f", "of": "e", "layer": "repartition", "to": {"dims": [{"whole": true}, {"blocks": ["up", "across"]},
     {"whole": true}, {"whole": true}]}},
    {"name": "flat", "of": "f", "layer": "flatten"},
    {"name": "g", "of": "flat", "layer": "linear", "out_features": 5, "path": "7"},
    {"name": "half", "of": "g", "function": "times", "number": 0.5},
    {"name": "bent", "of": "extra", "function": "tanh"},
    {"name": "h", "of": ["half", "bent"], "function": "add"},
    {"name": "hidden", "of": "h", "layer": "linear", "out_features": 5, "shared": "tied"},
    {"name": "shown", "of": "hidden", "layer": "relu"},
    {"name": "grown", "of": "bent_sum", "layer": "conv_transpose", "out_channels": 3, "kernel_size": [3, 2],
     "stride": 2, "padding": [1, 0], "output_padding": [1, 0],
     "weights_as": "double", "path": "1"},
    {"name": "first", "of": "grown", "layer": "conv_transpose", "out_channels": 2, "kernel_size": [2, 2], "stride": 2,
     "padding": 1, "output_size": [27, 22],
     "bias": false, "path": "2"}
  ],
  "outputs": ["scores", "first"]
})";

/// What is thrown where a program is put together wrongly.
template <class F>
std::string said_of(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace tessera::testing
