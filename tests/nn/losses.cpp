#include <tessera/nn/network_file.hpp>

#include "tests/support/layers.hpp"

using namespace tessera;
using namespace tessera::testing;

namespace {

using nn::reduction;
using boxes_of_operands = std::vector<tensor<dyn>>;
using tensors = std::vector<at::Tensor>;

/// A loss under its options: ours with each reduction, LibTorch's, and what its operands are made of numbers between -1 and 1.
struct rolled_loss {
  std::function<tensor<dyn>(reduction, const boxes_of_operands&)> ours;
  std::function<at::Tensor(std::int64_t, const tensors&)> serial;
  std::vector<std::function<at::Tensor(const at::Tensor&)>> made;  // of each operand
};

at::Tensor itself(const at::Tensor& x) { return x * 1; }
at::Tensor from_zero_to_one(const at::Tensor& x) { return (x + 1) / 2; }
at::Tensor positive(const at::Tensor& x) { return 3 * at::square(x) + 0.01; }
at::Tensor one_or_minus_one(const at::Tensor& x) { return at::where(x < 0, -1.0, at::where(x < 0.1, 0.5, 1.0)).to(x.scalar_type()); }

/// A function of a reduction that types say, for one that is rolled.
template <class F>
tensor<dyn> by(reduction how, const F& f) {
  switch (how) {
    case reduction::none: return f.template operator()<reduction::none>();
    case reduction::mean: return f.template operator()<reduction::mean>();
    case reduction::sum: return f.template operator()<reduction::sum>();
    default: return f.template operator()<reduction::batch_mean>();
  }
}
#define OURS(call)                                                                                      \
  [=]([[maybe_unused]] reduction how, [[maybe_unused]] const boxes_of_operands& x) {                    \
    return by(how, [&]<reduction By>() { return call; });                                               \
  }
#define SERIAL(call) [=](std::int64_t how, const tensors& x) { return call; }

rolled_loss roll_elementwise(dice& d, int which) {
  const double number = 0.25 * d.roll(1, 6);
  const bool log_input = d.once_in(2);
  const bool full = d.once_in(2);
  switch (which) {
    case 0: return {OURS(nn::l1_loss<By>(x[0], x[1])), SERIAL(at::l1_loss(x[0], x[1], how)), {itself, itself}};
    case 1: return {OURS(nn::mse_loss<By>(x[0], x[1])), SERIAL(at::mse_loss(x[0], x[1], how)), {itself, itself}};
    case 2:
      return {OURS(nn::smooth_l1_loss<By>(x[0], x[1], {.beta = number})), SERIAL(at::smooth_l1_loss(x[0], x[1], how, number)), {itself, itself}};
    case 3: return {OURS(nn::huber_loss<By>(x[0], x[1], {.delta = number})), SERIAL(at::huber_loss(x[0], x[1], how, number)), {itself, itself}};
    case 4:
      return {OURS(nn::poisson_nll_loss<By>(x[0], x[1], {.log_input = log_input, .full = full, .eps = 1e-3 * number})),
              SERIAL(at::poisson_nll_loss(x[0], x[1], log_input, full, 1e-3 * number, how)),
              {log_input ? itself : positive, positive}};
    case 5:
      return {OURS(nn::kl_div<By>(x[0], x[1], {.log_target = log_input})), SERIAL(at::kl_div(x[0], x[1], how, log_input)),
              {itself, log_input ? itself : positive}};
    case 6:
      return {OURS(nn::binary_cross_entropy<By>(x[0], x[1])), SERIAL(at::binary_cross_entropy(x[0], x[1], {}, how)),
              {from_zero_to_one, from_zero_to_one}};
    case 7:
      return {OURS(nn::binary_cross_entropy_with_logits<By>(x[0], x[1])), SERIAL(at::binary_cross_entropy_with_logits(x[0], x[1], {}, {}, how)),
              {itself, from_zero_to_one}};
    case 8:
      return {OURS(nn::binary_cross_entropy_with_logits<By>(x[0], x[1], x[2])),
              SERIAL(at::binary_cross_entropy_with_logits(x[0], x[1], x[2], {}, how)),
              {itself, from_zero_to_one, positive}};
    case 9:
      return {OURS(nn::binary_cross_entropy_with_logits<By>(x[0], x[1], nn::pos_weight(x[2]))),
              SERIAL(at::binary_cross_entropy_with_logits(x[0], x[1], {}, x[2], how)),
              {itself, from_zero_to_one, positive}};
    case 10:
      return {OURS(nn::binary_cross_entropy_with_logits<By>(x[0], x[1], x[2], nn::pos_weight(x[3]))),
              SERIAL(at::binary_cross_entropy_with_logits(x[0], x[1], x[2], x[3], how)),
              {itself, from_zero_to_one, positive, positive}};
    default:
      return {OURS(nn::hinge_embedding_loss<By>(x[0], x[1], {.margin = number})), SERIAL(at::hinge_embedding_loss(x[0], x[1], number, how)),
              {itself, one_or_minus_one}};
  }
}
#undef OURS
#undef SERIAL

std::int64_t in_libtorch(reduction how) {
  return how == reduction::none ? at::Reduction::None : how == reduction::mean ? at::Reduction::Mean : at::Reduction::Sum;
}

/// Weights for x: cut as it is where they have its extents, repeated elsewhere.
layout roll_weights(dice& d, const layout& x) {
  const int lacking = d.roll(0, x.dims.count);
  layout w;
  w.mesh = x.mesh;
  bool kept[max_dimensions]{};
  for (int i = lacking; i < x.dims.count; ++i) {
    kept[i] = d.once_in(2);
    dimension one;
    one.extent = 1;
    w.dims.push(kept[i] ? x.dims[i] : one);
  }
  for (axis_role r : x.roles) {
    if (r.kind == role::cut && !kept[r.dimension]) r = {d.once_in(2) ? role::invariant : role::replicate};  // constants meet anything
    if (r.kind == role::cut) r.dimension = static_cast<signed char>(r.dimension - lacking);
    w.roles.push(r);
  }
  return w;
}

reduction roll_reduction(dice& d) { return static_cast<reduction>(d.roll(0, 3)); }

/// A worker's part of a global tensor.
at::Tensor part(const at::Tensor& global, const layout& x, int rank) {
  return deal(x, x.mesh.size(), global.to(at::kDouble), 1).local[static_cast<std::size_t>(rank)].to(global.scalar_type());
}

/// A loss of tensors that lie like this, as a layer: x comes in, its target is a parameter, weights are constants.
layer_case case_of(const rolled_loss& loss, reduction how, const static_vector<layout, 4>& x, const layout& each) {
  layer_case c;
  c.plan.take(x[0]);
  c.plan.give(x[0], how == reduction::none ? each : one_number(x[0].mesh));
  if (x.count > 1) {
    parameter_value p;
    p.name = "target";
    p.used = x[1];
    p.stored = stored_form(x[1]);
    c.plan.own(p);
  }
  tensors weights;
  for (int i = 2; i < x.count; ++i) {
    const auto k = static_cast<std::size_t>(i);
    weights.push_back(loss.made[k](global_of(extents_of(x[i]), numbers{k})));
  }
  c.forward = [=](const team_handle& team, const layer_plan& p, const at::Tensor& in, const std::vector<nn::parameter>& w) {
    boxes_of_operands all{{team, p.given(), loss.made[0](in)}};
    if (!w.empty()) all.emplace_back(team, p.weight(0), loss.made[1](w[0].use()));
    for (int i = 2; i < x.count; ++i) all.emplace_back(team, x[i], part(weights[static_cast<std::size_t>(i - 2)], x[i], team->rank()));
    const at::Tensor y = loss.ours(how, all).local() * 1;
    return w.empty() ? y : y + 0 * w[0].stored().local().sum();  // some targets have no gradient, here as in LibTorch
  };
  c.serial = [=](const at::Tensor& in, const tensors& w) {
    tensors all{loss.made[0](in)};
    if (!w.empty()) all.push_back(loss.made[1](w[0]));
    all.insert(all.end(), weights.begin(), weights.end());
    at::Tensor y = loss.serial(in_libtorch(how), all);
    if (!w.empty()) y = y + 0 * w[0].sum();
    return how == reduction::batch_mean && in.dim() > 0 ? y / in.size(0) : y;
  };
  return c;
}

void judge_losses(const layer_trials& t, int at_least) {
  INFO(t.said << t.accepted << " accepted, " << t.refused << " refused");
  CHECK(t.failures == 0);
  CHECK(t.accepted >= at_least);
}

static_vector<index_t, max_dimensions> roll_sizes(dice& d, int dims) {
  static_vector<index_t, max_dimensions> e;
  for (int i = 0; i < dims; ++i) e.push(d.roll(1, dims < 3 ? 7 : 4));
  return e;
}

layout samples_of(const layout& x) { return functions::detail::per_sample(x, {role::invariant}); }

std::vector<double> roll_class_weights(dice& d, index_t classes) {
  std::vector<double> w;
  if (d.once_in(2))
    for (index_t c = 0; c < classes; ++c) w.push_back(0.25 * d.roll(1, 9));
  return w;
}
std::optional<at::Tensor> given(const std::vector<double>& weight) {
  return weight.empty() ? std::nullopt : std::optional(at::tensor(weight, at::kDouble));
}

}  // namespace

