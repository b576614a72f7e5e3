#include "tests/support/tensors.hpp"

#include <tessera/tensor/memory/memory_count.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// What peak_memory says of networks against what LibTorch is asked for while they run.

namespace {

struct pictures : dyn {};
template <index_t Out>
using wide_three = nn::conv<Out, kernel<3, 3>, padding<1, 1>>;

template <index_t Out>
struct remembered_block {
  constexpr auto operator()(auto x) const {
    const auto y = x | wide_three<Out>{} | nn::relu{} | wide_three<Out>{};
    return relu(x + y);
  }
};
// A stage, a deeper one, and what both give; the widest value lives until the end.
struct two_depths {
  constexpr auto operator()(auto x) const {
    const auto wide = x | wide_three<8>{} | nn::relu{} | wide_three<8>{} | nn::relu{};
    const auto deep = wide | nn::max_pool<kernel<2, 2>>{} | wide_three<8>{} | nn::relu{};
    return flows{wide | nn::conv<4, kernel<1, 1>>{}, deep | nn::avg_pool<kernel<3, 3>, stride<2, 2>, padding<1, 1>>{}};
  }
};
template <class Channels>
struct classified {
  constexpr auto operator()(auto x) const {
    return x | wide_three<6>{} | nn::relu{} | nn::repartition<Channels>{} | nn::flatten{} | nn::linear<32>{} |
           nn::relu{} | nn::shared<struct remembered, nn::linear<32>>{} |
           nn::shared<struct remembered, nn::linear<32>>{} | nn::linear<8>{};
  }
};
struct elementwise {
  constexpr auto operator()(auto x) const {
    const auto y = tanh(x | wide_three<4>{});
    const auto z = concat<1>(y, sigmoid(y) * y);
    return gelu(z) - exp(z * 0.1);
  }
};
struct growing {
  constexpr auto operator()(auto x) const {
    return x | wide_three<6>{} | nn::relu{} | nn::conv_transpose<8, kernel<4, 4>, stride<2>, padding<1>>{} |
           nn::relu{} | nn::conv_transpose<2, kernel<3, 3>, padding<1>>{};
  }
};
struct growing_in_three {
  constexpr auto operator()(auto x) const {
    return x | nn::conv_transpose<6, kernel<3, 3, 2>, stride<2>, padding<1, 1, 0>, output_padding<1, 1, 0>>{} |
           nn::relu{};
  }
};
struct around_the_end {
  constexpr auto operator()(auto x) const {
    return x | nn::conv<8, kernel<3, 3>, stride<2, 2>, padding<1, 1>, padding_mode<boundary::periodic>>{} | nn::relu{} |
           nn::pad<padding_at<1, 1, 2, 2>>{} | nn::slice<2, 1, 13>{} | nn::conv<4, kernel<3, 3>, groups<4>>{};
  }
};

template <index_t Out>
struct normed {
  constexpr auto operator()(auto x) const {
    return x | nn::conv<Out, kernel<3, 3>, padding<1, 1>, no_bias>{} | nn::batch_norm<>{} | nn::relu{};
  }
};
struct small_unet {
  constexpr auto operator()(auto x) const {
    const auto wide = x | normed<8>{} | normed<8>{};
    const auto deep = wide | nn::max_pool<kernel<2, 2>>{} | normed<12>{} | nn::upsample<factor<2, 2>>{};
    return concat<1>(wide, deep) | normed<8>{} | nn::conv<2, kernel<1, 1>>{};
  }
};
struct one_after_another {
  constexpr auto operator()(auto x) const {
    return x | nn::batch_norm<>{} | nn::batch_norm<>{} | nn::batch_norm<no_affine>{};
  }
};
// As deep as values are wide, so that norms have the peak.
struct norms_alone {
  constexpr auto operator()(auto x) const {
    const auto y = x | nn::layer_norm<over_last<3>>{} | nn::batch_norm<>{} | nn::dropout<>{} | nn::layer_norm<>{};
    return y | nn::rms_norm<>{} | nn::batch_norm<no_affine>{} | nn::rms_norm<over_last<2>>{} |
           nn::prelu<channelwise>{} | nn::rrelu<>{} | nn::dropout<channelwise>{};
  }
};
struct pooled_over {
  constexpr auto operator()(auto x) const {
    return x | normed<8>{} | nn::upsample<factor<2, 3>, mode<interpolation::cubic>>{} | nn::avg_pool<kernel<2, 2>>{} |
           normed<8>{} | nn::global_avg_pool{};
  }
};
struct sample_norms {
  constexpr auto operator()(auto x) const {
    return x | nn::group_norm<2>{} | nn::dropout<>{} | nn::instance_norm<affine>{} | nn::group_norm<1, no_affine>{} |
           nn::instance_norm<tracking>{} | nn::dropout<>{};
  }
};
template <int Dim>
struct shared_out {
  constexpr auto operator()(auto given) const {
    const auto x = given | nn::conv<4, kernel<1, 1>>{};
    return log_softmax<Dim>(softmax<Dim>(x) * x) * x;
  }
};

// Orders along a whole dimension, what they name, and sums of it.
struct by_order {
  constexpr auto operator()(auto given) const {
    const auto x = given | nn::conv<4, kernel<1, 1>>{};
    const auto order = sort<1>(x);
    const auto most = topk<1, 3>(order.values);
    const auto again = take_along<1>(x, most.indices);
    const auto all = scatter_add<1, 4>(most.values * again, most.indices);
    return cumsum<1>(all * x);
  }
};

struct summed_up {
  constexpr auto operator()(auto given) const {
    const auto x = given | nn::conv<4, kernel<1, 1>>{};
    return cumsum<1>(x) + x;
  }
};

struct looking_around {
  constexpr auto operator()(auto x) const {
    const auto [q, k, v] = x | nn::heads<2, 2, 8>{};
    return nn::neighbourhood_attention<kernel<3, 3>>{}(q, k, v);
  }
};

// Attention that meets its keys in blocks: in a stream, in a window, behind a mask, or with weights dropped.
template <index_t Heads, index_t Keys, class... Options>
struct attending {
  constexpr auto operator()(auto given) const {
    const auto [q, k, v] = given | nn::heads<Heads, Keys, 16>{};
    return nn::attention<Options...>{}(q, k, v);
  }
};
template <class... Options>
struct hiding {
  constexpr auto operator()(auto given) const {
    const auto [q, k, v] = given | nn::heads<4, 2, 16>{};
    return nn::attention<Options...>{}(q, k, v, cast<bool>(relu(matmul(given, permute<0, 2, 1>(given)))));
  }
};
template <index_t Length>
struct adding {
  constexpr auto operator()(auto given) const {
    const auto [q, k, v] = given | nn::heads<4, 2, 16>{};
    return nn::attention<added_mask>{}(q, k, v, given | nn::linear<Length>{});
  }
};
template <class Stream, index_t Width, index_t Heads, index_t Keys, class Axis>
struct transforming {
  constexpr auto operator()(auto given) const {
    const auto [q, k, v] = given | nn::layer_norm<>{} | nn::heads<Heads, Keys, 16, cut_out<Axis>>{};
    const auto x = given + (nn::attention<causal>{}(q, k, v) | nn::linear<Width, cut_in<Axis>, output_as<Stream>>{});
    const auto [gate, up] = x | nn::rms_norm<>{} | nn::gated<2 * Width, cut_out<Axis>>{};
    return x + (silu(gate) * up | nn::linear<Width, cut_in<Axis>, output_as<Stream>>{} | nn::dropout<>{});
  }
};
template <index_t Rows, index_t Features, class First, class Second>
struct tied_table {
  constexpr auto operator()(auto x) const {
    const auto hidden =
        tanh(x | nn::shared<struct tied_rows, nn::embedding<Rows, Features, weights_as<double>, First>>{});
    return hidden | nn::shared<struct tied_rows, nn::linear<Rows, no_bias, Second>>{};
  }
};

// Wide layers between narrow values: what is gathered is what counts.
template <class... Over>
struct in_tiles {
  constexpr auto operator()(auto given) const {
    using wide = nn::chain<nn::linear<256>, nn::relu, nn::linear<128>>;
    return given | nn::linear<128>{} | nn::sharded_over<nn::chain<wide, wide, wide>, Over...>{};
  }
};

// Sequences as slots of experts, whose weights are stored over what the slots are cut by, and used as copies.
template <class By, class Sources, class... Over>
struct feeding_experts {
  constexpr auto operator()(auto given) const {
    using feed =
        nn::chain<nn::experts<24, 96, cut_out<By>>, nn::relu, nn::experts<24, 48, cut_in<By>, output_as<Sources>>>;
    return given | nn::sharded_over<feed, Over...>{};
  }
};

// Layers with several results, whose weights come one after the other in backward.
template <class... Over>
struct fused_in_tiles {
  constexpr auto operator()(auto given) const {
    const auto [q, k, v] = given | nn::linear<128>{} | nn::sharded_over<nn::heads<8, 8, 32>, Over...>{};
    const auto [gate, up] = nn::attention<>{}(q, k, v) | nn::linear<32>{} | nn::sharded_over<nn::gated<512>, Over...>{};
    return gate * up;
  }
};

// Parts that run again for their backward: in one another, of several results, with norms and masks, stored as tiles.
struct several_again {
  constexpr auto operator()(auto x) const {
    const auto y =
        x | nn::recompute<remembered_block<4>>{} |
        nn::recompute<
            nn::chain<nn::recompute<remembered_block<4>>, wide_three<8>, nn::recompute<remembered_block<8>>>>{};
    return y | nn::recompute<nn::chain<nn::batch_norm<>, nn::relu, nn::dropout<>, wide_three<8>>>{} | wide_three<4>{};
  }
};

struct shares {
  double forward = 0;
  double training = 0;
  double parameters = 0;
  double held = 1;
};

// What is asked for over what is counted, while a network runs in a worker.
template <class Module, class In, class Team>
shares measured(const Team& t, index_t batch, const at::Tensor& image) {
  const memory_value counted = peak_memory<network_type<Module, In>>(bind<pictures>(batch));
  const nn::network<Module, In> net{t, seed{1}};
  memory_count count;
  const auto x = distribute<In>(t, image);
  const auto boxes = [](const auto& y) {
    std::vector<at::Tensor> all;
    if constexpr (requires { y.local(); }) all.push_back(y.local());
    else std::apply([&](const auto&... each) { (all.push_back(each.local()), ...); }, y);
    return all;
  };
  const auto train = [&] {
    std::vector<at::Tensor> given;
    const std::vector<at::Tensor> y = boxes(net(x));
    for (const at::Tensor& one : y) given.push_back(at::ones_like(one));
    torch::autograd::backward(y, given);
  };
  const auto peak = [&](const auto& run) {
    run();  // binds
    const std::int64_t before = count.now() - static_cast<std::int64_t>(x.local().nbytes());
    count.restart_peak();
    run();
    return static_cast<double>(count.peak() - before);
  };
  shares s;
  {
    const at::NoGradGuard no_record;
    s.forward = peak([&] { net(x); }) / static_cast<double>(counted.forward);
  }
  for (const at::Tensor& w : net.parameters()) w.mutable_grad() = at::zeros_like(w);
  s.training = peak(train) / static_cast<double>(counted.training);
  const std::int64_t holding = count.now();
  nn::reduce_gradients(net);
  if (counted.held > 0) s.held = static_cast<double>(holding - count.now()) / static_cast<double>(counted.held);
  std::int64_t parameters = 0;
  for (const at::Tensor& w : net.parameters()) parameters += static_cast<std::int64_t>(w.nbytes());
  s.parameters = static_cast<double>(parameters) / static_cast<double>(counted.parameters);
  return s;
}

int networks = 0;  // of which sanitizers, for whom they are much alike, see some

// No worker takes more than is said, and one takes nearly that.
template <class Module, class In>
std::string differs_in_memory(const std::vector<index_t>& extents, double least = 0.95) {
  if (!tried(networks++)) return "";
  const at::Tensor image = (global_of(extents, numbers{3}) * 1000)
                               .abs()
                               .remainder(7)
                               .to(tessera::detail::scalar_type_of(value_of<In>.element));
  const auto run = in_team<typename In::mesh_type>([&](auto& t) { return measured<Module, In>(t, extents[0], image); });
  if (!run.well()) return run.errors();
  shares most{0, 0, 0, 0};
  for (const auto& r : run.results)
    most = {std::max(most.forward, r->forward), std::max(most.training, r->training),
            std::max(most.parameters, r->parameters), std::max(most.held, r->held)};
  const auto fits = [least](double share) { return share <= 1.05 && share >= least; };
  return fits(most.forward) && fits(most.training) && fits(most.parameters) && fits(most.held)
             ? ""
             : fmt::format(
                   "of what is counted forward takes {:.3f}, training {:.3f}, parameters {:.3f}, what is held {:.3f}",
                   most.forward, most.training, most.parameters, most.held);
}

template <int P, index_t Length, class E>
struct in_a_line {
  struct along : axis<P> {};
  using rows = tensor<partition<mesh<along>, whole, blocks<along>, whole>, shape<pictures, dim<Length>, dim<8>>, E>;
};
template <class Module, int P, index_t Length, class E = double>
std::string attends_otherwise(double least) {
  return differs_in_memory<Module, typename in_a_line<P, Length, E>::rows>({4, Length, 8}, least);
}

// Samples cut over data; weights that all have, or that model cuts. A sum of two workers is one exchange. One of more
// is two, and the first of several bundles may be further on its way than is counted, so there is one bundle.
template <int D, int M>
struct in_bundles_on {
  struct data : axis<D> {};
  struct model : axis<M> {};
  using grid = mesh<data, model>;
  using lies = partition<grid, blocks<data>, whole, invariant<model>>;
  using rows = tensor<lies, shape<pictures, dim<48>>, float>;
  using middle = std::conditional_t<D == 2, nn::linear<60, weights_as<double>>, nn::linear<60>>;
  using copies = nn::chain<nn::linear<96>, nn::relu, middle, nn::relu, nn::linear<48>>;
  using cut = nn::chain<nn::linear<96, cut_out<model>>, nn::relu, nn::linear<48, cut_in<model>, output_as<lies>>>;
};

// What a worker has at most while gradients wait and are summed, beside what it has before and behind. Gradients of the
// step before were let go.
template <class Net, class In>
std::int64_t taken_by_sums(bool inside_backward) {
  const auto run = in_team<typename In::mesh_type>([&](auto& t) -> std::int64_t {
    const Net net{t, seed{1}};
    const auto x = distribute<In>(t, global_of({12, 48}, numbers{3}).to(at::kFloat));
    std::int64_t most = 0;
    for (int time = 0; time < 2; ++time) {  // the second time nothing is bound
      for (at::Tensor& w : net.parameters()) w.mutable_grad() = at::Tensor();
      memory_count count;
      const auto y = net(x);
      y.local().backward(at::ones_like(y.local()));
      if (!inside_backward) {
        count.restart_peak();
        nn::reduce_gradients(net);
      }
      const std::int64_t given = inside_backward ? 2 : 1;  // the gradient of y beside y
      most = count.peak() - given * static_cast<std::int64_t>(y.local().nbytes());
    }
    return most;
  });
  std::int64_t most = -1;
  for (const auto& r : run.results) most = r && most >= -1 ? std::max(most, *r) : -2;
  return most;
}

// Of the worker that takes most.
template <class Net, class In>
std::string differs_by_sums(bool inside_backward) {
  constexpr memory_value counted = peak_memory<Net>(bind<pictures>(12));
  const std::int64_t taken = taken_by_sums<Net, In>(inside_backward);
  return taken == counted.held + counted.gradients + counted.travelling
             ? ""
             : fmt::format("{} bytes and not {} + {} + {}; ", taken, counted.held, counted.gradients,
                           counted.travelling);
}

template <class Part, class Rows, class Axis>
std::string differs_in_bundles() {
  using held = nn::network<nn::sharded_over<Part, gathered<gathering::held>>, Rows>;
  using bundled = nn::network<nn::bundled<Part>, Rows>;
  using tiles = nn::network<nn::sharded_over<Part, Axis, gathered<gathering::held>>, Rows>;
  using bundled_tiles = nn::network<nn::bundled<Part, Axis>, Rows>;
  return differs_by_sums<held, Rows>(false) + differs_by_sums<bundled, Rows>(true) +
         differs_by_sums<tiles, Rows>(false) + differs_by_sums<bundled_tiles, Rows>(true);
}
template <class On>
std::string differs_in_bundles() {
  return differs_in_bundles<typename On::copies, typename On::rows, typename On::data>() +
         differs_in_bundles<typename On::cut, typename On::rows, typename On::data>();
}

template <int R, int C, index_t H = 24, index_t W = 24, class E = double>
struct remembering {
  struct up : axis<R> {};
  struct across : axis<C> {};
  using grid = mesh<up, across>;
  using image =
      tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>, shape<pictures, dim<4>, dim<H>, dim<W>>, E>;
  using volume = tensor<partition<grid, whole, whole, blocks<up>, blocks<across>, whole>,
                        shape<pictures, dim<4>, dim<H / 2>, dim<W / 2>, dim<6>>, E>;
  using channels = partition<grid, whole, blocks<up, across>, whole, whole>;
  using stream = partition<grid, blocks<up>, whole, whole, invariant<across>>;
  using sequences = tensor<stream, shape<pictures, dim<16>, dim<48>>, E>;
  using tokens = tensor<partition<grid, blocks<up>, whole, invariant<across>>, shape<pictures, dim<16>>, std::int64_t>;
  using by_slot = partition<grid, whole, blocks<up>, whole, invariant<across>>;
  using slots = tensor<by_slot, shape<dim<24>, pictures, dim<48>>, E>;
  using experts = feeding_experts<across, by_slot, up>;
  template <index_t Heads, index_t Keys>
  using transformer = transforming<stream, 48, Heads, Keys, across>;
  template <class... Options>
  using counting =
      nn::chain<nn::embedding<35, 24, weights_as<double>, max_norm<1>, cut_out<across>, Options...>, nn::linear<8>>;
  using by_rows = tied_table<35, 24, cut_in<across>, cut_out<across>>;
  using by_features = tied_table<35, 24, cut_out<across>, cut_in<across>>;
};
using alone = remembering<1, 1>;
using four = remembering<2, 2>;
using uneven = remembering<3, 2, 25, 23>;
using large = remembering<2, 2, 96, 72>;  // whose edges are small

template <class... Layers>
using behind_point = nn::chain<nn::conv<4, kernel<1, 1>>, Layers...>;
template <class Module>
std::string differs_in_pictures(double least = 0.9) {
  const std::string one = differs_in_memory<Module, alone::image>({6, 4, 24, 24}, least);
  return one.empty() ? differs_in_memory<Module, four::image>({6, 4, 24, 24}, least) : one;
}

}  // namespace

