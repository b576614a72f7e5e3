#include "beside_serial.hpp"

using namespace tessera;
using namespace tessera::testing;

// Embeddings and losses.

namespace {

/// A cross-entropy beside the serial one, of logits that lie so and labels cut as they are.
std::string entropy(const team_handle& t, const layout& x, const at::Tensor& logits, const at::Tensor& labels,
                    const nn::cross_entropy_options& how = {}) {
  layout y = x;
  for (engine::axis_placement& r : y.placements)  // the classes are dimension 1, which labels have not
    if (r.kind == placement::cut && r.dimension == 1) r = {placement::invariant};
    else if (r.kind == placement::cut && r.dimension > 1) --r.dimension;
  y.dims.resize(0);
  for (int d = 0; d < x.dims.count; ++d)
    if (d != 1) y.dims.push(x.dims[d]);
  for (int d = 0; d < y.dims.count; ++d) y.close_levels(d);
  return beside(
      t, {{x, logits}, {y, labels}}, [&](const auto& v) { return nn::cross_entropy(v[0], v[1], how); },
      [&](const whole_tensors& v) {
        return at::cross_entropy_loss(v[0], v[1], {}, at::Reduction::Mean, how.ignore_index, how.label_smoothing);
      });
}

at::Tensor labels_of(const sizes& n, index_t classes) {
  index_t count = 1;
  for (const index_t m : n) count *= m;
  return (at::arange(count) * 7 + 3).remainder(classes).view(n);
}

}  // namespace

// torchtitan#4637: with rows cut, an index of padding was refused, or took the gradient from a row of every shard.
// Megatron-LM#1754: 50257 rows over two.
TEST_CASE("reports: of an embedding with any cut only the row of padding has no gradient", "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(4)})
    for (const index_t rows : {5, 10})
      for (const index_t padding : {index_t{0}, rows / 2, rows - 1, index_t{-3}}) {
        const at::Tensor indices = at::arange(rows).repeat({2, 1});
        const index_t row = padding < 0 ? padding + rows : padding;
        CHECK(
            wrong_on(on, [&](const team_handle& t) {
              std::string said;
              for (const nn::embedding_layer& layer :
                   {nn::embedding_layer{.rows = rows, .features = 3, .padding_idx = padding},
                    nn::embedding_layer{.rows = rows, .features = 3, .cut_in = {"a"}, .padding_idx = padding},
                    nn::embedding_layer{.rows = rows, .features = 3, .cut_out = {"a"}, .padding_idx = padding}})
                said += network_beside(
                    t, {{lying(on, {2, rows}), indices}}, [&](const auto& v) { return v[0] | layer; },
                    [&](const whole_tensors& v, const auto& w) { return at::embedding(w.at("0.weight"), v[0], row); });
              return said;
            }) == "");
      }
}

// Megatron-LM#7452, 2: logits that were gathered went through a loss of cut classes and lost log 2; #1754: five
// classes over two workers.
TEST_CASE(
    "reports: a cross-entropy is the serial one however logits lie, gathered or cut over classes, samples or tokens",
    "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(4), workers(2, 2)}) {
    CHECK(wrong_on(on, [&](const team_handle& t) {
            std::string said;
            const at::Tensor four = at::arange(4, at::kDouble).view({1, 4});
            for (const layout& x : ways(on, {1, 4})) said += entropy(t, x, four, at::full({1}, 3, at::kLong));
            for (const sizes& n : {sizes{3, 5}, sizes{2, 5, 4}, sizes{4, 7, 3}})
              for (const layout& x : ways(on, n)) {
                sizes m = n;
                m.erase(m.begin() + 1);
                said += entropy(t, x, values(n), labels_of(m, n[1]));
                said += entropy(t, x, values(n), labels_of(m, n[1]), {.label_smoothing = 0.1});
              }
            return said;
          }) == "");
  }
  CHECK(wrong_on(workers(2), [&](const team_handle& t) -> std::string {  // the thread's numbers
          tensor<dyn> x = distribute(t, lying(workers(2), {1, 4}, {}, placement::invariant),
                                     at::arange(4, at::kDouble).view({1, 4}));
          x.requires_grad();
          const auto loss = nn::cross_entropy(
              x, distribute(t, lying(workers(2), {1}, {}, placement::invariant), at::full({1}, 3, at::kLong)));
          loss.backward();
          const bool right =
              std::abs(item(loss) - 0.4401897) < 1e-7 &&
              at::allclose(full_tensor(x.grad()),
                           at::tensor({0.0321, 0.0871, 0.2369, -0.3561}, at::kDouble).view({1, 4}), 0, 1e-4);
          return right ? "" : "the thread's numbers";
        }) == "");
}

// Megatron-LM (read): a label of −100 took 1 from class V − 100. OpenRLHF#583, cosmos-rl#155, pytorch#75181, #116349:
// one worker's labels all ignored. verl#5983, SkyRL#1420: means over the tokens of one part.
TEST_CASE(
    "reports: labels that are ignored count nowhere, be they all of one worker's, and all of them make the mean none",
    "[regression][runtime]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(3)})
    for (const index_t classes : {3, 128})
      CHECK(wrong_on(on, [&](const team_handle& t) {
              std::string said;
              const sizes n{6, classes};
              for (const layout& x : ways(on, n))
                for (const int kept : {6, 4, 1, 0}) {
                  at::Tensor y = labels_of({6}, classes);
                  y.narrow(0, kept, 6 - kept).fill_(-100);
                  // LibTorch's gradient is none too or zeros, by its version; the value is what counts
                  if (kept == 0) {
                    const tensor<dyn> loss = nn::cross_entropy(distribute(t, lying(on, n, {{0, 0}}), values(n)),
                                                               distribute(t, lying(on, {6}, {{0, 0}}), y));
                    if (!std::isnan(item(loss))) said += "a mean of nothing; ";
                    continue;
                  }
                  said += entropy(t, x, values(n), y);
                }
              return said;
            }) == "");
}
