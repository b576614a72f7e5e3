#include "tests/support/tensors.hpp"

#include <torch/optim/sgd.h>
#include <unistd.h>
#include <tessera/nn/file/weights_file.hpp>

#include <filesystem>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

struct sample : dyn {};

/// A convolutional classifier on R x C workers: images cut over height and width, then features over all.
template <int R, int C>
struct image_net {
  struct up : axis<R> {};
  struct across : axis<C> {};
  using grid = mesh<up, across>;
  using input =
      tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>, shape<sample, dim<2>, dim<7>, dim<6>>, double>;
  using channels = partition<grid, whole, blocks<up, across>, whole, whole>;
  using labels = tensor<partition<grid, whole, invariant<up, across>>, shape<sample>, std::int64_t>;
  using net = nn::sequential<input, nn::conv<3, kernel<3, 3>, padding<1, 1>>, nn::relu, nn::max_pool<kernel<2, 2>>,
                             nn::repartition<channels>, nn::flatten, nn::linear<6>, nn::relu, nn::linear<4>>;
};

/// The same keys and shapes with samples cut: a repartition has no number, as the serial model has none.
template <int R, int C>
struct sample_net {
  using base = image_net<R, C>;
  using grid = typename base::grid;
  using input = tensor<partition<grid, blocks<typename base::up>, whole, whole, whole>,
                       shape<sample, dim<2>, dim<7>, dim<6>>, double>;
  using labels = tensor<partition<grid, blocks<typename base::up>>, shape<sample>, std::int64_t>;
  using net = nn::sequential<input, nn::conv<3, kernel<3, 3>, padding<1, 1>>, nn::relu, nn::max_pool<kernel<2, 2>>,
                             nn::flatten, nn::linear<6>, nn::relu, nn::linear<4>>;
};

/// The same again, with the first linear layer's result, its bias and all behind it on another mesh.
template <int R, int C>
struct two_mesh_net {
  struct around : axis<R * C> {};
  using base = image_net<R, C>;
  using grid = typename base::grid;
  using input = typename base::input;
  using ring = mesh<around>;
  using labels = tensor<partition<ring, whole, invariant<around>>, shape<sample>, std::int64_t>;
  using net = nn::sequential<input, nn::conv<3, kernel<3, 3>, padding<1, 1>>, nn::relu, nn::max_pool<kernel<2, 2>>,
                             nn::repartition<typename base::channels>, nn::flatten,
                             nn::linear<6, output_as<partition<ring, whole, blocks<around>>>>, nn::relu, nn::linear<4>>;
};

at::Tensor serial_loss(const at::Tensor& x, const at::Tensor& labels, const nn::state_dict& w) {
  at::Tensor y =
      at::relu(at::conv2d(x, w.at("0.weight"), w.at("0.bias"), at::IntArrayRef({1, 1}), at::IntArrayRef({1, 1})));
  y = at::max_pool2d(y, {2, 2}).flatten(1);
  y = at::linear(at::relu(at::linear(y, w.at("4.weight"), w.at("4.bias"))), w.at("6.weight"), w.at("6.bias"));
  return at::cross_entropy_loss(y, labels);
}

/// A class with two networks of one kind, as a user writes it.
struct two_parts {
  using part = sample_net<2, 1>::net;
  part encoder, decoder;
  template <class Visit>
  void each_parameter(Visit&& visit) const {
    encoder.each_parameter(visit);
    decoder.each_parameter(visit);
  }
};

/// Remembers the plans that it was given, as a function that autograd keeps may.
struct plan_watcher {
  static constexpr const char* name = "plan_watcher";
  static thread_local inline std::vector<const nn::engine::bound_layer*> plans;
  static constexpr layer_plan plan(const tensor_value& x) { return nn::relu::plan(x); }
  static at::Tensor forward(const nn::call& c) {
    plans.push_back(&c.bound);
    return at::relu(c.operand());
  }
};

std::string said_by(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

bool says(const std::string& text, std::initializer_list<const char*> all) {
  return std::all_of(all.begin(), all.end(), [&](const char* what) { return text.find(what) != std::string::npos; });
}

/// Whether f, which says how it went, is well on all workers of a mesh.
template <class M, class F>
void judge_team(F&& f, bool checked = false) {
  launch_options options = threads_only();
  options.checked = checked;
  const auto run = in_team<M>(f, options);
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == "");
}