TEST_CASE("a network takes the memory that peak_memory counts: forward, and forward with backward", "[plan][runtime]") {
  using line = nn::chain<wide_three<8>, nn::relu, wide_three<8>, nn::relu, wide_three<4>>;
  CHECK(differs_in_memory<line, alone::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<line, four::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<line, uneven::image>({6, 4, 25, 23}) == "");
  CHECK(differs_in_memory<line, large::image>({2, 4, 96, 72}) == "");
  CHECK(differs_in_memory<two_depths, large::image>({2, 4, 96, 72}) == "");
  using residual = nn::chain<remembered_block<4>, remembered_block<4>, remembered_block<4>>;
  // oneDNN asks for less
  CHECK(differs_in_memory<line, remembering<2, 2, 24, 24, float>::image>({6, 4, 24, 24}, 0) == "");
  CHECK(differs_in_memory<residual, alone::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<residual, uneven::image>({6, 4, 25, 23}) == "");
  CHECK(differs_in_memory<two_depths, alone::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<two_depths, four::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<classified<four::channels>, four::image>({6, 4, 24, 24}) == "");
  // a gradient that passes is counted twice
  CHECK(differs_in_memory<elementwise, four::image>({6, 4, 24, 24}, 0.85) == "");
  CHECK(differs_in_memory<around_the_end, four::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<growing, alone::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<growing, four::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<growing, uneven::image>({6, 4, 25, 23}) == "");
  CHECK(differs_in_memory<growing, large::image>({2, 4, 96, 72}) == "");
  CHECK(differs_in_memory<growing_in_three, alone::volume>({4, 4, 12, 12, 6}) == "");
  CHECK(differs_in_memory<growing_in_three, four::volume>({4, 4, 12, 12, 6}) == "");
  CHECK(differs_in_memory<growing_in_three, uneven::volume>({4, 4, 12, 11, 6}) == "");
}

