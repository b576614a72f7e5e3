#include "beside_serial.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// The numbers that threads give: small inputs, each with the value of one process.

namespace stated {

at::Tensor of(std::initializer_list<double> all, at::IntArrayRef n) { return at::tensor(all, at::kDouble).view(n); }

/// What differs from a stated value; empty when nothing does.
std::string unlike(const at::Tensor& got, const at::Tensor& wanted, double by = 1e-12) {
  return got.sizes() == wanted.sizes() && at::allclose(got, wanted, by, by) ? std::string()
                                                                            : c10::str(got, "\nfor\n", wanted, "\n");
}

}  // namespace stated

// pytorch/pytorch#162692: 6.5. pytorch/pytorch#163193: 65 for a number that was added to each term.
// pytorch/pytorch#165962:
// 9. pytorch/torchtitan#649: two stages with a largest gradient of 3 and of 4; TorchDistPackage: 10 for 7.07, norms
// that were added.
TEST_CASE("reports: sums, means, maxima and norms have the stated values", "[regression][runtime]") {
  for (const int size : {1, 2, 3})
    CHECK(wrong_on(workers(size), [&](const team_handle& t) {
            const mesh_value on = workers(size);
            const auto rows = [&](const at::Tensor& x) {
              return distribute(t, lying(on, x.sizes().vec(), {{0, 0}}), x);
            };
            std::string said = stated::unlike(full_tensor(mean(rows(at::arange(12, at::kDouble).view({3, 4})))),
                                              at::full({}, 5.5, at::kDouble));
            const tensor<dyn> total = sum(rows(at::arange(10, at::kDouble).view({10, 1})));
            said += stated::unlike(full_tensor(settled(total) + 10.0), at::full({}, 55, at::kDouble));
            if (size > 1 && told([&] { total + 10.0; }) != "tessera.rule.nonlinear") said += "a number to each term; ";
            const tensor<dyn> stages = rows(stated::of({3, 4, 3, 4}, {4}));
            said += stated::unlike(full_tensor(settled(amax(abs(stages)))), at::full({}, 4, at::kDouble));
            return said + stated::unlike(full_tensor(norm(stages)), at::full({}, 50, at::kDouble).sqrt());
          }) == "");
}

// jax-ml/jax#3970: 0 on one worker and 4 on the other. pytorch/pytorch#153016: each worker's own factor alone.
TEST_CASE("reports: gradients of what all workers use have the stated values", "[regression][gradient]") {
  CHECK(wrong_on(workers(2), [&](const team_handle& t) {
          const mesh_value on = workers(2);
          tensor<dyn> w = distribute(t, lying(on, {}, {}, placement::invariant), at::ones({}, at::kDouble));
          w.requires_grad();
          const tensor<dyn> d = distribute(t, lying(on, {2}, {{0, 0}}), at::arange(2, at::kDouble)),
                            all = to(lying(on, {}), w);
          go_back(sum((all * all + 1.0) * d));
          std::string said = stated::unlike(w.local().grad(), at::full({}, 2, at::kDouble));
          tensor<dyn> x = distribute(t, lying(on, {2}, {{0, 0}}), at::ones({2}, at::kDouble));
          x.requires_grad();
          (to(lying(on, {2}), x).local() * (1 + t->rank())).sum().backward();
          return said + stated::unlike(x.local().grad(), at::full({1}, 3, at::kDouble));
        }) == "");
}

// pytorch/pytorch#22192, NVIDIA/apex#387: 0, 2 on one worker and 4, 4, 8, 6 on the other are six values around 4, whose
// unbiased variance is 8.
TEST_CASE("reports: a running variance is that of all workers' values", "[regression][runtime]") {
  static const index_t bounds[]{0, 2, 6};
  CHECK(wrong_on(workers(2), [&](const team_handle& t) {
          layout x = lying(workers(2), {6, 1}, {{0, 0}});
          x.dims[0].bounds = bounds;
          const trained_net made(t, {{x, element::float64}},
                                 [](const auto& v) { return v[0] | nn::batch_norm_layer{}; });
          made.net(distribute(t, x, stated::of({0, 2, 4, 4, 8, 6}, {6, 1})));
          const by_key state = nn::state_of(made.net);
          return stated::unlike(state.at("0.running_mean"), at::full({1}, 0.1 * 4, at::kDouble)) +
                 stated::unlike(state.at("0.running_var"), at::full({1}, 0.9 + 0.1 * 8, at::kDouble));
        }) == "");
}

