// Attention whose keys and values come part by part, beside LibTorch's of the whole sequence.

#include "tests/support/streamed_attention.hpp"

#include <array>

namespace streamed_attention {

template <int P>
struct sequence : axis<P> {};

template <class M>
std::string all_differences(std::initializer_list<at::ScalarType> types) {
  const auto out = in_team<M>([&](const team<M>& t) -> std::string {
    std::string all;
    int number = 0;
    const sizes every[]{{2, 8, 8, 2, 1, 4, 4},
                        {1, 7, 7, 1, 2, 4, 4},
                        {2, 5, 5, 2, 1, 3, 2},
                        {1, 3, 9, 1, 1, 4, 4},
                        {1, 13, 13, 1, 1, 2, 2}};
    for (const sizes& n : every)
      for (const bool causal : {false, true})
        for (const bool masked : {false, true})
          for (const bool zigzag : {false, true})
            for (const index_t rows : {0, 1, 3})
              for (const at::ScalarType type : types) {
                if (causal && n.queries != n.keys) continue;
                if (!tried(number++)) continue;
                const std::string why =
                    differs(t.state(), n, {.causal = causal, .masked = masked, .rows = rows}, zigzag, type);
                if (!why.empty())
                  all += fmt::format("{} queries, {} keys, {} and {} features,{}{}{} by {} in {}: {}\n", n.queries,
                                     n.keys, n.features, n.values, causal ? " causal" : "", masked ? " masked" : "",
                                     zigzag ? " zigzag" : "", rows, c10::toString(type), why);
              }
    return all;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

TEST_CASE("attention by parts is attention, with gradients of two orders", "[law][runtime][gradient]") {
  CHECK(all_differences<mesh<sequence<1>>>({at::kDouble}) == "");
  CHECK(all_differences<mesh<sequence<2>>>({at::kDouble, at::kFloat, at::kBFloat16}) == "");
  CHECK(all_differences<mesh<sequence<3>>>({at::kDouble}) == "");
  CHECK(all_differences<mesh<sequence<4>>>({at::kDouble, at::kBFloat16}) == "");
}

/// Forms by places, with numbers that are added to scores, and packed.
template <class M>
std::string other_differences() {
  const auto out = in_team<M>([](const team<M>& t) -> std::string {
    const form every[]{{.slides = true, .before = 2, .after = 1},
                       {.slides = true},
                       {.causal = true, .slides = true, .before = 3},
                       {.rows = 2, .slides = true, .before = 40, .after = 40},
                       {.slides = true, .before = 2, .after = INT64_MAX},
                       {.slides = true, .before = INT64_MAX, .after = 1},
                       {.masked = true, .slides = true, .before = 1, .after = 3},
                       {.adds = true},
                       {.causal = true, .rows = 3, .adds = true},
                       {.slides = true, .before = 2, .adds = true},
                       {.lengths = {0, 4, 4, 9, 13}},
                       {.causal = true, .rows = 2, .lengths = {0, 1, 12, 13}},
                       {.slides = true, .before = 2, .after = 2, .lengths = {0, 7, 13}},
                       {.dropped = 0.3},
                       {.over = 1, .streamed = false, .dropped = 0.9},
                       {.causal = true, .rows = 3, .dropped = 0.5},
                       {.masked = true, .slides = true, .before = 4, .dropped = 0.25},
                       {.adds = true, .lengths = {}, .dropped = 0.1},
                       {.lengths = {0, 4, 4, 9, 13}, .dropped = 0.5}};
    std::string all;
    int number = 0;
    for (const form& f : every)
      for (const bool zigzag : {false, true})
        for (const sizes& n : {sizes{2, 13, 13, 2, 1, 4, 4}, sizes{1, 13, 13, 1, 2, 3, 2}}) {
          if (number++ % 3 != 0 && M::value.size() != 2) continue;
          if (!tried(number)) continue;
          if (const std::string why = differs(t.state(), n, f, zigzag, at::kDouble); !why.empty())
            all += fmt::format("form {}{}: {}\n", &f - every, zigzag ? " zigzag" : "", why);
        }
    return all;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

TEST_CASE("a query sees what its window and its sequence have, and scores take numbers", "[law][runtime][gradient]") {
  CHECK(other_differences<mesh<sequence<1>>>() == "");
  CHECK(other_differences<mesh<sequence<2>>>() == "");
  CHECK(other_differences<mesh<sequence<3>>>() == "");
  CHECK(other_differences<mesh<sequence<8>>>() == "");
}

template <int P>
struct other : axis<P> {};

/// Attention over heads, alone and with a stream on another axis.
template <class M>
std::string over_differences(int axes) {
  const auto out = in_team<M>([&](const team<M>& t) -> std::string {
    const bool all_axes = axes == M::value.axes.count;
    std::string all;
    int number = 0;
    for (const sizes& n : {sizes{2, 13, 13, 4, 1, 4, 4}, sizes{1, 12, 12, 3, 2, 3, 2}, sizes{1, 5, 5, 1, 2, 2, 2},
                           sizes{1, 6, 6, 2, 3, 2, 2}})
      for (const bool zigzag : {false, true})
        for (form f :
             {form{}, form{.causal = true}, form{.masked = true}, form{.slides = true, .before = 2}, form{.adds = true},
              form{.lengths = {0, 3, n.queries}}, form{.dropped = 0.4}, form{.causal = true, .chooses = true}})
          for (const bool streamed : {false, true}) {
            f.over = axes;
            f.streamed = streamed;
            if ((!all_axes && !streamed) || number++ % 3 != 0 || !tried(number)) continue;
            if (const std::string why = differs(t.state(), n, f, zigzag, at::kDouble); !why.empty())
              all += fmt::format("{} rows,{}{}{}{}{}: {}\n", n.queries, f.causal ? " causal" : "",
                                 f.masked ? " masked" : "", f.adds ? " added" : "", streamed ? " streamed" : "",
                                 zigzag ? " zigzag" : "", why);
          }
    return all;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

TEST_CASE("attention over heads is attention, alone and with a stream on another axis", "[law][runtime][gradient]") {
  CHECK(over_differences<mesh<sequence<2>>>(1) == "");
  CHECK(over_differences<mesh<sequence<3>>>(1) == "");
  CHECK(over_differences<mesh<other<2>, sequence<2>>>(1) == "");
  CHECK(over_differences<mesh<other<2>, sequence<2>>>(2) == "");
}

TEST_CASE("windows and diagonals of many rows are met in strips", "[law][runtime][gradient]") {
  const auto out = in_team<mesh<sequence<2>>>([](const team<mesh<sequence<2>>>& t) -> std::string {
    std::string all;
    for (const form& f : {form{.causal = true}, form{.causal = true, .slides = true, .before = 300},
                          form{.slides = true, .before = 20, .after = 290}})
      if (const std::string why = differs(t.state(), {1, 700, 700, 1, 1, 3, 3}, f, true, at::kDouble); !why.empty())
        all += fmt::format("{}, {}: {}\n", f.before, f.after, why);
    return all;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

TEST_CASE("cumulative lengths that do not add up are refused on every worker", "[refusal]") {
  using pair = mesh<sequence<2>>;
  for (const std::vector<index_t>& lengths : std::vector<std::vector<index_t>>{{0, 3, 5}, {1, 6}, {0, 4, 3, 6}, {}}) {
    const auto out = in_team<pair>([&](const team<pair>& t) {
      const layout lies = lying(pair::value, {1, 6, 1, 2}, 1, false);
      const layout queries = lying(pair::value, {1, 6, 1, 1, 2}, 1, false);
      const layout ends = lying(pair::value, {static_cast<index_t>(lengths.size())}, -1, false);
      nn::program p;
      const auto q = p.input({queries, element::float64}), k = p.input({lies, element::float64}),
                 v = p.input({lies, element::float64}), n = p.input({ends, element::int64});
      p.output(nn::attention_layer{.streamed = true}(q, k, v, n));
      const nn::dynamic_network net(t, seed{1}, p);
      const tensor<dyn> all = distribute(t, lies, at::rand({1}, at::kDouble).expand({1, 6, 1, 2}) * 0);
      return told([&] {
        (void)net(std::vector{distribute(t, queries, at::zeros({1, 6, 1, 1, 2}, at::kDouble)), all, all,
                              distribute(t, ends, at::tensor(lengths, at::kLong))});
      });
    });
    for (const auto& one : out.results) CHECK(one.value_or("") == "tessera.attention.lengths");
  }
}

TEST_CASE("pieces with more scores than are held at once are met in several", "[law][runtime][gradient]") {
  const auto out = in_team<mesh<sequence<2>>>([](const team<mesh<sequence<2>>>& t) -> std::string {
    const sizes n{4, 600, 600, 2, 1, 3, 2};  // 2,400 queries by head on each, so some hundred keys at once
    std::string all;
    int number = 0;
    for (const bool causal : {true, false})
      if (!tried(number++)) continue;
      else if (const std::string why = differs(t.state(), n, {.causal = causal, .masked = causal}, causal, at::kDouble);
               !why.empty())
        all += fmt::format("{}: {}\n", causal ? "causal" : "whole", why);
    return all;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

TEST_CASE("features become heads, as many as divide them", "[law][runtime]") {
  using pair = mesh<sequence<2>>;
  const auto out = in_team<pair>([](const team<pair>& t) -> std::string {
    const mesh_value& m = pair::value;
    std::string all;
    for (const auto& [streams, dropped] : {std::pair{false, 0.0}, {true, 0.0}, {false, 0.5}, {true, 0.5}}) {
      const layout lies = lying(m, {2, 6, 8}, streams ? 1 : -1, false);
      std::vector<tensor<dyn>> x;
      std::vector<at::Tensor> whole;
      for (std::uint64_t i = 0; i < 3; ++i) {
        whole.push_back(global_of({2, 6, 8}, numbers{i}));
        x.push_back(distribute(t, lies, whole.back()));
      }
      nn::program p;
      std::vector<nn::dynamic_flow> in;
      for (const tensor<dyn>& one : x) in.push_back(p.input({one.layout(), one.type()}));
      p.output(nn::attention_layer{.streamed = streams, .heads = 4, .probability = dropped}(in[0], in[1], in[2]));
      const nn::dynamic_network net(t, seed{1}, p);
      const auto heads = [&](std::size_t i) { return whole[i].unflatten(-1, {4, 2}); };
      const at::Tensor kept =
          dropped > 0 ? kept_weights(net, {2, 6, 6, 4, 1, 2, 2}, {.dropped = dropped}) : at::Tensor();
      const at::Tensor wanted = serial(heads(0).unsqueeze(3), heads(1), heads(2), {}, {}, kept);
      if ((full_tensor(net(x)[0]) - wanted).abs().max().item<double>() > 1e-12)
        all += fmt::format("{} {}\n", streams ? "streamed" : "whole", dropped);
    }
    return all;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

TEST_CASE("attention drops weights in training alone, others at each call, and takes a number for their count",
          "[law][runtime]") {
  using pair = mesh<sequence<2>>;
  const auto out = in_team<pair>([](const team<pair>& t) -> std::string {
    const layout of_q = lying(pair::value, {2, 8, 3, 1, 4}, 1, false),
                 of_k = lying(pair::value, {2, 8, 3, 4}, 1, false);
    nn::program p;
    const auto q = p.input({of_q, element::float64}), k = p.input({of_k, element::float64});
    const auto y = nn::attention_layer{.streamed = true, .probability = 0.5}(q, k, k);
    p.output(nn::linear<2>{}(nn::attention_layer{.causal = true, .streamed = true}(q, k, k) + y));
    nn::dynamic_network net(t, seed{3}, p);
    const std::vector<tensor<dyn>> x{distribute(t, of_q, global_of({2, 8, 3, 1, 4}, numbers{1})),
                                     distribute(t, of_k, global_of({2, 8, 3, 4}, numbers{2}))};
    const nn::state_dict state = nn::state_of(net);
    for (const char* key : {"0.draws", "0.key", "1.weight", "1.bias"})
      if (!state.contains(key)) return fmt::format("no {}", key);
    const at::Tensor first = full_tensor(net(x)[0]), second = full_tensor(net(x)[0]);
    if (at::equal(first, second)) return "the same twice";
    if (nn::state_of(net).at("0.draws").item<index_t>() != 2) return "its count";
    nn::assign(net, state);
    if (!at::equal(first, full_tensor(net(x)[0]))) return "another after its state is assigned";
    net.eval();
    const at::Tensor whole = full_tensor(net(x)[0]);
    return at::equal(whole, full_tensor(net(x)[0])) ? "" : "draws in evaluation";
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

/// Whether attention to keys of 24 heads, of which each serves so many queries, streams where it chooses.
template <int P>
bool streams_by_choice(index_t each, index_t length) {
  const mesh_value& m = mesh<sequence<P>>::value;
  const layout q = lying(m, {1, length, 24, each, 4}, 1, false), k = lying(m, {1, length, 24, 4}, 1, false);
  const element e = element::float32;
  static_vector<text, max_axes> line = no_items<text, max_axes>;
  line.push(m.axes[0].name);
  const nn::attention_layer layer{.over = tessera::engine::axis_names(line), .fewest_bytes = true};
  const layer_plan p = layer.plan({q, e}, {k, e}, {k, e});
  REQUIRE(p.why.ok());
  return p.exchanges() > 0;
}
template <int P>
void judge_choices() {
  for (const index_t length : {48, -1})
    for (index_t each = 1; each <= 14; ++each) CHECK(streams_by_choice<P>(each, length) == (2 * (each + 1) > 3 * P));
}

TEST_CASE("attention meets its sequence in the form that moves fewer bytes", "[law][plan]") {
  judge_choices<2>();
  judge_choices<3>();
  judge_choices<4>();
  judge_choices<8>();
  using grid = mesh<sequence<2>>;
  using cut = blocks<sequence<2>>;
  using keys = tensor<partition<grid, whole, cut, whole, whole>, shape<dim<1>, dim<8>, dim<2>, dim<4>>, float>;
  using queries = partition<grid, whole, cut, whole, whole, whole>;
  using two_each = tensor<queries, shape<dim<1>, dim<8>, dim<2>, dim<2>, dim<4>>, float>;
  using three_each = tensor<queries, shape<dim<1>, dim<8>, dim<2>, dim<3>, dim<4>>, float>;
  using one = nn::attention<fewest_bytes<sequence<2>>>;
  STATIC_REQUIRE(one::plan(value_of<three_each>, value_of<keys>, value_of<keys>).exchanges() > 0);
  STATIC_REQUIRE(one::plan(value_of<two_each>, value_of<keys>, value_of<keys>).exchanges() == 0);
  using half = nn::attention<fewest_bytes<sequence<2>>, causal>;  // what lies before comes alone
  STATIC_REQUIRE(half::plan(value_of<two_each>, value_of<keys>, value_of<keys>).exchanges() > 0);
}

TEST_CASE("attention that does not fit is refused by code", "[refusal]") {
  const mesh_value& m = mesh<sequence<2>>::value;
  const auto plan = [&](const nn::attention_layer& layer, const layout& q, const layout& k, const layout& v,
                        const std::optional<tensor_value>& mask = {}) {
    const element e = element::float32;
    return (mask ? layer.plan({q, e}, {k, e}, {v, e}, *mask) : layer.plan({q, e}, {k, e}, {v, e})).why;
  };
  const layout x = lying(m, {1, 4, 6}, 1, false);
  const layout four = lying(m, {1, 4, 4}, 1, false);
  const nn::attention_layer streams{.streamed = true, .heads = 3};
  CHECK(plan(streams, x, x, x).ok());
  CHECK(plan({.streamed = true, .heads = 4}, x, x, x).is(code::features_not_of_heads));
  CHECK(plan(streams, x, x, four).is(code::features_not_of_heads));
  CHECK(plan({.streamed = true, .rows = -1, .heads = 3}, x, x, x).is(code::rows_not_positive));
  CHECK(plan({.heads = 3}, x, x, x).is(code::dimension_needed_whole));
  CHECK(plan(streams, lying(m, {1, 4, 6}, -1, false), x, x).is(code::streamed_to_copies));
  CHECK(plan(streams, x, x, x, tensor_value{lying(m, {1, 4, 4}, 1, false), element::boolean}).ok());
  CHECK(plan(streams, x, x, x, tensor_value{lying(m, {1, 4, 3}, 1, false), element::boolean}).is(code::extents_differ));
  const nn::attention_layer adds{.streamed = true, .heads = 3, .added_mask = true};
  for (const element e : {element::boolean, element::float32, element::float64, element::int32}) {
    const tensor_value mask{lying(m, {1, 4, 4}, 1, false), e};
    CHECK(plan(streams, x, x, x, mask).is(code::wrong_element) == (e != element::boolean));
    CHECK(plan(adds, x, x, x, mask).is(code::wrong_element) == (e != element::float32));
  }
  CHECK(plan({.streamed = true, .heads = 3, .slides = true, .before = -1}, x, x, x).is(code::window_looks_away));
  CHECK(plan({.causal = true, .heads = 3, .slides = true, .after = 1}, x, x, x).is(code::window_looks_away));
  CHECK(plan({.streamed = true, .heads = 3, .probability = 1.5}, x, x, x).is(code::no_probability));
  CHECK(plan({.streamed = true, .heads = 3, .probability = -0.5}, x, x, x).is(code::no_probability));
  static_vector<text, max_axes> line = no_items<text, max_axes>;
  line.push(m.axes[0].name);
  const nn::attention_layer over{.heads = 3, .over = tessera::engine::axis_names(line)};
  CHECK(plan(over, x, x, x).ok());
  const layout here = lying(m, {1, 4, 6}, -1, false);
  CHECK(plan(over, here, here, here).is(code::sequence_not_cut));
  CHECK(plan({.causal = true, .streamed = true, .heads = 3}, x, lying(m, {1, 8, 6}, 1, false),
             lying(m, {1, 8, 6}, 1, false))
            .is(code::extents_differ));
}

/// How far attention in bfloat16 is from that in double of the same operands: root mean squares, of the result and of
/// each gradient.
template <class M>
std::array<double, 4> far_in_bfloat16(bool causal, bool zigzag) {
  constexpr index_t rows = 512, heads = 2, features = 32;
  const auto given = [](std::initializer_list<index_t> extents, std::uint64_t salt, double scale) {
    return (global_of(extents, numbers{salt}) * scale).to(at::kBFloat16);
  };
  const std::vector<at::Tensor> whole{given({1, rows, heads, 1, features}, 1, 4),
                                      given({1, rows, heads, features}, 2, 1), given({1, rows, heads, features}, 3, 1)};
  const at::Tensor back = given({1, rows, heads * features}, 4, 1);
  std::vector<at::Tensor> wide;
  for (const at::Tensor& one : whole) wide.push_back(one.to(at::kDouble).requires_grad_());
  std::vector<at::Tensor> wanted{serial(wide[0], wide[1], wide[2], {}, {.causal = causal})};
  for (const at::Tensor& g : torch::autograd::grad({wanted[0]}, wide, {back.to(at::kDouble)})) wanted.push_back(g);
  const auto out = in_team<M>([&](const team<M>& t) {
    const mesh_value& m = t.state()->mesh();
    std::vector<tensor<dyn>> x;
    nn::program p;
    std::vector<nn::dynamic_flow> flows;
    for (const at::Tensor& one : whole) {
      const layout lies = one.dim() == 5 ? lying(m, {1, rows, heads, 1, features}, 1, zigzag)
                                         : lying(m, {1, rows, heads, features}, 1, zigzag);
      x.push_back(distribute(t.state(), lies, one.clone()));
      x.back().requires_grad();
      flows.push_back(p.input({lies, element::bfloat16}));
    }
    p.output(nn::attention_layer{.causal = causal, .streamed = true}(flows[0], flows[1], flows[2]));
    const tensor<dyn> y = nn::dynamic_network(t.state(), seed{1}, p)(x)[0];
    y.local().backward(distribute(t.state(), cotangent(y.layout()), back.clone()).local());
    std::array<double, 4> far{};
    for (std::size_t i = 0; i < 4; ++i) {
      const at::Tensor got = full_tensor(i == 0 ? y : x[i - 1].grad()).detach().to(at::kDouble);
      far[i] = (got - wanted[i].detach()).square().mean().sqrt().template item<double>();
    }
    return far;
  });
  INFO(out.errors());
  REQUIRE(out.well());
  for (const auto& one : out.results) CHECK(*one == *out.results[0]);
  return *out.results[0];
}

TEST_CASE("attention in bfloat16 over eight workers is at most twice as far from double as over one",
          "[law][runtime][gradient]") {
  for (const bool causal : {false, true}) {
    const std::array<double, 4> one = far_in_bfloat16<mesh<sequence<1>>>(causal, false);
    const std::array<double, 4> eight = far_in_bfloat16<mesh<sequence<8>>>(causal, causal);
    for (std::size_t i = 0; i < 4; ++i) {
      CAPTURE(causal, i, one[i], eight[i], eight[i] / one[i]);
      CHECK(one[i] > 0);
      CHECK(eight[i] <= 2 * one[i]);
    }
  }
}

}  // namespace streamed_attention
