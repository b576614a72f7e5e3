// Tessera inside an MPI code: an MPI_Init of its own, its Cartesian communicator, its fields in plain arrays with
// ghosts (mpirun -np 4).
#include <tessera/comm/from_cartesian.hpp>
#include <tessera/tessera.hpp>

#include <cmath>

namespace ts = tessera;

// [types]
struct y : ts::axis<2> {};
struct x : ts::axis<2> {};
using plane = ts::mesh<y, x>;  // the dimensions of the communicator, in MPI's order
// of the whole field; parts of 6 and 5 rows, 4 and 3 columns
constexpr ts::index_t rows = 11, columns = 7;
using shape = ts::shape_of<1, 1, rows, columns>;
using field = ts::tensor<ts::partition<plane, ts::whole, ts::whole, ts::blocks<y>, ts::blocks<x>>, shape, double>;

// What a 3 x 3 stencil reads: a ring along y, ends along x. Beyond an end nothing is held.
using smoothing = ts::nn::conv<1, ts::kernel<3, 3>, ts::padding<1>,
                               ts::padding_mode<ts::boundary::periodic, ts::boundary::zero>, ts::no_bias>;
constexpr ts::layer_plan stencil = smoothing::plan(ts::value_of<field>);
using with_ghosts = ts::tensor<
    ts::partition<plane, ts::whole, ts::whole, ts::haloed<ts::blocks<y>, rows, 1, -1, 1, 1, ts::boundary::periodic>,
                  ts::haloed<ts::blocks<x>, columns, 1, -1, 1>>,
    shape, double>;
static_assert(stencil.used() == ts::value_of<with_ghosts>.layout);
// [end]

// [array]
/// A field as this code keeps it: an array with a frame of ghosts, one wide, whatever the process.
struct plain_field {
  ts::index_t height, width;  // without ghosts
  std::vector<double> u = std::vector<double>(static_cast<std::size_t>((height + 2) * (width + 2)));

  double& at(ts::index_t i, ts::index_t j) { return u[static_cast<std::size_t>((i + 1) * (width + 2) + j + 1)]; }
  /// Rows from i and columns from j on, as LibTorch sees them: no copy.
  at::Tensor view(ts::index_t i, ts::index_t j, ts::index_t tall, ts::index_t wide) {
    return at::from_blob(&at(i, j), {1, 1, tall, wide}, {0, 0, width + 2, 1}, at::kDouble);
  }
};
// [end]

double value(ts::index_t i, ts::index_t j) { return std::sin(static_cast<double>(3 * i + 5 * j)); }

/// The same in one process.
at::Tensor whole_field() {
  at::Tensor all = at::empty({1, 1, rows, columns}, at::kDouble);
  for (ts::index_t i = 0; i < rows; ++i)
    for (ts::index_t j = 0; j < columns; ++j) all[0][0][i][j] = value(i, j);
  return all;
}
at::Tensor smoothed(const at::Tensor& u, const at::Tensor& weight) {
  return at::conv2d(at::constant_pad_nd(at::pad(u, {0, 0, 1, 1}, "circular"), {1, 1}), weight);
}