struct training_run {
  nn::state_dict start;
  nn::state_dict end;
  double worst = 0;  ///< largest difference of a loss or an input gradient from the serial run
};

/// A few steps of a network beside the serial one.
template <class N>
training_run trained(const team<typename N::grid>& workers, index_t samples) {
  typename N::net net{workers, seed{5}};
  training_run run;
  run.start = nn::state_of(net);
  nn::state_dict w;
  std::vector<at::Tensor> leaves;
  for (const auto& [key, t] : run.start) leaves.push_back(w[key] = t.clone().requires_grad_(true));
  const torch::optim::SGDOptions options = torch::optim::SGDOptions(0.1).momentum(0.9);
  torch::optim::SGD ours(net.parameters(), options);
  torch::optim::SGD theirs(leaves, options);
  for (int step = 0; step < 3; ++step) {
    const index_t n = step == 1 ? samples + 2 : samples;  // another batch, another binding
    const at::Tensor images = global_of({n, 2, 7, 6}, numbers{static_cast<std::uint64_t>(step)});
    const at::Tensor labels = at::arange(n, at::kLong).mul(3).remainder(4);
    ours.zero_grad();
    theirs.zero_grad();
    auto x = distribute<typename N::input>(workers, images);
    x.requires_grad();
    const at::Tensor whole_images = images.clone().requires_grad_(true);
    const auto loss = nn::cross_entropy(net(x), distribute<typename N::labels>(workers, labels));
    const at::Tensor expected = serial_loss(whole_images, labels, w);
    loss.backward();
    expected.backward();
    run.worst = std::max(run.worst, std::abs(item(loss) - expected.item<double>()));
    const at::Tensor gradient = full_tensor(x.grad());
    run.worst = std::max(run.worst, (gradient - whole_images.grad()).abs().max().template item<double>());
    ours.step();
    theirs.step();
  }
  run.end = nn::state_of(net);
  for (const auto& [key, t] : run.end)
    run.worst = std::max(run.worst, (t - w.at(key)).abs().max().template item<double>());
  return run;
}

bool same_state(const nn::state_dict& a, const nn::state_dict& b) {
  bool same = a.size() == b.size();
  for (const auto& [key, t] : a) same = same && b.count(key) == 1 && same_bits(t, b.at(key));
  return same;
}

template <class N>
void judge_training(index_t samples, const nn::state_dict& start) {
  const auto run = in_team<typename N::grid>([&](auto& workers) { return trained<N>(workers, samples); });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) {
    CHECK(r->worst < 1e-12);
    CHECK(same_state(r->start, start));
    CHECK(same_state(r->end, run.of(0).end));
  }
}

struct scratch_file {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("tessera_test_{}.safetensors", ::getpid());
  ~scratch_file() { std::filesystem::remove(path); }
};

using saver = image_net<2, 2>;
using loader = sample_net<3, 1>;

}  // namespace

TEST_CASE("networks train to the serial losses, gradients and weights on any partition, from the same bits",
          "[gradient]") {
  const auto alone =
      in_team<image_net<1, 1>::grid>([](auto& t) { return nn::state_of(image_net<1, 1>::net{t, seed{5}}); });
  REQUIRE(alone.well());
  const nn::state_dict& start = alone.of(0);
  judge_training<image_net<1, 1>>(5, start);
  judge_training<image_net<2, 2>>(3, start);
  judge_training<image_net<1, 4>>(4, start);
  judge_training<sample_net<3, 1>>(2, start);  // fewer samples than workers
  judge_training<two_mesh_net<2, 2>>(3, start);
}

TEST_CASE("weights saved from one partition load into another, bit for bit", "[runtime]") {
  const scratch_file file;
  const auto saved = in_team<saver::grid>([&](auto& t) {
    const saver::net net{t, seed{8}};
    nn::save(net, file.path);
    return nn::state_of(net);
  });
  REQUIRE(saved.well());
  const auto read = in_team<loader::grid>([&](auto& t) {
    loader::net net{t, seed{9}};
    nn::load(net, file.path);
    return nn::state_of(net);
  });
  INFO(read.errors());
  REQUIRE(read.well());
  for (const auto& r : read.results) CHECK(same_state(*r, saved.of(0)));
}

