#include "beside_serial.hpp"

using namespace tessera;
using namespace tessera::testing;

// Means over what counts, of which workers have unequal shares.

namespace counted {

/// The losses of each worker's tokens, a masked one as NaN, and their mean.
struct tokens_of_workers {
  std::vector<std::vector<double>> losses;
  double mean;
};

constexpr double masked = std::numeric_limits<double>::quiet_NaN();

/// w · Σ m v / Σ m for w = 1, of which the value and the derivative by w are the mean: cut as the case says.
std::string wrong_mean(const team_handle& t, const tokens_of_workers& c, bool whole) {
  std::vector<double> v, m;
  std::vector<index_t> bounds{0};
  for (const std::vector<double>& worker : c.losses) {
    for (const double one : worker) v.push_back(std::isnan(one) ? 1e6 : one), m.push_back(std::isnan(one) ? 0 : 1);
    bounds.push_back(static_cast<index_t>(v.size()));
  }
  const sizes n{static_cast<index_t>(v.size())};
  const mesh_value on = workers(static_cast<int>(c.losses.size()));
  layout cut = whole ? lying(on, n) : lying(on, n, {{0, 0}});
  if (!whole) cut.dims[0].bounds = bounds.data();
  double found = 0;
  const std::string said = beside(
      t,
      {{cut, at::tensor(v, at::kDouble)},
       {cut, at::tensor(m, at::kDouble)},
       {lying(on, {}, {}, placement::invariant), at::ones({}, at::kDouble)}},
      [&](const auto& x) {
        const auto mean = settled(sum(to(lying(on, {}), x[2]) * x[0] * x[1])) / settled(sum(x[1]));
        found = item(mean);
        return mean;
      },
      [](const auto& x) { return (x[2] * x[0] * x[1]).sum() / x[1].sum(); });
  return std::abs(found - c.mean) < 1e-12 * c.mean ? said : said + fmt::format("{} for {}; ", found, c.mean);
}

}  // namespace counted

// NVIDIA/Megatron-LM#7452, 3 and 9, NVIDIA/Megatron-LM#7513: each worker divided by the tokens that it had itself, so
// that a gradient of 4 was 14/3, and with one token in two parts half, in four a quarter. pytorch/torchtitan#4167: 6.0
// for 9.2. modelscope/ms-swift#10096: 2.0 for 2.5. radixark/miles#2796: a masked part counted as one token.
TEST_CASE("reports: a mean over what counts divides by the count of all workers, whatever each of them has",
          "[regression][gradient]") {
  using counted::masked;
  for (const counted::tokens_of_workers& c :
       std::vector<counted::tokens_of_workers>{{{{6}, {2, 3, 5}}, 4},
                                               {{{6}, {2, 3, masked, 5}, {masked}, {}}, 4},
                                               {{{8, masked}, {masked, masked}}, 8},
                                               {{{masked, masked}, {masked, masked}, {masked, 8}, {masked, masked}}, 8},
                                               {{{2}, {10, 10, 10, 10, 10, 10, 10, 10, 10}}, 9.2},
                                               {{{1}, {3, 3, 3}}, 2.5},
                                               {{{2, 2, 2, 2}, {masked}}, 2},
                                               {{{3, masked, 5}}, 4}})
    for (const bool whole : {false, true})
      CHECK(wrong_on(workers(static_cast<int>(c.losses.size())),
                     [&](const team_handle& t) { return counted::wrong_mean(t, c, whole); }) == "");
}

// NVIDIA/Megatron-LM#737, NVIDIA/Megatron-LM#7464, NVIDIA/Megatron-LM#7452, 1: smoothing took the share of a worker's
// classes for that of all, so that workers had different losses. Six positions of eight classes over two parts.
TEST_CASE("reports: label smoothing is over all classes, and every worker has one loss", "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(3), workers(2, 2)})
    for (const double smoothing : {0.1, 0.5})
      CHECK(wrong_on(on, [&](const team_handle& t) {
              std::string said;
              for (const layout& x : ways(on, {6, 8})) {
                layout y = lying_as(lying(on, {6}), 0, x, 0);
                for (int a = 0; a < y.placements.count; ++a)
                  if (y.placements[a].kind != placement::cut) y.placements[a] = {placement::invariant};
                if (x.placements[0].kind == placement::replicate) y = lying(on, {6});
                const operand_of logits{x, values({6, 8}) * 3}, labels{y, at::arange(6) * 3 % 8};
                const nn::cross_entropy_options how{.ignore_index = 7, .label_smoothing = smoothing};
                said += beside(
                    t, {logits, labels}, [&](const auto& v) { return nn::cross_entropy(v[0], v[1], how); },
                    [&](const auto& v) {
                      return at::cross_entropy_loss(v[0], v[1], {}, at::Reduction::Mean, 7, smoothing);
                    });
                const tensor<dyn> loss =
                    nn::cross_entropy(distribute(t, x, logits.whole), distribute(t, y, labels.whole), how);
                if (!same_copies(t, settled(loss).local())) said += "workers differ; ";
              }
              return said;
            }) == "");
}
