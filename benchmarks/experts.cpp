// A router that drops nothing, rows of a power law over 8 experts on two workers: the time of forward and backward over
// that of a router with the capacity of the fullest expert, to be 1.1 at most. In turns.
#include <tessera/nn/network/program_parts.hpp>
#include <tessera/tensor/launch.hpp>
#include <tessera/tessera.hpp>

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

namespace ts = tessera;
namespace nn = ts::nn;

namespace {

constexpr ts::index_t experts = 8, rows = 4096, features = 128, hidden = 256;
constexpr int batches = 8;

struct place : ts::axis<2> {};
using crew = ts::mesh<place>;
template <ts::index_t Numbers>
using by_rows = ts::tensor<ts::partition<crew, ts::blocks<place>, ts::whole>, ts::shape_of<rows, Numbers>, float>;

/// Scores by which expert e is chosen by a share of rows that falls as 1 / (e + 1).
at::Tensor scores_of(int batch) {
  std::vector<double> until(1, 0);
  for (ts::index_t e = 0; e < experts; ++e) until.push_back(until.back() + 1.0 / static_cast<double>(e + 1));
  const at::Tensor at = at::remainder(at::arange(rows, at::kDouble) * 0.6180339887 + 0.1 * batch, 1) * until.back();
  const at::Tensor chosen = at::bucketize(at, at::tensor(until).narrow(0, 1, experts));
  return at::one_hot(chosen, experts).to(at::kFloat) * 4;
}

/// A mixture with a capacity, or without one.
void write_mixture(nn::program& p, std::optional<double> capacity = {}) {
  const auto x = p.input<by_rows<features>>();
  const auto scores = p.input<by_rows<experts>>();
  nn::route_layer router{.experts = experts};
  if (capacity) router.capacity = *capacity;
  const auto [slots, gates, numbers, chosen] = router(x, scores);
  const auto served = slots | nn::experts_layer{.experts = experts, .out = hidden} | nn::relu{} |
                      nn::experts_layer{.experts = experts, .out = features};
  p.output(sum(nn::combine{}(served, gates, numbers, chosen)));
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  return ts::launch<crew>(argc, argv, [](ts::team<crew>& team) {
    at::set_num_threads(1);
    double fullest = 0;  // of a worker's rows
    std::vector<std::vector<ts::tensor<ts::dyn>>> given;
    for (int i = 0; i < batches; ++i) {
      const at::Tensor scores = scores_of(i);
      for (const at::Tensor& part : scores.chunk(2))
        fullest = std::max(fullest, part.argmax(1).bincount({}, experts).max().item<double>());
      given.push_back(
          {ts::distribute<by_rows<features>>(team, at::sin(at::arange(rows * features)).view({rows, features}))
               .dynamic(),
           ts::distribute<by_rows<experts>>(team, scores).dynamic()});
    }
    const double capacity = fullest * experts / (rows / 2.0);
    nn::program all, limited;
    write_mixture(all);
    write_mixture(limited, capacity);
    const nn::dynamic_network dropless(team, ts::seed{1}, all), of_fullest(team, ts::seed{1}, limited);
    const auto milliseconds = [&](const nn::dynamic_network& net, const std::vector<ts::tensor<ts::dyn>>& x) {
      team.state()->collect(0, "all begin together");
      const auto began = std::chrono::steady_clock::now();
      net(x)[0].backward();
      return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
    };
    std::vector<double> ratios, each;
    for (int i = 0; i < 120; ++i) {
      const auto& x = given[static_cast<std::size_t>(i) % given.size()];
      const double one = milliseconds(dropless, x), other = milliseconds(of_fullest, x);
      if (i < 24) continue;
      each.push_back(one);
      ratios.push_back(one / other);
    }
    if (team.first())
      fmt::print(
          "{{\"benchmark\": \"experts\", \"rows\": {}, \"experts\": {}, \"fullest\": {}, \"dropless_ms\": {:.2f}, "
          "\"over_capacity_of_fullest\": {:.3f}}}\n",
          rows, experts, fullest, median(each), median(ratios));
  });
}