TEST_CASE("losses of elements equal the serial ones, gradients of both operands too, on any partition under all options") {
  layer_trials t;
  t.run(61, 80, [](dice& d, const mesh_value& m) {
    const layout x = roll_layout(d, m, roll_sizes(d, d.roll(0, 4)), {false, true, true, false});
    const int which = d.roll(0, 11);
    const rolled_loss loss = roll_elementwise(d, which);
    static_vector<layout, 4> operands;
    operands.push(x);
    operands.push(x);
    while (operands.count < static_cast<int>(loss.made.size())) operands.push(roll_weights(d, x));
    return case_of(loss, roll_reduction(d), operands, x);
  });
  judge_losses(t, 500);
}

TEST_CASE("losses of labels equal the serial ones of samples and of pixels, with classes, batch and space whole or cut, under all options") {
  layer_trials t;
  t.run(62, 60, [](dice& d, const mesh_value& m) {
    const auto e = roll_sizes(d, d.roll(2, 4));
    const index_t classes = e[1];
    const layout x = roll_layout(d, m, e, {false, true, true, false});
    const layout left = samples_of(x);
    layout y = left;
    for (int a = 0; a < y.roles.count; ++a)
      if (const role r = x.roles[a].kind; (r == role::cut && x.roles[a].dimension == 1) || r == role::replicate)
        y.roles[a] = {d.once_in(2) ? role::invariant : role::replicate};
    const std::vector<double> weight = roll_class_weights(d, classes);
    const double smoothing = d.once_in(2) ? 0.1 : 0;
    const bool of_scores = d.once_in(2);
    reduction how = roll_reduction(d);
    const at::Tensor labels = (global_of(extents_of(y), numbers{7}).abs() * 1e4).to(at::kLong).remainder(classes);
    index_t ignored = d.once_in(2) ? d.roll(0, static_cast<int>(classes)) : -100;
    if (how == reduction::mean && (labels == ignored).all().item<bool>()) ignored = -100;  // 0 / 0
    rolled_loss loss;
    loss.made = {itself};
    loss.ours = [=](reduction r, const boxes_of_operands& all) {
      const tensor<dyn> known(all[0].team(), y, part(labels, y, all[0].team()->rank()));
      return by(r, [&]<reduction By>() {
        return of_scores ? nn::cross_entropy<By>(all[0], known, {.weight = weight, .ignore_index = ignored, .label_smoothing = smoothing})
                         : nn::nll_loss<By>(all[0], known, {.weight = weight, .ignore_index = ignored});
      });
    };
    loss.serial = [=](std::int64_t r, const tensors& all) {
      return of_scores ? at::cross_entropy_loss(all[0], labels, given(weight), r, ignored, smoothing)
                       : at::nll_loss_nd(all[0], labels, given(weight), r, ignored);
    };
    static_vector<layout, 4> operands;
    operands.push(x);
    return case_of(loss, how, operands, left);
  });
  judge_losses(t, 350);
}

