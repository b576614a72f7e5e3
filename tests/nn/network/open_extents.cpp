#include "tests/support/tensors.hpp"

// Networks whose types leave extents open run as those that know them: behind windows, too, where extents have no name.

namespace tessera::testing::open_extents {

using namespace engine;

namespace {

struct first : axis<2> {};
struct second : axis<2> {};
using grid = mesh<first, second>;
struct samples : dyn {};
struct width : dyn {};

template <class Width>
using lines = tensor<partition<grid, whole, blocks<first, second>, whole>, shape<samples, dim<8>, Width>, double>;
template <class Width>
using pieces = tensor<partition<grid, whole, blocks<first>, blocks<second>>, shape<samples, dim<8>, Width>, double>;

/// What a network gives of 2 samples 16 wide, as a whole, on this worker.
template <class In, class... Layers>
at::Tensor given(const team<grid>& t) {
  const nn::sequential<In, Layers...> net{t, seed{1}};
  const auto y = net(distribute<In>(t, global_of({2, 8, 16}, numbers{3})));
  y.local().square().sum().backward();
  return to<partition<grid, whole, whole, whole>>(y).local().detach();
}

template <template <class> class In, class... Layers>
void judge() {
  const auto run = in_team<grid>([](const team<grid>& t) -> std::string {
    const at::Tensor open = given<In<width>, Layers...>(t);
    const at::Tensor known = given<In<dim<16>>, Layers...>(t);
    return open.sizes() == known.sizes() && at::allclose(open, known, 1e-9, 1e-12) ? "" : "gives something else";
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& told : run.results) CHECK(told->empty());
}

}  // namespace

TEST_CASE("a network whose type leaves extents open gives what one gives that knows them", "[runtime]") {
  judge<lines, nn::conv<2, kernel<3>>>();
  judge<lines, nn::conv<8, kernel<3>, padding<4>>, nn::conv<3, kernel<3>, stride<2>>>();
  judge<lines, nn::conv<8, kernel<14>>, nn::conv<10, kernel<3>>>();  // 3 wide the other cut were the cheaper one
  judge<lines, nn::conv_transpose<2, kernel<2>, stride<4>>, nn::conv_transpose<12, kernel<3>, stride<2>>>();
  judge<pieces, nn::conv_transpose<2, kernel<5>, stride<2>>, nn::conv<4, kernel<3>, padding<1>>,
        nn::conv_transpose<8, kernel<4>, stride<2>, padding<1>>>();
}

}  // namespace tessera::testing::open_extents
