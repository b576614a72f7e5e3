// A step of a small GPT over two workers that share the batch, its gradients in bundles and one by one, in turns: what
// moves on the way back, as counted while compiling and as seen, and the ratio of times.
#include <tessera/tessera.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

namespace ts = tessera;
namespace nn = tessera::nn;

namespace {

constexpr int turns = 30, warm = 6;
constexpr ts::index_t tokens = 64, width = 128, words = 512;

struct data : ts::axis<2> {};
using crew = ts::mesh<data>;
struct batch : ts::dyn {};
using sequences =
    ts::tensor<ts::partition<crew, ts::blocks<data>, ts::whole>, ts::shape<batch, ts::dim<tokens>>, std::int64_t>;

struct block {
  constexpr auto operator()(auto x) const {
    const auto [q, k, v] = x | nn::layer_norm<>{} | nn::heads<4, 4, width / 4>{};
    const auto y = x + (nn::attention<ts::causal>{}(q, k, v) | nn::linear<width>{});
    return y + (gelu(y | nn::layer_norm<>{} | nn::linear<4 * width>{}) | nn::linear<width>{});
  }
};
using gpt = nn::chain<nn::embedding<words, width>, block, block, block, block, nn::layer_norm<>, nn::linear<words>>;
using alone_type = nn::network<gpt, sequences>;
using bundled_type = nn::network<nn::bundled<gpt>, sequences>;

constexpr ts::index_t samples = 8;
constexpr auto alone = ts::traffic<alone_type>(ts::bind<batch>(samples)).backward;
constexpr auto bundled = ts::traffic<bundled_type>(ts::bind<batch>(samples)).reduced;
static_assert(alone.bytes == bundled.bytes);

struct seen {
  double ms = 0;
  ts::index_t messages = 0;
};

template <class Net>
seen step(const ts::team<crew>& team, const Net& net, const at::Tensor& x) {
  for (const at::Tensor& w : net.parameters()) w.mutable_grad().reset();
  const auto scores = net(ts::distribute<sequences>(team, x));
  const auto loss = ts::sum(scores * scores);
  const ts::index_t before = team.state()->total.messages;
  const auto began = std::chrono::steady_clock::now();
  loss.backward();
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  return {ms, team.state()->total.messages - before};
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  return ts::launch<crew>(argc, argv, [](ts::team<crew>& team) {
    const alone_type one_by_one{team, ts::seed{1}};
    const bundled_type together{team, ts::seed{1}};
    const at::Tensor x = at::arange(samples * tokens).remainder(words).view({samples, tokens});
    std::vector<double> ratios;
    ts::index_t messages = 0, fewer = 0;
    for (int i = 0; i < turns; ++i) {
      const seen a = step(team, one_by_one, x), b = step(team, together, x);
      messages = a.messages;
      fewer = b.messages;
      if (i >= warm) ratios.push_back(b.ms / a.ms);
    }
    if (team.first())
      fmt::print(
          "{{\"benchmark\": \"training\", \"bytes\": {}, \"messages_counted\": {}, \"messages_of_a_worker\": {}, "
          "\"in_bundles_counted\": {}, \"in_bundles_of_a_worker\": {}, \"backward_ratio\": {:.3f}}}\n",
          bundled.bytes, alone.messages, messages, bundled.messages, fewer, median(ratios));
  });
}