TEST_CASE("the cross-entropy of probabilities and the cosine of rows equal the serial losses, gradients of both operands too, on any partition") {
  layer_trials t;
  t.run(63, 50, [](dice& d, const mesh_value& m) {
    const bool rows = d.once_in(2);
    const auto e = roll_sizes(d, rows ? 2 : d.roll(2, 4));
    const layout x = roll_layout(d, m, e, {false, true, true, false});
    const layout left = samples_of(x);
    const double number = 0.1 * d.roll(0, 5);
    rolled_loss loss;
    if (rows) {
      layout y = left;
      for (int a = 0; a < y.roles.count; ++a)
        if (x.roles[a].kind == role::cut && x.roles[a].dimension == 1) y.roles[a] = {};
      const bool integers = d.once_in(2);
      const at::Tensor target = one_or_minus_one(global_of(extents_of(y), numbers{8})).to(integers ? at::kLong : at::kDouble);
      loss.made = {itself, itself};
      loss.ours = [=](reduction r, const boxes_of_operands& all) {
        const tensor<dyn> known(all[0].team(), y, part(target, y, all[0].team()->rank()));
        return by(r, [&]<reduction By>() { return nn::cosine_embedding_loss<By>(all[0], all[1], known, {.margin = number}); });
      };
      loss.serial = [=](std::int64_t r, const tensors& all) { return at::cosine_embedding_loss(all[0], all[1], target, number, r); };
    } else {
      const std::vector<double> weight = roll_class_weights(d, e[1]);
      loss.made = {itself, from_zero_to_one};
      loss.ours = [=](reduction r, const boxes_of_operands& all) {
        return by(r, [&]<reduction By>() { return nn::cross_entropy<By>(all[0], all[1], {.weight = weight, .label_smoothing = number}); });
      };
      loss.serial = [=](std::int64_t r, const tensors& all) { return at::cross_entropy_loss(all[0], all[1], given(weight), r, -100, number); };
    }
    static_vector<layout, 4> operands;
    operands.push(x);
    operands.push(x);
    return case_of(loss, roll_reduction(d), operands, left);
  });
  judge_losses(t, 300);
}