TEST_CASE("networks with norms, upsampling and dropout take the memory that is counted", "[plan][runtime]") {
  CHECK(differs_in_memory<small_unet, alone::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<small_unet, four::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<small_unet, remembering<3, 2, 26, 22>::image>({6, 4, 26, 22}) == "");
  CHECK(differs_in_memory<norms_alone, alone::image>({6, 4, 24, 24}, 0.9) == "");
  CHECK(differs_in_memory<norms_alone, four::image>({6, 4, 24, 24}, 0.9) == "");
  CHECK(differs_in_memory<one_after_another, alone::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<one_after_another, four::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<sample_norms, alone::image>({6, 4, 24, 24}, 0.9) == "");
  CHECK(differs_in_memory<sample_norms, four::image>({6, 4, 24, 24}, 0.9) == "");
  CHECK(differs_in_memory<pooled_over, four::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<pooled_over, uneven::image>({6, 4, 25, 23}) == "");
  CHECK(differs_in_memory<shared_out<1>, four::image>({6, 4, 24, 24}, 0.9) == "");
  CHECK(differs_in_memory<shared_out<2>, four::image>({6, 4, 24, 24}, 0.9) == "");
}

TEST_CASE("networks with functions of indices take the memory that is counted", "[plan][runtime]") {
  CHECK(differs_in_memory<by_order, alone::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<by_order, four::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<by_order, uneven::image>({6, 4, 25, 23}) == "");
}

