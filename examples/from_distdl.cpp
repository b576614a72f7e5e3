// The programs of docs/from-distdl.md: what DistDL names, spelled here, each held against numbers worked out by hand or
// serially.
#include <tessera/tessera.hpp>

#include <stdexcept>

namespace ts = tessera;

namespace {

/// Every worker calls it; the first one that finds a number wrong ends the program.
void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}
void expect_equal(const at::Tensor& got, const at::Tensor& wanted, const char* what) {
  expect(got.sizes() == wanted.sizes() && at::allclose(got, wanted, 1e-12, 1e-12), what);
}

// [mesh]
struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;  // a Cartesian partition of shape [2, 2] on world ranks 0 1 / 2 3

struct few : ts::axis<2> {};
using pair = ts::on_ranks<ts::mesh<few>, 3, 1>;  // a partition of ranks 3 and 1, in this order
using odd = ts::placed<ts::mesh<few>, 1, 2>;     // ranks 1 and 3: first + stride · coordinate
using upper = ts::fixed<grid, row, 0>;           // the sub-topology that keeps col, at row 0: ranks 0 and 1

static_assert(grid::value.size() == 4);
static_assert(pair::value.rank(pair::value.at(0)) == 3 && !pair::value.contains(0));
static_assert(upper::value.contains(1) && !upper::value.contains(2));
// [end]

// [neighbours]
constexpr ts::mesh_value world = grid::value;
constexpr ts::coordinates here = world.at(2);                     // row 1, col 0
static_assert(ts::neighbour<row>(world, here, -1) == 0);          // the rank one row up
static_assert(ts::neighbour<row>(world, here, +1) == -1);         // there is none below
static_assert(ts::neighbour_on_ring<row>(world, here, +1) == 0);  // wrapped
// the workers that differ in col alone
constexpr ts::mesh_value my_row = ts::line_through<ts::along<col>>(world, here);
static_assert(my_row.size() == 2 && my_row.contains(2) && my_row.contains(3));
// [end]

// [decomposition]
using ten = ts::tensor<ts::partition<ts::mesh<ts::extent<row, 4>>, ts::blocks<row>>, ts::shape_of<10>>;  // 3 3 2 2
static_assert(ts::box_of(ts::value_of<ten>.layout, 2)[0].lo == 6 && ts::box_of(ts::value_of<ten>.layout, 2)[0].hi == 8);
static_assert(ts::cut(10, 4, 2) == 6);  // the one formula behind it: start of part 2 of 10 over 4
// [end]

/// The same with layouts as values, known at run time alone.
void values(const ts::team<grid>& team) {
  const auto transport = team.state()->shared_carrier();
  const int rank = team.rank();
  // [values]
  const std::vector<int> ranks{3, 0, 2};  // from a file, a command line, …
  ts::mesh_value mesh;
  mesh.axes.push({ts::text("worker"), 3, 1});
  mesh = ts::row_major(mesh, 0, ranks.data());  // coordinate k sits on ranks[k]

  ts::layout cut;  // [8, 2], the first dimension cut: 3 3 2
  cut.mesh = mesh;
  cut.placements.resize(1);  // one for each axis, replicate unless said
  cut.dims.resize(2);
  cut.dims[0].extent = 8;
  cut.dims[1].extent = 2;
  cut.cut_by(0, 0);
  ts::layout copies = cut;
  copies.set_placement(0, {});  // replicate
  ts::layout terms = cut;
  terms.set_placement(0, {ts::placement::partial});

  const auto workers = std::make_shared<ts::team_state>(transport, mesh);  // a team keeps a list of ranks of its own
  // global indices of this worker's part; empty on rank 1
  const ts::box mine = ts::box_of(cut, rank);
  const ts::tensor<ts::dyn> x(workers, cut, at::full({mine[0].size(), mine[1].size()}, 1.0 + rank, at::kDouble));
  const ts::tensor<ts::dyn> all = ts::to(copies, x);  // an all_gather, found by the engine
  const ts::tensor<ts::dyn> sums = ts::to(cut, ts::tensor<ts::dyn>(workers, terms, all.local()));  // a reduce_scatter
  // [end]
  const at::Tensor first =
      at::tensor({4.0, 4.0, 4.0, 1.0, 1.0, 1.0, 3.0, 3.0}, at::kDouble).unsqueeze(1).expand({8, 2});
  expect_equal(all.local(), rank == 1 ? at::empty({0, 0}, at::kDouble) : first, "a dynamic all_gather");
  expect_equal(sums.local(), 3 * x.local(), "a dynamic reduce_scatter");
}

