#include "tests/support/catch.hpp"

#include <tessera/functions.hpp>
#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

struct skip_of_three {
  constexpr auto operator()(auto x) const {
    using point = nn::conv<4, kernel<1, 1>>;
    const auto y = tanh(x);
    return y + (y | point{} | point{} | point{});
  }
};

}  // namespace

TEST_CASE("the memory of a network: what lives at once, in bytes on the busiest worker", "[plan]") {
  struct one : axis<1> {};
  struct many : dyn {};
  using picture = tensor<partition<mesh<one>, whole, whole, whole, whole>, shape<many, dim<4>, dim<8>, dim<8>>, double>;
  using three = nn::conv<8, kernel<3, 3>, padding<1, 1>>;
  using net = sequential_type<picture, three, nn::relu, three>;
  // At two pictures: the input and a box of eight features, and the windows that convolutions copy out.
  constexpr index_t input = 4096, box = 8192, first_windows = 36864, windows = 73728;
  constexpr index_t first = 8 * 4 * 9 * 8, weight = 8 * 8 * 9 * 8, bias = 8 * 8;
  constexpr memory_value m = peak_memory<net, bind<many>(2)>();
  static_assert(m == peak_memory<net>(bind<many>(2)));
  CHECK(m.forward == std::max(input + box + first_windows, input + box + box + windows));
  // The second layer's backward: its output and that one's gradient, what was saved (the input, the result of relu),
  // and what it gives.
  CHECK(m.training == input + box + box + box + box + weight + bias + windows);
  CHECK(m.parameters == first + weight + 2 * bias);
  CHECK(m.gradients == m.parameters);
  // Padding at one end alone, which LibTorch does not do itself: the input in a frame.
  constexpr index_t framed = 6400;
  CHECK(
      peak_memory<sequential_type<picture, nn::conv<8, kernel<3, 3>, padding_at<0, 2, 0, 2>>>>(bind<many>(2)).forward ==
      input + framed + box + first_windows);
  // A skip keeps its value until it is read; a view is no memory of its own.
  CHECK(peak_memory<network_type<skip_of_three, picture>>(bind<many>(2)).forward == 4 * input);
  CHECK(peak_memory<sequential_type<picture, nn::flatten, nn::flatten>>(bind<many>(2)) ==
        memory_value{input, input, 0, 0, 0});
  // Each worker has its part, and what it gathers.
  struct across : axis<4> {};
  using cut_rows = partition<mesh<across>, whole, whole, blocks<across>, whole>;
  using rows = tensor<cut_rows, shape<many, dim<4>, dim<8>, dim<8>>, double>;
  using gathered = sequential_type<rows, nn::repartition<partition<mesh<across>, whole, whole, whole, whole>>>;
  CHECK(peak_memory<gathered>(bind<many>(2)).forward == input / 4 + input);
}

}  // namespace tessera::testing
