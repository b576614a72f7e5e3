#include "tests/support/tensors.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/nn/file/weights_file.hpp>
#include <tessera/nn/training/average.hpp>
#include <tessera/nn/training/loss_scaler.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

#include <unistd.h>

// What checkpoints keep: every optimizer, tiles and parts of serial tensors, modules, averages, small state, schedules.

namespace tessera::testing::checkpoint_entries {
namespace {

struct samples : dyn {};

template <int D, int M>
struct over {
  struct data : axis<D> {};
  struct model : axis<M> {};
  using grid = mesh<data, model>;
  using rows = partition<grid, blocks<data>, whole, invariant<model>>;
  using inputs = tensor<rows, shape<samples, dim<5>>, double>;
  using sequences =
      tensor<partition<grid, blocks<data>, whole, whole, invariant<model>>, shape<samples, dim<3>, dim<12>>, double>;
  // Cut unevenly, copies, tiles.
  template <class... Over>
  using net_of = nn::network<
      nn::sharded_over<nn::chain<nn::linear<7, cut_out<model>>, nn::relu, nn::linear<6, cut_in<model>, output_as<rows>>,
                                 nn::layer_norm<>, nn::dropout<probability<1, 10>>, nn::linear<3>>,
                       Over...>,
      inputs>;
  // Parts of one serial tensor, some without a head on some worker.
  struct attending {
    constexpr auto operator()(auto x) const {
      const auto [q, k, v] = x | nn::heads<3, 3, 4, cut_out<model>>{};
      return nn::attention<>{}(q, k, v);
    }
  };
  using attention_net = nn::network<attending, sequences>;
};

/// A folder of its own, which goes with it.
struct scratch {
  std::filesystem::path path;
  explicit scratch(const std::string& name)
      : path(std::filesystem::temp_directory_path() / fmt::format("tessera_entries_{}_{}", name, ::getpid())) {
    std::filesystem::remove_all(path);
  }
  ~scratch() { std::filesystem::remove_all(path); }
};

template <class Net, class Team>
void backward(const Net& net, const Team& t, std::uint64_t which) {
  const auto y = net(distribute<typename Net::input>(t, global_of({7, 5}, numbers{which})));
  sum(y * y).backward();
}

template <class Net, class Team>
void train(const Team& t, Net& net, torch::optim::Optimizer& optimizer, int from, int to) {
  for (int i = from; i < to; ++i) {
    optimizer.zero_grad();
    backward(net, t, static_cast<std::uint64_t>(i));
    nn::reduce_gradients(net);
    optimizer.step();
  }
}

/// How far three steps behind a checkpoint on another mesh are from those of one run.
template <class From, class To, class Make>
double far_from_one_run(const std::string& name, const Make& make) {
  const scratch folder(name);
  const auto begun = in_team<typename From::input::mesh_type>([&](auto& t) {
    From net{t, seed{3}};
    const auto optimizer = make(net.parameters());
    nn::checkpoint all{{"net", net}, {"optimizer", *optimizer}};
    train(t, net, *optimizer, 0, 3);
    all.save(folder.path);
    train(t, net, *optimizer, 3, 6);
    return nn::state_of(net);
  });
  const auto ended = in_team<typename To::input::mesh_type>([&](auto& t) {
    To net{t, seed{8}};
    const auto optimizer = make(net.parameters());
    nn::checkpoint all{{"net", net}, {"optimizer", *optimizer}};
    all.load(folder.path);
    train(t, net, *optimizer, 3, 6);
    return nn::state_of(net);
  });
  INFO(begun.errors() << ended.errors());
  REQUIRE((begun.well() && ended.well()));
  double far = 0;
  for (const auto& [key, w] : begun.of(0))
    if (w.is_floating_point()) far = std::max(far, (w - ended.of(0).at(key)).abs().max().template item<double>());
    else far = std::max(far, w.equal(ended.of(0).at(key)) ? 0.0 : 1.0);  // how often a layer drew
  return far;
}

using square = over<2, 2>;
using row = over<3, 1>;
using column = over<1, 5>;

using leaves = std::vector<at::Tensor>;
using made = std::unique_ptr<torch::optim::Optimizer>;

TEST_CASE("each optimizer goes on over any mesh, its state in copies or tiles", "[law]") {
  using copies = square::net_of<>;
  using tiles = square::net_of<square::data, square::model>;
  using others = row::net_of<row::data>;
  using uneven = column::net_of<>;
  using namespace torch::optim;
  const auto sgd = [](const leaves& p) -> made {
    return std::make_unique<SGD>(p, SGDOptions(0.01).momentum(0.9).nesterov(true));
  };
  const auto plain = [](const leaves& p) -> made { return std::make_unique<SGD>(p, SGDOptions(0.01)); };
  const auto adam = [](const leaves& p) -> made {
    return std::make_unique<Adam>(p, AdamOptions(0.01).amsgrad(true).weight_decay(0.1));
  };
  const auto adamw = [](const leaves& p) -> made { return std::make_unique<AdamW>(p, AdamWOptions(0.01)); };
  const auto rms = [](const leaves& p) -> made {
    return std::make_unique<RMSprop>(p, RMSpropOptions(0.01).centered(true).momentum(0.5));
  };
  const auto adagrad = [](const leaves& p) -> made { return std::make_unique<Adagrad>(p, AdagradOptions(0.01)); };
  CHECK(far_from_one_run<copies, others>("sgd", sgd) < 1e-12);
  CHECK(far_from_one_run<tiles, uneven>("plain", plain) < 1e-12);
  CHECK(far_from_one_run<tiles, copies>("adam", adam) < 1e-12);
  CHECK(far_from_one_run<uneven, tiles>("adamw", adamw) < 1e-12);
  CHECK(far_from_one_run<others, tiles>("rms", rms) < 1e-12);
  CHECK(far_from_one_run<copies, uneven>("adagrad", adagrad) < 1e-12);
}

TEST_CASE("a checkpoint of p workers is read by q: each element once, whatever the cuts", "[law][plan]") {
  const scratch folder("bytes");
  constexpr index_t elements = 7 * 5 + 7 + 6 * 7 + 6 + 6 + 6 + 3 * 6 + 3;
  const auto read_by = [&](auto* of) {
    using net_type = std::remove_pointer_t<decltype(of)>;
    const auto run = in_team<typename net_type::input::mesh_type>([&](auto& t) {
      net_type net{t, seed{8}};
      return nn::checkpoint{{"net", net}}.load(folder.path);
    });
    index_t all = 0;
    for (const auto& r : run.results) all += r.value_or(-1000000);
    return all;
  };
  const auto saved = in_team<square::grid>([&](auto& t) {
    square::net_of<square::data> net{t, seed{3}};
    nn::checkpoint{{"net", net}}.save(folder.path);
    index_t buffers = 0;
    net.each_buffer([&](const nn::buffer& b) {
      index_t n = engine::bytes_of(b.stored().type());
      for (const engine::dimension& d : b.stored().layout().dims) n *= d.extent;
      buffers += n;
    });
    return buffers;
  });
  REQUIRE(saved.well());
  const index_t all = 8 * elements + saved.of(0);
  CHECK(read_by(static_cast<over<1, 1>::net_of<>*>(nullptr)) == all);
  CHECK(read_by(static_cast<over<8, 1>::net_of<over<8, 1>::data>*>(nullptr)) == all);
  CHECK(read_by(static_cast<over<1, 7>::net_of<>*>(nullptr)) == all);
  CHECK(read_by(static_cast<over<2, 3>::net_of<over<2, 3>::model, over<2, 3>::data>*>(nullptr)) == all);
  CHECK(read_by(static_cast<over<4, 2>::net_of<>*>(nullptr)) == all);
}

TEST_CASE("parts of one serial tensor, averages, a scaler and numbers come back on another mesh", "[law]") {
  const scratch folder("parts"), file("parts_file");
  const auto net_in = [&](auto* of, bool saves) {
    using net_type = std::remove_pointer_t<decltype(of)>;
    return in_team<typename net_type::input::mesh_type>([&](auto& t) {
      net_type net{t, seed{saves ? 3u : 8u}};
      nn::average average(net, {.decay = 0.5});
      nn::loss_scaler scaler(nn::loss_scaler_options{.scale = saves ? 512.0 : 4.0});
      double best = saves ? 0.25 : 1;
      nn::checkpoint all{{"net", net}, {"average", average}, {"scaler", scaler}, {"best", best}};
      if (saves) {
        const at::NoGradGuard no_graph;
        for (at::Tensor w : net.parameters()) w.mul_(2);
        average.update();
        all.save(folder.path);
      } else {
        all.load(folder.path);
      }
      nn::state_dict state = nn::state_of(net);
      {
        const auto in = average.swapped_in();
        for (const auto& [key, w] : nn::state_of(net)) state["average of " + key] = w;
      }
      state["numbers"] = at::tensor({best, scaler.scale(), static_cast<double>(average.updates())});
      return state;
    });
  };
  const auto was = net_in(static_cast<square::attention_net*>(nullptr), true);
  const auto is = net_in(static_cast<column::attention_net*>(nullptr), false);
  INFO(was.errors() << is.errors());
  REQUIRE((was.well() && is.well()));
  CHECK(was.of(0).size() > 4);
  for (const auto& [key, w] : was.of(0)) CHECK(w.equal(is.of(0).at(key)));
  std::filesystem::create_directories(file.path);
  nn::export_checkpoint(folder.path, "net", file.path / "net.safetensors");
  for (const auto& [key, w] : nn::read_state(file.path / "net.safetensors")) CHECK(w.equal(was.of(0).at(key)));
  CHECK(told([&] { nn::export_checkpoint(folder.path, "other", file.path / "x"); }) == "tessera.network.parameters");
}

TEST_CASE("a module of LibTorch, its schedule and its optimizer go on with another number of workers", "[law]") {
  const scratch folder("module");
  const auto run = [&](int workers, bool loads) {
    return on_workers(workers, [&](const std::shared_ptr<transport>& carrier) {
      mesh_value m;
      m.axes.push({text("data"), workers});
      const auto team = std::make_shared<team_state>(carrier, row_major(m));
      torch::nn::Sequential net(torch::nn::Linear(5, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 2));
      net->to(at::kDouble);
      {
        const at::NoGradGuard no_graph;
        for (at::Tensor& w : net->parameters())
          w.fill_(loads ? 0 : 0.1).add_(at::arange(w.numel()).view(w.sizes()) * 0.01);
      }
      torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.1));
      torch::optim::StepLR rate(optimizer, 2, 0.5);
      nn::checkpoint all{{"net", team, *net}, {"optimizer", optimizer}, {"rate", rate}};
      const auto step = [&](int i) {
        optimizer.zero_grad();
        net->forward(global_of({6, 5}, numbers{static_cast<std::uint64_t>(i)})).square().sum().backward();
        optimizer.step();
        rate.step();
      };
      if (loads) {
        all.load(folder.path);
      } else {
        for (int i = 0; i < 3; ++i) step(i);
        all.save(folder.path);
      }
      for (int i = 3; i < 6; ++i) step(i);
      std::vector<at::Tensor> state = net->parameters();
      for (const at::Tensor& b : net->buffers()) state.push_back(b);
      state.push_back(at::scalar_tensor(optimizer.param_groups()[0].options().get_lr(), at::kDouble));
      for (at::Tensor& t : state) t = t.detach().clone();
      return state;
    });
  };
  const auto was = run(2, false), is = run(3, true);
  INFO(was.errors() << is.errors());
  REQUIRE((was.errors().empty() && is.errors().empty()));
  for (std::size_t i = 0; i < was.of(0).size(); ++i) CHECK(was.of(0)[i].equal(is.of(2)[i]));
}

