#pragma once

#include <tessera/tessera.hpp>

namespace gpt {

namespace ts = tessera;

template <int Workers>
struct data : ts::axis<Workers> {};  // cuts samples
template <int Workers>
struct sequence : ts::axis<Workers> {};  // cuts places, in a zigzag, so that causal work is even
template <int Workers>
struct model : ts::axis<Workers> {};  // cuts heads, features and classes

constexpr ts::index_t rows = 16, length = 64, width = 64, heads = 4, key_heads = 2, features = 16, hidden = 128,
                      bytes = 256;

/// Rows with root mean square 1.
struct normalised {
  constexpr auto operator()(auto x) const { return x * rsqrt(ts::mean<2>(square(x), ts::keep_dims) + 1e-5); }
};

struct table;
struct order;

/// The transformer over so many workers of each axis.
template <int Data, int Sequence, int Model>
struct over {
  using grid = ts::mesh<data<Data>, sequence<Sequence>, model<Model>>;
  using places_of = ts::zigzag<sequence<Sequence>>;
  using same = ts::invariant<model<Model>>;
  using stream = ts::partition<grid, ts::blocks<data<Data>>, places_of, ts::whole, same>;
  using tokens = ts::tensor<ts::partition<grid, ts::blocks<data<Data>>, places_of, same>, ts::shape_of<rows, length>,
                            std::int64_t>;
  using places = ts::tensor<ts::partition<grid, places_of, same>, ts::shape_of<length>, std::int64_t>;
  using column = ts::cut_out<model<Model>>;
  using row = ts::cut_in<model<Model>>;

  /// Attention, whose keys and values come part by part, then a gated feed-forward, each on what is normalised and
  /// added to what came.
  struct block {
    constexpr auto operator()(auto x) const {
      const auto [q, k, v] = normalised{}(x) | ts::nn::heads<heads, key_heads, features, column, ts::no_bias>{};
      const auto y = x + (ts::nn::attention<ts::causal, ts::streamed<>>{}(q, k, v) |
                          ts::nn::linear<width, row, ts::output_as<stream>>{});
      const auto [gate, up] = normalised{}(y) | ts::nn::gated<hidden, column>{};
      return y + (silu(gate) * up | ts::nn::linear<width, row, ts::output_as<stream>>{});
    }
  };

  /// The scores of the next byte at every place, [sample, byte, place]. Input and output share one table of weights.
  struct transformer {
    constexpr auto operator()(auto inputs, auto where) const {
      const auto begin =
          (inputs | ts::nn::shared<table, ts::nn::embedding<bytes, width, row, ts::weights_as<double>>>{}) +
          (where | ts::nn::named<order, ts::nn::embedding<length, width, ts::weights_as<double>>>{});
      const auto end = normalised{}(begin | block{} | block{});
      return ts::permute<0, 2, 1>(end | ts::nn::shared<table, ts::nn::linear<bytes, column, ts::no_bias>>{});
    }
  };
  using network = ts::nn::network<transformer, tokens, places>;
};

}  // namespace gpt