namespace {

struct up : axis<2> {};
struct across : axis<3> {};
using grid = mesh<up, across>;
using cut_scores = partition<grid, blocks<up>, blocks<across>>;
using scores = tensor<cut_scores, shape_of<4, 7>, double>;
using classes = tensor<partition<grid, blocks<up>, invariant<across>>, shape_of<4>, std::int64_t>;

}  // namespace

TEST_CASE("classes that are masked with -inf add nothing to a cross-entropy, whoever has them") {
  at::Tensor x = global_of({4, 7}, numbers{9});
  x.narrow(1, 2, 3).fill_(-std::numeric_limits<double>::infinity());  // all that one worker of a row has is among them
  const at::Tensor y = at::tensor({0, 1, 5, 6}, at::kLong);
  const at::Tensor serial_x = x.clone().set_requires_grad(true);
  const at::Tensor serial = at::cross_entropy_loss(serial_x, y);
  serial.backward();
  const auto run = in_team<grid>([&](team<grid>& t) {
    auto logits = take<scores>(t, x);
    logits.requires_grad();
    const auto loss = nn::cross_entropy(logits, take<classes>(t, y));
    loss.backward();
    return std::abs(value(loss) - serial.item<double>()) < 1e-14 && at::allclose(tessera::global(logits.grad()), serial_x.grad(), 0, 1e-14);
  });
  REQUIRE(run.well());
  for (int r = 0; r < 6; ++r) CHECK(run.of(r));
}

TEST_CASE("a loss without a label that counts is none, and options that do not fit are refused on all workers") {
  using pixels = tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>, shape_of<2, 4, 3, 2>, double>;
  using known = tensor<partition<grid, whole, blocks<up>, blocks<across>>, shape_of<2, 3, 2>, std::int64_t>;
  const at::Tensor x = global_of({2, 4, 3, 2}, numbers{9});
  const auto loss = [&](auto& t, index_t label, const nn::cross_entropy_options& how = {}) {
    auto logits = take<pixels>(t, x);
    logits.requires_grad();
    const auto y = nn::cross_entropy(logits, take<known>(t, at::full({2, 3, 2}, label, at::kLong)), how);
    y.backward();
    return std::pair(value(y), tessera::global(logits.grad()));
  };
  CHECK(satisfied<grid>([&](auto& t) {
    const auto [mean, gradient] = loss(t, -100);
    return std::isnan(mean) && at::equal(gradient, at::zeros_like(x));
  }) == 6);
  CHECK(satisfied<grid>([&](auto& t) { return loss(t, 3, {.weight = {1, 1, 1, 1}, .label_smoothing = 1}).first > 0; }) == 6);
  CHECK(refusals<grid>("tessera.loss.weight", [&](auto& t) { loss(t, 3, {.weight = {1, 1, 1}}); }) == 6);
  CHECK(refusals<grid>("tessera.layer.probability", [&](auto& t) { loss(t, 3, {.label_smoothing = 1.5}); }) == 6);
  CHECK(refusals<grid>("tessera.loss.label", [&](auto& t) { loss(t, 4); }) == 6);
  CHECK(refusals<grid>("tessera.loss.label", [&](auto& t) { loss(t, -100, {.ignore_index = 255}); }) == 6);
}

