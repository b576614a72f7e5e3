// The programs of docs/from-libtorch.md that no other example has, each held against the LibTorch program that it came
// from.
#include <tessera/nn/network/program.hpp>
#include <tessera/tessera.hpp>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/optim/adam.h>
#include <nlohmann/json.hpp>

#include "beside_serial.hpp"
namespace ts = tessera;
namespace nn = tessera::nn;

struct batch : ts::dyn {};

// [perceptron.serial]
struct serial_perceptron : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(20, 64));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(64, 48));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(48, 10));

  at::Tensor forward(at::Tensor x) {
    x = at::relu(first(x));
    x = at::relu(second(x));
    return last(x);
  }
};

std::vector<double> trained(serial_perceptron& net, const at::Tensor& samples, const at::Tensor& classes) {
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(1e-2));
  std::vector<double> losses;
  for (std::int64_t i = 0; i < samples.size(0); i += 16) {
    const std::int64_t n = std::min<std::int64_t>(16, samples.size(0) - i);
    const at::Tensor x = samples.narrow(0, i, n);
    const at::Tensor y = classes.narrow(0, i, n);
    optimizer.zero_grad();
    const at::Tensor loss = at::cross_entropy_loss(net.forward(x), y);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}
// [end]

// [perceptron]
struct data : ts::axis<2> {};
struct model : ts::axis<2> {};
using data_model = ts::mesh<data, model>;
using rows = ts::partition<data_model, ts::blocks<data>, ts::whole, ts::invariant<model>>;
using samples_type = ts::tensor<rows, ts::shape<batch, ts::dim<20>>, double>;
using classes_type =
    ts::tensor<ts::partition<data_model, ts::blocks<data>, ts::invariant<model>>, ts::shape<batch>, std::int64_t>;

struct perceptron {
  constexpr auto operator()(auto x) const {
    const auto wide = x | nn::named<struct first, nn::linear<64, ts::cut_out<model>>>{} | nn::relu{};
    const auto narrow =
        wide | nn::named<struct second, nn::linear<48, ts::cut_in<model>, ts::output_as<rows>>>{} | nn::relu{};
    return narrow | nn::named<struct last, nn::linear<10>>{};
  }
};
using perceptron_type = nn::network<perceptron, samples_type>;
// one sum over `model`, both ways
static_assert(ts::traffic<perceptron_type>(ts::bind<batch>(16)).forward.bytes == 2 * (16 * 48 * 8));

std::vector<double> trained(const ts::team<data_model>& team, perceptron_type& net, const at::Tensor& samples,
                            const at::Tensor& classes) {
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(1e-2));
  std::vector<double> losses;
  for (std::int64_t i = 0; i < samples.size(0); i += 16) {
    const std::int64_t n = std::min<std::int64_t>(16, samples.size(0) - i);
    const auto x = ts::distribute<samples_type>(team, samples.narrow(0, i, n));
    const auto y = ts::distribute<classes_type>(team, classes.narrow(0, i, n));
    optimizer.zero_grad();
    const auto loss = nn::cross_entropy(net(x), y);
    loss.backward();
    optimizer.step();
    losses.push_back(ts::item(loss));
  }
  return losses;
}
// [end]

// [heat.serial]
at::Tensor warmed(const at::Tensor& u, std::int64_t steps) {  // du/dt = k Δu, zero beyond the edge
  at::Tensor v = u;
  for (std::int64_t i = 0; i < steps; ++i) {
    const at::Tensor w = at::constant_pad_nd(v, {1, 1, 1, 1});
    const auto shifted = [&](std::int64_t y, std::int64_t x) {
      return w.narrow(0, 1 + y, v.size(0)).narrow(1, 1 + x, v.size(1));
    };
    v = v + 0.2 * (shifted(-1, 0) + shifted(1, 0) + shifted(0, -1) + shifted(0, 1) - 4 * v);
  }
  return v;
}

std::vector<double> searched(at::Tensor& start, const at::Tensor& measured) {  // where did the warmth come from?
  start.requires_grad_(true);
  torch::optim::SGD optimizer({start}, torch::optim::SGDOptions(0.4).momentum(0.9));
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    const at::Tensor gap = warmed(start, 12) - measured;
    const at::Tensor loss = (gap * gap).sum();
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}
// [end]

