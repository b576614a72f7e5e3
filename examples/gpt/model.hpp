#pragma once

#include <tessera/tessera.hpp>

namespace gpt {

namespace ts = tessera;

struct data : ts::axis<2> {};   // cuts samples
struct model : ts::axis<2> {};  // cuts heads, features and classes
using grid = ts::mesh<data, model>;

constexpr ts::index_t rows = 16, length = 64, width = 64, heads = 4, key_heads = 2, features = 16, hidden = 128,
                      bytes = 256;

using stream = ts::partition<grid, ts::blocks<data>, ts::whole, ts::whole, ts::invariant<model>>;
using tokens = ts::tensor<ts::partition<grid, ts::blocks<data>, ts::whole, ts::invariant<model>>,
                          ts::shape_of<rows, length>, std::int64_t>;
using places = ts::tensor<ts::partition<grid, ts::whole, ts::invariant<model>>, ts::shape_of<length>, std::int64_t>;
using column = ts::cut_out<model>;
using row = ts::cut_in<model>;

/// Rows with root mean square 1.
struct normalised {
  constexpr auto operator()(auto x) const { return x * rsqrt(ts::mean<2>(square(x), ts::keep_dims) + 1e-5); }
};

/// Attention over heads, then a gated feed-forward, each on what is normalised and added to what came.
struct block {
  constexpr auto operator()(auto x) const {
    const auto [q, k, v] = normalised{}(x) | ts::nn::heads<heads, key_heads, features, column, ts::no_bias>{};
    const auto y = x + (ts::nn::attention<ts::causal>{}(q, k, v) | ts::nn::linear<width, row, ts::output_as<stream>>{});
    const auto [gate, up] = normalised{}(y) | ts::nn::gated<hidden, column>{};
    return y + (silu(gate) * up | ts::nn::linear<width, row, ts::output_as<stream>>{});
  }
};

struct table;
struct order;

/// The scores of the next byte at every place, and the byte itself, both flattened over samples and places. Input and
/// output share one table of weights.
struct transformer {
  constexpr auto operator()(auto inputs, auto where, auto labels) const {
    const auto begin =
        (inputs | ts::nn::shared<table, ts::nn::embedding<bytes, width, row, ts::weights_as<double>>>{}) +
        (where | ts::nn::named<order, ts::nn::embedding<length, width, ts::weights_as<double>>>{});
    const auto end = normalised{}(begin | block{} | block{});
    const auto scores = end | ts::nn::shared<table, ts::nn::linear<bytes, column, ts::no_bias>>{};
    return ts::flows{ts::flatten<0, 1>(scores), ts::flatten<0, 1>(labels)};
  }
};
using network = ts::nn::network<transformer, tokens, places, tokens>;

}  // namespace gpt