// [broadcast]
// Each worker of the smaller mesh has a tensor [3] of its own: one more dimension in front, cut over the mesh.
using roots = ts::tensor<ts::partition<ts::mesh<few>, ts::blocks<few>, ts::whole>, ts::shape_of<2, 3>, double>;
// P_x [2, 1] to P_y [2, 2]: matched along row, copies along col.
using to_rows = ts::partition<grid, ts::blocks<row>, ts::whole>;
// The same with transpose_src: [2, 1] read backwards is [1, 2], so col is matched and row gets copies.
using to_cols = ts::partition<grid, ts::blocks<col>, ts::whole>;
// [end]

void broadcast_and_sum_reduce(const ts::team<grid>& team) {
  const auto few_team = team.over<ts::mesh<few>>();  // ranks 0 and 1; 2 and 3 hold empty tensors
  const int rank = team.rank();
  // [broadcast-run]
  const at::Tensor own = rank < 2 ? at::full({1, 3}, 10.0 * rank, at::kDouble) : at::empty({0, 0}, at::kDouble);
  auto x =
      ts::from_local<roots>(few_team, own.set_requires_grad(true));  // on all workers, so all take part in backward
  const auto y = ts::to<to_rows>(x);                                 // Broadcast(P_x, P_y)
  const auto z = ts::to<to_cols>(x);                                 // Broadcast(P_x, P_y, transpose_src=True)
  // [end]
  expect_equal(y.local(), at::full({1, 3}, rank / 2 * 10.0, at::kDouble), "a broadcast along columns");
  expect_equal(z.local(), at::full({1, 3}, rank % 2 * 10.0, at::kDouble), "a transposed broadcast");

  // [sum-reduce]
  using terms =
      ts::tensor<ts::partition<grid, ts::blocks<row>, ts::whole, ts::partial<col>>, ts::shape_of<2, 3>, double>;
  const auto t = ts::from_local<terms>(team, at::full({1, 3}, 1.0 + rank, at::kDouble));
  const auto s = ts::to<roots::partition_type>(t);  // SumReduce: the adjoint of the broadcast
  // [end]
  expect_equal(s.local(),
               rank < 2 ? at::full({1, 3}, rank == 0 ? 3.0 : 7.0, at::kDouble) : at::empty({0, 0}, at::kDouble),
               "a sum to fewer workers");
  // ⟨F x, y⟩ = ⟨x, F* y⟩ with y as the cotangent.
  const at::Tensor back = torch::autograd::grad({y.local()}, {x.local()}, {t.local()})[0];
  expect_equal(back, s.local(), "the gradient of a broadcast is the sum");
}

// [groups]
// The published pair [2, 3] -> [4, 3, 2] with transpose_src. The matched axes have 6 workers on both sides. Each side
// counts its own in row-major order, and equal numbers form a group.
struct s0 : ts::axis<2> {};
struct s1 : ts::axis<3> {};
struct l0 : ts::axis<4> {};
struct l1 : ts::axis<3> {};
struct l2 : ts::axis<2> {};
using one_each = ts::tensor<ts::partition<ts::mesh<s0, s1>, ts::blocks<ts::product<s0, s1>>>, ts::shape_of<6>>;
using copied = ts::tensor<ts::partition<ts::mesh<l0, l1, l2>, ts::blocks<ts::product<l1, l2>>>, ts::shape_of<6>>;
using spread = ts::primitive<one_each, copied>;
static_assert(spread::verb == ts::verb::repartition);
static_assert(spread::cost().total == 6 * 4 - 6);  // 24 workers of the larger mesh need a copy, 6 of them have it
// [end]
constexpr bool groups_are_row_major() {
  constexpr ts::layout from = ts::value_of<one_each>.layout;
  constexpr ts::layout to = ts::value_of<copied>.layout;
  for (int i = 0; i < 24; ++i)
    if (ts::box_of(to, i)[0].lo != i % 6 || ts::box_of(to, i)[0].size() != 1) return false;
  for (int i = 0; i < 6; ++i)
    if (ts::box_of(from, i)[0].lo != i) return false;
  return true;
}
static_assert(groups_are_row_major());