TEST_CASE("a checkpoint of another model, and workers that name other folders, are told and change nothing",
          "[refusal]") {
  const scratch folder("other");
  REQUIRE(in_team<square::grid>([&](auto& t) {
            square::net_of<> net{t, seed{3}};
            nn::checkpoint{{"net", net}}.save(folder.path);
            return true;
          }).well());
  const auto codes = in_team<row::grid>([&](auto& t) {
    using wider = nn::sequential<row::inputs, nn::linear<8>, nn::relu, nn::linear<3>>;
    wider net{t, seed{3}};
    row::net_of<> same{t, seed{5}};
    const nn::state_dict before = nn::state_of(net);
    std::int64_t n = 3;
    std::string all = told([&] { nn::checkpoint{{"net", net}}.load(folder.path); });
    all += " " + told([&] { nn::checkpoint{{"model", same}}.load(folder.path); });
    all += " " + told([&] { nn::checkpoint{{"net", same}, {"step", n}}.load(folder.path); });
    all += " " + told([&] { nn::checkpoint{{"net", same}}.load(t.first() ? folder.path : folder.path / "elsewhere"); });
    for (const auto& [key, w] : nn::state_of(net))
      if (!w.equal(before.at(key))) all += " changed";
    return all;
  });
  for (const auto& r : codes.results)
    CHECK(r.value_or("lost") ==
          "tessera.network.parameters tessera.network.parameters tessera.network.parameters tessera.agree.fingerprint");
}

TEST_CASE("no worker holds more than its part and one box", "[plan]") {
  const scratch folder("memory");
  struct crew : axis<4> {};
  using wide = tensor<partition<mesh<crew>, blocks<crew>, whole>, shape<samples, dim<64>>, double>;
  using net_type =
      nn::network<nn::sharded_over<nn::chain<nn::linear<512>, nn::linear<512>, nn::linear<512>>, crew>, wide>;
  constexpr index_t largest = 512 * 512 * 8;
  const auto run = in_team<mesh<crew>>([&](auto& t) {
    net_type net{t, seed{3}};
    nn::checkpoint all{{"net", net}};
    const memory_count saving;
    all.save(folder.path);
    const index_t saved = saving.peak();
    const memory_count loading;
    all.load(folder.path);
    return std::pair(saved, loading.peak());
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) {
    CHECK(r->first <= 4 * largest / 4);       // of workers that share one count: a box each
    CHECK(r->second <= 2 * 4 * largest / 4);  // and where it goes to
  }
}

}  // namespace
}  // namespace tessera::testing::checkpoint_entries