TEST_CASE("a mean over no element is none, and a sum is zero") {
  using nothing = tensor<partition<grid, blocks<up>, blocks<across>>, shape_of<0, 5>, double>;
  CHECK(satisfied<grid>([](auto& t) {
    const auto x = take<nothing>(t, at::zeros({0, 5}, at::kDouble));
    return std::isnan(value(nn::mse_loss(x, x))) && value(nn::mse_loss<reduction::sum>(x, x)) == 0 &&
           std::isnan(value(nn::kl_div<reduction::batch_mean>(x, x)));
  }) == 6);
}

TEST_CASE("a binary cross-entropy has LibTorch's least logarithm and gradient at 0 and 1, and what is no probability is refused on all workers") {
  const at::Tensor x = at::tensor({0.0, 1.0, 0.5, 1.0, 0.0, 0.25, 1e-40}, at::kDouble).repeat({4, 1});
  const at::Tensor y = at::tensor({1.0, 0.0, 0.5, 1.0, 0.0, 1.0, 0.75}, at::kDouble).repeat({4, 1});
  const at::Tensor weight = global_of({4, 7}, numbers{5});
  const at::Tensor serial_x = x.clone().set_requires_grad(true);
  const at::Tensor serial = at::binary_cross_entropy(serial_x, y, weight);
  serial.backward();
  CHECK(satisfied<grid>([&](auto& t) {
    auto p = take<scores>(t, x);
    p.requires_grad();
    const auto loss = nn::binary_cross_entropy(p, take<scores>(t, y), take<scores>(t, weight));
    loss.backward();
    return std::abs(value(loss) - serial.item<double>()) < 1e-13 && at::allclose(tessera::global(p.grad()), serial_x.grad(), 1e-12, 0);
  }) == 6);
  for (const double wrong : {-1e-9, 1.5, std::nan("")}) {
    at::Tensor bad = x.clone();
    bad[3][6] = wrong;
    const char* const code = "tessera.loss.probability";
    CHECK(refusals<grid>(code, [&](auto& t) { nn::binary_cross_entropy(take<scores>(t, bad), take<scores>(t, y)); }) == 6);
    CHECK(refusals<grid>(code, [&](auto& t) { nn::binary_cross_entropy<reduction::none>(take<scores>(t, x), take<scores>(t, bad)); }) == 6);
  }
}

TEST_CASE("losses of half types are float inside and rounded once") {
  using halves = tensor<cut_scores, shape_of<4, 7>, bfloat16>;
  const at::Tensor x = global_of({4, 7}, numbers{9}).to(at::kBFloat16);
  const at::Tensor y = global_of({4, 7}, numbers{10}).abs().to(at::kBFloat16);
  const at::Tensor labels = at::tensor({0, 1, 5, 6}, at::kLong);
  const at::Tensor f = x.to(at::kFloat);
  const auto is = [](const auto& loss, const at::Tensor& wanted) { return at::equal(loss.local(), wanted.to(at::kBFloat16)); };
  CHECK(satisfied<grid>([&](auto& t) {
    auto a = take<halves>(t, x);
    a.requires_grad();
    const auto b = take<halves>(t, y);
    const auto loss = nn::mse_loss(a, b);
    loss.backward();
    const auto none = nn::kl_div<reduction::none>(a, b);
    return is(loss, at::mse_loss(f, y.to(at::kFloat))) && a.grad().local().scalar_type() == at::kBFloat16 &&
           is(nn::cross_entropy(a, take<classes>(t, labels)), at::cross_entropy_loss(f, labels)) &&
           is(nn::cross_entropy(a, b), at::cross_entropy_loss(f, y.to(at::kFloat))) &&
           at::equal(tessera::global(none), at::kl_div(f, y.to(at::kFloat), at::Reduction::None).to(at::kBFloat16));
  }) == 6);
}

namespace {

// A network that ends in its loss.
struct trained {
  constexpr auto operator()(auto x, auto y) const { return nn::huber_loss<reduction::sum>(x | nn::linear<7, output_as<cut_scores>>{}, y, {.delta = 0.25}); }
};
struct classified {
  constexpr auto operator()(auto x, auto y) const { return nn::cross_entropy(x, y, {.ignore_index = 5, .label_smoothing = 0.25}); }
};
using pictures = tensor<partition<grid, blocks<up>, whole>, shape_of<4, 3>, double>;

}  // namespace