void sums_over_axes(const ts::team<grid>& team) {
  const int rank = team.rank();
  const at::Tensor ones = at::full({3}, 1.0 + rank, at::kDouble);
  // [all-sum-reduce]
  using terms = ts::tensor<ts::partition<grid, ts::whole, ts::partial<row, col>>, ts::shape_of<3>, double>;
  const auto t = ts::from_local<terms>(team, ones);
  const auto everywhere = ts::all_reduce<ts::partition<grid, ts::whole>>(t);  // AllSumReduce over both axes

  // Over row alone the workers of one column have terms of one sum: one more dimension, cut over col, keeps columns
  // apart.
  using of_columns =
      ts::tensor<ts::partition<grid, ts::blocks<col>, ts::whole, ts::partial<row>>, ts::shape_of<2, 3>, double>;
  const auto u = ts::from_local<of_columns>(team, ones.view({1, 3}));
  const auto down = ts::all_reduce<ts::partition<grid, ts::blocks<col>, ts::whole>>(u);
  // [end]
  expect_equal(everywhere.local(), at::full({3}, 10.0, at::kDouble), "a sum over all workers");
  expect_equal(down.local(), at::full({1, 3}, rank % 2 == 0 ? 4.0 : 6.0, at::kDouble), "a sum over the rows");
}

void gathered(const ts::team<grid>& team) {
  const at::Tensor whole = at::arange(35, at::kDouble).view({5, 7});
  // [all-gather]
  using tiles = ts::tensor<ts::partition<grid, ts::blocks<row>, ts::blocks<col>>, ts::shape_of<5, 7>, double>;
  using rows = ts::partition<grid, ts::blocks<row>, ts::whole>;
  const auto x = ts::distribute<tiles>(team, whole);  // 7 columns over 2: 4 and 3
  const auto y = ts::all_gather<rows>(x);             // AllGather(P_x, axis 1)

  using row_terms =
      ts::tensor<ts::partition<grid, ts::blocks<row>, ts::whole, ts::partial<col>>, ts::shape_of<5, 7>, double>;
  const auto t = ts::from_local<row_terms>(team, y.local());
  const auto z = ts::reduce_scatter<tiles::partition_type>(t);  // ReduceScatter(P_x, axis 1)
  // [end]
  const int r = team.coordinate<row>();
  expect_equal(y.local(), whole.narrow(0, r * 3, 3 - r), "an uneven all_gather");
  expect_equal(z.local(), 2 * x.local(), "an uneven reduce_scatter");

  // [repartition]
  // Uneven, from four workers to two others in another order; the workers in neither need not know.
  using uneven = ts::tensor<ts::partition<grid, ts::lengths<row, ts::dim<4>, ts::dim<1>>, ts::blocks<col>>,
                            ts::shape_of<5, 7>, double>;
  using columns = ts::partition<pair, ts::whole, ts::blocks<few>>;
  const auto v = ts::distribute<uneven>(team, whole);
  const auto w = ts::to<columns>(v);  // Repartition(P_x, P_y)
  // [end]
  const at::Tensor none = at::empty({0, 0}, at::kDouble);
  const at::Tensor wanted = team.rank() == 3 ? whole.narrow(1, 0, 4) : team.rank() == 1 ? whole.narrow(1, 4, 3) : none;
  expect_equal(w.local(), wanted, "a repartition onto two other workers");
}

void halos(const ts::team<grid>& team) {
  const at::Tensor whole = at::arange(10, at::kDouble);
  // [halo]
  // 10 over 4 workers, kernel 2, stride 2: 5 outputs, output y needs inputs [2y, 2y + 2).
  struct line : ts::axis<4> {};
  using strip = ts::mesh<line>;
  constexpr ts::sliding kernel{2, 2, 0, 0, 1};  // kernel, stride, padding before and after, dilation
  constexpr ts::window w = kernel.needs();
  using parts = ts::tensor<ts::partition<strip, ts::blocks<line>>, ts::shape_of<10>, double>;
  using held = ts::partition<strip, ts::haloed<ts::blocks<line>, kernel.outputs(10), w.a, w.b, w.b2>>;
  const auto x = ts::distribute<parts>(team.over<strip>(), whole);
  const auto y = ts::halo_exchange<held>(x);  // HaloExchange
  // [end]
  const ts::index_t lo[4]{0, 4, 6, 8};
  const ts::index_t n[4]{4, 2, 2, 2};
  const auto r = static_cast<std::size_t>(team.rank());
  expect_equal(y.local(), whole.narrow(0, lo[r], n[r]), "DistDL's published halo, trimmed to what is needed");
}

