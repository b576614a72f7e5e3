#include "tests/support/tensors.hpp"

#include <tessera/comm/from_cartesian.hpp>

#include "tests/support/everywhere.hpp"

using namespace tessera;
using namespace tessera::testing;

namespace {

/// A Cartesian communicator that goes with its scope.
struct grid_of {
  MPI_Comm made = MPI_COMM_NULL;
  grid_of(MPI_Comm from, const std::vector<int>& extents, const std::vector<int>& rings, bool reorder = false) {
    MPI_Cart_create(from, static_cast<int>(extents.size()), extents.data(), rings.data(), reorder ? 1 : 0, &made);
  }
  ~grid_of() {
    if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
  }
};

/// The code by which something is refused, or nothing.
template <class F>
std::string refused_by(const F& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  return "";
}

/// What a team on a Cartesian communicator gets wrong: coordinates, neighbours, and a ring of numbers that it sends
/// itself.
std::string wrong_on(MPI_Comm grid, const cartesian_workers& made) {
  int dims = 0, rank = 0;
  MPI_Cartdim_get(grid, &dims);
  MPI_Comm_rank(grid, &rank);
  std::vector<int> extents(static_cast<std::size_t>(dims)), rings = extents, at = extents;
  MPI_Cart_get(grid, dims, extents.data(), rings.data(), at.data());
  std::string why;
  if (made.team()->rank() != rank) why += "another rank; ";
  for (int a = 0; a < dims; ++a) {
    const auto i = static_cast<std::size_t>(a);
    if (made.mesh().axes[a].extent != extents[i] || made.team()->at()[a] != at[i]) why += "other coordinates; ";
    if (made.is_ring(a) != (rings[i] != 0)) why += "another kind of axis; ";
    for (const int steps : {-3, -1, 0, 1, 2}) {
      int before = 0, behind = 0;
      MPI_Cart_shift(grid, a, steps, &before, &behind);
      if (steps != 0 && (made.neighbour(a, steps) != behind || made.neighbour(a, -steps) != before))
        why += fmt::format("axis {} by {}: another neighbour; ", a, steps);
    }
  }
  layout tiles;  // a table, cut by the first axis and the last
  tiles.mesh = made.mesh();
  tiles.placements.resize(dims);
  tiles.dims.resize(2);
  for (int d = 0; d < 2; ++d) tiles.dims[d].extent = 5 + d;
  tiles.cut_by(0, 0);
  if (dims > 1) tiles.cut_by(1, dims - 1);
  const at::Tensor table = global_of({5, 6}, numbers{3});
  const tensor<dyn> x = distribute(made.team(), tiles, table);
  if (!at::equal(full_tensor(x), table)) why += "other elements; ";
  made.team()->carrier().synchronise();
  return why;
}

}  // namespace

TEST_CASE(
    "a Cartesian communicator is a team: its ranks, coordinates and neighbours, rings and ends, reordered, of some "
    "processes",
    "[runtime]") {
  const boost::mpi::communicator world;
  prepare_worker();
  std::string why;
  const int n = world.size();
  const std::vector<std::vector<int>> shapes = n == 4 ? std::vector<std::vector<int>>{{4}, {2, 2}, {1, 4}, {2, 1, 2}}
                                                      : std::vector<std::vector<int>>{{n}, {1, n}, {n, 1}};
  const char* const names[]{"a", "b", "c"};
  for (const auto& extents : shapes)
    for (const int rings : {0, 1, 2}) {
      std::vector<int> periods;
      for (std::size_t a = 0; a < extents.size(); ++a) periods.push_back(rings == 1 || (rings == 2 && a == 0));
      // Backwards, as MPI may reorder them, and on all of them or all but one.
      MPI_Comm backwards = MPI_COMM_NULL;
      MPI_Comm_split(world, 0, -world.rank(), &backwards);
      const grid_of grid(backwards, extents, periods, true);
      MPI_Comm_free(&backwards);
      if (extents.size() == 1) why += wrong_on(grid.made, from_cartesian(grid.made, {names[0]}));
      else if (extents.size() == 2) why += wrong_on(grid.made, from_cartesian(grid.made, {names[0], names[1]}));
      else why += wrong_on(grid.made, from_cartesian(grid.made, {names[0], names[1], names[2]}));
    }
  if (n > 1) {
    const grid_of some(world, {n - 1}, {1});
    if (some.made != MPI_COMM_NULL) why += wrong_on(some.made, from_cartesian(some.made, {"a"}));
    const std::string none = refused_by([&] { from_cartesian(some.made, {"a"}); });
    if ((some.made == MPI_COMM_NULL) != (none == "tessera.mpi.cartesian")) why += "who is not in it: " + none;
  }
  if (n == 4) {
    struct north : axis<2> {};
    struct east : axis<2> {};
    const grid_of grid(world, {2, 2}, {1, 0}, true);
    const auto made = from_cartesian<mesh<north, east>>(grid.made);
    why += wrong_on(grid.made, made);
    int before = 0, behind = 0;
    MPI_Cart_shift(grid.made, 1, 1, &before, &behind);
    if (made.neighbour<east>() != behind || made.neighbour<east>(-1) != before || !made.is_ring<north>() ||
        made.is_ring<east>())
      why += "typed: another neighbour; ";
    if (!made.workers().inside()) why += "outside; ";
  }
  const bool right = everywhere(world, why.empty());
  INFO(why);
  CHECK(right);
}

TEST_CASE(
    "what is no Cartesian communicator, or another grid than the mesh, is refused on each process, and nothing is "
    "lost",
    "[refusal]") {
  const boost::mpi::communicator world;
  struct line : axis<3> {};
  struct other : axis<2> {};
  const int n = world.size();
  const grid_of grid(world, {n, 1}, {0, 0});
  std::string why;
  const auto expect = [&](const char* code, const auto& f) {
    if (const std::string by = refused_by(f); by != code) why += fmt::format("{} instead of {}; ", by, code);
  };
  expect("tessera.mpi.cartesian", [&] { from_cartesian(world, {"a"}); });
  expect("tessera.mpi.cartesian", [&] { from_cartesian<mesh<line>>(MPI_COMM_NULL); });
  expect("tessera.mpi.grid", [&] { from_cartesian(grid.made, {"a"}); });
  expect("tessera.mpi.grid", [&] { from_cartesian<mesh<line>>(grid.made); });
  expect("tessera.mpi.grid", [&] { from_cartesian<mesh<extent<line, 7>, other>>(grid.made); });
  expect("tessera.mesh.twice", [&] { from_cartesian(grid.made, {"a", "a"}); });
  why += wrong_on(grid.made, from_cartesian(grid.made, {"a", "b"}));
  const bool right = everywhere(world, why.empty());
  INFO(why);
  CHECK(right);
}