TEST_CASE("Fourier transforms take no more memory than is counted", "[plan][runtime]") {
  // LibTorch copies a dimension that is not the last, and one that has half its elements
  using there = nn::chain<nn::conv<4, kernel<1, 1>>, nn::rfft<2, 3>>;
  using whole = nn::chain<nn::conv<4, kernel<1, 1>>, nn::fft<2, 3>, nn::ifft<2, 3>>;
  CHECK(differs_in_memory<nn::chain<there, nn::irfft<2, 3>>, alone::image>({6, 4, 24, 24}, 0.7) == "");
  CHECK(differs_in_memory<nn::chain<there, nn::irfft<2, 3>>, four::image>({6, 4, 24, 24}, 0.7) == "");
  CHECK(differs_in_memory<nn::chain<there, nn::irfft<2, 3, output_size<23>{}>>, uneven::image>({6, 4, 25, 23}, 0.5) ==
        "");
  CHECK(differs_in_memory<whole, four::image>({6, 4, 24, 24}, 0.7) == "");
  CHECK(differs_in_memory<nn::chain<nn::conv<4, kernel<1, 1>>, nn::rfft<2>>, four::image>({6, 4, 24, 24}, 0.7) == "");
  using few = nn::chain<nn::conv<4, kernel<1, 1>>, nn::spectral_conv<4, 6, 6>, nn::relu>;
  using all = nn::chain<nn::conv<4, kernel<1, 1>>, nn::spectral_conv<4, 12, 12>, nn::relu>;
  CHECK(differs_in_memory<few, alone::image>({6, 4, 24, 24}, 0.7) == "");
  CHECK(differs_in_memory<all, alone::image>({6, 4, 24, 24}, 0.7) == "");
  CHECK(differs_in_memory<few, four::image>({6, 4, 24, 24}, 0.6) == "");
  CHECK(differs_in_memory<all, four::image>({6, 4, 24, 24}, 0.6) == "");
  CHECK(differs_in_memory<all, uneven::image>({6, 4, 25, 23}, 0.5) == "");
}