void facts_about_workers(const ts::team<grid>& team) {
  const int rank = team.rank();
  // [facts]
  // allgather_data: a vector of integers of each worker, on all of them.
  using facts = ts::tensor<ts::partition<grid, ts::blocks<row, col>, ts::whole>, ts::shape_of<4, 2>, std::int64_t>;
  using known = ts::partition<grid, ts::whole, ts::whole, ts::invariant<row, col>>;
  const auto mine = ts::from_local<facts>(team, at::full({1, 2}, rank, at::kLong));
  const at::Tensor table = ts::all_gather<known>(mine).local();  // row r is that of rank r

  // allreduce_data: sum, max, min, prod, and the logical any and all.
  using largest = ts::tensor<ts::partition<grid, ts::partial<row, col, ts::max>>, ts::shape<>, std::int64_t>;
  const auto most = ts::all_reduce<ts::partition<grid, ts::invariant<row, col>>>(
      ts::from_local<largest>(team, at::full({}, rank, at::kLong)));

  // broadcast_data of unknown shape: a header of fixed size first, then the tensor with its extents bound.
  struct length : ts::dyn {};
  using on_first = ts::partition<grid, ts::whole, ts::on<ts::product<row, col>>>;
  using everywhere = ts::partition<grid, ts::whole, ts::invariant<row, col>>;
  const bool has = rank == 0;
  const ts::index_t n = ts::broadcast<everywhere>(ts::from_local<ts::tensor<on_first, ts::shape_of<1>, std::int64_t>>(
                                                      team, at::full({has ? 1 : 0}, 5, at::kLong)))
                            .local()
                            .item<ts::index_t>();
  const auto data = ts::broadcast<everywhere>(ts::from_local<ts::tensor<on_first, ts::shape<length>, double>>(
      team, has ? at::arange(n, at::kDouble) : at::empty({0}, at::kDouble), ts::bind<length>(n)));
  // [end]
  expect_equal(table, at::arange(4, at::kLong).unsqueeze(1).expand({4, 2}), "a table of facts");
  expect(ts::item(most) == 3, "the largest rank");
  expect_equal(data.local(), at::arange(5, at::kDouble), "a tensor of unknown shape");
}

void unknown_lengths(const ts::team<grid>& team) {
  const int row_length[]{1, 4};
  const at::Tensor box = at::full({row_length[team.coordinate<row>()], 2}, 1.0 + team.coordinate<row>(), at::kDouble);
  // [from_local]
  // Every worker has some rows and nobody knows how many the others have: the lengths are learned, one integer a
  // worker.
  struct samples : ts::dyn {};
  using some_rows =
      ts::tensor<ts::partition<grid, ts::lengths<row>, ts::blocks<col>>, ts::shape<samples, ts::dim<4>>, double>;
  const auto x = ts::from_local<some_rows>(team, box);
  const auto balanced = ts::repartition<ts::partition<grid, ts::blocks<row>, ts::blocks<col>>>(x);
  // [end]
  expect(x.layout().dims[0].extent == 5, "a learned extent");
  const at::Tensor whole = at::tensor({1.0, 2.0, 2.0, 2.0, 2.0}, at::kDouble).unsqueeze(1).expand({5, 2});
  const int r = team.coordinate<row>();
  expect_equal(balanced.local(), whole.narrow(0, 3 * r, 3 - r), "balanced from learned lengths");
}