// NVIDIA/physicsnemo unpooling_patches.py: 10.27 and 14.73 at the seam. NVIDIA/physicsnemo#1943: rows of 0 + 2 and of
// 1 + 1 were added as they lay. openxla/xla#49122: both shards began at 5. pytorch/pytorch#103306: 8 rows of 5.
TEST_CASE("reports: seams, rows and ranges have the stated values", "[regression][runtime]") {
  static const index_t late[]{0, 0, 2}, even[]{0, 1, 2};
  CHECK(wrong_on(workers(2), [&](const team_handle& t) {
          const mesh_value on = workers(2);
          const trained_net twice(t, {{lying(on, {1, 1, 8}, {{2, 0}}), element::float64}}, [](const auto& v) {
            return v[0] | nn::upsample_layer{.factors = {2}, .mode = interpolation::linear, .align_corners = true};
          });
          const at::Tensor up = full_tensor(twice.net(
              distribute(t, lying(on, {1, 1, 8}, {{2, 0}}), at::arange(8, at::kDouble).square().view({1, 1, 8}))));
          std::string said = stated::unlike(up.view({16}).slice(0, 7, 9), stated::of({10.8667, 14.1333}, {2}), 1e-5);
          layout a = lying(on, {2, 3}, {{0, 0}}), b = a;
          a.dims[0].bounds = late;
          b.dims[0].bounds = even;
          const tensor<dyn> x = distribute(t, a, stated::of({1, 0, 0, 0, 1, 0}, {2, 3}));
          const tensor<dyn> y = distribute(t, b, stated::of({0, 1, 0, 0, 0, 1}, {2, 3}));
          if (told([&] { x + y; }) != "tessera.rule.cut") said += "paired as they lie; ";
          said += stated::unlike(full_tensor(to(b, x) + y), stated::of({1, 1, 0, 0, 1, 1}, {2, 3}));
          const at::Tensor all = at::arange(16, at::kDouble).view({2, 8});
          said += stated::unlike(full_tensor(slice<1, 2, 8>(distribute(t, lying(on, {2, 8}, {{1, 0}}), all))),
                                 all.slice(1, 2, 8));
          return said;
        }) == "");
  CHECK(wrong_on(workers(4), [&](const team_handle& t) {
          const mesh_value on = workers(4);
          const at::Tensor all = values({5, 10});
          return stated::unlike(to(lying(on, {5, 10}), distribute(t, lying(on, {5, 10}, {{0, 0}}), all)).local(), all);
        }) == "");
}

// huggingface/text-generation-inference#1036, awslabs/slapo#10, EleutherAI/gpt-neox#962, Wenyueh/MinivLLM#80: each
// worker added the bias before the sum, 230, 470, 710 for 130, 270, 410. pytorch/torchtitan#4332: the bias was divided
// by the number of workers, and its gradient too.
TEST_CASE("reports: a bias behind a sum of terms counts once, and so does its gradient", "[regression][gradient]") {
  const at::Tensor rows = at::arange(1, 9, at::kDouble).view({2, 4}),
                   weight = at::arange(1, 13, at::kDouble).view({3, 4});
  const at::Tensor bias = stated::of({100, 200, 300}, {3});
  for (const mesh_value& on : {workers(1), workers(2), workers(4), workers(2, 2)})
    CHECK(wrong_on(on, [&](const team_handle& t) {
            std::string said;
            for (const layout& x : ways(on, {2, 4})) {
              const trained_net made(t, {{x, element::float64}},
                                     [](const auto& v) { return v[0] | nn::linear_layer{.out = 3, .cut_in = {"a"}}; });
              nn::assign(made.net, {{"0.weight", weight}, {"0.bias", bias}});
              const tensor<dyn> y = made.net(distribute(t, x, rows));
              said += stated::unlike(full_tensor(y), stated::of({130, 270, 410, 170, 374, 578}, {2, 3}));
              go_back(settled(sum(y)));
              said += stated::unlike(made.gradients().at("0.bias"), at::full({3}, 2, at::kDouble));
            }
            return said;
          }) == "");
}

// pytorch/pytorch#111750, pytorch/pytorch#188163: a cut of dimension −1 and one of the last dimension were two layouts,
// with two gathers between them.
TEST_CASE("reports: a cut has one name, and a change to where a tensor lies moves nothing", "[plan][regression]") {
  for (const mesh_value& on : {workers(2), workers(4), workers(2, 2)})
    for (const sizes& n : {sizes{3, 5}, sizes{4, 8}})
      for (const layout& x : ways(on, n)) {
        CHECK(cost_between(x, x).total == 0);
        CHECK(cost_between(x, x).messages == 0);
      }
  CHECK(wrong_on(workers(2), [&](const team_handle& t) {
          const tensor<dyn> x = distribute(t, lying(workers(2), {3, 5}, {{1, 0}}), values({3, 5}));
          const index_t before = t->total.bytes;
          const bool same = at::equal(to(x.layout(), x).local(), x.local());
          return same && t->total.bytes == before ? "" : "moved";
        }) == "");
}