TEST_CASE("transformer blocks and embeddings take the memory that is counted", "[plan][runtime]") {
  CHECK(differs_in_memory<alone::transformer<4, 4>, alone::sequences>({6, 16, 48}, 0.9) == "");
  CHECK(differs_in_memory<alone::transformer<4, 2>, alone::sequences>({6, 16, 48}, 0.9) == "");
  CHECK(differs_in_memory<four::transformer<6, 3>, four::sequences>({6, 16, 48}, 0.9) == "");
  CHECK(differs_in_memory<looking_around, alone::volume>({2, 4, 12, 12, 6}, 0.85) == "");
  CHECK(differs_in_memory<looking_around, four::volume>({2, 4, 12, 12, 6}, 0.85) == "");
  CHECK(differs_in_memory<looking_around, remembering<1, 3, 24, 24, bfloat16>::volume>({2, 4, 12, 12, 6}, 0.75) == "");
  CHECK(differs_in_memory<alone::experts, alone::slots>({24, 24, 48}, 0.9) == "");
  CHECK(differs_in_memory<four::experts, four::slots>({24, 24, 48}, 0.9) == "");
  CHECK(differs_in_memory<alone::by_rows, alone::tokens>({6, 16}, 0.9) == "");
  CHECK(differs_in_memory<four::by_rows, four::tokens>({6, 16}, 0.9) == "");
  CHECK(differs_in_memory<four::by_features, four::tokens>({6, 16}, 0.9) == "");
  // rows are counted before there are results
  CHECK(differs_in_memory<four::counting<scale_grad_by_freq>, four::tokens>({6, 16}, 0.85) == "");
  CHECK(differs_in_memory<four::counting<frozen>, four::tokens>({6, 16}, 0.85) == "");
}

