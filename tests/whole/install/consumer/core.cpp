#include <tessera/core.hpp>

#include <cstdio>

namespace ts = tessera;

struct row : ts::axis<2> {};
struct col : ts::axis<3> {};
using tiles = ts::tensor<ts::partition<ts::mesh<row, col>, ts::blocks<row>, ts::blocks<col>>, ts::shape_of<10, 7>>;
using copies = ts::tensor<ts::partition<ts::mesh<row, col>, ts::whole, ts::whole>, ts::shape_of<10, 7>>;
constexpr ts::cost gathered =
    ts::engine::cost_of(ts::change_between(ts::value_of<tiles>.layout, ts::value_of<copies>.layout));
static_assert(gathered.total == 5 * 70);

int main() { std::printf("%d\n", static_cast<int>(gathered.total)); }
