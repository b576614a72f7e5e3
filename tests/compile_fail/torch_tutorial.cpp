// The mistake of docs/tutorial.md.
#include <tessera/tessera.hpp>

namespace ts = tessera;

struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;
using tiles = ts::partition<grid, ts::blocks<row>, ts::blocks<col>>;
using rows = ts::partition<grid, ts::blocks<row>, ts::whole>;
using activations = ts::tensor<tiles, ts::shape_of<5, 7>, double>;
using matrix = ts::tensor<ts::partition<grid, ts::blocks<col>, ts::whole>, ts::shape_of<7, 4>, double>;

inline auto control(const activations& x, const matrix& w) { return ts::relu(ts::all_reduce<rows>(ts::matmul(x, w))); }

#if defined(RELU_OF_A_PRODUCT)  // expect: [tessera.rule.nonlinear] && nonlinear_on_partial<1, 0>
// [mistake]
auto layer(const activations& x, const matrix& w) { return ts::relu(ts::matmul(x, w)); }
// [end]
#endif
