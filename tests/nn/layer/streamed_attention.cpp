// Attention whose keys and values come part by part, beside LibTorch's of the whole sequence.

#include "tests/support/streamed_attention.hpp"

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
                const std::string why = differs(t.state(), n, {causal, masked, rows}, zigzag, type);
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

TEST_CASE("pieces with more scores than are held at once are met in several", "[law][runtime][gradient]") {
  const auto out = in_team<mesh<sequence<2>>>([](const team<mesh<sequence<2>>>& t) -> std::string {
    const sizes n{4, 600, 600, 2, 1, 3, 2};  // 2,400 queries by head on each, so some hundred keys at once
    std::string all;
    for (const bool causal : {false, true})
      if (const std::string why = differs(t.state(), n, {causal, causal, 0}, causal, at::kDouble); !why.empty())
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
      const at::Tensor wanted = serial(heads(0).unsqueeze(3), heads(1), heads(2), {}, false);
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
  CHECK(plan(streams, x, x, x, tensor_value{lying(m, {1, 4, 4}, 1, false), element::float32}).is(code::wrong_element));
  CHECK(plan({.causal = true, .streamed = true, .heads = 3}, x, lying(m, {1, 8, 6}, 1, false),
             lying(m, {1, 8, 6}, 1, false))
            .is(code::extents_differ));
}

}  // namespace streamed_attention
