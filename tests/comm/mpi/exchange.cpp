#include "tests/support/tensors.hpp"

#include <tessera/comm/mpi/exchange.hpp>

#include "tests/support/everywhere.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

bool fits(const mesh_value& m, int world) {
  for (int i = 0; i < m.size(); ++i)
    if (m.rank(m.at(i)) >= world) return false;
  return true;
}

mesh_value roll_fitting(dice& d, int world) {
  while (true)
    if (const mesh_value m = roll_mesh(d, std::min(world, 4)); fits(m, world)) return m;
}

/// A change between layouts that this world can hold.
layout_pair roll_change(dice& d, int world) {
  while (true) {
    const auto extents = roll_extents(d, 3, 6);
    const mesh_value first = roll_fitting(d, world);
    const mesh_value second = d.once_in(3) ? roll_fitting(d, world) : first;
    layout_pair p{roll_layout(d, first, extents, {true, true, true, true}),
                  roll_layout(d, second, extents, {d.once_in(2), true, true, false})};
    for (auto& dim : p.from.dims)
      if (dim.kind == cover::haloed) dim.kind = cover::pending;
    if (d.once_in(2)) {  // a source of tiles may go to a haloed target
      p.from = roll_layout(d, first, extents, {true, true, true, false});
      p.to = roll_layout(d, second, extents, {false, true, true, true});
    }
    if (check_change(p.from, p.to).ok()) return p;
  }
}

/// The change and its adjoint on one worker.
struct both_ways {
  at::Tensor y;
  at::Tensor gradient;
  index_t bytes = 0;
};

both_ways there_and_back(const std::shared_ptr<transport>& carrier, const layout_pair& p, const shards& x,
                         const shards& seed) {
  const auto r = static_cast<std::size_t>(carrier->rank());
  const auto team = std::make_shared<team_state>(carrier, p.from.mesh);
  const at::Tensor leaf = stored_as(x.local[r], static_cast<int>(r + x.local.size()) % 4).set_requires_grad(true);
  both_ways b;
  b.y = change_layout(team, p.from, p.to, leaf);
  b.gradient = torch::autograd::grad({b.y}, {leaf}, {seed.local[r]})[0];
  b.y = b.y.detach().clone();
  b.bytes = team->total.bytes;
  return b;
}

}  // namespace

TEST_CASE("every element arrives over MPI where it does between threads, to the bit, and bytes are those of the plan",
          "[law][runtime]") {
  constexpr std::uint64_t seed = 71;
  const boost::mpi::communicator ranks;
  const caching_allocator::service memory(launch_options{});
  shared_heap& heap = shared_heap::of_process();
  const mpi_options ways[]{{},
                           {.most_tags = 1 << 20, .smallest_piece = 16},
                           {.heap = &heap},
                           {.smallest_piece = 16, .heap = &heap, .per_node = 2}};
  std::vector<std::shared_ptr<transport>> carriers;
  for (const mpi_options& w : ways) carriers.push_back(std::make_shared<mpi_transport>(ranks, w));
  prepare_worker();
  dice d{seed};
  std::string said;
  for (int round = 0; round < 120; ++round) {
    const layout_pair p = roll_change(d, ranks.size());
    const numbers f{d.next()};  // numbers that round: the order of a sum shows
    const shards x = deal(p.from, ranks.size(), f);
    const shards y = deal(cotangent(p.to), ranks.size(), numbers{f.salt + 1});
    const both_ways mine = there_and_back(carriers[static_cast<std::size_t>(round) % carriers.size()], p, x, y);
    const index_t moved = boost::mpi::all_reduce(ranks, mine.bytes, std::plus<index_t>());
    const auto threads =
        on_workers(ranks.size(), [&](const std::shared_ptr<transport>& c) { return there_and_back(c, p, x, y); });
    std::string why = threads.errors();
    if (threads.well()) {
      std::vector<at::Tensor> all;
      for (const auto& r : threads.results) all.push_back(r->y);
      if (distance(p.to, all, x.global) > 1e-13) why += "elements off between threads; ";
      if (!oracle::held(p.to, ranks.rank()).empty() && !same_bits(mine.y, threads.of(ranks.rank()).y))
        why += "other bits than between threads; ";
      if (!oracle::held(p.from, ranks.rank()).empty() && !same_bits(mine.gradient, threads.of(ranks.rank()).gradient))
        why += "gradient of other bits; ";
      const index_t planned = cost_of(change_between(p.from, p.to)).total +
                              cost_of(change_between(cotangent(p.to), cotangent(p.from))).total;
      if (moved != 8 * planned) why += fmt::format("{} bytes instead of {}", moved, 8 * planned);
    }
    if (!why.empty() && said.size() < 2000)
      said += fmt::format("seed {} round {}: {}\n  {}\n  {}\n", seed, round, why, shown(p.from), shown(p.to));
  }
  const bool right = everywhere(ranks, said.empty());
  INFO(said);
  CHECK(right);
}