/// A part of the field on a Cartesian communicator; whether all is as in one process.
bool on_a_grid(MPI_Comm communicator) {
  // [grid]
  // refuses another grid; neighbours as MPI_Cart_shift finds them
  const auto grid = ts::from_cartesian<plane>(communicator);
  const ts::team<plane> workers = grid.workers();
  const ts::box mine = ts::box_of(ts::value_of<field>.layout, workers.rank());  // [0,1) [0,1) [0,6) [4,7)
  const bool ends_left = grid.neighbour<x>(-1) == MPI_PROC_NULL, ends_right = grid.neighbour<x>(1) == MPI_PROC_NULL;
  // [end]
  plain_field u{mine[2].size(), mine[3].size()};
  for (ts::index_t i = 0; i < u.height; ++i)
    for (ts::index_t j = 0; j < u.width; ++j) u.at(i, j) = value(mine[2].lo + i, mine[3].lo + j);

  // [ghosts]
  // The ghosts come straight into the array: the exchange reads its inside and writes its frame, and copies nothing
  // else.
  const at::Tensor inside = u.view(0, 0, u.height, u.width);
  const at::Tensor framed =
      u.view(-1, ends_left ? 0 : -1, u.height + 2, u.width + (ends_left ? 0 : 1) + (ends_right ? 0 : 1));
  static constexpr ts::change fill = ts::change_between(ts::value_of<field>.layout, ts::value_of<with_ghosts>.layout);
  for (const ts::phase& one : ts::phases_of(fill))
    workers.state()
        ->bound(one, ts::element::float64)
        ->start(ts::engine::region_of(inside), ts::engine::region_of(framed, true), {}, true)
        .finish();
  // [end]

  // [network]
  // An array with its ghosts is a tensor: a layer that needs just these begins no exchange.
  using net_type = ts::nn::sequential<with_ghosts, smoothing>;
  static_assert(ts::traffic<net_type>().forward.bytes == 0);
  const net_type net{workers, ts::seed{7}};
  const auto held = ts::from_local<with_ghosts>(workers, framed);
  const field result = net(held);
  inside.copy_(result.local().detach());  // and back: the field is one step further
  // [end]
  const at::Tensor weight = ts::nn::state_of(net).at("0.weight");
  at::Tensor serial = whole_field();
  const auto part = [&](const at::Tensor& all) {
    return all.slice(2, mine[2].lo, mine[2].hi).slice(3, mine[3].lo, mine[3].hi);
  };
  bool right = at::allclose(inside, part(smoothed(serial, weight)), 1e-12, 1e-12);

  // [gradient]
  // A gradient goes into an array of this code, beside an exchange that the layer makes itself.
  std::vector<double> gradient(static_cast<std::size_t>(u.height * u.width));
  const at::Tensor collects = at::from_blob(gradient.data(), {1, 1, u.height, u.width}, at::kDouble);
  field begin = ts::from_local<field>(workers, part(serial).clone());
  begin.requires_grad();
  begin.local().mutable_grad() = collects;
  const ts::nn::sequential<field, smoothing> step{net.at()};  // the same weights
  const field end = step(begin);
  ts::sum(end * end).backward();
  // [end]
  serial.requires_grad_();
  smoothed(serial, weight).square().sum().backward();
  right = right && at::allclose(collects, part(serial.grad()), 1e-12, 1e-12);
  right = right && begin.local().grad().data_ptr() == gradient.data();
  workers.state()->carrier().synchronise();
  return right;
}

// [subset]
/// Some processes of a communicator, in another order: a team on whatever communicator there is.
bool on_some(MPI_Comm world) {
  int rank = 0;
  MPI_Comm_rank(world, &rank);
  MPI_Comm some = MPI_COMM_NULL;
  MPI_Comm_split(world, rank < 3 ? 0 : MPI_UNDEFINED, -rank, &some);  // the first three, backwards
  if (some == MPI_COMM_NULL) return true;
  struct along : ts::axis<3> {};
  using line = ts::mesh<along>;
  using numbers = ts::tensor<ts::partition<line, ts::blocks<along>>, ts::shape_of<8>, double>;
  bool right = false;
  {
    const ts::team<line> workers(
        std::make_shared<ts::mpi_transport>(boost::mpi::communicator(some, boost::mpi::comm_attach)));
    const auto all = ts::distribute<numbers>(workers, at::arange(8, at::kDouble));
    const auto total = ts::all_reduce<ts::partition<line, ts::invariant<along>>>(ts::sum(all));
    right = workers.rank() == 2 - rank && ts::item(total) == 28;
    workers.state()->carrier().synchronise();
  }
  MPI_Comm_free(&some);
  return right;
}
// [end]

// [main]
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size != 4) {
    if (rank == 0) fmt::print(stderr, "start four processes: mpirun -np 4 {}\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int right = 0;
  try {
    const int extents[]{2, 2}, rings[]{1, 0};
    MPI_Comm communicator = MPI_COMM_NULL;
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, rings, 1, &communicator);
    right = on_a_grid(communicator) && on_some(MPI_COMM_WORLD);  // teams end before MPI does
    MPI_Comm_free(&communicator);
  } catch (const std::exception& e) {  // nobody waits for a process that threw
    fmt::print(stderr, "{}\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int all = 0;
  MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) fmt::print("{}\n", all != 0 ? "as in one process" : "other numbers than in one process");
  MPI_Finalize();
  return all != 0 ? 0 : 1;
}
// [end]
