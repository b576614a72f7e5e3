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
                       {.masked = true, .slides = true, .before = 1, .after = 3},
                       {.adds = true},
                       {.causal = true, .rows = 3, .adds = true},
                       {.slides = true, .before = 2, .adds = true},
                       {.lengths = {0, 4, 4, 9, 13}},
                       {.causal = true, .rows = 2, .lengths = {0, 1, 12, 13}},
                       {.slides = true, .before = 2, .after = 2, .lengths = {0, 7, 13}}};
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
    for (const sizes& n : {sizes{2, 13, 13, 4, 1, 4, 4}, sizes{1, 12, 12, 3, 2, 3, 2}, sizes{1, 5, 5, 1, 2, 2, 2}})
      for (const bool zigzag : {false, true})
        for (form f : {form{}, form{.causal = true}, form{.masked = true}, form{.slides = true, .before = 2},
                       form{.adds = true}, form{.lengths = {0, 3, n.queries}}})
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
    for (const bool causal : {false, true})
      if (const std::string why = differs(t.state(), n, {.causal = causal, .masked = causal}, causal, at::kDouble);
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
    for (const bool streams : {false, true}) {
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
      p.output(nn::attention_layer{.streamed = streams, .heads = 4}(in[0], in[1], in[2]));
      const nn::dynamic_network net(t, seed{1}, p);
      const auto heads = [&](std::size_t i) { return whole[i].unflatten(-1, {4, 2}); };
      const at::Tensor wanted = serial(heads(0).unsqueeze(3), heads(1), heads(2), {}, {});
      if ((full_tensor(net(x)[0]) - wanted).abs().max().item<double>() > 1e-12) all += streams ? "streamed" : "whole";
    }
    return all;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
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
  CHECK(plan(streams, x, x, x, tensor_value{lying(m, {1, 4, 4}, 1, false), element::boolean}).ok());
  CHECK(plan(streams, x, x, x, tensor_value{lying(m, {1, 4, 3}, 1, false), element::boolean}).is(code::extents_differ));
  CHECK(plan(streams, x, x, x, tensor_value{lying(m, {1, 4, 4}, 1, false), element::float32}).ok());
  CHECK(plan(streams, x, x, x, tensor_value{lying(m, {1, 4, 4}, 1, false), element::float64}).is(code::wrong_element));
  CHECK(plan({.streamed = true, .heads = 3, .slides = true, .before = -1}, x, x, x).is(code::window_looks_away));
  CHECK(plan({.causal = true, .heads = 3, .slides = true, .after = 1}, x, x, x).is(code::window_looks_away));
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