TEST_CASE("a network may end in its loss, typed or put together while it runs, and it moves what is reduced") {
  using typed = nn::network<trained, pictures, scores>;
  using of_classes = nn::network<classified, scores, classes>;
  static_assert(traffic<of_classes>().forward.bytes > 0 && traffic<of_classes>().backward.bytes == 0);
  const at::Tensor x = global_of({4, 3}, numbers{1});
  const at::Tensor y = global_of({4, 7}, numbers{2});
  const at::Tensor labels = at::tensor({0, 1, 5, 6}, at::kLong);
  const double expected = at::cross_entropy_loss(y, labels, {}, at::Reduction::Mean, 5, 0.25).item<double>();
  CHECK(satisfied<grid>([&](team<grid>& t) {
    typed net{t, seed{1}};
    const auto in = take<pictures>(t, x);
    const auto wanted = take<scores>(t, y);
    const auto loss = net(in, wanted);
    loss.backward();
    const auto w = nn::state_of(net);
    const double serial = at::huber_loss(at::linear(x, w.at("0.weight"), w.at("0.bias")), y, at::Reduction::Sum, 0.25).template item<double>();

    nn::program p;
    const auto a = p.input<scores>();
    const auto b = p.input<classes>();
    p.output(classified{}(a, b));
    const nn::dynamic_network dynamic{t, seed{1}, p};
    of_classes same{t, seed{1}};
    const auto known = take<classes>(t, labels);
    return std::abs(value(loss) - serial) < 1e-12 && std::abs(value(same(wanted, known)) - expected) < 1e-14 &&
           std::abs(dynamic({wanted.dynamic(), known.dynamic()})[0].local().template item<double>() - expected) < 1e-14;
  }) == 6);
}

TEST_CASE("operands of a loss that do not fit are refused on all workers, as types do") {
  const auto of = [](const layout& l, const team_handle& t, element e = element::float64) {
    return tensor<dyn>(t, l, at::zeros(tessera::detail::sizes_of(held_by(l, t->rank())), tessera::detail::scalar_type(e)));
  };
  const layout x = value_of<scores>.layout;
  const layout row = value_of<tensor<partition<grid, blocks<up>>, shape_of<4>, double>>.layout;
  layout longer = x;
  longer.dims[1].extent = 8;
  layout copies = x;
  for (axis_role& r : copies.roles) r = {};
  layout terms = copies;
  terms.roles[0] = {role::partial};
  const auto refused = [&](const char* code, const auto& f) {
    return refusals<grid>(code, [&](auto& t) { f([&](const layout& l, element e = element::float64) { return of(l, t.state(), e); }); }) == 6;
  };
  CHECK(refused("tessera.shape.extent", [&](const auto& make) { nn::mse_loss(make(x), make(longer)); }));
  CHECK(refused("tessera.rule.cut", [&](const auto& make) { nn::l1_loss(make(x), make(copies)); }));
  CHECK(refused("tessera.rule.nonlinear", [&](const auto& make) { nn::mse_loss(make(terms), make(terms)); }));
  CHECK(refused("tessera.function.element", [&](const auto& make) { nn::mse_loss(make(x, element::int64), make(x, element::int64)); }));
  CHECK(refused("tessera.tensor.element", [&](const auto& make) { nn::mse_loss(make(x), make(x, element::float32)); }));
  CHECK(refused("tessera.tensor.element", [&](const auto& make) { nn::cross_entropy(make(x), make(x, element::float32)); }));
  CHECK(refused("tessera.shape.extent", [&](const auto& make) { nn::cross_entropy(make(x), make(longer)); }));
  CHECK(refused("tessera.signature.dimensions", [&](const auto& make) { nn::nll_loss(make(x), make(x, element::int64)); }));
  CHECK(refused("tessera.layer.dimensions", [&](const auto& make) { nn::cosine_embedding_loss(make(row), make(row), make(row)); }));
  CHECK(refused("tessera.loss.option", [&](const auto& make) { nn::huber_loss(make(x), make(x), {.delta = 0}); }));
  CHECK(refused("tessera.loss.option", [&](const auto& make) { nn::smooth_l1_loss(make(x), make(x), {.beta = -1}); }));
  nn::program p;
  const auto a = p.input<scores>();
  CHECK(told([&] { nn::cross_entropy(a, p.input<classes>(), {.weight = std::vector<double>(7, 1)}); }) == "tessera.loss.module");
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
    return nn::cross_entropy(x, y, x | nn::named<struct class_weights, nn::constant<Weights, as_weighed>>{}, {.ignore_index = 5, .label_smoothing = 0.25});
  }
};
using copied_weights = tensor<partition<grid, whole, replicate<up>, invariant<across>>, shape_of<7>, double>;