void linear_on_three_meshes(const ts::team<grid>& team) {
  const at::Tensor xs = at::sin(at::arange(21, at::kDouble)).view({3, 7});
  const at::Tensor ws = at::cos(at::arange(35, at::kDouble)).view({5, 7});
  // [linear]
  // DistributedLinear: x on P_x [1, 2], w on P_w [2, 2], y on P_y [1, 2], each with workers of its own.
  using p_x = ts::mesh<few>;  // ranks 0 and 1
  using p_y = pair;           // ranks 3 and 1
  using p_w = grid;           // row cuts the outputs, col the inputs
  using input = ts::tensor<ts::partition<p_x, ts::whole, ts::blocks<few>>, ts::shape_of<3, 7>, double>;
  using weight = ts::tensor<ts::partition<p_w, ts::blocks<col>, ts::blocks<row>>, ts::shape_of<7, 5>, double>;
  const auto x = ts::distribute<input>(team.over<p_x>(), xs);
  const auto w = ts::distribute<weight>(team, ws.t());

  const auto used = ts::to<ts::partition<p_w, ts::whole, ts::blocks<col>>>(x);   // copies along row
  const auto terms = ts::matmul(used, w);                                        // whole, blocks<row>, partial<col>
  const auto y = ts::to<ts::partition<p_y, ts::whole, ts::blocks<few>>>(terms);  // summed over col
  // [end]
  const at::Tensor serial = at::matmul(xs, ws.t());
  const int rank = team.rank();
  const at::Tensor mine = rank == 3   ? serial.narrow(1, 0, 3)
                          : rank == 1 ? serial.narrow(1, 3, 2)
                                      : at::empty({0, 0}, at::kDouble);
  expect_equal(y.local(), mine, "a linear layer on three meshes");

  // [layer]
  // The same as a layer: it computes where its operand comes to, so its weight and bias lie on a mesh of their own.
  // It takes copies along row, and sums on P_w over col.
  using there = ts::nn::chain<ts::nn::repartition<ts::partition<p_w, ts::whole, ts::blocks<col>>>,
                              ts::nn::linear<5, ts::cut_in<col>, ts::cut_out<row>>,
                              ts::nn::repartition<ts::partition<p_y, ts::whole, ts::blocks<few>>>>;
  const ts::nn::network<there, input> net{team, ts::seed{1}};
  // [end]
  ts::nn::assign(net, {{"0.weight", ws}, {"0.bias", at::zeros({5}, at::kDouble)}});
  expect_equal(net(x).local(), mine, "a linear layer whose weight has a mesh of its own");
}

