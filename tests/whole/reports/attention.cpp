#include "beside_serial.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Attention, stages.

namespace {

/// Self-attention of so many heads on so many of keys, of four features each; written with the layers, and by LibTorch
/// with the serial keys.
struct attention_of {
  index_t heads, key_heads;
  bool masked;

  auto operator()(const std::vector<nn::dynamic_flow>& v) const {
    const auto [q, k, given] =
        v[0] |
        nn::under("qkv", nn::heads_layer{.heads = heads, .key_heads = key_heads, .features = 4, .cut_out = {"a"}});
    return masked ? nn::attention<tessera::causal>{}(q, k, given) : nn::attention<>{}(q, k, given);
  }
  at::Tensor serial(const at::Tensor& x, const std::map<std::string, at::Tensor>& w) const {
    const auto parts = at::linear(x, w.at("qkv.weight"), w.at("qkv.bias"))
                           .split_with_sizes({heads * 4, key_heads * 4, key_heads * 4}, -1);
    const auto by_head = [](const at::Tensor& t, index_t times) {
      return t.unflatten(-1, {-1, 4}).transpose(1, 2).repeat_interleave(times, 1);
    };
    const index_t times = heads / key_heads;
    return at::scaled_dot_product_attention(by_head(parts[0], 1), by_head(parts[1], times), by_head(parts[2], times),
                                            std::nullopt, 0, masked)
        .transpose(1, 2)
        .flatten(-2);
  }
};

}  // namespace

// DeepSpeed#8316: 12 heads over 4 were cut as another model's 3 heads of keys. DeepSpeed#6392, LongPO#5: 7 heads over 4
// and 28 over 8 were refused.
TEST_CASE("reports: any number of heads over any number of workers, and two models at once, are the serial attention",
          "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(4), workers(8)})
    CHECK(wrong_on(on, [&](const team_handle& t) {
            std::string said;
            const layout x = lying(on, {2, 5, 6});
            const trained_net other(t, {{x, element::float64}}, attention_of{3, 3, false});  // lives beside the others
            for (const auto& [heads, keys] : {std::pair<index_t, index_t>{12, 12}, {7, 7}, {28, 4}, {4, 1}})
              for (const bool causal : {false, true}) {
                const attention_of it{heads, keys, causal};
                said += network_beside(t, {{x, values({2, 5, 6})}}, it,
                                       [&](const whole_tensors& v, const auto& w) { return it.serial(v[0], w); });
              }
            return close(full_tensor(other.net(distribute(t, x, values({2, 5, 6})))),
                         attention_of{3, 3, false}.serial(values({2, 5, 6}), nn::state_of(other.net)))
                       ? said
                       : said + "the other model";
          }) == "");
}

// ring-flash-attention (read): the gradient of queries was bfloat16 whatever they are.
TEST_CASE("reports: attention gives the element and the gradients' elements that come in", "[regression][gradient]") {
  for (const at::ScalarType e : {at::kHalf, at::kBFloat16, at::kFloat})
    CHECK(wrong_on(workers(2), [&](const team_handle& t) {
            const layout q = lying(workers(2), {1, 3, 2, 1, 4}, {{2, 0}});
            const layout k = lying(workers(2), {1, 3, 2, 4}, {{2, 0}});
            return network_beside(
                t,
                {{q, values({1, 3, 2, 1, 4}, 1, e)}, {k, values({1, 3, 2, 4}, 2, e)}, {k, values({1, 3, 2, 4}, 3, e)}},
                [](const auto& v) { return nn::attention<>{}(v[0], v[1], v[2]); },
                [](const whole_tensors& v, const auto&) {
                  return at::scaled_dot_product_attention(v[0].squeeze(3).transpose(1, 2), v[1].transpose(1, 2),
                                                          v[2].transpose(1, 2))
                      .transpose(1, 2)
                      .flatten(-2);
                });
          }) == "");
}

// flashinfer#4452: rows that see nothing were merged as if they had seen something. A softmax of nothing but −∞ is no
// number, in one process and here.
TEST_CASE(
    "reports: parts of a softmax that are masked add nothing, and a row that is masked is none, as in one process",
    "[regression][runtime]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(4)})
    for (const index_t seen : {0, 1, 3})
      CHECK(wrong_on(on, [&](const team_handle& t) {
              at::Tensor x = values({2, 6});
              x.narrow(1, seen, 6 - seen).fill_(-std::numeric_limits<double>::infinity());
              std::string said;
              for (const layout& lies : ways(on, {2, 6}))
                said += beside(
                    t, {{lies, x}}, [](const auto& v) { return softmax<1>(v[0]); },
                    [](const auto& v) { return v[0].softmax(1); });
              return said;
            }) == "");
}

// torchtitan#775, ColossalAI#2156: four stages with one micro-batch, or as many stages as micro-batches, hung.
TEST_CASE("reports: stages on coordinates of an axis run any number of micro-batches, fewer than stages too",
          "[regression][runtime]") {
  for (const int stages : {1, 2, 4})
    for (const int batches : {1, 2, 5}) {
      const mesh_value on = workers(stages);

      CHECK(wrong_on(on, [&](const team_handle& t) -> std::string {
              const auto lies = [&](int s) {
                layout x = lying(on, {3, 4});
                x.placements[0] = held_on(s);
                return x;
              };
              const trained_net made(t, {{lies(0), element::float64}}, [&](const auto& v) {
                nn::dynamic_flow y = v[0];
                for (int s = 0; s < stages; ++s) {
                  if (s > 0) y = y | nn::repartition_layer{lies(s)};
                  y = y | nn::under(fmt::format("stage{}", s), nn::linear_layer{.out = 4});
                }
                return y;
              });
              std::map<std::string, at::Tensor> w = nn::state_of(made.net);
              for (auto& [key, one] : w) one = one.clone().set_requires_grad(true);
              std::vector<tensor<dyn>> results;
              whole_tensors serial;
              for (int m = 0; m < batches; ++m) {  // all forwards, then all backwards
                at::Tensor y = values({3, 4}, static_cast<std::uint64_t>(m));
                results.push_back(made.net(distribute(t, lies(0), y)));
                for (int s = 0; s < stages; ++s)
                  y = at::linear(y, w.at(fmt::format("stage{}.weight", s)), w.at(fmt::format("stage{}.bias", s)));
                serial.push_back(y);
              }
              for (int m = batches; m-- > 0;) {
                go_back(results[static_cast<std::size_t>(m)]);
                go_back(serial[static_cast<std::size_t>(m)]);
              }
              std::string said = close(full_tensor(results.back()), serial.back()) ? "" : "values; ";
              for (const auto& [key, g] : made.gradients())
                if (!close(g, w.at(key).grad())) said += key + "; ";
              return said;
            }) == "");
    }
}