/// A file whose nodes are a loss of inputs that lie as `scores`, and a target.
std::string file_of(const std::string& nodes, const std::string& target) {
  const std::string cut = R"("dims": [{"blocks": ["up"]}, {"blocks": ["across"]}])";
  return R"({"inputs": [{"name": "x", "shape": [4, 7], "element": "double", )" + cut + R"(}, {"name": "y", )" +
         (target == "labels" ? R"("shape": [4], "element": "int64", "dims": [{"blocks": ["up"]}], "meaning": {"across": "invariant"})" : R"("shape": [4, 7], "element": "double", )" + cut) +
         R"(}], "nodes": [)" + nodes + R"(], "outputs": "loss"})";
}
std::string constant_in_file(const std::string& shape, const std::string& values, const std::string& cover = R"({"whole": true})") {
  return R"({"name": "w", "of": "x", "layer": "constant", "path": "weighed", "shape": )" + shape + R"(, "element": "double", "dims": [)" + cover + R"(], "values": )" + values + "}, ";
}

}  // namespace

TEST_CASE("a network of a file ends in any loss, with class weights that it keeps as a buffer, as LibTorch's functions give") {
  const at::Tensor x = from_zero_to_one(global_of({4, 7}, numbers{2}));
  const at::Tensor y = from_zero_to_one(global_of({4, 7}, numbers{3}));
  const at::Tensor labels = at::tensor({0, 1, 5, 6}, at::kLong);
  const at::Tensor w = at::tensor(at::ArrayRef<double>(weights_of_seven, 7), at::kDouble);
  constexpr auto mean = at::Reduction::Mean;
  constexpr auto sum = at::Reduction::Sum;
  using serial_loss = std::function<at::Tensor(const at::Tensor&)>;
  const std::string list = "[1, 2, 0.5, 0, 3, 1.25, 0.75]";
  const auto alone = [](const std::string& says) { return R"({"name": "loss", "of": ["x", "y"], "function": )" + says + "}"; };
  const auto weighed = [&](const std::string& says) { return constant_in_file("[7]", list) + R"({"name": "loss", "of": ["x", "y", "w"], "function": )" + says + "}"; };
  const auto cut = [&](const std::string& says) {
    return constant_in_file("[7]", list, R"({"blocks": ["across"]})") + R"({"name": "loss", "of": ["x", "y", "w"], "function": )" + says + "}";
  };
  const std::vector<std::tuple<std::string, std::string, serial_loss>> all{
      {alone(R"("l1_loss", "reduction": "sum")"), "", [&](const auto& a) { return at::l1_loss(a, y, sum); }},
      {alone(R"("mse_loss", "reduction": "none")"), "", [&](const auto& a) { return at::mse_loss(a, y, at::Reduction::None); }},
      {alone(R"("smooth_l1_loss", "beta": 0.25)"), "", [&](const auto& a) { return at::smooth_l1_loss(a, y, mean, 0.25); }},
      {alone(R"("huber_loss", "delta": 0.25)"), "", [&](const auto& a) { return at::huber_loss(a, y, mean, 0.25); }},
      {alone(R"("poisson_nll_loss", "log_input": false, "full": true, "eps": 0.001)"), "", [&](const auto& a) { return at::poisson_nll_loss(a, y, false, true, 0.001, mean); }},
      {alone(R"("kl_div", "log_target": true, "reduction": "batch_mean")"), "", [&](const auto& a) { return at::kl_div(a, y, sum, true) / 4; }},
      {alone(R"("binary_cross_entropy")"), "", [&](const auto& a) { return at::binary_cross_entropy(a, y, {}, mean); }},
      {cut(R"("binary_cross_entropy_with_logits")"), "", [&](const auto& a) { return at::binary_cross_entropy_with_logits(a, y, w, {}, mean); }},
      {cut(R"("binary_cross_entropy_with_pos_weight")"), "", [&](const auto& a) { return at::binary_cross_entropy_with_logits(a, y, {}, w, mean); }},
      {alone(R"("hinge_embedding_loss", "margin": 0.5)"), "", [&](const auto& a) { return at::hinge_embedding_loss(a, y, 0.5, mean); }},
      {alone(R"("nll_loss", "ignore_index": 1)"), "labels", [&](const auto& a) { return at::nll_loss(a, labels, {}, mean, 1); }},
      {weighed(R"("nll_loss", "reduction": "sum")"), "labels", [&](const auto& a) { return at::nll_loss(a, labels, w, sum); }},
      {alone(R"("cross_entropy", "label_smoothing": 0.25)"), "labels", [&](const auto& a) { return at::cross_entropy_loss(a, labels, {}, mean, -100, 0.25); }},
      {weighed(R"("cross_entropy", "ignore_index": 5, "label_smoothing": 0.25)"), "labels", [&](const auto& a) { return at::cross_entropy_loss(a, labels, w, mean, 5, 0.25); }},
      {weighed(R"("cross_entropy", "reduction": "none")"), "", [&](const auto& a) { return at::cross_entropy_loss(a, y, w, at::Reduction::None); }}};
  for (const auto& [nodes, target, serial] : all) {
    INFO(nodes);
    const at::Tensor leaf = x.clone().set_requires_grad(true);
    const at::Tensor wanted = serial(leaf);
    wanted.sum().backward();
    CHECK(satisfied<grid>([&](team<grid>& t) {
      nn::program p;
      nn::read_network(p, file_of(nodes, target), t.mesh(), "loss.json");
      const nn::dynamic_network net{t, seed{1}, p};
      auto in = take<scores>(t, x);
      in.requires_grad();
      const auto loss = net({in.dynamic(), target == "labels" ? take<classes>(t, labels).dynamic() : take<scores>(t, y).dynamic()})[0];
      tessera::sum(loss).backward();
      const auto state = nn::state_of(net);
      const bool kept = state.count("weighed") == 0 || at::equal(state.at("weighed"), w);
      return kept && net.parameters().empty() && at::allclose(tessera::global(loss), wanted.detach(), 1e-13, 1e-14) && at::allclose(tessera::global(in.grad()), leaf.grad(), 1e-12, 1e-14);
    }) == 6);
  }
  using typed = nn::network<weighing<copied_weights>, scores, classes>;
  CHECK(satisfied<grid>([&](team<grid>& t) {
    typed net{t, seed{1}};
    const auto given = [&](const at::Tensor& by) { return std::abs(value(net(take<scores>(t, x), take<classes>(t, labels))) - at::cross_entropy_loss(x, labels, by, mean, 5, 0.25).template item<double>()) < 1e-14; };
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
  CHECK(read(constant_in_file("[6]", "2") + R"({"name": "loss", "of": ["x", "y", "w"], "function": "cross_entropy"})", "labels") == "tessera.loss.weight");
  CHECK(read(constant_in_file("[7]", "[1, 2]") + alone(R"("mse_loss")"), "") == "tessera.initial.count");
}

TEST_CASE("a target that is none is told on all workers of a team, of which the losses' mesh has some") {
  struct all_of_them : axis<6> {};
  using line = mesh<all_of_them>;
  struct few : axis<2> {};
  using pair = mesh<few>;
  const at::Tensor labels = at::tensor({0, 1, 7, 6}, at::kLong);
  const auto of = [](const team<line>& t, const at::Tensor& all) {
    layout x;
    x.mesh = pair::value;
    x.roles.resize(1);
    for (const index_t n : all.sizes()) {
      dimension d;
      d.extent = n;
      x.dims.push(d);
    }
    x.cut_by(0, 0);
    return tessera::detail::take_value(t.state(), x, all.is_floating_point() ? element::float64 : element::int64, all);
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
    return says([&] { nn::cross_entropy(x, of(t, labels)); }) + "; " + says([&] { nn::binary_cross_entropy<reduction::none>(x, of(t, global_of({4, 7}, numbers{3}) + 2)); }) +
           "; " + says([&] { nn::cross_entropy(x, of(t, labels.remainder(7))); });
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) {
    INFO(*r);
    CHECK(r->find("tessera.loss.label") != std::string::npos);
    CHECK(r->find("7") != std::string::npos);
    CHECK(r->find("tessera.loss.probability") != std::string::npos);
    CHECK(r->ends_with("; fits"));
  }
}
