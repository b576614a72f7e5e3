// Products over a cut time axis and attention whose keys come part by part, over two workers, in turns with LibTorch's
// own on half of the work at once on each: one JSON line a figure. Shapes are those of distributed-dot-product's
// benchmark, T = 75,000 / scale rows of 768 features; --scale says which.
#include <tessera/tensor/memory/memory_count.hpp>
#include <tessera/tessera.hpp>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace ts = tessera;
namespace nn = tessera::nn;

namespace {

struct seq : ts::axis<2> {};
using pair = ts::mesh<seq>;

int turns = 9;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// The median ratio of two pieces of work in turns, each begun by both workers at once; and the seconds of each.
struct compared {
  double ratio, ours, theirs;
};
compared in_turns(const ts::team<pair>& team, const std::function<void()>& ours, const std::function<void()>& theirs) {
  std::vector<double> ratios, a, b;
  const auto timed = [&](const std::function<void()>& work) {
    team.state()->collect(std::uint64_t{0}, "a turn begins");
    const auto began = std::chrono::steady_clock::now();
    work();
    team.state()->collect(std::uint64_t{0}, "a turn ends");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  for (int i = 0; i < turns + 2; ++i) {
    const double x = timed(ours), y = timed(theirs);
    if (i < 2) continue;
    ratios.push_back(x / y);
    a.push_back(x);
    b.push_back(y);
  }
  return {median(ratios), median(a), median(b)};
}

void report(const ts::team<pair>& team, const std::string& what, const compared& c, const std::string& more = "") {
  if (team.first())
    fmt::print(
        "{{\"benchmark\": \"sequence\", \"what\": \"{}\", \"ratio\": {:.3f}, \"seconds\": {:.4f}, \"half\": "
        "{:.4f}{}}}\n",
        what, c.ratio, c.ours, c.theirs, more);
}

/// The same numbers on each worker, whatever the others draw.
at::Tensor drawn(std::uint64_t seed, at::IntArrayRef sizes) {
  return at::rand(sizes, at::detail::createCPUGenerator(seed));
}

ts::tensor<ts::dyn> rows_of(const ts::team<pair>& team, std::uint64_t seed, ts::index_t rows, ts::index_t columns) {
  ts::layout x;
  x.mesh = pair::value;
  x.placements.resize(1);
  x.dims.resize(2);
  x.dims[0].extent = rows;
  x.dims[1].extent = columns;
  x.cut_by(0, 0);
  return ts::distribute(team, x, drawn(seed, {rows, columns}));
}

void products(const ts::team<pair>& team, ts::index_t t, ts::index_t d) {
  const ts::tensor<ts::dyn> a = rows_of(team, 1, t, d), b = rows_of(team, 2, t, d), c = rows_of(team, 3, t, t);
  const at::Tensor whole = drawn(2, {t, d});
  const auto measured = [&](const char* what, const ts::signature& op, const ts::tensor<ts::dyn>& x,
                            const ts::tensor<ts::dyn>& y, const std::function<at::Tensor()>& half) {
    std::int64_t peak = 0;
    const compared time = in_turns(
        team,
        [&] {
          const ts::engine::memory_count taken;
          (void)ts::einsum(op, x, y);
          peak = taken.peak();
        },
        [&] { (void)half(); });
    report(team, fmt::format("{} of {} x {}", what, t, d), time, fmt::format(", \"peak_bytes\": {}", peak));
  };
  const auto op = [](const char* text) { return ts::operation(text).multilinear().streamed('s'); };
  measured("nt", op("td,sd->ts"), a, b, [&] { return at::mm(a.local(), whole.t()); });
  measured("all", op("ts,sd->td"), c, b, [&] { return at::mm(c.local(), whole); });
  measured("tn", op("ts,td->sd"), c, b, [&] { return at::mm(c.local().t(), b.local()); });
}

template <class... Options>
struct attending {
  constexpr auto operator()(auto q, auto k, auto v) const { return nn::attention<Options...>{}(q, k, v); }
};

template <class Cover, class... Options>
void attention(const ts::team<pair>& team, const std::string& what, bool causal) {
  constexpr ts::index_t length = 2048, heads = 8, features = 64;
  using lying = ts::partition<pair, ts::whole, Cover, ts::whole, ts::whole>;
  using keys = ts::tensor<lying, ts::shape_of<1, length, heads, features>>;
  using queries = ts::tensor<ts::partition<pair, ts::whole, Cover, ts::whole, ts::whole, ts::whole>,
                             ts::shape_of<1, length, heads, 1, features>>;
  const nn::network<attending<Options...>, queries, keys, keys> net{team, ts::seed{1}};
  const at::Tensor all = drawn(4, {3, 1, length, heads, features});
  auto q = ts::distribute<queries>(team, all[0].unsqueeze(3));
  auto k = ts::distribute<keys>(team, all[1]);
  auto v = ts::distribute<keys>(team, all[2]);
  q.requires_grad();
  k.requires_grad();
  v.requires_grad();
  std::vector<at::Tensor> half;
  for (int i = 0; i < 3; ++i)
    half.push_back(all[i].narrow(2, 0, heads / 2).transpose(1, 2).contiguous().requires_grad_());
  const compared time = in_turns(
      team, [&] { net(q, k, v).local().sum().backward(); },
      [&] { at::scaled_dot_product_attention(half[0], half[1], half[2], std::nullopt, 0, causal).sum().backward(); });
  report(team, what, time);
}

}  // namespace

int main(int argc, char** argv) {
  int scale = 16;
  CLI::App app{"Products and attention over a cut time axis, beside LibTorch's on half of the work"};
  app.add_option("--scale", scale, "T = 75000 / scale")->check(CLI::PositiveNumber);
  app.add_option("--turns", turns, "how many times both are timed")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return ts::launch<pair>(argc, argv, [&](ts::team<pair>& team) {
    at::set_num_threads(1);
    products(team, 75000 / scale, 768);
    attention<ts::blocks<seq>, ts::streamed<>>(team, "attention, forward and backward", false);
    attention<ts::zigzag<seq>, ts::streamed<>, ts::causal>(team, "causal attention in a zigzag", true);
  });
}
