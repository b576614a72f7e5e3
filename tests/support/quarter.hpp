#pragma once
// Six numbers over two by two workers: in parts, as terms, as copies.

#include "tests/support/tensors.hpp"

namespace tessera::testing {

using namespace engine;

struct north : axis<2> {};
struct east : axis<2> {};
using quarter = mesh<north, east>;
using on_all = tensor<partition<quarter, blocks<north, east>>, shape_of<6>, double>;
using terms_of_four = tensor<partition<quarter, whole, partial<north, east>>, shape_of<6>, double>;
using alike_on_four = partition<quarter, whole, invariant<north, east>>;

}  // namespace tessera::testing