TEST_CASE("initial values are those of (seed, path, global index), and a path stands before the keys", "[runtime]") {
  judge_team<two_parts::part::input::mesh_type>([](auto& t) {
    const two_parts both{{t, seed{5}.at("encoder")}, {t, seed{5}.at("decoder").at("inner")}};
    const two_parts::part plain{t, seed{5}};
    const nn::state_dict all = nn::state_of(both);
    const nn::state_dict one = nn::state_of(plain);
    std::string wrong;
    for (const auto& [key, w] : one) {
      const at::Tensor& encoder = all.at("encoder." + key);
      const at::Tensor& decoder = all.at("decoder.inner." + key);
      if (at::equal(encoder, decoder) || at::equal(encoder, w) || at::equal(decoder, w)) wrong += key + " is equal; ";
    }
    if (all.size() != 2 * one.size()) wrong += "other keys; ";
    using input = tensor<partition<two_parts::part::input::mesh_type, whole, whole>, shape_of<3, 5>, double>;
    const nn::state_dict small = nn::state_of(nn::sequential<input, nn::linear<6>>{t, seed{5}});
    if (small.at("0.weight")[0][0].template item<double>() != -0x1.89d877f0fc2a5p-5) wrong += "other bits than ever; ";
    return wrong;
  });
}

TEST_CASE("two parameters of one key are refused wherever a network's keys count", "[refusal]") {
  judge_team<two_parts::part::input::mesh_type>([](auto& t) -> std::string {
    two_parts both{{t, seed{5}}, {t, seed{6}}};
    const nn::state_dict state = nn::state_of(both.encoder);
    const scratch_file file;
    const std::string said[]{said_by([&] { nn::state_of(both); }), said_by([&] { nn::assign(both, state); }),
                             said_by([&] { nn::save(both, file.path); })};
    for (const auto& s : said)
      if (!says(s, {"[tessera.network.keys]", "[0.weight]"})) return "says: " + s;
    two_parts apart{{t, seed{5}.at("a")}, {t, seed{6}.at("b")}};
    two_parts other{{t, seed{7}.at("a")}, {t, seed{8}.at("b")}};
    nn::save(apart, file.path);
    nn::load(other, file.path);
    return same_state(nn::state_of(apart), nn::state_of(other)) ? "" : "not loaded";
  });
}

TEST_CASE("a network moves, a clone has weights of its own, and what was moved from refuses every use",
          "[refusal][runtime]") {
  using small = sample_net<2, 1>;
  static_assert(std::is_nothrow_move_constructible_v<small::net> && std::is_nothrow_move_assignable_v<small::net>);
  static_assert(!std::is_copy_constructible_v<small::net> && !std::is_copy_assignable_v<small::net>);
  judge_team<small::grid>([](auto& t) -> std::string {
    small::net first{t, seed{5}};
    first.eval();
    const nn::state_dict start = nn::state_of(first);
    small::net second = first.clone();
    if (!same_state(nn::state_of(second), start) || second.training()) return "the clone differs";
    for (at::Tensor& w : second.parameters()) {
      if (!w.is_leaf() || !w.requires_grad()) return "the clone does not learn";
      const at::NoGradGuard step;
      w.add_(1);
    }
    if (!same_state(nn::state_of(first), start)) return "the clone shares weights";
    small::net third = std::move(first);
    if (!same_state(nn::state_of(third), start)) return "moving changed the weights";
    const auto x = distribute<small::input>(t, global_of({3, 2, 7, 6}, numbers{1}));
    const std::function<void()> uses[]{[&] { first(x); },
                                       [&] { first(x.dynamic()); },
                                       [&] { first.parameters(); },
                                       [&] { first.clone(); },
                                       [&] { first.train(); },
                                       [&] { first.eval(); },
                                       [&] { first.training(); },
                                       [&] { first.team(); },
                                       [&] { nn::state_of(first); },
                                       [&] { nn::assign(first, start); },
                                       [&] { nn::save(first, "x"); },
                                       [&] { nn::load(first, "x"); }};
    for (const auto& use : uses)
      if (const std::string s = said_by(use); !says(s, {"[tessera.network.moved]"})) return "says: " + s;
    first = std::move(third);
    small::net& itself = first;
    first = std::move(itself);
    first(x);
    return "";
  });
}

