// What weights of two stages move: counted by the compiler, and measured in a pipeline.

#include "tests/support/stage_layouts.hpp"

#include <tessera/inspect/network_rows.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>

namespace tied_traffic {

using namespace tessera;
using namespace tessera::testing;
using pipeline::order;
using pipeline::schedule;

struct rows : dyn {};

template <int P>
struct data : axis<P> {};
template <int P>
struct model : axis<P> {};
template <int P>
struct stage : axis<P> {};

/// A mesh of D data, M model and S stage coordinates, and a table that the first stage has, and the last one twice. A
/// stage between them does not take it.
template <int D, int M, int S, class Table = nn::embedding<7, 6, weights_as<double>>,
          class Scores = nn::linear<7, no_bias>>
struct over {
  static constexpr int last = S - 1;
  using grid = mesh<data<D>, model<M>, stage<S>>;
  template <int At>
  using words_on = tensor<partition<grid, blocks<data<D>>, on<stage<S>, At>>, shape<rows>, std::int64_t>;
  template <int At>
  using rows_on = partition<grid, blocks<data<D>>, whole, on<stage<S>, At>>;
  template <class Layer>
  using tied = nn::shared<struct table, Layer>;

  struct module {
    constexpr auto operator()(auto words, auto wanted) const {
      const auto wide = tanh(nn::linear<8, cut_out<model<M>>>{}(words | tied<Table>{}));
      const auto h = between(nn::linear<6, cut_in<model<M>>, output_as<rows_on<0>>>{}(wide));
      const auto there = to<rows_on<last>>(h);
      return nn::cross_entropy((there | tied<Scores>{}) + (tanh(there) | tied<Scores>{}), wanted);
    }
    static constexpr auto between(auto x) {
      if constexpr (S == 2) return x;
      else return tanh(nn::linear<6>{}(to<rows_on<1>>(x)));
    }
  };
  using net = nn::network<module, words_on<0>, words_on<last>>;
};

struct moved {
  index_t bytes = 0, messages = 0;
  friend bool operator==(const moved&, const moved&) = default;
  void add(const engine::direction& d, index_t times = 1) {
    bytes += d.bytes * times;
    messages += d.messages * times;
  }
};

/// What a batch moves in so many micro-batches of equal rows: measured on all workers, and counted.
template <class O>
std::string differs(index_t batch, int micro_batches) {
  constexpr int last = O::last;
  const auto out = in_team<typename O::grid>([&](const team<typename O::grid>& t) {
    typename O::net net{t, seed{3}};
    net.compare_indices(false);
    nn::pipeline_parallel pipeline(net, last_axis(O::grid::value),
                                   schedule{order::one_f_one_b, {last + 1, micro_batches}});
    const at::Tensor words = at::arange(batch, at::kLong).remainder(7);
    const auto x = distribute<typename O::template words_on<0>>(t, words);
    const auto y = distribute<typename O::template words_on<last>>(t, words);
    const std::vector<tensor<dyn>> given{x.dynamic(), y.dynamic()};
    pipeline.forward_backward(given);  // workers agree on what they bind
    for (const at::Tensor& w : net.parameters()) w.mutable_grad().reset();
    const tessera::engine::received before = t.state()->total;
    pipeline.forward_backward(given);
    const tessera::engine::received behind = t.state()->total;
    return moved{behind.bytes - before.bytes, behind.messages - before.messages};
  });
  if (!out.well()) return out.errors();
  moved measured, counted;
  for (const auto& one : out.results) measured.bytes += one->bytes, measured.messages += one->messages;
  const auto one = traffic<typename O::net>(bind<rows>(batch / micro_batches));
  counted.add(one.forward, micro_batches);
  counted.add(one.backward, micro_batches);
  counted.add(one.gathered);
  counted.add(one.reduced);
  if (measured == counted) return "";
  return fmt::format("{} bytes in {} messages, and not {} in {}", measured.bytes, measured.messages, counted.bytes,
                     counted.messages);
}

TEST_CASE("weights of two stages move what is counted, once a batch", "[law][runtime]") {
  CHECK(differs<over<1, 1, 2>>(8, 4) == "");
  CHECK(differs<over<1, 1, 3>>(8, 2) == "");
  CHECK(differs<over<2, 1, 2>>(24, 3) == "");
  CHECK(differs<over<3, 1, 2>>(24, 4) == "");
  CHECK(differs<over<1, 2, 2>>(8, 2) == "");
  CHECK(differs<over<2, 2, 2>>(12, 3) == "");
  using words = nn::embedding<7, 6, weights_as<double>>;
  using scores = nn::linear<7, no_bias>;
  CHECK(differs<over<2, 1, 3, nn::bundled<words>, nn::bundled<scores>>>(16, 2) == "");
  using words_in_parts = nn::embedding<7, 6, weights_as<double>, cut_in<model<2>>>;
  using scores_in_parts = nn::linear<7, no_bias, cut_out<model<2>>>;
  CHECK(differs<over<2, 2, 2, words_in_parts, scores_in_parts>>(12, 3) == "");
}

TEST_CASE("what tied weights move is that of the table from stage to stage, whatever the batch", "[plan]") {
  using two = over<1, 1, 2>;
  constexpr auto t = traffic<two::net>(bind<rows>(8));
  STATIC_REQUIRE(t == traffic<two::net, bind<rows>(8)>());
  STATIC_REQUIRE(t.gathered.bytes == 7 * 6 * 8);  // once, though the last stage takes it twice
  STATIC_REQUIRE(t.reduced.bytes == 7 * 6 * 8);
  STATIC_REQUIRE(t.forward.bytes == 8 * 6 * 8);
  STATIC_REQUIRE(traffic<two::net>(bind<rows>(80)).gathered == t.gathered);
  // two workers of the last stage get it each, and a gradient of both goes back to two
  constexpr auto wide = traffic<over<2, 1, 2>::net>(bind<rows>(8));
  STATIC_REQUIRE(wide.gathered.bytes == 2 * 7 * 6 * 8);
  // rows of a network as it is drawn add up to the same
  const tessera::engine::network_rows<over<2, 1, 3>::net> drawn(bind<rows>(8));
  tessera::engine::traffic_value all;
  for (const auto& row : drawn.rows) all += row.traffic;
  CHECK(all == drawn.traffic);
}

}  // namespace tied_traffic
