#pragma once
// Images over a grid of two by two workers, and what layers make of them.

#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

struct row : axis<2> {};
struct col : axis<2> {};
struct batch : dyn {};
using grid = mesh<row, col>;
using image =
    tensor<partition<grid, whole, whole, blocks<row>, blocks<col>>, shape<batch, dim<3>, dim<9>, dim<8>>, double>;

template <class... Layers>
using after = typename sequential_type<image, Layers...>::output;

}  // namespace tessera::testing
