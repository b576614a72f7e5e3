// The programs of docs/tutorial.md and docs/layers.md, in their order; what they claim is held against what comes out.
#include <tessera/inspect/network.hpp>
#include <tessera/inspect/picture.hpp>
#include <tessera/tessera.hpp>

#include <stdexcept>

namespace ts = tessera;

namespace {

/// Ends the program where a text is not what the page says, spaces at the ends of lines aside.
void shows(std::string text, const std::string& expected) {
  for (std::size_t at = 0; (at = text.find(" \n", at)) != std::string::npos; at -= at > 0 ? 1 : 0) text.erase(at, 1);
  if (text != expected) throw std::runtime_error(fmt::format("\n{}\nis not\n{}", text, expected));
}
void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// [mesh]
struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;  // world ranks 0 1 / 2 3

static_assert(grid::value.size() == 4);
// [end]

void covers() {
  // [covers]
  struct both : ts::product<row, col> {};  // two axes that act as one
  const auto parts = []<class Cover>(std::type_identity<Cover>) {
    using ten = ts::tensor<ts::partition<grid, Cover>, ts::shape_of<10>>;
    return ts::parts_text(ts::value_of<ten>.layout, 0);
  };
  shows(parts(std::type_identity<ts::whole>{}), "[0,10)");
  shows(parts(std::type_identity<ts::blocks<row>>{}), "[0,5) [5,10)");
  // by row, then each part by col
  shows(parts(std::type_identity<ts::blocks<row, col>>{}), "[0,3) [3,5) [5,8) [8,10)");
  shows(parts(std::type_identity<ts::blocks<both>>{}), "[0,3) [3,6) [6,8) [8,10)");              // by both at once
  shows(parts(std::type_identity<ts::lengths<row, ts::dim<3>, ts::dim<7>>>{}), "[0,3) [3,10)");  // as you say
  // units of 4 stay together
  shows(parts(std::type_identity<ts::grains<4, row>>{}), "[0,8) [8,10)");
  // dealt one further
  shows(parts(std::type_identity<ts::rotated<ts::blocks<both>, 1>>{}), "[3,6) [6,8) [8,10) [0,3)");
  // four chunks, there and back
  shows(parts(std::type_identity<ts::zigzag<row>>{}), "[0,3)+[8,10) [3,8)");
  // what a kernel of 3 needs
  shows(parts(std::type_identity<ts::haloed<ts::blocks<row>, 10, 1, -1, 1>>{}), "[0,6) [4,10)");
  // [end]
}

// [partitions]
using tiles = ts::partition<grid, ts::blocks<row>, ts::blocks<col>>;              // each worker a tile of its own
using rows = ts::partition<grid, ts::blocks<row>, ts::whole>;                     // col: replicate, the default
using terms = ts::partition<grid, ts::blocks<row>, ts::whole, ts::partial<col>>;  // the two of a row add up
using columns = ts::partition<grid, ts::whole, ts::blocks<col>>;
using weights = ts::partition<grid, ts::whole, ts::whole, ts::invariant<row, col>>;  // equal, and all use them alike
using rooted = ts::partition<grid, ts::whole, ts::blocks<col>, ts::on<row>>;         // only row 0 holds it
// [end]

void partitions() {
  // [texts]
  shows(ts::text_of<ts::tensor<tiles, ts::shape_of<5, 7>>>(),
        "5x7 over row 2 x col 2 = blocks(row) [0,3) [3,5), blocks(col) [0,4) [4,7)");
  shows(ts::text_of<ts::tensor<terms, ts::shape_of<5, 7>>>(),
        "5x7 over row 2 x col 2 = blocks(row) [0,3) [3,5), whole; partial(col)");
  shows(ts::picture(ts::value_of<ts::tensor<tiles, ts::shape_of<5, 7>>>.layout),
        "    0  0  0  0  1  1  1\n"
        "    0  0  0  0  1  1  1\n"
        "    0  0  0  0  1  1  1\n"
        "    2  2  2  2  3  3  3\n"
        "    2  2  2  2  3  3  3\n");
  // [end]
}

void tensors(const ts::team<grid>& team) {
  // [tensors]
  // known at run time; its name says which extents are one
  struct batch : ts::dyn {};
  using table = ts::tensor<tiles, ts::shape<batch, ts::dim<7>>, double>;  // float unless said

  const at::Tensor numbers = at::arange(35, at::kDouble).view({5, 7});  // every worker has it, from a file perhaps
  const table x = ts::distribute<table>(team, numbers);                 // my part; nothing moves
  // boxes that workers have: my part is mine
  const table y = ts::from_local<table>(team, x.local() * 2, ts::bind<batch>(5));
  expect(x.local().size(0) == (team.coordinate<row>() == 0 ? 3 : 2), "a box");
  expect(at::equal(ts::full_tensor(y), 2 * numbers), "the global tensor, on every worker");
  // [end]
}

// [verbs]
using gather = ts::primitive<ts::tensor<tiles, ts::shape_of<8, 6>>, ts::tensor<rows, ts::shape_of<8, 6>>>;
static_assert(gather::verb == ts::verb::all_gather);
static_assert(gather::cost().busiest == 4 * 3);                     // elements: the other tile of my row
static_assert(gather::cost().total == gather::cost().lower_bound);  // and nothing else
static_assert(gather::adjoint::verb == ts::verb::reduce_scatter);   // from terms to tiles

using copies = ts::partition<grid, ts::whole, ts::whole>;
using use = ts::primitive<ts::tensor<weights, ts::shape_of<8, 6>>, ts::tensor<copies, ts::shape_of<8, 6>>>;
static_assert(use::verb == ts::verb::copy_in && use::cost().total == 0);  // using stored weights is free,
static_assert(use::adjoint::verb == ts::verb::all_reduce);                // summing their gradient is not
static_assert(use::adjoint::cost().busiest == 2 * 36);                    // ¾ of 48 to add them up, ¾ to tell all
// [end]

void verbs(const ts::team<grid>& team) {
  const at::Tensor numbers = at::arange(35, at::kDouble).view({5, 7});
  // [verb-calls]
  auto x = ts::distribute<ts::tensor<tiles, ts::shape_of<5, 7>, double>>(team, numbers);
  x.requires_grad();
  const auto y = ts::all_gather<rows>(x);  // insists on its name
  const auto z = ts::to<columns>(x);       // finds the verbs itself: an all_gather over row

  // through the verb: x.grad() is 2x, though two workers hold each y
  ts::sum(y * y).backward();
  // [end]
  expect(at::equal(ts::full_tensor(x.grad()), 2 * numbers), "the gradient");

  // [halves]
  auto later = ts::start<columns>(x);               // the exchange goes on
  const auto squares = x * x;                       // while other work is done
  const auto there = ts::finish(std::move(later));  // what to<columns>(x) gives, with its gradient
  // [end]
  expect(at::equal(there.local(), z.local()) && at::equal(squares.local(), x.local() * x.local()), "halves");

  // [ring]
  using strips = ts::tensor<ts::partition<grid, ts::whole, ts::blocks<row>>, ts::shape_of<5, 6>, double>;
  const auto mine = ts::distribute<strips>(team, numbers.narrow(1, 0, 6));
  // what the next coordinate holds; the last one gets the first part
  const auto next = ts::shift<row>(mine);
  // [end]
  expect(at::equal(y.local(), numbers.narrow(0, 3 * team.coordinate<row>(), 3 - team.coordinate<row>())), "rows");
  expect(at::equal(z.local(), numbers.narrow(1, 4 * team.coordinate<col>(), 4 - team.coordinate<col>())), "columns");
  expect(at::equal(next.local(), numbers.narrow(1, 3 - 3 * team.coordinate<row>(), 3)), "a ring");
}

void local_operations(const ts::team<grid>& team) {
  const at::Tensor numbers = at::sin(at::arange(35, at::kDouble)).view({5, 7});
  const at::Tensor factors = at::cos(at::arange(28, at::kDouble)).view({7, 4});
  // [local]
  // 7 features over col
  using activations = ts::tensor<tiles, ts::shape_of<5, 7>, double>;
  // a weight
  using stored =
      ts::tensor<ts::partition<grid, ts::blocks<col>, ts::whole, ts::invariant<row>>, ts::shape_of<7, 4>, double>;
  // in use: cut alike
  using weight = ts::tensor<ts::partition<grid, ts::blocks<col>, ts::whole>, ts::shape_of<7, 4>, double>;
  const auto x = ts::distribute<activations>(team, numbers);
  const auto w = ts::copy_in<weight::partition_type>(ts::distribute<stored>(team, factors));  // moves nothing
  const auto y = ts::matmul(x, w);  // summed over a cut dimension: terms
  static_assert(std::is_same_v<decltype(y), const ts::tensor<terms, ts::shape_of<5, 4>, double>>);
  const auto z = ts::relu(ts::all_reduce<rows>(y));  // whole values from here on
  // [end]
  expect(at::allclose(ts::full_tensor(z), at::relu(at::matmul(numbers, factors)), 1e-13, 1e-13), "a product");

  // [value]
  using number = ts::partition<grid, ts::invariant<row, col>>;
  const auto total = ts::all_reduce<number>(ts::sum(ts::to<tiles>(z)));
  if (ts::item(total) > 0) expect(total.local().item<double>() > 0, "all workers take this turn, or none");
  // [end]
}

// [network]
struct batch : ts::dyn {};
// batch, channels, height, width
using image = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
using channels = ts::partition<grid, ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>;
using net_type = ts::nn::sequential<ts::tensor<image, ts::shape<batch, ts::dim<1>, ts::dim<9>, ts::dim<9>>, double>,
                                    ts::nn::conv<6, ts::kernel<3, 3>, ts::padding<1>>, ts::nn::relu,
                                    ts::nn::max_pool<ts::kernel<3, 3>>, ts::nn::repartition<channels>, ts::nn::flatten,
                                    ts::nn::linear<4>>;

static_assert(ts::traffic<net_type>(ts::bind<batch>(20)).forward.busiest_worker_bytes < 16'000);
// [end]

void table_of_layers() {
  // [table]
  shows("\n" + ts::network_table<net_type>(ts::bind<batch>(20)), R"(
layer        shape     lies                                    forward B  backward B lower bound    memory B   mult-adds
input        20x1x9x9  whole whole blocks(row) blocks(col)
0 conv       20x6x9x9  whole whole blocks(row) blocks(col)         6,400       9,280      15,680      72,640      87,480
  weight     6x1x3x3   whole whole whole whole invariant(row) invariant(col)
  bias       6         whole invariant(row) invariant(col)
1 relu       20x6x9x9  whole whole blocks(row) blocks(col)             0           0           0      84,160           0
2 max_pool   20x6x3x3  whole whole blocks(row) blocks(col)        16,320      16,320      32,640     112,960           0
repartition  20x6x3x3  whole blocks(row, col) whole whole          6,240       6,240      12,480      81,280           0
3 flatten    20x54     whole grains of 9(row, col)                     0           0           0      77,440           0
4 linear     20x4      whole blocks(row, col)                      1,920       1,920       3,840      81,544       4,320
  weight     4x54      whole grains of 9(row, col)
  bias       4         blocks(row, col)
in all, bytes received by all workers                             30,880      33,760      64,640
by the busiest worker                                             15,040      12,400
memory of a worker: forward alone, with backward, parameters      71,840     112,960       1,064
multiply-adds of all workers: forward, backward                   91,800     183,600
by the busiest worker                                             28,440      56,880
)");
  // [end]
}

// [data]
/// 9 x 9 images with a bright patch in one of four corners, on uneven ground; which corner is the label.
struct samples {
  at::Tensor images, corners;
};
samples generated(std::int64_t first, std::int64_t count) {
  const at::Tensor ground = at::sin(at::arange(first * 81, (first + count) * 81, at::kDouble).square());
  samples s{ground.view({count, 1, 9, 9}), at::arange(count).remainder(4)};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t corner = i % 4;
    s.images[i][0].narrow(0, corner / 2 * 5, 4).narrow(1, corner % 2 * 5, 4) += 1;
  }
  return s;
}
// [end]

// [train]
using label_type = ts::tensor<ts::partition<grid, ts::whole, ts::invariant<row, col>>, ts::shape<batch>, std::int64_t>;

std::vector<double> trained(const ts::team<grid>& team, net_type& net, const samples& data, int steps) {
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const auto x = ts::distribute<net_type::input>(team, data.images);
    const auto y = ts::distribute<label_type>(team, data.corners);
    const auto loss = ts::nn::cross_entropy(net(x), y);
    loss.backward();
    const at::NoGradGuard no_record;
    for (at::Tensor& w : net.parameters()) {  // local leaves; an optimizer of torch::optim takes them too
      w -= 0.2 * w.grad();
      w.mutable_grad().reset();
    }
    losses.push_back(ts::item(loss));
  }
  return losses;
}
// [end]

