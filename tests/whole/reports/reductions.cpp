#include "beside_serial.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Normalisation, softmax, reductions.

namespace {

layout terms_on(const mesh_value& on, const sizes& n, combine with = combine::sum) {
  layout x = lying(on, n);
  for (axis_placement& r : x.placements) r = {.kind = placement::partial, .with = with};
  return x;
}

}  // namespace

// tenstorrent/tt-xla#6075: a softmax over eight parts was shifted by the sum of their maxima. pytorch#178785: softmax,
// layer_norm, slices and transposes of a dimension that two axes cut were silently wrong.
TEST_CASE("reports: softmax, norms, ranges and transposes of a dimension cut once or twice are the serial ones",
          "[regression][runtime]") {
  for (const mesh_value& on : {workers(1), workers(8), workers(2, 3)})
    for (const sizes& n : {sizes{2, 8}, sizes{3, 5}})
      CHECK(wrong_on(on, [&](const team_handle& t) {
              std::string said;
              for (const layout& x : ways(on, n))
                for (const double scale : {1.0, 10.0, 1e3}) {
                  const std::vector<operand_of> one{{x, at::arange(n[0] * n[1], at::kDouble).view(n) * scale}};
                  said += beside(
                      t, one, [](const auto& v) { return softmax<1>(v[0]); },
                      [](const auto& v) { return v[0].softmax(1); });
                  said += beside(
                      t, one, [](const auto& v) { return log_softmax<0>(v[0]); },
                      [](const auto& v) { return v[0].log_softmax(0); });
                  if (scale > 1) continue;
                  said += beside(
                      t, one, [](const auto& v) { return slice<1, 1, -1>(v[0]); },
                      [](const auto& v) { return v[0].slice(1, 1, -1); });
                  said += beside(
                      t, one, [](const auto& v) { return transpose<0, 1>(v[0]); },
                      [](const auto& v) { return v[0].t(); });
                }
              return said;
            }) == "");
}

// Megatron-LM#1446, gpt-neox#1259: under a cut sequence the weights of a norm had gradients of one worker's part, or
// their mean.
TEST_CASE("reports: a layer norm's weights have the gradient of the whole sequence, the same on every worker",
          "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(4), workers(2, 2)})
    for (const sizes& n : {sizes{2, 5, 6}, sizes{1, 3, 4}})
      CHECK(
          wrong_on(on, [&](const team_handle& t) {
            std::string said;
            for (const layout& x : ways(on, n)) {
              said += network_beside(
                  t, {{x, values(n)}}, [](const auto& v) { return v[0] | nn::layer_norm_layer{}; },
                  [&](const whole_tensors& v, const auto& w) {
                    return at::layer_norm(v[0], {n[2]}, w.at("0.weight"), w.at("0.bias"));
                  });
              said += network_beside(
                  t, {{x, values(n)}}, [](const auto& v) { return v[0] | nn::rms_norm_layer{}; },
                  [&](const whole_tensors& v, const auto& w) { return at::rms_norm(v[0], {n[2]}, w.at("0.weight")); });
            }
            return said;
          }) == "");
}

// pytorch#165962: the maximum of [1, 5] + [4, −3], terms of a sum, was that of each term. pytorch#126457,
// miles_diffusion#35: a norm was read of terms.
TEST_CASE("reports: what is not linear refuses the terms of a sum, and is right once they are summed",
          "[refusal][regression]") {
  for (const mesh_value& on : {workers(2), workers(4), workers(2, 2)})
    CHECK(wrong_on(on, [&](const team_handle& t) {
            const layout terms = terms_on(on, {2});
            const at::Tensor mine = t->rank() == 0   ? at::tensor({1.0, 5.0}, at::kDouble)
                                    : t->rank() == 1 ? at::tensor({4.0, -3.0}, at::kDouble)
                                                     : at::zeros({2}, at::kDouble);
            const tensor<dyn> x(t, terms, mine);
            std::string said;
            const auto refused = [&](const char* what, const auto& f) {
              const std::string code = told(f);
              if (code.rfind("tessera.rule.", 0) != 0 && code.rfind("tessera.partial.", 0) != 0)
                said += fmt::format("{}: {}; ", what, code);
            };
            refused("amax", [&] { amax(x); });
            refused("norm", [&] { norm(x); });
            refused("var", [&] { var(x); });
            refused("softmax", [&] { softmax<0>(x); });
            refused("relu", [&] { relu(x); });
            refused("product", [&] { x* x; });
            refused("value", [&] {
              if (told([&] { item(sum(x)); }) == "tessera.value.copies")
                throw error(refusal{code::nonlinear_on_partial});
            });
            const tensor<dyn> y = settled(x);
            if (item(settled(amax(y))) != 5) said += "maximum; ";
            return close(full_tensor(norm(y)), at::tensor({5.0, 2.0}, at::kDouble).norm()) ? said : said + "norm";
          }) == "");
}

// torchtitan#649: the infinite norm over two stages was (3^∞ + 4^∞)^(1/∞). ROCm/TransformerEngine#715,
// NVIDIA/NeMo-RL#3788: copies counted once a worker.
TEST_CASE("reports: a norm of gradients of any order counts each element once, copies and tiles alike",
          "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(8), workers(2, 3)})
    for (const bool wide : {false, true}) {
      const sizes n{4, 6};
      CHECK(wrong_on(on, [&](const team_handle& t) {
              std::string said;
              for (const layout& x : ways(on, n)) {
                const trained_net made(t, {{x, element::float64}}, [&](const auto& v) {
                  return v[0] | nn::linear_layer{.out = wide ? 7 : 3} | nn::layer_norm_layer{} |
                         nn::linear_layer{.out = 2};
                });
                go_back(made.net(distribute(t, x, values(n))));
                whole_tensors all;
                for (const auto& [key, g] : made.gradients()) all.push_back(g.flatten());
                const at::Tensor serial = at::cat(all);
                for (const double order : {1.0, 2.0, 3.0, std::numeric_limits<double>::infinity()}) {
                  const double norm_here = nn::grad_norm(made.net, order);
                  const double wanted = serial.norm(order).item<double>();
                  if (std::abs(norm_here - wanted) > 1e-12 * wanted)
                    said += fmt::format("{}: {} for {} of order {}; ", shown(x), norm_here, wanted, order);
                }
              }
              return said;
            }) == "");
    }
}
