#include "beside_serial.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Windows: convolutions, poolings, padding, interpolation, ranges.

namespace {

struct convolution_case {
  index_t kernel, stride, padding, dilation;
};

}  // namespace

// NVIDIA/physicsnemo conv_patches.py: 1 … 10 over 2 under a kernel of 3 ones, stride 2, padding 1, gave six sums for
// five; 1400: one worker on the axis failed; tenstorrent/tt-metal#37716: a dilated kernel moved every row after the
// first; pytorch#191926: a gradient was cut otherwise than its input.
TEST_CASE(
    "reports: a convolution is the serial one for each kernel, stride, padding and dilation, over any number of "
    "workers",
    "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(4)})
    CHECK(wrong_on(on, [&](const team_handle& t) {
            std::string said;
            for (const auto& c :
                 {convolution_case{3, 2, 1, 1}, {3, 1, 1, 2}, {4, 4, 0, 1}, {7, 2, 3, 1}, {2, 3, 1, 1}, {1, 2, 0, 1}})
              for (const index_t length : {7, 10, 12})
                for (const sizes& n : {sizes{2, 2, length}, sizes{3, 1, length, 5}}) {
                  const int d = static_cast<int>(n.size()) - 2;
                  const auto layer = d == 1 ? nn::conv_layer{.out = 3,
                                                             .kernel = {c.kernel},
                                                             .stride = {c.stride},
                                                             .padding = {c.padding},
                                                             .dilation = {c.dilation}}
                                            : nn::conv_layer{.out = 3,
                                                             .kernel = {c.kernel, 3},
                                                             .stride = {c.stride, 1},
                                                             .padding = {c.padding, 1},
                                                             .dilation = {c.dilation, 1}};
                  for (const layout& x :
                       {lying(on, n), lying(on, n, {{2, 0}}), lying(on, n, {{0, 0}}), lying(on, n, {{1, 0}})})
                    said += network_beside(
                        t, {{x, values(n)}}, [&](const auto& v) { return v[0] | layer; },
                        [&](const whole_tensors& v, const auto& w) {
                          const sizes s{c.stride, 1}, p{c.padding, 1}, l{c.dilation, 1};
                          const auto first = [&](const sizes& all) {
                            return at::IntArrayRef(all.data(), static_cast<std::size_t>(d));
                          };
                          return at::convolution(v[0], w.at("0.weight"), w.at("0.bias"), first(s), first(p), first(l),
                                                 false, {0}, 1);
                        });
                }
            return said;
          }) == "");
}

TEST_CASE("reports: 1 to 10 and 1 to 12 under a kernel of three ones, stride 2, padding 1, are the sums of the thread",
          "[regression][runtime]") {
  for (const int size : {2, 4})
    for (const index_t length : {10, 12})
      CHECK(wrong_on(workers(size), [&](const team_handle& t) -> std::string {
              const layout x = lying(workers(size), {1, 1, length}, {{2, 0}});
              const trained_net made(t, {{x, element::float64}}, [](const auto& v) {
                return v[0] | nn::conv_layer{.out = 1, .kernel = {3}, .stride = {2}, .padding = {1}, .bias = false};
              });
              nn::assign(made.net, {{"0.weight", at::ones({1, 1, 3}, at::kDouble)}});
              const at::Tensor y =
                  full_tensor(made.net(distribute(t, x, at::arange(1, length + 1, at::kDouble).view({1, 1, length}))));
              const at::Tensor wanted = at::tensor({3., 9., 15., 21., 27., 33.})
                                            .to(at::kDouble)
                                            .narrow(0, 0, length / 2)
                                            .view({1, 1, length / 2});
              return at::equal(y, wanted) ? "" : c10::str(y);
            }) == "");
}

// pytorch#176446, openxla/xla#47945: a convolution whose batch alone is cut was refused, or gathered the whole batch.
TEST_CASE("reports: where only the batch is cut no layer over space moves an element forward", "[plan][regression]") {
  const mesh_value on = workers(8);
  const layout x = lying(on, {8, 4, 7, 7}, {{0, 0}});
  const auto moved = [&](const auto& layer) {
    const layer_plan p = layer.plan(tensor_value{x, element::float32});
    REQUIRE(p.why.ok());
    return traffic_of(p, {element::float32}).forward.bytes;
  };
  CHECK(moved(nn::conv_layer{.out = 6, .kernel = {7, 7}, .stride = {2}, .padding = {3}}) == 0);
  CHECK(moved(nn::conv_layer{.out = 6, .kernel = {3, 3}, .groups = 2}) == 0);
  CHECK(moved(nn::conv_transpose_layer{.out = 6, .kernel = {3, 3}, .stride = {2}}) == 0);
  CHECK(moved(nn::max_pool_layer{.kernel = {3, 3}, .stride = {2}, .padding = {1}}) == 0);
  CHECK(moved(nn::upsample_layer{.factors = {2, 2}, .mode = interpolation::linear}) == 0);
}