TEST_CASE("windows, maxima, masks of channels and slopes take the memory that is counted", "[plan][runtime]") {
  CHECK(differs_in_pictures<behind_point<nn::unfold<kernel<3, 3>>>>() == "");
  CHECK(differs_in_pictures<behind_point<nn::unfold<kernel<3, 3>>, nn::fold<kernel<3, 3>>>>(0.65) == "");
  CHECK(differs_in_pictures<behind_point<nn::adaptive_avg_pool<5, 7>>>() == "");
  CHECK(differs_in_pictures<behind_point<nn::adaptive_max_pool<5, 7>>>() == "");
  CHECK(differs_in_pictures<behind_point<nn::dropout<channelwise>>>() == "");
  CHECK(differs_in_pictures<behind_point<nn::prelu<channelwise>, nn::rrelu<>>>() == "");
  CHECK(differs_in_pictures<behind_point<nn::pixel_shuffle<2>>>() == "");
  CHECK(differs_in_pictures<behind_point<nn::pixel_unshuffle<2>>>() == "");
  CHECK(differs_in_pictures<behind_point<nn::pad<padding_at<1, 2, 3, 0>>, nn::slice<2, 3, 17>>>(0.75) == "");
  CHECK(differs_in_pictures<behind_point<nn::upsample<size<37, 41>>>>() == "");
  CHECK(differs_in_pictures<summed_up>() == "");
}