// [heat]
struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;
// kernel, stride, padding before and after, dilation
constexpr ts::sliding three{3, 1, 1, 1, 1};
using plate = ts::partition<grid, ts::blocks<row>, ts::blocks<col>>;
using with_halo =
    ts::partition<grid, ts::haloed<ts::blocks<row>, 21, 1, -1, 1>, ts::haloed<ts::blocks<col>, 17, 1, -1, 1>>;
using field = ts::tensor<plate, ts::shape_of<21, 17>, double>;

using halo = ts::primitive<field, ts::tensor<with_halo, ts::shape_of<21, 17>, double>>;
// both seams, and corners
static_assert(halo::verb == ts::verb::halo_exchange && halo::cost().total == 2 * (21 + 17) + 4);
static_assert(ts::adjoint<halo>::verb == ts::verb::halo_accumulate && ts::adjoint<halo>::cost().total == 80);

constexpr auto stencil = ts::operation("hw->hw").windowed('h', three).windowed('w', three).linear();

field warmed(const field& u, std::int64_t steps) {
  const auto step = [](const ts::local_boxes& where, const at::Tensor& box) {
    const ts::local_box& has = where.operands[0];
    const ts::local_box& gives = where.result;
    // what lies beyond the edge of the plate
    const auto missing = [&](int d) { return has.first(d) - (gives.first(d) - 1); };
    const auto behind = [&](int d) { return gives.first(d) + gives.size(d) + 1 - (has.first(d) + has.size(d)); };
    const at::Tensor w = at::constant_pad_nd(box, {missing(1), behind(1), missing(0), behind(0)});
    const auto shifted = [&](std::int64_t y, std::int64_t x) {
      return w.narrow(0, 1 + y, gives.size(0)).narrow(1, 1 + x, gives.size(1));
    };
    return shifted(0, 0) + 0.2 * (shifted(-1, 0) + shifted(1, 0) + shifted(0, -1) + shifted(0, 1) - 4 * shifted(0, 0));
  };
  field v = u;
  for (std::int64_t i = 0; i < steps; ++i) v = ts::apply<stencil>(step, ts::halo_exchange<with_halo>(v));
  return v;
}

std::vector<double> searched(const ts::team<grid>& team, field& start, const at::Tensor& measured_everywhere) {
  const auto measured = ts::distribute<field>(team, measured_everywhere);
  start.requires_grad();
  torch::optim::SGD optimizer({start.local()}, torch::optim::SGDOptions(0.4).momentum(0.9));
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    const auto gap = warmed(start, 12) - measured;
    const auto loss = ts::all_reduce<ts::partition<grid, ts::invariant<row, col>>>(ts::sum(gap * gap));
    loss.backward();
    optimizer.step();
    losses.push_back(ts::item(loss));
  }
  return losses;
}
// [end]

// [file]
constexpr const char* architecture = R"([{"layer": "conv", "in": 1, "out": 6, "kernel": 3, "padding": 1},
                                         {"layer": "relu"},
                                         {"layer": "max_pool", "kernel": 2},
                                         {"layer": "flatten"},
                                         {"layer": "linear", "in": 120, "out": 10}])";
// [end]

// [file.serial]
torch::nn::Sequential built(const nlohmann::json& layers) {
  torch::nn::Sequential net;
  for (const nlohmann::json& l : layers) {
    const std::string kind = l.at("layer");
    if (kind == "conv")
      net->push_back(
          torch::nn::Conv2d(torch::nn::Conv2dOptions(l.at("in"), l.at("out"), l.at("kernel").get<std::int64_t>())
                                .padding(l.at("padding").get<std::int64_t>())));
    else if (kind == "relu") net->push_back(torch::nn::ReLU());
    else if (kind == "max_pool") net->push_back(torch::nn::MaxPool2d(l.at("kernel").get<std::int64_t>()));
    else if (kind == "flatten") net->push_back(torch::nn::Flatten());
    else if (kind == "linear") net->push_back(torch::nn::Linear(l.at("in"), l.at("out")));
    else throw std::runtime_error("no layer is called " + kind);
  }
  return net;
}
// [end]

// [file.network]
using pictures = ts::tensor<ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>,
                            ts::shape<batch, ts::dim<1>, ts::dim<9>, ts::dim<11>>, double>;
using channels = ts::partition<grid, ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>;

