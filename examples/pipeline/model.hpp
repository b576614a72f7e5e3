#pragma once

#include <tessera/tessera.hpp>

namespace staged {

namespace ts = tessera;
namespace nn = tessera::nn;

constexpr ts::index_t rows = 16, length = 48, width = 64, heads = 4, features = 16, hidden = 128, bytes = 256;
constexpr int blocks = 4, experts = 4;

struct table;   // the weights of the bytes
struct order;   // those of the places
struct ends;    // those that score the next byte
struct router;  // those that score experts

/// A transformer whose blocks lie on so many stages, one behind the other. Its samples are cut over Data workers, its
/// heads, features and classes over Model. With a mixture each place goes through two of four experts, which lie over
/// the workers that share samples.
template <int Data, int Stages, int Model, bool Mixed>
struct over {
  struct data : ts::axis<Data> {};
  struct stage : ts::axis<Stages> {};
  struct model : ts::axis<Model> {};
  using grid = ts::mesh<data, stage, model>;
  static constexpr int stages = Stages;
  static constexpr int stage_of(int block) { return block * Stages / blocks; }

  template <int Stage>
  using stream =
      ts::partition<grid, ts::blocks<data>, ts::whole, ts::whole, ts::on<stage, Stage>, ts::invariant<model>>;
  template <int Stage>
  using text_on =
      ts::tensor<ts::partition<grid, ts::blocks<data>, ts::whole, ts::on<stage, Stage>, ts::invariant<model>>,
                 ts::shape_of<rows, length>, std::int64_t>;
  using tokens = text_on<0>;
  using labels = text_on<Stages - 1>;
  using places = ts::tensor<ts::partition<grid, ts::whole, ts::on<stage, 0>, ts::invariant<model>>,
                            ts::shape_of<length>, std::int64_t>;
  using everywhere = ts::partition<grid, ts::invariant<data>, ts::invariant<stage>, ts::invariant<model>>;

  using column = ts::cut_out<model>;
  using row = ts::cut_in<model>;

  /// The experts that each place chooses, and their sum by gates.
  template <int Stage>
  struct mixture {
    using slots = ts::partition<grid, ts::blocks<data>, ts::whole, ts::whole, ts::whole, ts::on<stage, Stage>,
                                ts::invariant<model>>;
    constexpr auto operator()(auto x) const {
      const auto scores = x | nn::named<router, nn::linear<experts, ts::no_bias>>{};
      const auto [to_experts, gates, numbers, chosen] =
          nn::route<experts, ts::choices<2>, ts::normalised_gates, ts::over_experts<data>>{}(x, scores);
      const auto [gate, up] = to_experts | nn::gated_experts<experts, hidden, column>{};
      const auto served = silu(gate) * up | nn::experts<experts, width, row, ts::output_as<slots>>{};
      return nn::combine{}(served, gates, numbers, chosen);
    }
  };
  template <int Stage>
  struct feed_forward {
    constexpr auto operator()(auto x) const {
      const auto [gate, up] = x | nn::gated<hidden, column>{};
      return silu(gate) * up | nn::linear<width, row, ts::output_as<stream<Stage>>>{};
    }
  };

  /// Attention, then a feed-forward or a mixture of them, each of what is normalised, and added to what came.
  template <int Stage>
  struct block {
    using feeding = std::conditional_t<Mixed, mixture<Stage>, feed_forward<Stage>>;
    constexpr auto operator()(auto x) const {
      const auto [q, k, v] = x | nn::rms_norm<>{} | nn::heads<heads, heads, features, column, ts::no_bias>{};
      const auto y =
          x + (nn::attention<ts::causal>{}(q, k, v) | nn::linear<width, row, ts::output_as<stream<Stage>>>{});
      return y + (y | nn::rms_norm<>{} | feeding{});
    }
  };

  /// Blocks from the I-th on. One that lies on another stage than the one before has what it needs sent there.
  template <int I>
  static constexpr auto behind(auto x) {
    if constexpr (I == blocks) {
      return x;
    } else if constexpr (constexpr int here = stage_of(I); I > 0 && here != stage_of(I - 1)) {
      return behind<I + 1>(ts::to<stream<here>>(x) | block<here>{});
    } else {
      return behind<I + 1>(x | block<here>{});
    }
  }

  /// The mean loss of the next byte at every place: on the last stage, and for all workers.
  struct transformer {
    constexpr auto operator()(auto inputs, auto where, auto next) const {
      const auto begin = (inputs | nn::named<table, nn::embedding<bytes, width, row, ts::weights_as<double>>>{}) +
                         (where | nn::named<order, nn::embedding<length, width, ts::weights_as<double>>>{});
      const auto end = behind<0>(begin) | nn::rms_norm<>{};
      const auto scores = end | nn::named<ends, nn::linear<bytes, column, ts::no_bias>>{};
      const auto loss = nn::cross_entropy(ts::flatten<0, 1>(scores), ts::flatten<0, 1>(next));
      return ts::flows{loss, ts::to<everywhere>(loss)};
    }
  };
  using network = nn::network<nn::bundled<transformer, data>, tokens, places, labels>;
};

}  // namespace staged