void layers(const ts::team<grid>& team) {
  // [layers]
  struct data : ts::axis<2> {};
  struct model : ts::axis<2> {};
  using dm = ts::mesh<data, model>;  // D = 2, M = 2
  using cut = ts::tensor<ts::partition<dm, ts::blocks<data>, ts::blocks<model>>, ts::shape_of<6, 10>, double>;
  // DistributedLinearAllGather
  using all_gather_form = ts::nn::sequential<cut, ts::nn::linear<7, ts::cut_out<model>>>;
  // DistributedLinearReduceScatter
  using reduce_scatter_form = ts::nn::sequential<cut, ts::nn::linear<7, ts::cut_in<model>>>;
  static_assert(std::is_same_v<all_gather_form::output, reduce_scatter_form::output>);
  // [end]

  // [sequence]
  // batch, sequence, features
  using sequence = ts::partition<dm, ts::blocks<data>, ts::blocks<model>, ts::whole>;
  using block = ts::nn::sequential<ts::tensor<sequence, ts::shape_of<4, 5, 6>, double>,
                                   ts::nn::linear<8, ts::cut_out<model>>,  // gathers the sequence
                                   ts::nn::relu,
                                   // scatters sums over it
                                   ts::nn::linear<6, ts::cut_in<model>, ts::output_as<sequence>>>;
  static_assert(std::is_same_v<block::output, block::input>);
  // [end]

  // [experts]
  // Tokens in slots come cut by their source, go to where their expert is, and back: an all_to_all each way.
  struct expert : ts::axis<2> {};
  using em = ts::mesh<expert, model>;
  // experts, source, slot, features
  using by_source = ts::partition<em, ts::whole, ts::blocks<expert>, ts::whole, ts::blocks<model>>;
  using by_expert = ts::partition<em, ts::blocks<expert>, ts::whole, ts::whole, ts::blocks<model>>;
  using slots = ts::tensor<by_source, ts::shape_of<3, 4, 2, 6>, double>;
  using feed = ts::nn::sequential<slots, ts::nn::repartition<by_expert>,
                                  ts::nn::experts<3, 8, ts::cut_out<model>>,  // gathers the features
                                  ts::nn::relu,
                                  // scatters sums over them
                                  ts::nn::experts<3, 6, ts::cut_in<model>>, ts::nn::repartition<by_source>>;
  static_assert(std::is_same_v<feed::output, feed::input>);
  // [end]
  // [convolutions]
  using pixels = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
  using channels = ts::partition<grid, ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>;
  using both = ts::partition<grid, ts::whole, ts::blocks<row>, ts::blocks<col>, ts::whole>;
  using extents = ts::shape_of<2, 4, 9, 8>;
  using kernel = ts::kernel<3, 3>;
  using feature = ts::nn::sequential<ts::tensor<pixels, extents, double>, ts::nn::conv<6, kernel, ts::padding<1>>>;
  using channel = ts::nn::sequential<ts::tensor<channels, extents, double>, ts::nn::conv<6, kernel, ts::padding<1>>>;
  using general = ts::nn::sequential<ts::tensor<both, extents, double>, ts::nn::conv<6, kernel, ts::padding<1>>>;
  using pooled = ts::nn::sequential<ts::tensor<pixels, extents, double>, ts::nn::max_pool<ts::kernel<2, 2>>>;
  // [end]
  // [options]
  // Options stand in any order; one value counts for all dimensions of the kernel, or there is one for each.
  using strided = ts::nn::conv<8, kernel, ts::stride<2, 1>, ts::padding<1>, ts::dilation<1, 2>, ts::no_bias>;
  // padding_at<0, 1, 1, 1>
  using one_sided = ts::nn::conv<5, ts::kernel<2, 3>, ts::padding_same>;
  using grown = ts::nn::conv_transpose<5, kernel, ts::stride<2>, ts::padding<1>, ts::output_padding<1, 0>>;
  using circular = ts::nn::conv<6, kernel, ts::padding<1>, ts::padding_mode<ts::boundary::periodic>>;
  // whole groups on each worker
  using grouped = ts::nn::conv<6, kernel, ts::groups<2>>;
  using halved = ts::nn::max_pool<ts::kernel<3, 3>, ts::stride<2>, ts::padding<1>, ts::ceil_mode>;
  using averaged = ts::nn::avg_pool<ts::kernel<3, 2>, ts::padding<1, 0>, ts::exclude_padding>;
  using summed = ts::nn::avg_pool<ts::kernel<2, 2>, ts::divisor<1>>;
  // the last loses 3 at its end
  using wider = ts::nn::pad<ts::padding_at<2, 1, 0, -3>, ts::padding_mode<ts::boundary::replicate>>;
  using middle = ts::nn::slice<2, 1, -2>;  // [:, :, 1:-2]
  // One exchange for the chain; what lies between its layers is computed by all who need it.
  using chain =
      ts::nn::fused_halo<ts::nn::conv<6, kernel, ts::padding<1>>, ts::nn::relu, ts::nn::max_pool<ts::kernel<3, 3>>>;
  // [end]
  const auto compare = [](const auto& net, const auto& x, auto&& serial, const char* what) {
    const auto state = ts::nn::state_of(net);
    expect_equal(ts::full_tensor(net(x)), serial(state), what);
  };
  const at::Tensor xs = at::sin(at::arange(60, at::kDouble)).view({6, 10});
  const auto linear = [&](const ts::nn::state_dict& s) { return at::addmm(s.at("0.bias"), xs, s.at("0.weight").t()); };
  const auto dm_team = team.over<dm>();
  compare(all_gather_form(dm_team, ts::seed{1}), ts::distribute<cut>(dm_team, xs), linear, "the all-gather form");
  compare(reduce_scatter_form(dm_team, ts::seed{1}), ts::distribute<cut>(dm_team, xs), linear,
          "the reduce-scatter form");
  const at::Tensor words = at::sin(at::arange(120, at::kDouble)).view({4, 5, 6});
  const auto two = [&](const ts::nn::state_dict& s) {
    return at::linear(at::relu(at::linear(words, s.at("0.weight"), s.at("0.bias"))), s.at("2.weight"), s.at("2.bias"));
  };
  compare(block(dm_team, ts::seed{1}), ts::distribute<block::input>(dm_team, words), two,
          "a block with its sequence cut");
  const at::Tensor tokens = at::sin(at::arange(144, at::kDouble)).view({3, 4, 2, 6});
  const auto of_each = [&](const ts::nn::state_dict& s) {
    const at::Tensor hidden = at::relu(at::baddbmm(s.at("0.bias"), tokens.flatten(1, 2), s.at("0.weight")));
    return at::baddbmm(s.at("2.bias"), hidden, s.at("2.weight")).view({3, 4, 2, 6});
  };
  const auto em_team = team.over<em>();
  compare(feed(em_team, ts::seed{1}), ts::distribute<slots>(em_team, tokens), of_each, "experts");
  const at::Tensor image = at::sin(at::arange(576, at::kDouble)).view({2, 4, 9, 8});
  const auto conv = [&](const ts::nn::state_dict& s) {
    return at::conv2d(image, s.at("0.weight"), s.at("0.bias"), 1, 1);
  };
  compare(feature(team, ts::seed{1}), ts::distribute<feature::input>(team, image), conv, "a convolution, pixels cut");
  compare(channel(team, ts::seed{1}), ts::distribute<channel::input>(team, image), conv, "a convolution, channels cut");
  compare(general(team, ts::seed{1}), ts::distribute<general::input>(team, image), conv, "a convolution, both cut");
  const auto run = [&]<class L, class P>(std::type_identity<L>, std::type_identity<P>, auto&& serial,
                                         const char* what) {
    using net = ts::nn::sequential<ts::tensor<P, extents, double>, L>;
    compare(net(team, ts::seed{1}), ts::distribute<typename net::input>(team, image), serial, what);
  };
  constexpr std::type_identity<pixels> on_pixels;
  constexpr std::type_identity<channels> on_channels;
  using state_dict = const ts::nn::state_dict&;
  run(
      std::type_identity<strided>{}, on_pixels,
      [&](state_dict s) { return at::conv2d(image, s.at("0.weight"), {}, {2, 1}, 1, {1, 2}); },
      "a strided convolution");
  run(
      std::type_identity<one_sided>{}, on_pixels,
      [&](state_dict s) { return at::conv2d(at::pad(image, {1, 1, 0, 1}), s.at("0.weight"), s.at("0.bias")); },
      "one-sided padding");
  run(
      std::type_identity<grown>{}, on_pixels,
      [&](state_dict s) {
        return at::conv_transpose2d(image, s.at("0.weight"), s.at("0.bias"), {2, 2}, {1, 1}, {1, 0});
      },
      "a transposed convolution");
  const at::Tensor around = at::pad(image, {1, 1, 1, 1}, "circular");
  run(
      std::type_identity<circular>{}, on_pixels,
      [&](state_dict s) { return at::conv2d(around, s.at("0.weight"), s.at("0.bias")); }, "a ring");
  run(
      std::type_identity<grouped>{}, on_channels,
      [&](state_dict s) {
        return at::conv2d(image, s.at("0.weight"), s.at("0.bias"), {1, 1}, at::IntArrayRef{0, 0}, {1, 1}, 2);
      },
      "groups");
  run(
      std::type_identity<halved>{}, on_pixels, [&](state_dict) { return at::max_pool2d(image, 3, 2, 1, 1, true); },
      "ceil_mode");
  run(
      std::type_identity<averaged>{}, on_pixels,
      [&](state_dict) { return at::avg_pool2d(image, {3, 2}, {}, {1, 0}, false, false); }, "exclude_padding");
  run(
      std::type_identity<summed>{}, on_pixels,
      [&](state_dict) { return at::avg_pool2d(image, 2, {}, 0, false, true, 1); }, "a divisor");
  run(
      std::type_identity<wider>{}, on_pixels,
      [&](state_dict) { return at::pad(image, {0, 0, 2, 1}, "replicate").narrow(3, 0, 5); }, "padding and cutting off");
  run(std::type_identity<middle>{}, on_pixels, [&](state_dict) { return image.narrow(2, 1, 6); }, "a slice");
  run(
      std::type_identity<chain>{}, on_pixels, [&](state_dict s) { return at::max_pool2d(at::relu(conv(s)), 3); },
      "one halo");
  compare(
      pooled(team, ts::seed{1}), ts::distribute<pooled::input>(team, image),
      [&](state_dict) { return at::max_pool2d(image, 2); }, "a pooling");
}