TEST_CASE("attention that meets its keys in blocks takes the memory that is counted", "[plan][runtime]") {
  CHECK(attends_otherwise<attending<2, 2>, 1, 64>(0.95) == "");
  CHECK(attends_otherwise<attending<2, 2>, 1, 1024, float>(0.95) == "");
  CHECK(attends_otherwise<attending<4, 4>, 1, 256, half>(0.9) == "");
  CHECK(attends_otherwise<attending<2, 2, streamed<>>, 1, 64>(0.95) == "");
  CHECK(attends_otherwise<attending<4, 2, streamed<>>, 1, 256>(0.9) == "");
  CHECK(attends_otherwise<attending<4, 4, streamed<>>, 1, 256, half>(0.85) == "");
  CHECK(attends_otherwise<attending<2, 2, sliding_window<5, 3>>, 1, 64>(0.95) == "");
  CHECK(attends_otherwise<attending<2, 2, sliding_window<40, 30>>, 1, 1024>(0.9) == "");
  CHECK(attends_otherwise<attending<4, 1, causal, sliding_window<20>>, 1, 256>(0.95) == "");
  CHECK(attends_otherwise<hiding<>, 1, 256, float>(0.85) == "");
  CHECK(attends_otherwise<hiding<causal>, 1, 256, float>(0.9) == "");
  CHECK(attends_otherwise<hiding<sliding_window<9, 9>>, 1, 256, half>(0.8) == "");
  CHECK(attends_otherwise<adding<64>, 1, 64>(0.8) == "");
  CHECK(attends_otherwise<adding<256>, 1, 256, float>(0.8) == "");
  // a product of heads that lie in one piece needs no copies of them, which are counted
  CHECK(attends_otherwise<attending<2, 2, probability<1, 10>>, 1, 64>(0.9) == "");
  CHECK(attends_otherwise<attending<4, 2, probability<1, 4>>, 1, 256, half>(0.8) == "");
  CHECK(attends_otherwise<attending<4, 2, probability<1, 4>, causal>, 1, 256, float>(0.7) == "");
  // on several workers parts that come and blocks that merge do not all live at once
  CHECK(attends_otherwise<attending<2, 2, streamed<8>>, 3, 61>(0.8) == "");
  CHECK(attends_otherwise<attending<4, 2, streamed<>>, 3, 256>(0.8) == "");
  CHECK(attends_otherwise<attending<4, 4, causal, streamed<>>, 4, 1024, float>(0.8) == "");
  CHECK(attends_otherwise<attending<2, 2, streamed<>, sliding_window<40, 30>>, 2, 512>(0.8) == "");
  CHECK(attends_otherwise<attending<2, 2, streamed<>, probability<1, 10>>, 2, 512>(0.85) == "");
}

