// The arithmetic of layers and networks beside closed formulas, and counts of every pair and every term.

#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"

#include <tessera/functions.hpp>
#include <tessera/network.hpp>

#include <algorithm>
#include <vector>

namespace multiply_add_counts {

using namespace tessera;
using namespace tessera::engine;

struct data : axis<2> {};
struct model : axis<3> {};
using grid = mesh<data, model>;
struct rows : dyn {};

constexpr index_t parts_most(index_t n, index_t p) { return (n + p - 1) / p; }
/// Where part k of n elements begins over p workers.
constexpr index_t begins(index_t n, index_t p, index_t k) { return (k * n + p - 1) / p; }

template <class In, class... Layers>
constexpr arithmetic_value of(index_t n) {
  return multiply_adds<sequential_type<In, Layers...>>(bind<rows>(n));
}

template <class... Covers>
using matrix = tensor<partition<grid, Covers...>, shape<rows, dim<7>>, float>;

TEST_CASE("a linear layer makes rows · in · out multiply-adds, on the largest worker its share of them", "[law]") {
  // rows over two workers, the work of each three times
  using by_rows = matrix<blocks<data>, whole>;
  constexpr arithmetic_value a = of<by_rows, nn::linear<10>>(5);
  STATIC_REQUIRE(a.forward == operations{3 * 5 * 7 * 10, 3 * 7 * 10, 0});
  STATIC_REQUIRE(a.backward == a.forward * 2);
  // features too: the outputs of the weight are cut, or its inputs
  using by_both = matrix<blocks<data>, blocks<model>>;
  STATIC_REQUIRE(of<by_both, nn::linear<10, cut_out<model>>>(5).forward ==
                 operations{5 * 7 * 10, 3 * 7 * parts_most(10, 3), 0});
  STATIC_REQUIRE(of<by_both, nn::linear<10, cut_in<model>>>(5).forward ==
                 operations{5 * 7 * 10, 3 * parts_most(7, 3) * 10, 0});
  // a worker without rows: one row over two
  STATIC_REQUIRE(of<by_both, nn::linear<2, cut_out<model>>>(1).forward == operations{7 * 2, 7, 0});
  // the constant of a network and its layers together; elements are those of layers without products
  using net = sequential_type<by_both, nn::linear<10, cut_out<model>>, nn::relu, nn::linear<4, cut_in<model>>>;
  constexpr arithmetic_value all = multiply_adds<net, bind<rows>(5)>();
  STATIC_REQUIRE(all.forward == operations{5 * 7 * 10 + 5 * 10 * 4, 3 * 7 * 4 + 3 * 4 * 4, 3 * 4});
  STATIC_REQUIRE(all.backward == operations{2 * (350 + 200), 2 * (84 + 48), 12});
  STATIC_REQUIRE(all == multiply_adds<net>(bind<rows>(5)));
  STATIC_REQUIRE(all.of_a_worker() == 3 * (84 + 48) + 2 * 12);
  // integers have no gradient; a move and a view compute nothing
  using words = tensor<partition<grid, blocks<data>>, shape<rows>, std::int64_t>;
  STATIC_REQUIRE(of<words, nn::embedding<9, 4>>(5).forward == operations{0, 0, 3 * 4});
  using flat = tensor<partition<grid, blocks<data>, whole, whole>, shape<rows, dim<2>, dim<3>>, float>;
  STATIC_REQUIRE(of<flat, nn::flatten, nn::repartition<partition<grid, whole, blocks<data, model>>>>(5) ==
                 arithmetic_value());
}

/// Outputs of a convolution along one dimension.
constexpr index_t outputs(index_t n, index_t kernel, index_t stride, index_t padding, index_t dilation) {
  return (n + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

TEST_CASE("a convolution makes a multiply-add for each output, input channel of its group and tap", "[law]") {
  using line = tensor<partition<grid, blocks<data>, whole, blocks<model>>, shape<rows, dim<4>, dim<17>>, float>;
  constexpr index_t o = outputs(17, 3, 2, 1, 2);  // 8, over three workers 3 3 2
  STATIC_REQUIRE(o == 8);
  STATIC_REQUIRE(of<line, nn::conv<6, kernel<3>, stride<2>, padding<1>, dilation<2>, groups<2>>>(3).forward ==
                 operations{3 * 6 * o * 2 * 3, 2 * 6 * 3 * 2 * 3, 0});
  using plane =
      tensor<partition<grid, whole, whole, blocks<data>, blocks<model>>, shape<rows, dim<3>, dim<11>, dim<10>>, float>;
  constexpr index_t h = outputs(11, 3, 1, 1, 1), w = outputs(10, 4, 3, 0, 1);
  STATIC_REQUIRE((h == 11 && w == 3));
  STATIC_REQUIRE(of<plane, nn::conv<5, kernel<3, 4>, stride<1, 3>, padding<1, 0>>>(2).forward ==
                 operations{2 * 5 * h * w * 3 * 12, 2 * 5 * 6 * 1 * 3 * 12, 0});
  using space = tensor<partition<grid, blocks<data>, blocks<model>, whole, whole, whole>,
                       shape<rows, dim<6>, dim<5>, dim<6>, dim<7>>, float>;
  constexpr index_t out = outputs(5, 2, 1, 0, 1) * outputs(6, 2, 1, 0, 2) * outputs(7, 3, 2, 1, 1);
  STATIC_REQUIRE(
      of<space, nn::conv<9, kernel<2, 2, 3>, stride<1, 1, 2>, padding<0, 0, 1>, dilation<1, 2, 1>, groups<3>>>(3)
          .forward == operations{3 * 9 * out * 2 * 12, 2 * 3 * out * 2 * 12, 0});
  // a transposed one makes them for each input, and once more for those of a halo
  using few = tensor<partition<grid, blocks<data>, whole, whole>, shape<rows, dim<4>, dim<5>>, float>;
  STATIC_REQUIRE(of<few, nn::conv_transpose<6, kernel<3>, stride<2>, groups<2>>>(3).forward ==
                 operations{3 * (3 * 4 * 5 * 3 * 3), 2 * 4 * 5 * 3 * 3, 0});
  using cut = tensor<partition<grid, blocks<data>, whole, blocks<model>>, shape<rows, dim<4>, dim<7>>, float>;
  using wider = sequential_type<cut, nn::conv_transpose<6, kernel<3>, stride<2>>>;
  constexpr layout lies = wider::program.nodes[0].record->plan().used();
  index_t held = 0, most = 0;
  for (int k = 0; k < 3; ++k) {
    const index_t here = size_of(parts(lies, 2).held(k));
    held += here;
    most = std::max(most, here);
  }
  CHECK(held >= 7);
  CHECK(multiply_adds<wider>(bind<rows>(3)).forward == operations{3 * 4 * held * 6 * 3, 2 * 4 * most * 6 * 3, 0});
}

/// What workers compute of attention, pair by pair: queries dealt by `parts` chunks, to as many workers or, in a
/// zigzag, half of them.
struct seen_pairs {
  index_t total = 0, most = 0;

  template <class Sees>
  seen_pairs(index_t n, index_t workers, bool zigzag, const Sees& sees) {
    const index_t chunks = zigzag ? 2 * workers : workers;
    std::vector<index_t> each(static_cast<std::size_t>(workers));
    for (index_t c = 0; c < chunks; ++c)
      for (index_t i = begins(n, chunks, c); i < begins(n, chunks, c + 1); ++i)
        for (index_t j = 0; j < n; ++j) each[static_cast<std::size_t>(c < workers ? c : chunks - 1 - c)] += sees(i, j);
    for (index_t one : each) total += one;
    most = *std::max_element(each.begin(), each.end());
  }
};

constexpr index_t samples = 3, heads = 4, key_heads = 2, features = 5;

template <class Places>
using sequence_of = tensor<partition<grid, blocks<data>, Places, whole>, shape<dim<samples>, rows, dim<12>>, float>;

template <class... Options>
struct attends {
  constexpr auto operator()(auto x) const {
    const auto [q, k, v] = x | nn::heads<heads, key_heads, features>{};
    return nn::attention<Options...>{}(q, k, v);
  }
};

/// Multiply-adds of attention alone, where places are cut so.
template <class Places, class... Options>
operations attention_alone(index_t n, bool backward = false) {
  using in = sequence_of<Places>;
  const auto all = multiply_adds<network_type<attends<Options...>, in>>(bind<rows>(n));
  const auto before = multiply_adds<network_type<nn::heads<heads, key_heads, features>, in>>(bind<rows>(n));
  const operations &a = backward ? all.backward : all.forward, &b = backward ? before.backward : before.forward;
  return {a.total - b.total, a.busiest_worker - b.busiest_worker, a.elements - b.elements};
}

TEST_CASE("attention makes two multiply-adds a feature for each pair of a query and a key that it sees", "[law]") {
  const auto all = [](index_t, index_t) { return true; };
  const auto up_to = [](index_t i, index_t j) { return j <= i; };
  const auto near = [](index_t i, index_t j) { return i - 4 <= j && j <= i + 2; };
  const auto behind = [](index_t i, index_t j) { return i - 4 <= j && j <= i; };
  constexpr index_t each = heads * 2 * features;
  const auto is = [&](const operations& got, const seen_pairs& pairs, index_t copies) {
    CHECK(got == operations{samples * each * pairs.total * copies, parts_most(samples, 2) * each * pairs.most, 0});
  };
  for (index_t n : {1, 2, 5, 13, 30}) {
    CAPTURE(n);
    // whole sequences, which the workers of an axis have three times
    is(attention_alone<whole>(n), seen_pairs(n, 1, false, all), 3);
    is(attention_alone<whole, causal>(n), seen_pairs(n, 1, false, up_to), 3);
    is(attention_alone<whole, sliding_window<4, 2>>(n), seen_pairs(n, 1, false, near), 3);
    is(attention_alone<whole, causal, sliding_window<4, 0>>(n), seen_pairs(n, 1, false, behind), 3);
    // cut ones, whose keys come part by part
    is(attention_alone<blocks<model>, streamed<>>(n), seen_pairs(n, 3, false, all), 1);
    is(attention_alone<blocks<model>, streamed<>, causal>(n), seen_pairs(n, 3, false, up_to), 1);
    is(attention_alone<blocks<model>, streamed<>, sliding_window<4, 2>>(n), seen_pairs(n, 3, false, near), 1);
    is(attention_alone<zigzag<model>, streamed<>, causal>(n), seen_pairs(n, 3, true, up_to), 1);
    is(attention_alone<zigzag<model>, streamed<>, causal, sliding_window<4, 0>>(n), seen_pairs(n, 3, true, behind), 1);
  }
  // a window without an end: the second of two numbers is the largest there is
  STATIC_REQUIRE(tessera::detail::pairs_seen({0, 5}, 5, 2, INT64_MAX) == 5 + 5 + 5 + 4 + 3);
  STATIC_REQUIRE(tessera::detail::pairs_seen({1, 4}, 5, INT64_MAX, INT64_MAX) == 3 * 5);
  // over heads: two key heads over three workers, each with its queries, of whole sequences
  const seen_pairs whole_ones(13, 1, false, up_to);
  CHECK(attention_alone<blocks<model>, over_heads<model>, causal>(13) ==
        operations{samples * each * whole_ones.total, 2 * (each / key_heads) * whole_ones.total, 0});
  // backward makes scores once more, and two products for each of both
  const operations forward = attention_alone<zigzag<model>, streamed<>, causal>(13);
  CHECK(attention_alone<zigzag<model>, streamed<>, causal>(13, true).total * 2 == forward.total * 5);
}

struct around {
  constexpr auto operator()(auto q, auto k, auto v) const {
    return nn::neighbourhood_attention<kernel<3, 5>>{}(q, k, v);
  }
};

TEST_CASE("attention to a window of keys around each query makes two a feature for each of them", "[law]") {
  using plane = partition<grid, whole, blocks<data>, blocks<model>, whole, whole, whole>;
  using keys = partition<grid, whole, blocks<data>, blocks<model>, whole, whole>;
  using queries_of = tensor<plane, shape<rows, dim<7>, dim<8>, dim<2>, dim<2>, dim<5>>, float>;
  using keys_of = tensor<keys, shape<rows, dim<7>, dim<8>, dim<2>, dim<5>>, float>;
  constexpr auto a = multiply_adds<network_type<around, queries_of, keys_of, keys_of>>(bind<rows>(2));
  STATIC_REQUIRE(a.forward == operations{2 * 2 * 7 * 8 * 20 * 15, 2 * 2 * 4 * 3 * 20 * 15, 0});
  STATIC_REQUIRE(a.backward == a.forward * 2);
}

/// Of width d: 24 · T · d² + 4 · T² · d floating-point operations forward, where every query sees every key.
template <index_t Width, class... How>
struct block {
  constexpr auto operator()(auto x) const {
    const auto [q, k, v] = x | nn::layer_norm<>{} | nn::heads<4, 4, Width / 4, cut_out<model>>{};
    const auto y = x + (nn::attention<How...>{}(q, k, v) | nn::linear<Width, cut_in<model>, output_as<place>>{});
    return y + (y | nn::layer_norm<>{} | nn::linear<4 * Width, cut_out<model>>{} | nn::relu{} |
                nn::linear<Width, cut_in<model>, output_as<place>>{});
  }
  using place = partition<grid, blocks<data>, whole, whole>;
};

TEST_CASE("a transformer's block makes 24 T d² + 4 T² d floating-point operations", "[law]") {
  constexpr index_t t = 20, d = 16, n = 5;
  using in = tensor<partition<grid, blocks<data>, whole, whole>, shape<dim<n>, rows, dim<d>>, float>;
  constexpr auto a = multiply_adds<network_type<block<d>, in>>(bind<rows>(t));
  STATIC_REQUIRE(2 * a.forward.total == n * (24 * t * d * d + 4 * t * t * d));
  STATIC_REQUIRE(2 * a.backward.total == n * (2 * 24 * t * d * d + 5 * 2 * t * t * d));
  constexpr auto half = multiply_adds<network_type<block<d, causal>, in>>(bind<rows>(t));
  STATIC_REQUIRE(2 * half.forward.total == n * (24 * t * d * d + 4 * t * (t + 1) / 2 * d));
  using again = nn::chain<nn::recompute<block<d>>, block<d>>;
  constexpr auto twice = multiply_adds<network_type<again, in>>(bind<rows>(t));
  STATIC_REQUIRE(twice.forward.total == 2 * a.forward.total);
  STATIC_REQUIRE(twice.backward.total == 2 * a.backward.total + a.forward.total);
  STATIC_REQUIRE(twice.backward.elements == 2 * a.backward.elements + a.forward.elements);
}

constexpr auto scores = operation("btd,bsd->bts");
constexpr auto chain_of_three = operation("ij,jk,kl->il");
constexpr auto parts_come = operation("btd,bsd->bts").streamed('s');
constexpr auto own_product = operation("nd,cd->nc").multilinear();
constexpr auto scaled = operation("nd,d->nd").multilinear();
constexpr auto own_attention = operation("btd,bsd,bse->bte").whole("tsde").multiplying();
constexpr auto own_line = operation("nfh,ofk->noh").windowed('h', {3, 2, 1, 1, 1}).whole("k").multilinear();

template <const signature& S>
struct sums {
  constexpr auto operator()(auto... x) const { return einsum<S>(x...); }
};
template <const signature& S>
struct applies {
  constexpr auto operator()(auto... x) const {
    return apply<S>([](const auto& first, const auto&...) { return first; }, x...);
  }
};

struct product {
  constexpr auto operator()(auto x, auto y) const { return matmul(x, y); }
};

TEST_CASE("a sum of products makes one for each index of all letters, from the left where it has several", "[law]") {
  using a = tensor<partition<grid, blocks<data>, blocks<model>, whole>, shape_of<3, 8, 5>, float>;
  using b = tensor<partition<grid, blocks<data>, whole, whole>, shape_of<3, 7, 5>, float>;
  STATIC_REQUIRE(multiply_adds<network_type<sums<scores>, a, b>>().forward ==
                 operations{3 * 8 * 7 * 5, 2 * 3 * 7 * 5, 0});
  using cut = tensor<partition<grid, blocks<data>, blocks<model>, whole>, shape_of<3, 7, 5>, float>;
  constexpr auto come = multiply_adds<network_type<sums<parts_come>, a, cut>>();  // all parts, one after another
  STATIC_REQUIRE(come.forward == operations{3 * 8 * 7 * 5, 2 * 3 * 7 * 5, 0});
  STATIC_REQUIRE(come.backward == come.forward * 2);

  using i = tensor<partition<grid, blocks<data>, whole>, shape_of<9, 4>, float>;
  using j = tensor<partition<grid, whole, whole>, shape_of<4, 6>, float>;
  using k = tensor<partition<grid, whole, blocks<model>>, shape_of<6, 5>, float>;
  STATIC_REQUIRE(multiply_adds<network_type<sums<chain_of_three>, i, j, k>>().forward ==
                 operations{3 * 9 * 4 * 6 + 9 * 6 * 5, 5 * 4 * 6 + 5 * 6 * 2, 0});

  using many = tensor<partition<grid, whole, blocks<data>, blocks<model>>, shape_of<4, 6, 7>, complex64>;
  using one = tensor<partition<grid, blocks<model>, whole>, shape_of<7, 5>, complex64>;
  STATIC_REQUIRE(multiply_adds<network_type<product, many, one>>().forward ==
                 operations{4 * (4 * 6 * 7 * 5), 4 * (4 * 3 * 3 * 5), 0});
}

struct gain {
  static constexpr const char* name = "gain";
  static constexpr layer_plan plan(const tensor_value& of) {
    return plan_operation(own_product, of.layout, own_parameter{.name = "weight"});
  }
};
struct mixed {
  static constexpr const char* name = "mixed";
  static constexpr layer_plan plan(const tensor_value& of) {
    layer_plan p;
    p.add_input(of.layout);
    p.add_output(of.layout);
    p.add_product({p.used_extents(), p.raw_extents().only(1)}, 2);
    return p;
  }
};

TEST_CASE("an operation of one's own is counted by its letters, or by its elements", "[law]") {
  using x = tensor<partition<grid, blocks<data>, whole>, shape_of<9, 4>, float>;
  using w = tensor<partition<grid, blocks<model>, whole>, shape_of<5, 4>, float>;
  using f = tensor<partition<grid, whole>, shape_of<4>, float>;
  STATIC_REQUIRE(multiply_adds<network_type<applies<own_product>, x, w>>().forward ==
                 operations{9 * 5 * 4, 5 * 2 * 4, 0});
  STATIC_REQUIRE(multiply_adds<network_type<applies<scaled>, x, f>>().forward == operations{0, 0, 5 * 4});
  using q = tensor<partition<grid, blocks<data>, whole, whole>, shape_of<3, 6, 4>, float>;
  using k = tensor<partition<grid, blocks<data>, whole, whole>, shape_of<3, 8, 4>, float>;
  using v = tensor<partition<grid, blocks<data>, whole, whole>, shape_of<3, 8, 5>, float>;
  STATIC_REQUIRE(multiply_adds<network_type<applies<own_attention>, q, k, v>>().forward ==
                 operations{3 * (3 * 6 * 8 * (4 + 5)), 2 * 6 * 8 * (4 + 5), 0});
  using line = tensor<partition<grid, blocks<data>, whole, whole>, shape_of<3, 4, 17>, float>;
  using taps = tensor<partition<grid, whole, whole, whole>, shape_of<6, 4, 3>, float>;
  STATIC_REQUIRE(multiply_adds<network_type<applies<own_line>, line, taps>>().forward ==
                 operations{3 * (3 * 6 * 9 * 4 * 3), 2 * 6 * 9 * 4 * 3, 0});

  CHECK(gain::plan(value_of<x>).products() == 0);  // c is no dimension of the input: it is refused
  STATIC_REQUIRE(multiply_adds<sequential_type<x, mixed>>().forward == operations{3 * 2 * 9 * 4 * 4, 2 * 5 * 4 * 4, 0});
}

TEST_CASE("transforms make 5/2 n log n multiply-adds of complex numbers, half of it of real ones", "[law]") {
  using real = tensor<partition<grid, blocks<data>, whole, whole>, shape_of<3, 16, 20>, float>;
  using complex = tensor<partition<grid, blocks<data>, blocks<model>, whole>, shape_of<3, 16, 20>, complex64>;
  constexpr index_t n = 3 * 16 * 20;
  constexpr auto both = multiply_adds<sequential_type<real, nn::rfft<1, 2>>>();
  STATIC_REQUIRE(both.forward == operations{3 * n * (4 + 5) * 5 / 4, 2 * 16 * 20 * 9 * 5 / 4, 0});
  STATIC_REQUIRE(both.backward == both.forward);
  // one dimension after the other, since one of them is cut
  constexpr auto cut = multiply_adds<sequential_type<complex, nn::fft<1, 2>>>();
  STATIC_REQUIRE(cut.forward.total == n * 5 * 5 / 2 + n * 4 * 5 / 2);
  // there and back over 6 then 5 channels, and products of 3 wave numbers
  using line = tensor<partition<grid, blocks<data>, whole, whole>, shape<rows, dim<6>, dim<16>>, float>;
  constexpr auto spectral = multiply_adds<sequential_type<line, nn::spectral_conv<5, 3>>>(bind<rows>(2));
  STATIC_REQUIRE(spectral.forward.total == 3 * 2 * ((6 + 5) * 16 * 4 * 5 / 4 + 4 * 6 * 5 * 3));
}

TEST_CASE("projections, experts and classes count as the linear layers that they are", "[law]") {
  using in = tensor<partition<grid, blocks<data>, whole, whole>, shape<dim<3>, rows, dim<12>>, float>;
  constexpr auto qkv = multiply_adds<network_type<nn::heads<6, 3, 5, cut_out<model>>, in>>(bind<rows>(7));
  STATIC_REQUIRE(qkv.forward == operations{3 * 7 * 12 * (6 + 3 + 3) * 5, 2 * 7 * 12 * 4 * 5, 0});
  constexpr auto gates = multiply_adds<network_type<nn::gated<10, cut_out<model>>, in>>(bind<rows>(7));
  STATIC_REQUIRE(gates.forward == operations{3 * 7 * 12 * 20, 2 * 7 * 12 * 2 * 4, 0});
  using slots = tensor<partition<grid, blocks<model>, blocks<data>, whole>, shape<dim<4>, rows, dim<6>>, float>;
  constexpr auto experts = multiply_adds<sequential_type<slots, nn::experts<4, 5>>>(bind<rows>(7));
  STATIC_REQUIRE(experts.forward == operations{4 * 7 * 6 * 5, 2 * 4 * 6 * 5, 0});
  constexpr auto gated = multiply_adds<network_type<nn::gated_experts<4, 5>, slots>>(bind<rows>(7));
  STATIC_REQUIRE(gated.forward == operations{2 * 4 * 7 * 6 * 5, 2 * 2 * 4 * 6 * 5, 0});
  using features_of = tensor<partition<grid, blocks<data>, whole>, shape<rows, dim<8>>, float>;
  using labels = tensor<partition<grid, blocks<data>>, shape<rows>, std::int64_t>;
  using loss = network_type<nn::linear_cross_entropy<10, cut_out<model>>, features_of, labels>;
  STATIC_REQUIRE(multiply_adds<loss>(bind<rows>(5)).forward == operations{5 * 8 * 10, 3 * 8 * 4, 0});
}

/// The elements that a worker has of a tensor, without one of its dimensions.
index_t elements_on(const layout& x, int rank, int without = -1) {
  const holding held = held_by(x, rank);
  index_t n = 1;
  for (int d = 0; d < x.dims.count; ++d) n *= d == without ? 1 : size_of(held[d]);
  return x.dims.count == 0 || held.count > 0 ? n : 0;
}

TEST_CASE("what is counted at once is what all workers make, one after another, of any layout", "[law]") {
  testing::dice d(11);
  int planned = 0, wrong = 0, repeated = 0;
  for (int i = 0; i < testing::trials(1500); ++i) {
    const mesh_value mesh = testing::roll_mesh(d);
    static_vector<index_t, max_dimensions> extents;
    const int space = d.roll(0, 2), groups = d.roll(1, 2), channels = groups * d.roll(1, 4);
    extents.push(d.roll(1, 6));
    extents.push(channels);
    for (int s = 0; s < space; ++s) extents.push(d.roll(3, 13));
    const layout x = testing::roll_layout(d, mesh, extents, {.invariant = true, .haloed = true, .zigzag = true});
    contraction layer;
    layer.feature = 1;
    layer.out = groups * d.roll(1, 5);
    layer.groups = space > 0 ? groups : 1;
    layer.transposed = space > 0 && d.once_in(3);
    index_t taps = 1;
    for (int s = 0; s < space; ++s) {
      layer.kernels.push({d.roll(1, 3), d.roll(1, 2), d.roll(0, 1), d.roll(0, 1), d.roll(1, 2)});
      taps *= layer.kernels[s].kernel;
    }
    const layer_plan p = plan_of(layer, tensor_value{x, element::float32});
    if (!p.why.ok()) continue;
    ++planned;
    operations all;
    for (int w = 0; w < mesh.size(); ++w) {
      const int rank = mesh.rank(mesh.at(w));
      const layout& each = layer.transposed ? p.used() : p.raw();
      const index_t here = elements_on(each, rank) * elements_on(p.weight(0), rank, 0);
      all.total += here;
      all.busiest_worker = std::max(all.busiest_worker, here);
    }
    operand_elements e;
    e.push(element::float32);
    const arithmetic_value got = arithmetic_of(p, e);
    wrong += !(got.forward == all) || !(got.backward == all * 2);
    // no worker makes a part of what another one makes: all of the serial count, once or on all copies
    index_t serial = layer.transposed ? 0 : channels / layer.groups * taps;
    for (const dimension& one : p.raw().dims) serial *= one.tiles() ? one.extent : 0;
    if (serial == 0) continue;
    wrong += all.total < serial || all.total % serial != 0 || mesh.size() % (all.total / serial) != 0;
    repeated += all.total > serial;
  }
  CHECK(wrong == 0);
  CHECK(planned > testing::trials(200));
  CHECK((repeated > 0 && repeated < planned));
}

TEST_CASE("what lies on one coordinate of an axis is computed there alone", "[plan]") {
  using there = tensor<partition<grid, blocks<data>, whole, on<model, 1>>, shape<rows, dim<7>>, float>;
  STATIC_REQUIRE(of<there, nn::linear<10>>(5).forward == operations{5 * 7 * 10, 3 * 7 * 10, 0});
}

TEST_CASE("more multiply-adds than can be counted are refused", "[refusal]") {
  using in = tensor<partition<grid, whole, whole>, shape<rows, dim<1 << 20>>, float>;
  using net = sequential_type<in, nn::linear<1 << 20>>;
  CHECK(check(detail::program_arithmetic<net::program>::under(detail::extents_bound(bind<rows>(1 << 24))))
            .is(code::cost_overflows));
  CHECK(check(detail::program_arithmetic<net::program>::under(detail::extents_bound(bind<rows>(5)))).ok());
}

}  // namespace multiply_add_counts