TEST_CASE("processes of one node see one another's memory, and of two nodes not", "[runtime]") {
  const boost::mpi::communicator ranks;
  shared_heap& heap = shared_heap::of_process();
  heap.open();
  const auto near = [&](const mpi_options& options, auto&& wanted) {
    const mpi_transport carrier(ranks, options);
    bool right = true;
    for (int r = 0; r < ranks.size(); ++r)
      if (r != ranks.rank()) right = right && carrier.same_node(r) == wanted(r);
    return everywhere(ranks, right);
  };
  shared_heap none;  // that was not opened, on the last one
  CHECK(near({.heap = &heap}, [](int) { return true; }));
  CHECK(near({.heap = &heap, .per_node = 2}, [&](int r) { return r / 2 == ranks.rank() / 2; }));
  CHECK(near({}, [](int) { return false; }));
  CHECK(near({.heap = ranks.rank() + 1 == ranks.size() ? &none : &heap}, [](int) { return false; }));
}

TEST_CASE("copies that an all_reduce leaves have the same bits on all ranks", "[runtime]") {
  const boost::mpi::communicator ranks;
  const auto carrier = std::make_shared<mpi_transport>(ranks);
  layout from;
  from.mesh.axes.push({text{"a"}, ranks.size(), 1});
  from.placements.resize(1);
  from.placements[0] = {placement::partial};
  from.dims.resize(1);
  from.dims[0].extent = 1000;
  layout to = from;
  to.placements[0] = {placement::invariant};
  const shards x = deal(from, ranks.size(), numbers{9});
  const auto team = std::make_shared<team_state>(carrier, from.mesh);
  const at::Tensor y = change_layout(team, from, to, x.local[static_cast<std::size_t>(ranks.rank())]);
  const at::Tensor bits = y.view(at::kLong);
  bool alike = true;
  for (const index_t i : {index_t{0}, index_t{1}, index_t{499}, index_t{999}}) {
    const index_t mine = bits[i].item<index_t>();
    alike = alike && boost::mpi::all_reduce(ranks, mine, boost::mpi::minimum<index_t>()) ==
                         boost::mpi::all_reduce(ranks, mine, boost::mpi::maximum<index_t>());
  }
  const bool right = everywhere(ranks, alike && (y - x.global).abs().max().item<double>() < 1e-13);
  CHECK(right);
}

TEST_CASE("a team of part of the world leaves the others idle", "[refusal][runtime]") {
  const boost::mpi::communicator ranks;
  const auto carrier = std::make_shared<mpi_transport>(ranks);
  const int busy = (ranks.size() + 1) / 2;
  layout x;
  x.mesh.axes.push({text{"a"}, busy, 1});
  x.mesh = row_major(x.mesh, ranks.size() - busy);  // the last ranks
  x.placements.resize(1);
  x.dims.resize(1);
  x.dims[0].extent = 2 * busy + 1;
  layout everywhere_there = x;
  x.cut_by(0, 0);
  const auto team = std::make_shared<team_state>(carrier, x.mesh);
  const bool inside = ranks.rank() >= ranks.size() - busy;
  const at::Tensor all = at::arange(2 * busy + 1, at::kDouble);
  const tensor<dyn> mine = tessera::detail::distribute_value(team, x, element::float64, all);
  const at::Tensor gathered = change_layout(team, x, everywhere_there, mine.local());
  bool right = team->inside() == inside && (inside ? at::equal(gathered, all) : gathered.numel() == 0);
  right = everywhere(ranks, right);
  CHECK(right);
  std::string says;
  try {
    right = at::equal(full_tensor(mine), all);
  } catch (const error& e) {
    says = e.code();
  }
  // no worker of the team waits for it
  right = everywhere(ranks, inside ? right && says.empty() : says == "tessera.value.outside");
  CHECK(right);
}

TEST_CASE("the first rank prints what each rank of a mesh says, in the order of the mesh", "[runtime]") {
  const boost::mpi::communicator ranks;
  const auto carrier = std::make_shared<mpi_transport>(ranks);
  mesh_value turned;
  turned.axes.push({text{"a"}, ranks.size(), -1});
  turned.first = ranks.size() - 1;  // the last rank is the first of the mesh
  const auto team = std::make_shared<team_state>(carrier, turned);
  std::FILE* const to = std::tmpfile();
  print_in_order(
      team, std::string(static_cast<std::size_t>(40 * ranks.rank() + 1), static_cast<char>('a' + ranks.rank())), to);
  std::rewind(to);
  std::string text(10'000, ' ');
  text.resize(std::fread(text.data(), 1, text.size(), to));
  std::fclose(to);
  std::string wanted;
  for (int r = ranks.size() - 1; r >= 0; --r)
    wanted += std::string(static_cast<std::size_t>(40 * r + 1), static_cast<char>('a' + r)) + '\n';
  const bool right = everywhere(ranks, text == (ranks.rank() == ranks.size() - 1 ? wanted : ""));
  CHECK(right);
}