TEST_CASE("a plan is made for the extents at hand, refused every time, and stays as long as the network", "[refusal]") {
  struct height_here : dyn {};
  struct over : axis<2> {};
  using pair = mesh<over>;
  using input = tensor<partition<pair, blocks<over>, whole, whole>, shape<sample, dim<1>, height_here>, double>;
  judge_team<pair>([](auto& t) -> std::string {
    const nn::sequential<input, nn::conv<1, kernel<4>>, plan_watcher> net{t, seed{5}};
    const auto of = [&](index_t n, index_t height) {
      return distribute<input>(t, at::ones({n, 1, height}, at::kDouble));
    };
    plan_watcher::plans.clear();
    for (int again = 0; again < 2; ++again)
      if (const std::string s = said_by([&] { net(of(2, 3)); });
          !says(s, {"[tessera.window.kernel]", "[layer 0 (conv)]"}))
        return "says: " + s;
    net(of(3, 5));
    net(of(4, 6));
    net(of(3, 5));
    const auto& plans = plan_watcher::plans;
    if (plans.size() != 3 || plans[0] != plans[2]) return "other plans";
    return plans[0]->inputs[0].from->layout().dims[0].extent == 3 &&
                   plans[1]->inputs[0].from->layout().dims[0].extent == 4
               ? ""
               : "a plan was overwritten";
  });
}

TEST_CASE("a network whose batch has learned lengths keeps their lists as long as it knows them, and is the serial one",
          "[gradient]") {
  struct over : axis<3> {};
  using line = mesh<over>;
  using input = tensor<partition<line, lengths<over>, whole>, shape<sample, dim<5>>, double>;
  judge_team<line>([](auto& t) -> std::string {
    const nn::sequential<input, nn::linear<4>, plan_watcher> net{t, seed{5}};
    const nn::state_dict w = nn::state_of(net);
    plan_watcher::plans.clear();
    for (const int more : {0, 1}) {
      const index_t rows[]{2 + more, 0, 4};
      const at::Tensor all = global_of({6 + more, 5}, numbers{2});
      const auto elsewhere = t.template over<line>();  // its lists end with it
      const auto x = from_local<input>(elsewhere, all.narrow(0, t.rank() == 2 ? 2 + more : 0, rows[t.rank()]).clone());
      if (!at::allclose(full_tensor(net(x)), at::relu(at::linear(all, w.at("0.weight"), w.at("0.bias")))))
        return "other numbers";
    }
    for (const int more : {0, 1})
      if (plan_watcher::plans[static_cast<std::size_t>(more)]->inputs[0].from->layout().dims[0].bounds[1] != 2 + more)
        return "other lengths";
    return "";
  });
}

TEST_CASE(
    "layers that give as many as they read leave uneven parts as they are: the serial numbers, and halos alone move",
    "[plan][gradient]") {
  struct up : axis<4> {};
  struct across : axis<2> {};
  using grid = mesh<up, across>;
  using input = tensor<
      partition<grid, whole, whole, lengths<up, dim<7>, dim<1>, dim<0>, dim<5>>, lengths<across, dim<2>, dim<4>>>,
      shape_of<2, 2, 13, 6>, double>;
  using net_type =
      nn::sequential<input, nn::conv<3, kernel<5, 3>, padding<2, 1>>, nn::relu,
                     nn::avg_pool<kernel<3, 3>, stride<1>, padding<1>>, nn::conv_transpose<2, kernel<3, 3>, padding<1>>,
                     nn::conv<2, kernel<3, 3>, padding<1>, padding_mode<boundary::periodic, boundary::zero>>>;
  static_assert(std::is_same_v<net_type::output, input>);
  judge_team<grid>([](auto& t) -> std::string {
    const net_type net{t, seed{5}};
    const nn::state_dict w = nn::state_of(net);
    const at::Tensor all = global_of({2, 2, 13, 6}, numbers{2}).set_requires_grad(true);
    at::Tensor y =
        at::relu(at::conv2d(all, w.at("0.weight"), w.at("0.bias"), at::IntArrayRef({1, 1}), at::IntArrayRef({2, 1})));
    y = at::conv_transpose2d(at::avg_pool2d(y, {3, 3}, {1, 1}, {1, 1}), w.at("3.weight"), w.at("3.bias"),
                             at::IntArrayRef({1, 1}), at::IntArrayRef({1, 1}));
    y = at::conv2d(at::constant_pad_nd(at::pad(y, {0, 0, 1, 1}, "circular"), {1, 1, 0, 0}), w.at("4.weight"),
                   w.at("4.bias"));
    const at::Tensor of_x = torch::autograd::grad({y.square().sum()}, {all})[0];
    auto x = distribute<input>(t, all.detach());
    x.requires_grad();
    index_t bytes = 0;
    t.state()->watch = {
        [](void* self, const phase& p, element e) { *static_cast<index_t*>(self) += cost_of(p).total * bytes_of(e); },
        nullptr, &bytes};
    const auto z = net(x);
    t.state()->watch = {};
    if (bytes != traffic<net_type>().forward.bytes) return fmt::format("{} bytes", bytes);
    sum(z * z).backward();
    const bool right =
        at::allclose(full_tensor(z), y, 1e-12, 1e-12) && at::allclose(full_tensor(x.grad()), of_x, 1e-12, 1e-12);
    return right ? "" : "other numbers";
  });
}