/// The same network and steps on one worker, from the same weights.
std::vector<double> trained_serially(ts::nn::state_dict state, const samples& data, int steps) {
  std::vector<double> losses;
  for (auto& [name, w] : state) w.set_requires_grad(true);
  for (int step = 0; step < steps; ++step) {
    const at::Tensor c = at::conv2d(data.images, state.at("0.weight"), state.at("0.bias"), 1, 1);
    const at::Tensor y =
        at::linear(at::max_pool2d(at::relu(c), 3).flatten(1), state.at("4.weight"), state.at("4.bias"));
    const at::Tensor loss = at::cross_entropy_loss(y, data.corners);
    loss.backward();
    const at::NoGradGuard no_record;
    for (auto& [name, w] : state) {
      w -= 0.2 * w.grad();
      w.mutable_grad().reset();
    }
    losses.push_back(loss.item<double>());
  }
  return losses;
}

void training(const ts::team<grid>& team) {
  // [run]
  net_type net{team, ts::seed{7}};
  const ts::nn::state_dict initial = ts::nn::state_of(net);  // the serial network's keys and shapes
  const samples data = generated(0, 20);
  const std::vector<double> losses = trained(team, net, data, 60);

  const at::NoGradGuard no_gradients;
  const samples unseen = generated(20, 60);
  const at::Tensor read = ts::full_tensor(net(ts::distribute<net_type::input>(team, unseen.images))).argmax(1);
  const double right = (read == unseen.corners).to(at::kDouble).mean().item<double>();
  if (team.first())
    fmt::print("loss {:.4f}, then {:.4f}; {:.0f} % of the corners found\n", losses.front(), losses.back(), 100 * right);
  // [end]
  const at::AutoGradMode with_gradients(true);
  const std::vector<double> serial = trained_serially(initial, data, 60);
  for (std::size_t i = 0; i < serial.size(); ++i) expect(std::abs(losses[i] - serial[i]) < 1e-12, "the serial losses");
  expect(losses.back() < 0.1 * losses.front() && right > 0.9, "it learns");
}