void zero(const ts::team<grid>& team) {
  struct data : ts::axis<4> {};
  using ring = ts::mesh<data>;
  const auto workers = team.over<ring>();
  const at::Tensor xs = at::sin(at::arange(60, at::kDouble)).view({6, 10});
  // [zero]
  // ZeRO-3: parameters are stored cut over the data axis, and gathered where they are used; their gradients are
  // scattered back.
  using samples = ts::tensor<ts::partition<ring, ts::blocks<data>, ts::whole>, ts::shape_of<6, 10>, double>;
  using stack = ts::nn::chain<ts::nn::linear<8>, ts::nn::relu, ts::nn::linear<7>>;
  const ts::nn::network<ts::nn::sharded_over<stack, data>, samples> net{workers, ts::seed{7}};
  const auto y = net(ts::distribute<samples>(workers, xs));
  ts::sum(y).backward();
  // each a quarter, and so are their gradients
  const auto held = net.parameters();
  // [end]
  const auto state = ts::nn::state_of(net);
  const at::Tensor serial = at::linear(at::relu(at::linear(xs, state.at("0.weight"), state.at("0.bias"))),
                                       state.at("2.weight"), state.at("2.bias"));
  expect_equal(ts::full_tensor(y), serial, "parameters that are stored in quarters");
  expect(held[0].numel() == 20 && held[0].grad().numel() == 20, "a quarter of a weight and of its gradient");
  // [held]
  // Of three micro-batches each parameter is gathered once, and its gradient is scattered once.
  const ts::nn::network<ts::nn::sharded_over<stack, data, ts::gathered<ts::gathering::held>>, samples> accumulating{
      workers, ts::seed{7}};
  for (int part = 0; part < 3; ++part) ts::sum(accumulating(ts::distribute<samples>(workers, xs))).backward();
  ts::nn::reduce_gradients(accumulating);  // then a step
  // [end]
  expect_equal(accumulating.parameters()[0].grad(), 3 * held[0].grad(), "three micro-batches");
}

