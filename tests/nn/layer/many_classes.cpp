#include "tests/support/counting_transport.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/tensor/memory/memory_count.hpp>

// A million classes over four workers: what a loss holds beside its scores, and how often workers exchange.

namespace tessera::testing::many_classes {

using namespace engine;

namespace {

constexpr int workers = 4;
constexpr index_t rows = 4;
constexpr index_t classes = 1'000'000;
constexpr std::int64_t one_copy = rows * classes / workers * static_cast<std::int64_t>(sizeof(float));
constexpr std::int64_t of_rows = 64 * rows * static_cast<std::int64_t>(sizeof(double));

layout cut_classes(const mesh_value& m) {
  layout x;
  x.mesh = m;
  x.placements.resize(1);
  x.dims.resize(2);
  x.dims[0].extent = rows;
  x.dims[1].extent = classes;
  x.cut_by(1, 0);
  return x;
}
layout all_labels(const mesh_value& m) {
  layout y;
  y.mesh = m;
  y.placements.push({placement::invariant});
  y.dims.push({});
  y.dims[0].extent = rows;
  return y;
}

/// What a step of four workers took, its loss and gradient.
struct step {
  std::int64_t forward = 0, all = 0;
  int exchanges = 0;
  double loss = 0;
  at::Tensor gradient;
};

/// A step of `loss(x, labels)` on all workers, the second time, when nothing is bound.
template <class Loss>
auto steps(const at::Tensor& whole, const at::Tensor& label, const Loss& loss) {
  return on_workers(workers, [&](const std::shared_ptr<transport>& carrier) {
    mesh_value m;
    m.axes.push({text("model"), workers});
    const auto counting = std::make_shared<counting_transport>(carrier);
    const auto team = std::make_shared<team_state>(counting, row_major(m));
    team->checks = checks::never;
    const tensor<dyn> labels(team, all_labels(team->mesh()), label.clone());
    step s;
    for (int time = 0; time < 2; ++time) {
      tensor<dyn> x(team, cut_classes(team->mesh()),
                    whole.narrow(1, team->rank() * classes / workers, classes / workers).contiguous());
      x.requires_grad();
      const int before = counting->begun;
      const memory_count taken;
      const tensor<dyn> y = loss(x, labels);
      s.forward = taken.peak();
      s.loss = y.local().template item<double>();
      y.backward();
      s.all = taken.peak();
      s.exchanges = counting->begun - before;
      s.gradient = x.local().grad();
    }
    return s;
  });
}

/// Whether four workers have this loss, and each its part of this gradient.
template <class Steps>
bool are(const Steps& run, double loss, const at::Tensor& gradient) {
  bool all = run.well();
  for (int r = 0; all && r < workers; ++r) {
    const step& s = *run.results[static_cast<std::size_t>(r)];
    const at::Tensor wanted = gradient.narrow(1, r * classes / workers, classes / workers);
    all = std::abs(s.loss - loss) < 1e-5 * loss && at::allclose(s.gradient.to(at::kDouble), wanted, 1e-4, 1e-9);
  }
  return all;
}

const at::Tensor cosines = at::sin(at::arange(rows * classes, at::kFloat)).view({rows, classes}) * 0.9;
const at::Tensor label = at::tensor({7, 250'000, 999'999, 500'123}, at::kLong);

}  // namespace

TEST_CASE("a cross-entropy of a million classes holds its scores and one copy, and exchanges twice for each sample",
          "[runtime][gradient]") {
  const at::Tensor leaf = (8 * cosines.to(at::kDouble)).set_requires_grad(true);
  const at::Tensor wanted = at::cross_entropy_loss(leaf, label);
  wanted.backward();
  const auto run = steps(8 * cosines, label, [](const tensor<dyn>& x, const tensor<dyn>& y) {
    return nn::cross_entropy<nn::reduction::mean>(x, y);
  });
  INFO(run.errors());
  REQUIRE(run.well());
  CHECK(are(run, wanted.item<double>(), leaf.grad()));
  for (const auto& one : run.results) {
    CHECK(one->forward <= one_copy + of_rows);
    CHECK(one->all <= one_copy + of_rows);
    CHECK(one->exchanges == 2 * 2);  // each is a sum and its way back
  }
  // each of them has a number or two for each sample, whatever the classes are
  mesh_value m;
  m.axes.push({text("model"), workers});
  const tensor_value x{cut_classes(m), element::float32}, y{all_labels(m), element::int64};
  int moved = 0;
  for (const exchange_value& e :
       functions::engine::loss<functions::cross_entropy, nn::reduction::mean>{}.exchanges(x, y)) {
    if (same(e.from, e.to)) continue;
    ++moved;
    index_t elements = 1;
    for (const dimension& d : e.from.dims) elements *= d.extent;
    CHECK(elements == moved * rows);
  }
  CHECK(moved == 2);
}

TEST_CASE("an angular margin of a million classes makes its result alone, and nothing moves where all have the labels",
          "[runtime][gradient]") {
  const auto margin = [](const tensor<dyn>& x, const tensor<dyn>& y) {
    return nn::cross_entropy<nn::reduction::mean>(nn::angular_margin(x, y, {.scale = 8}), y);
  };
  const at::Tensor leaf = cosines.to(at::kDouble).set_requires_grad(true);
  const at::Tensor at_label = leaf.gather(1, label.unsqueeze(1));
  const at::Tensor wider =
      at::where(at_label > -std::cos(0.5), at::cos(at::acos(at_label) + 0.5), at_label - 0.5 * std::sin(0.5));
  const at::Tensor wanted = at::cross_entropy_loss(8 * leaf.scatter(1, label.unsqueeze(1), wider), label);
  wanted.backward();
  const auto run = steps(cosines, label, margin);
  INFO(run.errors());
  REQUIRE(run.well());
  CHECK(are(run, wanted.item<double>(), leaf.grad()));
  for (const auto& one : run.results) {
    CHECK(one->forward <= 2 * one_copy + of_rows);  // the logits, and what is summed of them
    CHECK(one->all <= 2 * one_copy + of_rows);
    CHECK(one->exchanges == 2 * 2);  // all have all labels, and know without one that none is wrong
  }
  const auto wrong = steps(cosines, at::tensor({index_t{7}, index_t{1}, classes, index_t{3}}, at::kLong),
                           [&](const auto& x, const auto& y) {
                             if (told([&] { margin(x, y); }) != "tessera.loss.label")
                               throw std::runtime_error("no refusal");
                             return nn::cross_entropy<nn::reduction::mean>(
                                 x, tensor<dyn>(y.team(), y.layout(), y.local().remainder(classes)));
                           });
  CHECK(wrong.well());
}

}  // namespace tessera::testing::many_classes