// [column-row]
struct data : ts::axis<2> {};
struct model : ts::axis<2> {};
using both_ways = ts::mesh<data, model>;
using by_sample = ts::partition<both_ways, ts::blocks<data>, ts::whole, ts::invariant<model>>;

using mlp = ts::nn::sequential<ts::tensor<by_sample, ts::shape<batch, ts::dim<32>>>,
                               ts::nn::linear<128, ts::cut_out<model>>,  // column
                               ts::nn::relu, ts::nn::linear<10, ts::cut_in<model>, ts::output_as<by_sample>>>;  // row
// [end]

using encoder = ts::nn::sequential<ts::tensor<by_sample, ts::shape<batch, ts::dim<32>>>, ts::nn::linear<4>>;
using decoder = ts::nn::sequential<encoder::output, ts::nn::linear<16>, ts::nn::relu, ts::nn::linear<32>>;

// [parts]
struct autoencoder {
  encoder down;
  decoder up;
  explicit autoencoder(const ts::team<both_ways>& team)
      : down{team, ts::seed{3}.at("down")}, up{team, ts::seed{3}.at("up")} {}

  template <class Visit>
  // keys down.0.weight ... up.2.bias: state_of, assign, save and load take it
  void each_parameter(Visit&& visit) const {
    down.each_parameter(visit);
    up.each_parameter(visit);
  }
};
// [end]

void parts(const ts::team<grid>& workers) {
  autoencoder net(workers.over<both_ways>());
  const auto s = ts::nn::state_of(net);
  expect(s.size() == 6 && s.count("down.0.weight") == 1 && s.count("up.2.bias") == 1, "keys of parts");
}

void column_and_row(const ts::team<grid>& workers) {
  const auto team = workers.over<both_ways>();
  const mlp net{team, ts::seed{3}};
  const at::Tensor x = at::sin(at::arange(5 * 32)).view({5, 32}).to(at::kFloat);
  const auto s = ts::nn::state_of(net);
  const at::Tensor hidden = at::relu(at::linear(x, s.at("0.weight"), s.at("0.bias")));
  const at::Tensor serial = at::linear(hidden, s.at("2.weight"), s.at("2.bias"));
  expect(at::allclose(ts::full_tensor(net(ts::distribute<mlp::input>(team, x))), serial, 1e-5, 1e-6), "column and row");
}

}  // namespace

int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [](ts::team<grid>& team) {
    covers();
    partitions();
    table_of_layers();
    tensors(team);
    verbs(team);
    local_operations(team);
    training(team);
    column_and_row(team);
    parts(team);
  });
}
