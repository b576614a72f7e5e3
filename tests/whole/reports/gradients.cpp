#include "beside_serial.hpp"

using namespace tessera;
using namespace tessera::testing;

// How often a gradient counts.

// jax#3970: the loss Σ (w² + 1)·d with copies of w had as many gradients as workers. torchtitan#1373: copies that were
// expanded into cut heads had each worker's own.
TEST_CASE("reports: what all workers hold gets the gradient of what all of them made of it", "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(3), workers(2, 2)})
    for (const sizes& n : {sizes{2, 3}, sizes{5, 4}})
      CHECK(wrong_on(on, [&](const team_handle& t) {
              std::string said;
              for (const layout& x : ways(on, n))
                for (const placement held : {placement::replicate, placement::invariant}) {
                  const auto copies = [&](const tensor<dyn>& w) { return to(lying(on, extents_of(w.layout())), w); };
                  const operand_of all{x, values(n)};
                  const operand_of scalar{lying(on, {}, {}, held), at::ones({}, at::kDouble)};
                  const operand_of row{lying(on, {n[1]}, {}, held), values({n[1]}, 3)};
                  const auto of_a_row = [&](const tensor<dyn>& w) {
                    return to(lying_as(lying(on, {n[1]}), 0, x, 1), w);
                  };
                  // an invariant operand joins none that are used otherwise
                  const auto used = [&](const tensor<dyn>& v) {
                    layout y = v.layout();
                    for (engine::axis_placement& r : y.placements)
                      if (r.kind == placement::invariant) r = {};
                    return to(y, v);
                  };
                  said += beside(
                      t, {all, scalar},
                      [&](const auto& v) {
                        const auto w = copies(v[1]);
                        return sum((w * w + 1.0) * used(v[0]));
                      },
                      [](const auto& v) { return ((v[1] * v[1] + 1) * v[0]).sum(); });
                  said += beside(
                      t, {all, row}, [&](const auto& v) { return used(v[0]) * of_a_row(v[1]); },
                      [](const auto& v) { return v[0] * v[1]; });
                  said += beside(
                      t, {all, row}, [&](const auto& v) { return used(v[0]) + of_a_row(v[1]); },
                      [](const auto& v) { return v[0] + v[1]; });
                }
              return said;
            }) == "");
}

// pytorch#153016: each worker's own loss of a gathered tensor reached its own part alone. pytorch#172932: terms that
// were taken apart and made terms again changed.
TEST_CASE("reports: each worker's own use of a gathered tensor is summed, and a box taken out and put back is itself",
          "[regression][gradient]") {
  for (const int size : {1, 2, 3, 4}) {
    const mesh_value on = workers(size);
    for (const index_t length : {2, 5})
      CHECK(wrong_on(on, [&](const team_handle& t) -> std::string {
              tensor<dyn> x = distribute(t, lying(on, {length}, {{0, 0}}), values({length}));
              x.requires_grad();
              (to(lying(on, {length}), x).local() * (1 + t->rank())).sum().backward();
              const double all = size * (size + 1) / 2.0;  // Σ (1 + r)
              std::string said = at::equal(x.local().grad(), at::full_like(x.local(), all)) ? "" : "own use; ";
              layout terms = lying(on, {2}, {}, placement::partial);
              tensor<dyn> term(t, terms, at::tensor({1.0, 2.0}, at::kDouble) * (t->rank() + 1));
              term.requires_grad();
              const tensor<dyn> again(t, terms, term.local() * 1.0);
              const tensor<dyn> y = to(lying(on, {2}, {}, placement::invariant), again);
              sum(y * y).backward();
              const at::Tensor wanted = at::tensor({2.0, 4.0}, at::kDouble) * all;
              return at::equal(term.local().grad(), wanted) ? said : said + c10::str(term.local().grad());
            }) == "");
  }
}

// Megatron-LM#7227: a table that two layers share counted twice in a norm, 40 for √800. pytorch#160285, fairseq#4220:
// gradients of experts depended on how many workers had them. verl#6334, accelerate#3870: a tied table was two after a
// load.
TEST_CASE(
    "reports: a table that two layers share is one parameter, with one gradient, one key and one share of the norm",
    "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(4)})
    CHECK(wrong_on(on, [&](const team_handle& t) {
            std::string said;
            const at::Tensor indices = at::arange(6).remainder(5).view({2, 3});
            const auto write = [](const auto& v) {
              const nn::embedding_layer table{
                  .rows = 5, .features = 4, .weights_as = element::float64, .cut_in = {"a"}};
              return v[0] | nn::shared_under("table", table) |
                     nn::shared_under("table", nn::linear_layer{.out = 5, .bias = false, .cut_out = {"a"}});
            };
            const layout x = lying(on, {2, 3});
            said += network_beside(t, {{x, indices}}, write, [](const whole_tensors& v, const auto& w) {
              return at::linear(at::embedding(w.at("table.weight"), v[0]), w.at("table.weight"));
            });
            const trained_net made(t, {{x, element::int64}}, write);
            go_back(made.net(distribute(t, x, indices)));
            const auto all = made.gradients();
            if (all.size() != 1 || nn::state_of(made.net).size() != 1) said += "more than one table; ";
            const double wanted = all.begin()->second.norm().template item<double>();
            return std::abs(nn::grad_norm(made.net) - wanted) < 1e-12 * wanted ? said : said + "norm";
          }) == "");
}

TEST_CASE("reports: experts have the gradients of one process, however many workers hold them",
          "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(4), workers(2, 2)})
    CHECK(wrong_on(on, [&](const team_handle& t) {
            std::string said;
            for (const layout& x : ways(on, {3, 5, 4}))
              said += network_beside(
                  t, {{x, values({3, 5, 4})}},
                  [](const auto& v) { return v[0] | nn::experts_layer{.experts = 3, .out = 2}; },
                  [](const whole_tensors& v, const auto& w) {
                    return at::baddbmm(w.at("0.bias"), v[0], w.at("0.weight"));
                  });
            return said;
          }) == "");
}