TEST_CASE("a dynamic tensor that is not the network's input is refused", "[refusal]") {
  using net = image_net<2, 2>;
  judge_team<net::grid>([](auto& t) -> std::string {
    const net::net n{t, seed{5}};
    const auto of = [&](std::vector<index_t> sizes, at::ScalarType type) {
      layout x = value_of<net::input>.layout;
      for (int d = 0; d < 4; ++d) x.dims[d].extent = sizes[static_cast<std::size_t>(d)];
      return tensor<dyn>(t.state(), x, at::ones(tessera::detail::sizes_of(held_by(x, t.rank())), type));
    };
    n(of({3, 2, 7, 6}, at::kDouble));
    if (const std::string s = said_by([&] { n(of({3, 2, 7, 7}, at::kDouble)); }); !says(s, {"[tessera.shape.extent]"}))
      return "says: " + s;
    if (const std::string s = said_by([&] { n(of({3, 2, 7, 6}, at::kFloat)); }); !says(s, {"[tessera.tensor.element]"}))
      return "says: " + s;
    return "";
  });
}

namespace {

/// Whether checked mode names what has drifted on worker 3 of a network, by its key; of no key, whether the network
/// runs.
template <class Net, class Input, class Grid>
void judge_drift(const std::string& key) {
  judge_team<Grid>(
      [&](auto& t) -> std::string {
        const Net n{t, seed{5}};
        bool drifts = false;
        const auto drift = [&](const nn::engine::state_tensor& one) {
          if (one.path() != key || t.rank() != 3) return;
          const at::NoGradGuard step;
          one.stored().local().add_(1);
          drifts = true;
        };
        n.each_parameter(drift);
        n.each_buffer(drift);
        const std::string s = said_by([&] { n(distribute<Input>(t, at::ones({3, 5}, at::kDouble))); });
        if (t.rank() == 3 && drifts == key.empty()) return "it keeps no " + key;
        return key.empty() ? s : says(s, {"[tessera.agree.copies]", key.c_str()}) ? "" : "says: " + s;
      },
      true);
}

}  // namespace

TEST_CASE(
    "checked mode names the parameter or buffer whose copies have drifted, on whatever mesh it lies, and who drew once "
    "more",
    "[refusal]") {
  using small = image_net<2, 2>;
  using placed = partition<fixed<small::grid, small::up, 1>, whole, blocks<small::across>>;
  using input = tensor<partition<small::grid, blocks<small::up>, blocks<small::across>>, shape<sample, dim<5>>, double>;
  using linears = nn::sequential<input, nn::linear<6, no_bias>, nn::relu, nn::linear<4, output_as<placed>>>;
  using with_buffers = nn::sequential<input, nn::linear<6>, nn::batch_norm<>, nn::dropout<>, nn::linear<4>>;
  for (const char* key : {"", "0.weight", "2.weight"}) judge_drift<linears, input, small::grid>(key);
  for (const char* key : {"", "1.running_mean", "2.draws"}) judge_drift<with_buffers, input, small::grid>(key);
}

