#include <tessera/nn/file/network_file.hpp>

#include "tests/support/tensors.hpp"

namespace tessera::testing::of_losses {

using namespace engine;

namespace {

using nn::reduction;

at::Tensor from_zero_to_one(const at::Tensor& x) { return (x + 1) / 2; }

struct up : axis<2> {};
struct across : axis<3> {};
using grid = mesh<up, across>;
using cut_scores = partition<grid, blocks<up>, blocks<across>>;
using scores = tensor<cut_scores, shape_of<4, 7>, double>;
using classes = tensor<partition<grid, blocks<up>, invariant<across>>, shape_of<4>, std::int64_t>;

}  // namespace

TEST_CASE("classes that are masked with -inf add nothing to a cross-entropy, whoever has them", "[runtime][gradient]") {
  at::Tensor x = global_of({4, 7}, numbers{9});
  x.narrow(1, 2, 3).fill_(-std::numeric_limits<double>::infinity());  // all that one worker of a row has is among them
  const at::Tensor y = at::tensor({0, 1, 5, 6}, at::kLong);
  const at::Tensor serial_x = x.clone().set_requires_grad(true);
  const at::Tensor serial = at::cross_entropy_loss(serial_x, y);
  serial.backward();
  const auto run = in_team<grid>([&](team<grid>& t) {
    auto logits = distribute<scores>(t, x);
    logits.requires_grad();
    const auto loss = nn::cross_entropy(logits, distribute<classes>(t, y));
    loss.backward();
    return std::abs(item(loss) - serial.item<double>()) < 1e-14 &&
           at::allclose(tessera::full_tensor(logits.grad()), serial_x.grad(), 0, 1e-14);
  });
  REQUIRE(run.well());
  for (int r = 0; r < 6; ++r) CHECK(run.of(r));
}

TEST_CASE("the gradient of a cross-entropy is differentiated as LibTorch's, whoever has the classes", "[gradient]") {
  const at::Tensor x = global_of({4, 7}, numbers{9}) * 4;
  const at::Tensor y = at::tensor({0, 1, 5, 6}, at::kLong);
  const std::vector<double> weight{1, 2, 0.5, 0, 3, 1.25, 0.75};
  for (const nn::cross_entropy_options& how :
       {nn::cross_entropy_options{}, {.weight = weight, .ignore_index = 5}, {.label_smoothing = 0.25}}) {
    const at::Tensor of = how.weight.empty() ? at::Tensor() : at::tensor(at::ArrayRef<double>(how.weight), at::kDouble);
    const at::Tensor leaf = x.clone().set_requires_grad(true);
    const at::Tensor serial =
        at::cross_entropy_loss(leaf, y, of, at::Reduction::Mean, how.ignore_index, how.label_smoothing);
    const at::Tensor slope = torch::autograd::grad({serial * serial}, {leaf}, {}, true, true)[0];
    slope.square().sum().backward();
    CHECK(satisfied<grid>([&](team<grid>& t) {
            auto logits = distribute<scores>(t, x);
            logits.requires_grad();
            const at::Tensor loss = nn::cross_entropy(logits, distribute<classes>(t, y), how).local();
            const at::Tensor g = torch::autograd::grad({loss * loss}, {logits.local()}, {}, true, true)[0];
            g.square().sum().backward();
            const auto whole = [&](const at::Tensor& local) {
              return tessera::full_tensor(tensor<dyn>(logits.team(), logits.layout(), local.detach()));
            };
            const bool once = at::allclose(whole(g), slope.detach(), 1e-10, 1e-13);
            return at::allclose(tessera::full_tensor(logits.grad()), leaf.grad(), 1e-10, 1e-13) && once;
          }) == 6);
  }
}

TEST_CASE("a loss without a label that counts is none, and options that do not fit are refused on all workers",
          "[refusal][runtime]") {
  using pixels = tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>, shape_of<2, 4, 3, 2>, double>;
  using known = tensor<partition<grid, whole, blocks<up>, blocks<across>>, shape_of<2, 3, 2>, std::int64_t>;
  const at::Tensor x = global_of({2, 4, 3, 2}, numbers{9});
  const auto loss = [&](auto& t, index_t label, const nn::cross_entropy_options& how = {}) {
    auto logits = distribute<pixels>(t, x);
    logits.requires_grad();
    const auto y = nn::cross_entropy(logits, distribute<known>(t, at::full({2, 3, 2}, label, at::kLong)), how);
    y.backward();
    return std::pair(item(y), tessera::full_tensor(logits.grad()));
  };
  CHECK(satisfied<grid>([&](auto& t) {
          const auto [mean, gradient] = loss(t, -100);
          return std::isnan(mean) && at::equal(gradient, at::zeros_like(x));
        }) == 6);
  CHECK(satisfied<grid>(
            [&](auto& t) { return loss(t, 3, {.weight = {1, 1, 1, 1}, .label_smoothing = 1}).first > 0; }) == 6);
  CHECK(refusals<grid>("tessera.loss.weight", [&](auto& t) { loss(t, 3, {.weight = {1, 1, 1}}); }) == 6);
  CHECK(refusals<grid>("tessera.layer.probability", [&](auto& t) { loss(t, 3, {.label_smoothing = 1.5}); }) == 6);
  CHECK(refusals<grid>("tessera.loss.label", [&](auto& t) { loss(t, 4); }) == 6);
  CHECK(refusals<grid>("tessera.loss.label", [&](auto& t) { loss(t, -100, {.ignore_index = 255}); }) == 6);
}

TEST_CASE("a mean over no element is none, and a sum is zero", "[runtime]") {
  using nothing = tensor<partition<grid, blocks<up>, blocks<across>>, shape_of<0, 5>, double>;
  CHECK(satisfied<grid>([](auto& t) {
          const auto x = distribute<nothing>(t, at::zeros({0, 5}, at::kDouble));
          return std::isnan(item(nn::mse_loss(x, x))) && item(nn::mse_loss<reduction::sum>(x, x)) == 0 &&
                 std::isnan(item(nn::kl_div<reduction::batch_mean>(x, x)));
        }) == 6);
}

TEST_CASE(
    "a binary cross-entropy has LibTorch's least logarithm and gradient at 0 and 1, and what is no probability is "
    "refused on all workers",
    "[refusal][runtime]") {
  const at::Tensor x = at::tensor({0.0, 1.0, 0.5, 1.0, 0.0, 0.25, 1e-40}, at::kDouble).repeat({4, 1});
  const at::Tensor y = at::tensor({1.0, 0.0, 0.5, 1.0, 0.0, 1.0, 0.75}, at::kDouble).repeat({4, 1});
  const at::Tensor weight = global_of({4, 7}, numbers{5});
  const at::Tensor serial_x = x.clone().set_requires_grad(true);
  const at::Tensor serial = at::binary_cross_entropy(serial_x, y, weight);
  serial.backward();
  CHECK(satisfied<grid>([&](auto& t) {
          auto p = distribute<scores>(t, x);
          p.requires_grad();
          const auto loss = nn::binary_cross_entropy(p, distribute<scores>(t, y), distribute<scores>(t, weight));
          loss.backward();
          return std::abs(item(loss) - serial.item<double>()) < 1e-13 &&
                 at::allclose(tessera::full_tensor(p.grad()), serial_x.grad(), 1e-12, 0);
        }) == 6);
  for (const double wrong : {-1e-9, 1.5, std::nan("")}) {
    at::Tensor bad = x.clone();
    bad[3][6] = wrong;
    const char* const code = "tessera.loss.probability";
    CHECK(refusals<grid>(code, [&](auto& t) {
            nn::binary_cross_entropy(distribute<scores>(t, bad), distribute<scores>(t, y));
          }) == 6);
    CHECK(refusals<grid>(code, [&](auto& t) {
            nn::binary_cross_entropy<reduction::none>(distribute<scores>(t, x), distribute<scores>(t, bad));
          }) == 6);
  }
}

TEST_CASE("losses of half types are float inside and rounded once", "[runtime]") {
  using halves = tensor<cut_scores, shape_of<4, 7>, bfloat16>;
  const at::Tensor x = global_of({4, 7}, numbers{9}).to(at::kBFloat16);
  const at::Tensor y = global_of({4, 7}, numbers{10}).abs().to(at::kBFloat16);
  const at::Tensor labels = at::tensor({0, 1, 5, 6}, at::kLong);
  const at::Tensor f = x.to(at::kFloat);
  const auto is = [](const auto& loss, const at::Tensor& wanted) {
    return at::equal(loss.local(), wanted.to(at::kBFloat16));
  };
  CHECK(satisfied<grid>([&](auto& t) {
          auto a = distribute<halves>(t, x);
          a.requires_grad();
          const auto b = distribute<halves>(t, y);
          const auto loss = nn::mse_loss(a, b);
          loss.backward();
          const auto none = nn::kl_div<reduction::none>(a, b);
          return is(loss, at::mse_loss(f, y.to(at::kFloat))) && a.grad().local().scalar_type() == at::kBFloat16 &&
                 is(nn::cross_entropy(a, distribute<classes>(t, labels)), at::cross_entropy_loss(f, labels)) &&
                 is(nn::cross_entropy(a, b), at::cross_entropy_loss(f, y.to(at::kFloat))) &&
                 at::equal(tessera::full_tensor(none),
                           at::kl_div(f, y.to(at::kFloat), at::Reduction::None).to(at::kBFloat16));
        }) == 6);
}

namespace {

// A network that ends in its loss.
struct trained {
  constexpr auto operator()(auto x, auto y) const {
    return nn::huber_loss<reduction::sum>(x | nn::linear<7, output_as<cut_scores>>{}, y, {.delta = 0.25});
  }
};
struct classified {
  constexpr auto operator()(auto x, auto y) const {
    return nn::cross_entropy(x, y, {.ignore_index = 5, .label_smoothing = 0.25});
  }
};
using pictures = tensor<partition<grid, blocks<up>, whole>, shape_of<4, 3>, double>;

}  // namespace

TEST_CASE("a network may end in its loss, typed or put together while it runs, and it moves what is reduced",
          "[plan][runtime][gradient]") {
  using typed = nn::network<trained, pictures, scores>;
  using of_classes = nn::network<classified, scores, classes>;
  static_assert(traffic<of_classes>().forward.bytes > 0 && traffic<of_classes>().backward.bytes == 0);
  const at::Tensor x = global_of({4, 3}, numbers{1});
  const at::Tensor y = global_of({4, 7}, numbers{2});
  const at::Tensor labels = at::tensor({0, 1, 5, 6}, at::kLong);
  const double expected = at::cross_entropy_loss(y, labels, {}, at::Reduction::Mean, 5, 0.25).item<double>();
  CHECK(satisfied<grid>([&](team<grid>& t) {
          typed net{t, seed{1}};
          const auto in = distribute<pictures>(t, x);
          const auto wanted = distribute<scores>(t, y);
          const auto loss = net(in, wanted);
          loss.backward();
          const auto w = nn::state_of(net);
          const double serial =
              at::huber_loss(at::linear(x, w.at("0.weight"), w.at("0.bias")), y, at::Reduction::Sum, 0.25)
                  .template item<double>();

          nn::program p;
          const auto a = p.input<scores>();
          const auto b = p.input<classes>();
          p.output(classified{}(a, b));
          const nn::dynamic_network dynamic{t, seed{1}, p};
          of_classes same{t, seed{1}};
          const auto known = distribute<classes>(t, labels);
          return std::abs(item(loss) - serial) < 1e-12 && std::abs(item(same(wanted, known)) - expected) < 1e-14 &&
                 std::abs(dynamic({wanted.dynamic(), known.dynamic()})[0].local().template item<double>() - expected) <
                     1e-14;
        }) == 6);
}

TEST_CASE("operands of a loss that do not fit are refused on all workers, as types do", "[refusal]") {
  const auto of = [](const layout& l, const team_handle& t, element e = element::float64) {
    return tensor<dyn>(t, l,
                       at::zeros(tessera::detail::sizes_of(held_by(l, t->rank())), tessera::detail::scalar_type_of(e)));
  };
  const layout x = value_of<scores>.layout;
  const layout row = value_of<tensor<partition<grid, blocks<up>>, shape_of<4>, double>>.layout;
  layout longer = x;
  longer.dims[1].extent = 8;
  layout copies = x;
  for (axis_placement& r : copies.placements) r = {};
  layout terms = copies;
  terms.placements[0] = {placement::partial};
  const auto refused = [&](const char* code, const auto& f) {
    return refusals<grid>(code, [&](auto& t) {
             f([&](const layout& l, element e = element::float64) { return of(l, t.state(), e); });
           }) == 6;
  };
  CHECK(refused("tessera.shape.extent", [&](const auto& make) { nn::mse_loss(make(x), make(longer)); }));
  CHECK(refused("tessera.rule.cut", [&](const auto& make) { nn::l1_loss(make(x), make(copies)); }));
  CHECK(refused("tessera.rule.nonlinear", [&](const auto& make) { nn::mse_loss(make(terms), make(terms)); }));
  CHECK(refused("tessera.function.element",
                [&](const auto& make) { nn::mse_loss(make(x, element::int64), make(x, element::int64)); }));
  CHECK(refused("tessera.tensor.element", [&](const auto& make) { nn::mse_loss(make(x), make(x, element::float32)); }));
  CHECK(refused("tessera.tensor.element",
                [&](const auto& make) { nn::cross_entropy(make(x), make(x, element::float32)); }));
  CHECK(refused("tessera.shape.extent", [&](const auto& make) { nn::cross_entropy(make(x), make(longer)); }));
  CHECK(refused("tessera.signature.dimensions",
                [&](const auto& make) { nn::nll_loss(make(x), make(x, element::int64)); }));
  CHECK(refused("tessera.layer.dimensions",
                [&](const auto& make) { nn::cosine_embedding_loss(make(row), make(row), make(row)); }));
  CHECK(refused("tessera.loss.option", [&](const auto& make) { nn::huber_loss(make(x), make(x), {.delta = 0}); }));
  CHECK(refused("tessera.loss.option", [&](const auto& make) { nn::smooth_l1_loss(make(x), make(x), {.beta = -1}); }));
  nn::program p;
  const auto a = p.input<scores>();
  CHECK(told([&] { nn::cross_entropy(a, p.input<classes>(), {.weight = std::vector<double>(7, 1)}); }) ==
        "tessera.loss.module");
  CHECK(told([&] { nn::huber_loss(a, a, {.delta = -1}); }) == "tessera.loss.option");
}

namespace {

// A network whose loss has the weights of its classes as a buffer.
constexpr double weights_of_seven[]{1, 2, 0.5, 0, 3, 1.25, 0.75};
struct as_weighed {
  static constexpr initial_value initial = init::listed(weights_of_seven);
};
template <class Weights>
struct weighing {
  constexpr auto operator()(auto x, auto y) const {
    return nn::cross_entropy(x, y, x | nn::named<struct class_weights, nn::constant<Weights, as_weighed>>{},
                             {.ignore_index = 5, .label_smoothing = 0.25});
  }
};
using copied_weights = tensor<partition<grid, whole, replicate<up>, invariant<across>>, shape_of<7>, double>;

/// A file whose nodes are a loss of inputs that lie as `scores`, and a target.
std::string file_of(const std::string& nodes, const std::string& target) {
  const std::string cut = R"("dims": [{"blocks": ["up"]}, {"blocks": ["across"]}])";
  return R"({"inputs": [{"name": "x", "shape": [4, 7], "element": "double", )" + cut + R"(}, {"name": "y", )" +
         (target == "labels"
              ? R"("shape": [4], "element": "int64", "dims": [{"blocks": ["up"]}], "meaning": {"across": "invariant"})"
              : R"("shape": [4, 7], "element": "double", )" + cut) +
         R"(}], "nodes": [)" + nodes + R"(], "outputs": "loss"})";
}
std::string constant_in_file(const std::string& shape, const std::string& values,
                             const std::string& cover = R"({"whole": true})") {
  return R"({"name": "w", "of": "x", "layer": "constant", "path": "weighed", "shape": )" + shape +
         R"(, "element": "double", "dims": [)" + cover + R"(], "values": )" + values + "}, ";
}

}  // namespace

TEST_CASE(
    "a network of a file ends in any loss, with class weights that it keeps as a buffer, as LibTorch's functions "
    "give",
    "[refusal][runtime]") {
  const at::Tensor x = from_zero_to_one(global_of({4, 7}, numbers{2}));
  const at::Tensor y = from_zero_to_one(global_of({4, 7}, numbers{3}));
  const at::Tensor labels = at::tensor({0, 1, 5, 6}, at::kLong);
  const at::Tensor w = at::tensor(at::ArrayRef<double>(weights_of_seven, 7), at::kDouble);
  constexpr auto mean = at::Reduction::Mean;
  constexpr auto sum = at::Reduction::Sum;
  using serial_loss = std::function<at::Tensor(const at::Tensor&)>;
  const std::string list = "[1, 2, 0.5, 0, 3, 1.25, 0.75]";
  const auto alone = [](const std::string& says) {
    return R"({"name": "loss", "of": ["x", "y"], "function": )" + says + "}";
  };
  const auto weighed = [&](const std::string& says) {
    return constant_in_file("[7]", list) + R"({"name": "loss", "of": ["x", "y", "w"], "function": )" + says + "}";
  };
  const auto cut = [&](const std::string& says) {
    return constant_in_file("[7]", list, R"({"blocks": ["across"]})") +
           R"({"name": "loss", "of": ["x", "y", "w"], "function": )" + says + "}";
  };
  const std::vector<std::tuple<std::string, std::string, serial_loss>> all{
      {alone(R"("l1_loss", "reduction": "sum")"), "", [&](const auto& a) { return at::l1_loss(a, y, sum); }},
      {alone(R"("mse_loss", "reduction": "none")"), "",
       [&](const auto& a) { return at::mse_loss(a, y, at::Reduction::None); }},
      {alone(R"("smooth_l1_loss", "beta": 0.25)"), "",
       [&](const auto& a) { return at::smooth_l1_loss(a, y, mean, 0.25); }},
      {alone(R"("huber_loss", "delta": 0.25)"), "", [&](const auto& a) { return at::huber_loss(a, y, mean, 0.25); }},
      {alone(R"("poisson_nll_loss", "log_input": false, "full": true, "eps": 0.001)"), "",
       [&](const auto& a) { return at::poisson_nll_loss(a, y, false, true, 0.001, mean); }},
      {alone(R"("kl_div", "log_target": true, "reduction": "batchmean")"), "",
       [&](const auto& a) { return at::kl_div(a, y, sum, true) / 4; }},
      {alone(R"("binary_cross_entropy")"), "", [&](const auto& a) { return at::binary_cross_entropy(a, y, {}, mean); }},
      {cut(R"("binary_cross_entropy_with_logits")"), "",
       [&](const auto& a) { return at::binary_cross_entropy_with_logits(a, y, w, {}, mean); }},
      {cut(R"("binary_cross_entropy_with_pos_weight")"), "",
       [&](const auto& a) { return at::binary_cross_entropy_with_logits(a, y, {}, w, mean); }},
      {alone(R"("hinge_embedding_loss", "margin": 0.5)"), "",
       [&](const auto& a) { return at::hinge_embedding_loss(a, y, 0.5, mean); }},
      {alone(R"("nll_loss", "ignore_index": 1)"), "labels",
       [&](const auto& a) { return at::nll_loss(a, labels, {}, mean, 1); }},
      {weighed(R"("nll_loss", "reduction": "sum")"), "labels",
       [&](const auto& a) { return at::nll_loss(a, labels, w, sum); }},
      {alone(R"("cross_entropy", "label_smoothing": 0.25)"), "labels",
       [&](const auto& a) { return at::cross_entropy_loss(a, labels, {}, mean, -100, 0.25); }},
      {weighed(R"("cross_entropy", "ignore_index": 5, "label_smoothing": 0.25)"), "labels",
       [&](const auto& a) { return at::cross_entropy_loss(a, labels, w, mean, 5, 0.25); }},
      {weighed(R"("cross_entropy", "reduction": "none")"), "",
       [&](const auto& a) { return at::cross_entropy_loss(a, y, w, at::Reduction::None); }}};
  for (const auto& [nodes, target, serial] : all) {
    INFO(nodes);
    const at::Tensor leaf = x.clone().set_requires_grad(true);
    const at::Tensor wanted = serial(leaf);
    wanted.sum().backward();
    CHECK(satisfied<grid>([&, &nodes = nodes, &target = target](team<grid>& t) {
            nn::program p;
            nn::read_network(p, file_of(nodes, target), t.mesh(), "loss.json");
            const nn::dynamic_network net{t, seed{1}, p};
            auto in = distribute<scores>(t, x);
            in.requires_grad();
            const auto loss = net({in.dynamic(), target == "labels" ? distribute<classes>(t, labels).dynamic()
                                                                    : distribute<scores>(t, y).dynamic()})[0];
            tessera::sum(loss).backward();
            const auto state = nn::state_of(net);
            const bool kept = state.count("weighed") == 0 || at::equal(state.at("weighed"), w);
            return kept && net.parameters().empty() &&
                   at::allclose(tessera::full_tensor(loss), wanted.detach(), 1e-13, 1e-14) &&
                   at::allclose(tessera::full_tensor(in.grad()), leaf.grad(), 1e-12, 1e-14);
          }) == 6);
  }
  using typed = nn::network<weighing<copied_weights>, scores, classes>;
  CHECK(satisfied<grid>([&](team<grid>& t) {
          typed net{t, seed{1}};
          const auto given = [&](const at::Tensor& by) {
            return std::abs(item(net(distribute<scores>(t, x), distribute<classes>(t, labels))) -
                            at::cross_entropy_loss(x, labels, by, mean, 5, 0.25).template item<double>()) < 1e-14;
          };
          const bool begun = given(w);
          nn::assign(net, {{"class_weights", w.flip(0)}});
          return begun && net.parameters().empty() && given(w.flip(0));
        }) == 6);
  const auto read = [&](const std::string& nodes, const std::string& target) {
    return told([&] {
      nn::program p;
      nn::read_network(p, file_of(nodes, target), grid::value, "loss.json");
    });
  };
  CHECK(read(alone(R"("mse_loss", "reduction": "most")"), "") == "tessera.file.written");
  CHECK(read(alone(R"("mse_loss", "delta": 1)"), "") == "tessera.file.written");
  CHECK(read(alone(R"("huber_loss", "delta": -1)"), "") == "tessera.loss.option");
  CHECK(read(R"({"name": "loss", "of": "x", "function": "mse_loss"})", "") == "tessera.signature.operands");
  CHECK(read(constant_in_file("[6]", "2") + R"({"name": "loss", "of": ["x", "y", "w"], "function": "cross_entropy"})",
             "labels") == "tessera.loss.weight");
  CHECK(read(constant_in_file("[7]", "[1, 2]") + alone(R"("mse_loss")"), "") == "tessera.initial.count");
}

TEST_CASE(
    "a target that is none is told on all workers of the losses' mesh, and no other worker of the team waits for "
    "them",
    "[refusal]") {
  struct all_of_them : axis<6> {};
  using line = mesh<all_of_them>;
  struct few : axis<2> {};
  using pair = mesh<few>;
  const at::Tensor labels = at::tensor({0, 1, 7, 6}, at::kLong);
  const auto of = [](const team<line>& t, const at::Tensor& all) {
    layout x;
    x.mesh = pair::value;
    x.placements.resize(1);
    for (const index_t n : all.sizes()) {
      dimension d;
      d.extent = n;
      x.dims.push(d);
    }
    x.cut_by(0, 0);
    return tessera::detail::distribute_value(t.state(), x, all.is_floating_point() ? element::float64 : element::int64,
                                             all);
  };
  const auto run = in_team<line>([&](team<line>& t) {
    const auto x = of(t, from_zero_to_one(global_of({4, 7}, numbers{2})));
    const auto says = [&](const auto& f) {
      try {
        f();
      } catch (const error& e) {
        return std::string(e.what());
      }
      return std::string("fits");
    };
    return says([&] { nn::cross_entropy(x, of(t, labels)); }) + "; " +
           says([&] { nn::binary_cross_entropy<reduction::none>(x, of(t, global_of({4, 7}, numbers{3}) + 2)); }) +
           "; " + says([&] { nn::cross_entropy(x, of(t, labels.remainder(7))); });
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (std::size_t rank = 0; rank < run.results.size(); ++rank) {
    const std::string& said = *run.results[rank];
    INFO(said);
    if (rank >= 2) {
      CHECK(said == "fits; fits; fits");
      continue;
    }
    CHECK(said.find("tessera.loss.label") != std::string::npos);
    CHECK(said.find("7") != std::string::npos);
    CHECK(said.find("tessera.loss.probability") != std::string::npos);
    CHECK(said.ends_with("; fits"));
  }
}

}  // namespace tessera::testing::of_losses
