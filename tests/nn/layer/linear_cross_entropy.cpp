// The cross-entropy of a sample of the classes, which any mesh draws alike, beside the serial one of the same sample.

#include <tessera/nn/file/network_file.hpp>

#include "tests/support/tensors.hpp"

#include <tessera/tensor/memory/memory_count.hpp>

#include <numbers>

namespace tessera::testing::of_sampled_classes {

using namespace engine;

namespace {

template <int P>
struct data : axis<P> {};
template <int P>
struct model : axis<P> {};

struct plain {};

/// A loss of features and labels over so many workers of each axis.
template <int Data, int Model, index_t Rows, index_t Classes, class Rate, class Scores = plain, class E = double>
struct over {
  using grid = mesh<data<Data>, model<Model>>;
  using features = tensor<partition<grid, blocks<data<Data>>, whole, invariant<model<Model>>>, shape_of<Rows, 6>, E>;
  using labels = tensor<partition<grid, blocks<data<Data>>, invariant<model<Model>>>, shape_of<Rows>, std::int64_t>;
  struct loss {
    constexpr auto operator()(auto x, auto y) const {
      using cut = cut_out<model<Model>>;
      if constexpr (std::is_same_v<Scores, plain>)
        return nn::named<struct head, nn::linear_cross_entropy<Classes, cut, Rate>>{}(x, y);
      else return nn::named<struct head, nn::linear_cross_entropy<Classes, cut, Rate, Scores>>{}(x, y);
    }
  };
  using network = nn::network<loss, features, labels>;
};

/// The loss of one process that looks at some of the classes.
at::Tensor serial(const at::Tensor& x, const at::Tensor& w, const at::Tensor& label, const at::Tensor& sample,
                  const nn::linear_cross_entropy_layer& how) {
  at::Tensor scores = x.mm(w.t());
  if (how.arcface) {
    const at::Tensor cosine = (x / x.norm(2, 1, true)).mm((w / w.norm(2, 1, true)).t());
    const at::Tensor angle = at::acos(cosine) + how.margin;
    const at::Tensor wider =
        at::where(angle < std::numbers::pi, at::cos(angle), cosine - how.margin * std::sin(how.margin));
    const at::Tensor hot = at::arange(w.size(0), at::kLong).unsqueeze(0) == label.unsqueeze(1);
    scores = how.scale * at::where(hot, wider, cosine);
  }
  return at::cross_entropy_loss(scores.masked_fill(sample.logical_not(), -INFINITY), label);
}

/// The classes of a step: those of labels, and those whose number of this draw is below a rate.
at::Tensor sample_of(const nn::state_dict& state, const at::Tensor& label, index_t classes, double rate) {
  at::Tensor taken = at::zeros({classes}, at::kBool);
  const bool draws = state.count("head.draws") > 0;
  const auto number = [&](const char* key) { return static_cast<std::uint64_t>(state.at(key).item<std::int64_t>()); };
  const std::uint64_t stream =
      draws ? tessera::detail::bits_at(number("head.key"), number("head.draws")) : std::uint64_t{0};
  for (index_t c = 0; c < classes; ++c)
    if (!draws || tessera::detail::uniform_at(stream, static_cast<std::uint64_t>(c)) < rate) taken[c] = true;
  for (index_t i = 0; i < label.numel(); ++i)
    if (const auto c = label[i].item<index_t>(); c >= 0) taken[c] = true;
  return taken;
}

bool near(const at::Tensor& x, const at::Tensor& wanted, double by = 1e-10) {
  return x.sizes() == wanted.sizes() && at::allclose(x, wanted, by, by / 100);
}

at::Tensor some(index_t rows, std::uint64_t salt) { return global_of({rows, 6}, numbers{salt}); }

void no_gradients(const auto& net) {
  for (at::Tensor& p : net.parameters()) p.mutable_grad() = at::Tensor();
}
at::Tensor gradient_of(const auto& net) {
  at::Tensor all;
  net.each_parameter([&](const nn::parameter& p) {
    all = full_tensor(tensor<dyn>(p.stored().team(), cotangent(p.stored().layout()), p.stored().local().grad()));
  });
  return all;
}

using layer = nn::linear_cross_entropy_layer;

/// A layer whose classes are cut by an axis, in a program that is put together while it runs.
template <int Data, int Model>
std::string differs(index_t rows, layer of, const at::Tensor& label) {
  using grid = mesh<data<Data>, model<Model>>;
  const auto out = in_team<grid>([&](const team<grid>& t) -> std::string {
    const mesh_value& m = t.mesh();
    static_vector<text, max_axes> cut = no_items<text, max_axes>;
    cut.push(m.axes[1].name);
    layer here = of;
    here.cut_out = tessera::engine::axis_names(cut);
    using rows_of_labels = partition<grid, blocks<data<Data>>, invariant<model<Model>>>;
    using rows_of_features = partition<grid, blocks<data<Data>>, whole, invariant<model<Model>>>;
    layout of_labels = value_of<tensor<rows_of_labels, shape_of<1>, std::int64_t>>.layout;
    layout of_features = value_of<tensor<rows_of_features, shape_of<1, 6>>>.layout;
    of_labels.dims[0].extent = of_features.dims[0].extent = rows;
    nn::program p;
    const auto in = p.input({of_features, element::float64});
    p.output(nn::under("head", here)(in, p.input({of_labels, element::int64})));
    const nn::dynamic_network net(t, seed{5}, p);
    std::string wrong;
    for (int step = 0; step < 3; ++step) {
      const nn::state_dict state = nn::state_of(net);
      const at::Tensor sample = sample_of(state, label, of.classes, of.sample_rate);
      const at::Tensor x = some(rows, 3 + static_cast<std::uint64_t>(step)).requires_grad_();
      const at::Tensor w = state.at("head.weight").clone().requires_grad_();
      const at::Tensor wanted = serial(x, w, label, sample, of);
      wanted.backward();
      tensor<dyn> own = distribute(t.state(), of_features, x.detach().clone());
      own.requires_grad();
      no_gradients(net);
      const tensor<dyn> loss = net({own, distribute(t.state(), of_labels, label)})[0];
      loss.backward();
      if (!near(loss.local().detach(), wanted.detach())) wrong += fmt::format("the loss of step {}; ", step);
      if (!near(full_tensor(own.grad()).detach(), x.grad())) wrong += fmt::format("features of step {}; ", step);
      const at::Tensor g = gradient_of(net);
      if (!near(g, w.grad())) wrong += fmt::format("the weight of step {}; ", step);
      if (g.masked_select(sample.logical_not().unsqueeze(1)).ne(0).any().template item<bool>())
        wrong += "a class that is not looked at; ";
    }
    return wrong;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

const at::Tensor five = at::tensor({9, 0, 3, -100, 3}, at::kLong);

}  // namespace

TEST_CASE("a loss of sampled classes is that of one process on the same sample, with its gradients, on any mesh",
          "[law][runtime][gradient]") {
  const layer half{.classes = 11, .sample_rate = 0.5};
  const layer arc{.classes = 11, .sample_rate = 0.2, .arcface = true, .scale = 8};
  const layer of_labels{.classes = 11, .sample_rate = 0, .arcface = true, .margin = 1.5, .scale = 4};
  const layer all{.classes = 11, .arcface = true};
  const layer few{.classes = 2, .sample_rate = 0.5};
  CHECK(differs<1, 1>(5, half, five) == "");
  CHECK(differs<1, 1>(5, arc, five) == "");
  for (const layer& one : {half, arc, of_labels, all, layer{.classes = 11}}) {
    CHECK(differs<2, 3>(5, one, five) == "");
    CHECK(differs<3, 2>(5, one, five) == "");
    CHECK(differs<1, 4>(5, one, five) == "");
  }
  CHECK(differs<2, 3>(1, few, at::tensor({1}, at::kLong)) == "");  // workers without a class, or without a sample
}

namespace {

/// The same loss of several layers: scores of all classes, which a cross-entropy reads.
template <class Made, index_t Classes>
struct of_layers {
  constexpr auto operator()(auto x, auto y) const {
    return nn::cross_entropy(x | nn::named<struct head, nn::linear<Classes, cut_out<model<3>>, no_bias>>{}, y);
  }
};
template <class Made, index_t Classes>
struct of_cosines {
  using met = partition<typename Made::grid, blocks<data<2>>, whole, replicate<model<3>>>;
  using weight =
      tensor<partition<typename Made::grid, blocks<model<3>>, whole, replicate<data<2>>>, shape_of<Classes, 6>, double>;
  constexpr auto operator()(auto x, auto y) const {
    const auto cosines = x | nn::named<struct head, nn::cosine_linear<weight, met>>{};
    return nn::cross_entropy(nn::angular_margin(cosines, y, {.margin = 0.5, .scale = 64}), y);
  }
};

template <class Made, class Layers>
bool same_as_layers(bool training) {
  return satisfied<typename Made::grid>([&](auto& t) {
           typename Made::network net{t, seed{5}};
           nn::network<Layers, typename Made::features, typename Made::labels> layers{t, seed{5}};
           if (!training) net.eval();
           const auto y = distribute<typename Made::labels>(t, five);
           const auto result = [&](auto& of) {
             auto x = distribute<typename Made::features>(t, some(5, 3));
             x.requires_grad();
             const auto loss = of(x, y);
             loss.backward();
             return std::array{full_tensor(loss).detach(), full_tensor(x.grad()).detach(), gradient_of(of)};
           };
           const auto ours = result(net), theirs = result(layers);
           bool all = true;
           for (std::size_t i = 0; i < 3; ++i) all = near(ours[i], theirs[i], 1e-12) && all;
           return all;
         }) == 6;
}

}  // namespace

TEST_CASE("at rate 1 and where nothing is trained the loss is that of scores of all classes", "[law][runtime]") {
  using all = over<2, 3, 5, 11, sample_rate<1>>;
  using some_of = over<2, 3, 5, 11, sample_rate<1, 5>>;
  using all_cosines = over<2, 3, 5, 11, sample_rate<1>, arcface<>>;
  using some_cosines = over<2, 3, 5, 11, sample_rate<1, 5>, arcface<>>;
  CHECK(same_as_layers<all, of_layers<all, 11>>(true));
  CHECK(same_as_layers<some_of, of_layers<some_of, 11>>(false));
  CHECK(same_as_layers<all_cosines, of_cosines<all_cosines, 11>>(true));
  CHECK(same_as_layers<some_cosines, of_cosines<some_cosines, 11>>(false));
  CHECK_FALSE(same_as_layers<some_of, of_layers<some_of, 11>>(true));
}

TEST_CASE("a sample has the share of its rate, is another in each step, and goes on behind a loading",
          "[runtime][regression]") {
  using made = over<1, 2, 2, 4000, sample_rate<1, 10>>;
  const at::Tensor label = at::tensor({7, 3999}, at::kLong);
  CHECK(satisfied<typename made::grid>([&](auto& t) {
          typename made::network net{t, seed{5}}, late{t, seed{9}};
          const auto x = distribute<typename made::features>(t, some(2, 3));
          const auto y = distribute<typename made::labels>(t, label);
          const auto looked_at = [&](auto& of) {
            no_gradients(of);
            of(x, y).backward();
            return gradient_of(of).ne(0).any(1);
          };
          const at::Tensor first = looked_at(net);
          const nn::state_dict kept = nn::state_of(net);
          const at::Tensor second = looked_at(net);
          nn::assign(late, kept);
          const auto count = [](const at::Tensor& s) { return s.sum().template item<std::int64_t>(); };
          const auto about_400 = [&](const at::Tensor& s) { return std::abs(count(s) - 402) < 5 * 19; };  // 5 √(C r q)
          return about_400(first) && about_400(second) && count(first.logical_and(second)) < 100 &&
                 first[7].template item<bool>() && first[3999].template item<bool>() &&
                 at::equal(looked_at(late), second);
        }) == 2);
}

TEST_CASE("a loss of half types is scored in float", "[runtime]") {
  using made = over<2, 3, 5, 11, sample_rate<1, 2>, arcface<1, 2, 8>, bfloat16>;
  CHECK(satisfied<typename made::grid>([&](auto& t) {
          typename made::network net{t, seed{5}};
          const nn::state_dict state = nn::state_of(net);
          const at::Tensor x = some(5, 3).to(at::kBFloat16);
          const at::Tensor wanted = serial(x.to(at::kDouble), state.at("head.weight").to(at::kDouble), five,
                                           sample_of(state, five, 11, 0.5), layer{.arcface = true, .scale = 8})
                                        .to(at::kBFloat16);
          const auto loss = net(distribute<typename made::features>(t, x), distribute<typename made::labels>(t, five));
          return at::equal(loss.local().detach(), wanted);
        }) == 6);
}

TEST_CASE("a loss of sampled classes is put together while it runs, or read from a file", "[plan][runtime][gradient]") {
  using made = over<2, 3, 5, 11, sample_rate<1, 5>, arcface<1, 4, 8, true>>;
  const std::string file = R"({"inputs": [
      {"name": "x", "shape": [5, 6], "element": "double", "dims": [{"blocks": ["data<2>"]}, {"whole": true}],
       "meaning": {"model<3>": "invariant"}},
      {"name": "y", "shape": [5], "element": "int64", "dims": [{"blocks": ["data<2>"]}],
       "meaning": {"model<3>": "invariant"}}],
    "nodes": [{"name": "loss", "of": ["x", "y"], "layer": "linear_cross_entropy", "path": "head", "classes": 11,
               "cut_out": ["model<3>"], "sample_rate": 0.2, "arcface": true, "margin": 0.25, "scale": 8, "easy": true}],
    "outputs": "loss"})";
  CHECK(satisfied<typename made::grid>([&](auto& t) {
          const auto x = distribute<typename made::features>(t, some(5, 3));
          const auto y = distribute<typename made::labels>(t, five);
          typename made::network typed{t, seed{5}};
          nn::program by_value;
          const auto in = by_value.input<typename made::features>();
          const layer made_by{.classes = 11,
                              .cut_out = {"model<3>"},
                              .sample_rate = 0.2,
                              .arcface = true,
                              .margin = 0.25,
                              .scale = 8,
                              .easy = true};
          const auto labels = by_value.input<typename made::labels>();
          by_value.output(nn::under("head", made_by)(in, labels));
          nn::program read;
          nn::read_network(read, file, t.mesh(), "loss.json");
          const nn::dynamic_network two{t, seed{5}, by_value}, three{t, seed{5}, read};
          bool all = true;
          for (int step = 0; step < 2; ++step) {
            const at::Tensor wanted = typed(x, y).local().detach();
            all = at::equal(two({x.dynamic(), y.dynamic()})[0].local().detach(), wanted) && all;
            all = at::equal(three({x.dynamic(), y.dynamic()})[0].local().detach(), wanted) && all;
          }
          return all;
        }) == 6);
}

TEST_CASE("a sample that is none, labels of no class and other operands are refused on all workers",
          "[refusal][runtime]") {
  using made = over<2, 3, 5, 11, sample_rate<1, 5>>;
  using grid = typename made::grid;
  const auto of = [&](auto& t, std::vector<index_t> label) {
    typename made::network net{t, seed{5}};
    net(distribute<typename made::features>(t, some(5, 3)),
        distribute<typename made::labels>(t, at::tensor(label, at::kLong)));
  };
  CHECK(refusals<grid>("tessera.loss.label", [&](auto& t) { of(t, {0, 1, 2, 3, 11}); }) == 6);
  CHECK(refusals<grid>("tessera.loss.label", [&](auto& t) { of(t, {0, -1, 2, 3, 4}); }) == 6);
  CHECK(refusals<grid>("none", [&](auto& t) { of(t, {0, -100, 2, 3, 10}); }) == 6);
  const tensor_value x = value_of<typename made::features>, y = value_of<typename made::labels>;
  CHECK(layer{.classes = 11}.plan(x, y).why.ok());
  CHECK(layer{.classes = 0}.plan(x, y).why.is(code::extent_negative));
  CHECK(layer{.classes = 11, .sample_rate = 1.5}.plan(x, y).why.is(code::no_probability));
  CHECK(layer{.classes = 11, .sample_rate = -0.5}.plan(x, y).why.is(code::no_probability));
  CHECK(layer{.classes = 11, .arcface = true, .margin = 4}.plan(x, y).why.is(code::loss_option_out_of_range));
  CHECK(layer{.classes = 11, .arcface = true, .scale = 0}.plan(x, y).why.is(code::loss_option_out_of_range));
  CHECK(layer{.classes = 11, .cut_out = {"depth"}}.plan(x, y).why.is(code::axis_not_in_mesh));
  CHECK(nn::linear_cross_entropy<11, no_bias>::plan(x, y).why.is(code::option_not_taken));
  CHECK(nn::linear_cross_entropy<11, cut_out<grains<2, model<3>>>>::plan(x, y).why.is(code::option_not_taken));
  CHECK(
      nn::linear_cross_entropy<11, sample_rate<1, 2>, sample_rate<1, 3>>::plan(x, y).why.is(code::option_given_twice));
  CHECK(layer{.classes = 11}.plan(x, x).why.is(code::operand_of_other_dimensions));
  CHECK(layer{.classes = 11}.plan(y, y).why.is(code::no_function_of_element));
  tensor_value other = y;
  other.layout.dims[0].extent = 4;
  CHECK(layer{.classes = 11}.plan(x, other).why.is(code::extents_differ));
  tensor_value cut = x;
  cut.layout.set_placement(1, {});
  cut.layout.cut_by(1, 1);
  CHECK(layer{.classes = 11}.plan(cut, y).why.is(code::dimension_needed_whole));
  CHECK(layer{.classes = 11, .cut_out = {"model<3>"}}.plan(cut, y).why.ok());  // features are gathered first
}

TEST_CASE("scores of sampled classes take the share of their rate of a worker's memory", "[runtime]") {
  constexpr index_t rows = 256, classes = 20'000;
  using made = over<1, 4, rows, classes, sample_rate<1, 10>, arcface<>>;
  const at::Tensor label = at::arange(rows, at::kLong) * 77;
  const auto out = in_team<typename made::grid>([&](const auto& t) {
    typename made::network net{t, seed{5}};
    const auto x = distribute<typename made::features>(t, some(rows, 3));
    const auto y = distribute<typename made::labels>(t, label);
    std::int64_t peak = 0;
    for (int step = 0; step < 3; ++step) {
      no_gradients(net);
      const memory_count taken;
      net(x, y).backward();
      if (step > 0) peak = std::max(peak, taken.peak());
    }
    return peak;
  });
  INFO(out.errors());
  REQUIRE(out.well());
  constexpr std::int64_t all_scores = rows * classes / 4 * 8;
  constexpr memory_value counted = peak_memory<typename made::network>();
  for (const auto& peak : out.results) {
    CAPTURE(*peak, counted.training, all_scores);
    CHECK(*peak < all_scores / 2);
    CHECK(static_cast<double>(*peak) < 1.2 * static_cast<double>(counted.training));
    CHECK(static_cast<double>(*peak) > 0.8 * static_cast<double>(counted.training));
  }
}

}  // namespace tessera::testing::of_sampled_classes