// physicsnemo unpooling_patches.py: the squares of 0 … 7 over 2, twice as many with aligned corners, were wrong at the
// seam.
TEST_CASE("reports: interpolation is the serial one across every seam", "[regression][runtime]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(3)})
    CHECK(wrong_on(on, [&](const team_handle& t) {
            std::string said;
            for (const index_t n : {5, 8})
              for (const double factor : {2.0, 1.5, 0.5})
                for (const bool align : {false, true}) {
                  const at::Tensor squares = at::arange(n, at::kDouble).square().view({1, 1, n});
                  said += network_beside(
                      t, {{lying(on, {1, 1, n}, {{2, 0}}), squares}},
                      [&](const auto& v) {
                        return v[0] | nn::upsample_layer{
                                          .factors = {factor}, .mode = interpolation::linear, .align_corners = align};
                      },
                      [&](const whole_tensors& v, const auto&) {
                        return at::upsample_linear1d(v[0], std::optional<at::IntArrayRef>(), align,
                                                     at::ArrayRef<double>(factor));
                      });
                }
            return said;
          }) == "");
}

// physicsnemo#1535: rows padded on the one side and then on the other had parts of wrong lengths. A constant of 1 is a
// shift by 1 and zeros.
TEST_CASE("reports: one-sided padding of a cut dimension, twice, is that of the whole", "[regression][runtime]") {
  for (const mesh_value& on : {workers(1), workers(4)})
    for (const sizes& n : {sizes{1, 1, 80, 10}, sizes{2, 1, 5, 3}})
      CHECK(wrong_on(on, [&](const team_handle& t) {
              return network_beside(
                  t, {{lying(on, n, {{2, 0}}), values(n)}},
                  [](const auto& v) {
                    const auto y = v[0] | nn::pad_layer{.widths = {2, 0, 0, 0}, .padding_mode = boundary::replicate};
                    return ((y - 1.0) | nn::pad_layer{.widths = {0, 2, 0, 0}}) + 1.0;
                  },
                  [](const whole_tensors& v, const auto&) {
                    return at::constant_pad_nd(at::replication_pad2d(v[0], {0, 0, 2, 0}), {0, 0, 0, 2}, 1);
                  });
            }) == "");
}

// openxla/xla#49122: the begin of a range was clamped by each shard's extent. cutlass#2432: the first 30 of 32 static
// rows were refused.
TEST_CASE("reports: a range of a cut dimension is that of the whole, and one beyond its end is refused by all",
          "[refusal][regression]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(3)}) {
    const layout columns = lying(on, {2, 8}, {{1, 0}});
    const at::Tensor all = at::arange(16, at::kDouble).view({2, 8});
    CHECK(wrong_on(on, [&](const team_handle& t) {
            std::string said = beside(
                t, {{columns, all}}, [](const auto& v) { return slice<1, 2, 8>(v[0]); },
                [](const auto& v) { return v[0].slice(1, 2, 8); });
            said += beside(
                t, {{columns, all}}, [](const auto& v) { return slice<1, 7, 8>(v[0]); },
                [](const auto& v) { return v[0].slice(1, 7, 8); });
            said += beside(
                t, {{lying(on, {32, 128}, {{0, 0}}), values({32, 128})}},
                [](const auto& v) { return slice<0, 0, 30>(v[0]); },
                [](const auto& v) { return v[0].slice(0, 0, 30); });
            for (index_t begin = 0; begin < 8; ++begin)
              for (index_t end = begin + 1; end <= 8; ++end)
                said += network_beside(
                    t, {{columns, all}}, [&](const auto& v) { return v[0] | nn::slice_layer{1, begin, end}; },
                    [&](const whole_tensors& v, const auto&) { return v[0].slice(1, begin, end); });
            const std::string code = told([&] { slice<1, 7, 13>(distribute(t, columns, all)); });
            return code.rfind("tessera.", 0) == 0 ? said : said + "beyond the end: " + code;
          }) == "");
  }
}