TEST_CASE("parameters stored as tiles take the memory that is counted: one layer's is gathered at a time",
          "[plan][runtime]") {
  struct data : axis<3> {};
  struct model : axis<2> {};
  using grid = mesh<data, model>;
  using rows = tensor<partition<grid, blocks<data>, whole, invariant<model>>, shape<pictures, dim<128>>, double>;
  CHECK(differs_in_memory<in_tiles<data>, rows>({6, 128}) == "");
  CHECK(differs_in_memory<in_tiles<data, model>, rows>({6, 128}) == "");
  CHECK(differs_in_memory<in_tiles<data, model, gathered<gathering::once>>, rows>({6, 128}) == "");
  CHECK(differs_in_memory<in_tiles<data, model, gathered<gathering::held>>, rows>({6, 128}) == "");
  using sequences =
      tensor<partition<grid, blocks<data>, whole, whole, invariant<model>>, shape<pictures, dim<3>, dim<128>>, double>;
  // gradients of several results come one after the other
  CHECK(differs_in_memory<fused_in_tiles<data, model>, sequences>({6, 3, 128}, 0.65) == "");
}

TEST_CASE("what runs again for its backward takes the memory that is counted", "[plan][runtime]") {
  CHECK(differs_in_memory<several_again, alone::image>({6, 4, 24, 24}) == "");
  CHECK(differs_in_memory<several_again, four::image>({6, 4, 24, 24}) == "");
  struct data : axis<2> {};
  using rows = tensor<partition<mesh<data>, blocks<data>, whole>, shape<pictures, dim<128>>, double>;
  using wide = nn::chain<nn::linear<256>, nn::relu, nn::linear<128>, nn::relu>;
  CHECK(differs_in_memory<
            nn::chain<nn::recompute<wide>, nn::recompute<nn::sharded_over<wide, data, gathered<gathering::once>>>,
                      nn::sharded_over<nn::recompute<wide>, data>>,
            rows>({400, 128}) == "");
}

TEST_CASE("bundles on their way take the memory that is counted, to the byte", "[plan][runtime]") {
  CHECK(differs_in_bundles<in_bundles_on<2, 1>>() == "");
  CHECK(differs_in_bundles<in_bundles_on<3, 1>>() == "");
  CHECK(differs_in_bundles<in_bundles_on<4, 1>>() == "");
  CHECK(differs_in_bundles<in_bundles_on<2, 2>>() == "");
  CHECK(differs_in_bundles<in_bundles_on<3, 2>>() == "");
}