void loss(const ts::team<grid>& team) {
  const at::Tensor xs = at::sin(at::arange(15, at::kDouble)).view({3, 5});
  const at::Tensor ys = at::cos(at::arange(15, at::kDouble)).view({3, 5});
  // [loss]
  using cut = ts::tensor<ts::partition<grid, ts::blocks<row>, ts::blocks<col>>, ts::shape_of<3, 5>, double>;
  auto x = ts::distribute<cut>(team, xs);
  x.requires_grad();
  const auto mse = ts::nn::mse_loss(x, ts::distribute<cut>(team, ys));  // one number, on every worker
  mse.backward();                                                       // nothing moves
  // [end]
  expect(std::abs(ts::item(mse) - (xs - ys).square().mean().item<double>()) < 1e-14, "a mean squared error");
  expect_equal(ts::full_tensor(x.grad()), 2.0 / 15 * (xs - ys), "its gradient");
}

void adjoint(const ts::team<grid>& team) {
  const at::Tensor xs = at::sin(at::arange(35, at::kDouble)).view({5, 7});
  // [adjoint]
  // ⟨F x, y⟩ = ⟨x, F* y⟩, summed over the workers in double: what DistDL's tests check for every layer.
  using tiles = ts::tensor<ts::partition<grid, ts::blocks<row>, ts::blocks<col>>, ts::shape_of<5, 7>, double>;
  using slabs = ts::tensor<ts::partition<grid, ts::blocks<row>, ts::whole>, ts::shape_of<5, 7>, double>;
  auto x = ts::distribute<tiles>(team, xs);
  x.requires_grad();
  const auto fx = ts::all_gather<slabs::partition_type>(x);
  const auto y = ts::from_local<ts::cotangent_type<slabs>>(team, at::cos(fx.local().detach() + team.rank()));
  fx.local().backward(y.local());
  const double left = ts::pairing(fx, y);
  const double right = ts::pairing(x, x.grad());
  // [end]
  expect(std::abs(left) > 1e-3 && std::abs(left - right) < 1e-13 * std::abs(left), "the law of the adjoint");
}

}  // namespace

int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [](ts::team<grid>& team) {
    values(team);
    broadcast_and_sum_reduce(team);
    sums_over_axes(team);
    gathered(team);
    halos(team);
    facts_about_workers(team);
    unknown_lengths(team);
    linear_on_three_meshes(team);
    layers(team);
    zero(team);
    loss(team);
    adjoint(team);
    if (team.first()) fmt::print("every spelling of docs/from-distdl.md gives the numbers it should\n");
  });
}