TEST_CASE("state dicts are compared over the workers, and an error lists all that does not fit; nothing changes then",
          "[refusal]") {
  using small = sample_net<2, 1>;
  judge_team<small::grid>([](auto& t) -> std::string {
    small::net net{t, seed{5}};
    const nn::state_dict start = nn::state_of(net);
    const auto assigned = [&](auto&& change) {
      nn::state_dict state = start;
      for (auto& [key, w] : state) w = w + 1;
      change(state);
      return said_by([&] { nn::assign(net, state); });
    };
    const std::string all = assigned([](nn::state_dict& s) {
      s.erase("0.bias");
      s.erase("4.weight");
      s["6.bias"] = at::zeros({2, 9}, at::kDouble);
      s["6.weight"] = at::Tensor();
      s["7.bias"] = at::zeros({2});
    });
    if (!says(all, {"[tessera.network.parameters]", "0.bias is missing", "4.weight is missing",
                    "6.bias is Double[2, 9] and not Double[4]", "6.weight is undefined and not Double[4, 6]",
                    "7.bias is unexpected"}))
      return all;
    const std::string differ[]{assigned([&](nn::state_dict& s) { s["4.bias"][2] += t.rank(); }),
                               assigned([&](nn::state_dict& s) {
                                 if (t.rank() == 0) s.erase("4.bias");
                               }),
                               assigned([&](nn::state_dict& s) {
                                 if (t.rank() == 1) s["4.bias"] = s["4.bias"].to(at::kFloat);
                               }),
                               assigned([&](nn::state_dict& s) {
                                 if (t.rank() == 1) s["3.more"] = at::ones({1});
                               })};
    for (const std::string& s : differ)
      if (!says(s, {"[tessera.agree.copies]", &s == &differ[3] ? "[3.more]" : "[4.bias]"})) return "says: " + s;
    if (!same_state(nn::state_of(net), start)) return "it changed";
    if (const std::string s = assigned([](nn::state_dict&) {}); !s.empty() || same_state(nn::state_of(net), start))
      return "not assigned " + s;
    return "";
  });
}

TEST_CASE("every worker of the team has all parameters, whichever of them a layer lies on", "[runtime]") {
  using small = image_net<2, 2>;
  using placed = partition<fixed<small::grid, small::up, 1>, whole, blocks<small::across>>;
  using input = tensor<partition<small::grid, blocks<small::up>, blocks<small::across>>, shape<sample, dim<5>>, double>;
  using somewhere = nn::sequential<input, nn::linear<6>, nn::relu, nn::linear<4, output_as<placed>>>;
  using anywhere = nn::sequential<input, nn::linear<6>, nn::relu, nn::linear<4>>;
  judge_team<small::grid>([](auto& t) {
    somewhere one{t, seed{5}};
    const anywhere two{t, seed{5}};
    const nn::state_dict state = nn::state_of(two);
    if (!same_state(nn::state_of(one), state)) return "other parameters";
    somewhere three{t, seed{6}};
    nn::assign(three, state);
    return same_state(nn::state_of(three), state) ? "" : "not assigned";
  });
}

TEST_CASE("all workers drive a network on a sub-mesh; those outside hold nothing and disturb nothing", "[runtime]") {
  using small = image_net<2, 2>;
  using lower = fixed<small::grid, small::up, 1>;
  using input = tensor<partition<lower, blocks<small::across>, whole>, shape<sample, dim<5>>, double>;
  judge_team<small::grid>([](auto& t) -> std::string {
    const auto below = t.template over<lower>();
    nn::sequential<input, nn::linear<6>, nn::relu> net{below, seed{5}};
    net.train();
    torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1));
    const at::Tensor images = global_of({3, 5}, numbers{1});
    const nn::state_dict start = nn::state_of(net);
    sum(net(distribute<input>(below, images))).backward();
    optimizer.step();
    nn::state_dict w = start;
    for (auto& [key, leaf] : w) leaf.set_requires_grad(true);
    const scratch_file file;
    nn::save(net, file.path);
    nn::load(net, file.path);
    const nn::state_dict end = nn::state_of(net);
    nn::assign(net, end);
    if (!below.inside()) return end.at("0.bias").numel() == 0 ? "" : "holds something";
    at::relu(at::linear(images, w.at("0.weight"), w.at("0.bias"))).sum().backward();
    for (const auto& [key, leaf] : w)
      if (!at::allclose(end.at(key), leaf.detach() - 0.1 * leaf.grad())) return "other weights";
    return "";
  });
}

TEST_CASE("a mesh of workers that were not started is refused by tensors and networks", "[refusal]") {
  struct wide : axis<8> {};
  using input = tensor<partition<mesh<wide>, blocks<wide>, whole>, shape_of<9, 5>, double>;
  using grid = image_net<2, 2>::grid;
  CHECK(refusals<grid>("tessera.launch.world", [](auto& t) { distribute<input>(t, at::ones({9, 5}, at::kDouble)); }) ==
        4);
  CHECK(refusals<grid>("tessera.launch.world", [](auto& t) { nn::sequential<input, nn::linear<3>>(t, seed{1}); }) == 4);
}