void build(nn::program& p, const nlohmann::json& layers) {
  auto x = p.input<pictures>();
  for (const nlohmann::json& l : layers) {
    const std::string kind = l.at("layer");
    const auto number = [&](const char* name) { return l.at(name).get<ts::index_t>(); };
    if (kind == "conv")
      x = x | nn::conv_layer{
                  .out = number("out"), .kernel = {number("kernel"), number("kernel")}, .padding = {number("padding")}};
    else if (kind == "relu") x = x | nn::relu{};
    else if (kind == "max_pool") x = x | nn::max_pool_layer{.kernel = {number("kernel"), number("kernel")}};
    else if (kind == "flatten") x = x | nn::repartition<channels>{} | nn::flatten{};
    else if (kind == "linear") x = x | nn::linear_layer{.out = number("out")};
    else throw std::runtime_error("no layer is called " + kind);
  }
  p.output(x);
}
// [end]

double largest(const std::vector<double>& a, const std::vector<double>& b) {
  return largest(at::tensor(a, at::kDouble), at::tensor(b, at::kDouble));
}

double perceptrons(const ts::team<grid>& workers) {
  const auto team = workers.over<data_model>();
  const at::Tensor samples = at::sin(at::arange(70 * 20, at::kDouble)).view({70, 20});
  const at::Tensor classes = at::arange(70).remainder(10);
  serial_perceptron serial;
  fill(serial);
  perceptron_type net{team, ts::seed{7}};
  nn::assign(net, nn::state_of(serial));
  const std::vector<double> losses = trained(team, net, samples, classes);
  const double far = largest(losses, trained(serial, samples, classes));
  return std::max(far, apart(nn::state_of(net), nn::state_of(serial)));
}

double heat(const ts::team<grid>& team) {
  const at::Tensor measured = at::sin(at::arange(21 * 17, at::kDouble)).view({21, 17});
  at::Tensor serial = at::zeros({21, 17}, at::kDouble);
  auto start = ts::distribute<field>(team, serial);
  const std::vector<double> losses = searched(team, start, measured);
  const double far = largest(losses, searched(serial, measured));
  // [adjoint]
  auto u = ts::distribute<field>(team, measured);
  u.requires_grad();
  const auto later = warmed(u, 12);
  const auto v = ts::distribute<field>(team, at::cos(measured));
  later.local().backward(v.local());
  const double there = ts::pairing(later, v);    // ⟨F u, v⟩
  const double back = ts::pairing(u, u.grad());  // ⟨u, F* v⟩
  // [end]
  return std::max({far, largest(ts::full_tensor(start), serial.detach()), std::abs(there - back)});
}

double networks_of_a_file(const ts::team<grid>& team) {
  const nlohmann::json layers = nlohmann::json::parse(architecture);
  torch::nn::Sequential serial = built(layers);
  fill(*serial);
  // [file.use]
  nn::program p;
  build(p, layers);
  nn::dynamic_network net{team, ts::seed{7}, p};
  nn::assign(net, nn::state_of(*serial));
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  // [end]
  torch::optim::SGD theirs(serial->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  double far = 0;
  for (int step = 0; step < 5; ++step) {
    const at::Tensor images = at::sin(at::arange(7 * 99, at::kDouble) * (1 + step)).view({7, 1, 9, 11});
    const at::Tensor digits = at::arange(7).remainder(10);
    // [file.step]
    using labels = ts::tensor<ts::partition<grid, ts::whole, ts::invariant<row, col>>, ts::shape<batch>, std::int64_t>;
    optimizer.zero_grad();
    const ts::tensor<ts::dyn> y = net(ts::distribute<pictures>(team, images));
    const ts::tensor<ts::dyn> loss = nn::cross_entropy(y, ts::distribute<labels>(team, digits).dynamic());
    loss.backward();
    optimizer.step();
    // [end]
    theirs.zero_grad();
    const at::Tensor expected = at::cross_entropy_loss(serial->forward(images), digits);
    expected.backward();
    theirs.step();
    far = std::max(far, std::abs(ts::item(loss) - expected.item<double>()));
  }
  return std::max(far, apart(nn::state_of(net), nn::state_of(*serial)));
}

int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [](ts::team<grid>& team) {
    const double far = std::max({perceptrons(team), heat(team), networks_of_a_file(team)});
    if (!(far <= 1e-12)) throw std::runtime_error(fmt::format("a program differs from one process by {}", far));
    if (team.first())
      fmt::print(
          "a perceptron, warmth and a network from a file agree with one process\nlargest difference from serial: "
          "{:.2e}\n",
          far);
  });
}
