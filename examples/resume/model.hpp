#pragma once

#include <tessera/tessera.hpp>

namespace resume {

namespace ts = tessera;
namespace nn = tessera::nn;

constexpr ts::index_t rows = 8, length = 64, width = 64, heads = 4, features = 16, hidden = 160, bytes = 256;

/// Layers compute in bfloat16; weights, their gradients' sums and what is added up along the blocks are floats.
struct mixed {
  using computed = ts::bfloat16;
  using stored = float;
};
/// Everything is double, so meshes differ by the order of sums alone.
struct exact {
  using computed = double;
  using stored = double;
};

struct table;  // the weights of the bytes, for input and output
struct order;  // those of the places

/// A transformer whose samples are cut over Data workers and whose heads, features and classes over Model, evenly or
/// not. Its gradients wait for the last pass of a step and are summed into tiles over `data`, where the optimizer steps
/// them: ZeRO-1.
template <int Data, int Model, class Numbers>
struct cut_over {
  struct data : ts::axis<Data> {};
  struct model : ts::axis<Model> {};
  using grid = ts::mesh<data, model>;
  using numbers = Numbers;

  using by_sample = ts::partition<grid, ts::blocks<data>, ts::whole, ts::whole, ts::invariant<model>>;
  using tokens = ts::tensor<ts::partition<grid, ts::blocks<data>, ts::whole, ts::invariant<model>>,
                            ts::shape_of<rows, length>, std::int64_t>;
  using places = ts::tensor<ts::partition<grid, ts::whole, ts::invariant<model>>, ts::shape_of<length>, std::int64_t>;

  using column = ts::cut_out<model>;
  using row = ts::cut_in<model>;
  using master = ts::weights_as<typename Numbers::stored>;
  using narrow = nn::cast<typename Numbers::computed>;
  using wide = nn::cast<typename Numbers::stored>;

  /// Attention, then a gated feed-forward, each computed in narrow numbers of what is normalised, and added in wide
  /// ones.
  struct block {
    constexpr auto operator()(auto x) const {
      const auto [q, k, v] =
          x | nn::rms_norm<>{} | narrow{} | nn::heads<heads, heads, features, column, ts::no_bias, master>{};
      const auto y = x + (nn::attention<ts::causal>{}(q, k, v) |
                          nn::linear<width, row, ts::output_as<by_sample>, master>{} | wide{});
      const auto [gate, up] = y | nn::rms_norm<>{} | narrow{} | nn::gated<hidden, column, master>{};
      return y + (silu(gate) * up | nn::linear<width, row, ts::output_as<by_sample>, master>{} | wide{});
    }
  };

  /// The scores of the next byte at every place, and the byte itself, both flattened over samples and places.
  struct transformer {
    constexpr auto operator()(auto inputs, auto where, auto labels) const {
      const auto begin = (inputs | nn::shared<table, nn::embedding<bytes, width, row, master>>{}) +
                         (where | nn::named<order, nn::embedding<length, width, master>>{});
      const auto end = begin | block{} | block{} | nn::rms_norm<>{} | narrow{};
      const auto scores = end | nn::shared<table, nn::linear<bytes, column, ts::no_bias, master>>{} | wide{};
      return ts::flows{ts::flatten<0, 1>(scores), ts::flatten<0, 1>(labels)};
    }
  };
  using network = nn::network<nn::bundled<transformer, data>, tokens, places, tokens>;
};

}  // namespace resume
