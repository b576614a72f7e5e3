// What tensors add to a bare exchange, and networks to plain LibTorch. One JSON line a figure; scripts/bench calls
// judges medians of several runs.
//
// The two sides run in turns, a batch of calls each; a batch takes as long as its slowest worker, and the figure is the
// median of the differences or ratios of neighbours.
#include "bound_verb.hpp"

#include <tessera/tessera.hpp>

#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/sgd.h>

#include <barrier>

namespace ts = tessera;

namespace {

using calls::index_t;
using clock_type = std::chrono::steady_clock;

bool once = false;

struct both : ts::axis<2> {};
struct alone : ts::axis<1> {};

void report(const char* name, double ratio, const char* bar, const char* unit) {
  fmt::print("{{\"name\": \"calls.{}\", \"ratio\": {:.3f}, \"bar\": {}, \"unit\": \"{}\"}}\n", name, ratio, bar, unit);
}

/// Times of things that run in turns on two threads: seconds a call, by batch.
class turns {
 public:
  template <class... F>
  void take(int rank, int batches, int calls, F&&... f) {
    times_[rank].assign(sizeof...(F), {});
    for (int b = 0; b < (once ? 1 : batches); ++b) {
      std::size_t i = 0;
      (times_[rank][i++].push_back(batch(once ? 1 : calls, f)), ...);
    }
    all_.arrive_and_wait();
  }
  /// The median over batches of compare(seconds of the one, seconds of the other).
  template <class Compare>
  double median(std::size_t one, std::size_t other, Compare&& compare) const {
    std::vector<double> v;
    for (std::size_t b = 0; b < times_[0][one].size(); ++b) v.push_back(compare(slowest(one, b), slowest(other, b)));
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  }
  double difference(std::size_t one, std::size_t other, double times = 1) const {
    return 1e6 * median(one, other, [times](double a, double b) { return a - times * b; });
  }
  double ratio(std::size_t one, std::size_t other) const { return median(one, other, std::divides<>()); }

 private:
  template <class F>
  double batch(int calls, F& f) {
    all_.arrive_and_wait();
    const auto began = clock_type::now();
    for (int c = 0; c < calls; ++c) f();
    return std::chrono::duration<double>(clock_type::now() - began).count() / calls;
  }
  double slowest(std::size_t what, std::size_t b) const { return std::max(times_[0][what][b], times_[1][what][b]); }

  std::barrier<> all_{2};
  std::vector<std::vector<double>> times_[2];  // by worker, thing, batch
};

ts::launch_options threads() {
  ts::launch_options o;
  o.transport = ts::transport_choice::in_process;
  return o;
}

template <index_t Rows, index_t Columns>
struct matrix {
  using bands = ts::partition<ts::mesh<both>, ts::blocks<both>, ts::whole>;
  using columns = ts::partition<ts::mesh<both>, ts::whole, ts::blocks<both>>;
  using type = ts::tensor<bands, ts::shape_of<Rows, Columns>, double>;

  static type of(const ts::team<ts::mesh<both>>& team) {
    return ts::from_local<type>(team, at::ones({Rows / 2, Columns}, at::kDouble));
  }
};

/// A node of autograd's graph whose backward gives a box, and nothing else: what LibTorch takes for any step of a
/// graph.
class idle_node final : public torch::autograd::Node {
 public:
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override {
    return {at::empty({8, 32}, at::kDouble)};
  }
};
at::Tensor through_idle_node(const at::Tensor& x) {
  const at::Tensor y = [] {
    const c10::AutoGradMode no_record(false);
    return at::empty({16, 16}, at::kDouble);
  }();
  ts::detail::record(y, x, ts::detail::make_node<idle_node>());
  return y;
}

void change_over_exchange() {
  turns all;
  ts::launch<ts::mesh<both>>(0, nullptr, threads(), [&](ts::team<ts::mesh<both>>& team) {
    using small = matrix<16, 32>;
    const auto x = small::of(team);
    auto w = small::of(team);
    w.requires_grad();
    const at::Tensor g = at::ones({16, 16}, at::kDouble);
    calls::matrices m({calls::verb::repartition, 16, 32, 2}, team.rank());
    calls::bound_verb bare(*team.state(), m);
    all.take(
        team.rank(), 41, 200, [&] { bare(); }, [&] { static_cast<void>(ts::to<small::columns>(x)); },
        [&] { torch::autograd::grad({ts::to<small::columns>(w).local()}, {w.local()}, {g}); },
        [&] {
          bare();
          torch::autograd::grad({through_idle_node(w.local())}, {w.local()}, {g});
          bare();
        });
  });
  report("to_over_exchange", all.difference(1, 0), "1.0", "microseconds more");
  report("forward_and_backward_over_two_exchanges", all.difference(2, 0, 2), "null", "microseconds more");
  report("forward_and_backward_over_two_exchanges_and_a_node_that_idles", all.difference(2, 3), "3.0",
         "microseconds more");
}

void fresh_over_reused(bool cached) {
  turns all;
  ts::launch_options options = threads();
  options.caches_memory = cached;
  constexpr index_t rows = 2048, columns = 4096;
  ts::launch<ts::mesh<both>>(0, nullptr, options, [&](ts::team<ts::mesh<both>>& team) {
    using large = matrix<rows, columns>;
    const auto x = large::of(team);
    calls::matrices m({calls::verb::repartition, rows, columns, 2}, team.rank());
    calls::bound_verb bare(*team.state(), m);
    all.take(team.rank(), 15, 1, [&] { bare(); }, [&] { static_cast<void>(ts::to<large::columns>(x)); });
  });
  if (cached) report("fresh_over_reused.64MiB", all.ratio(1, 0), "1.15", "times");
  else report("fresh_over_reused.64MiB.uncached", all.ratio(1, 0), "null", "times");
}

/// Calls of lines that ran 5,000 times, with sampled checks over none.
void sampled_calls_over_unchecked() {
  turns all;
  ts::launch<ts::mesh<both>>(0, nullptr, threads(), [&](ts::team<ts::mesh<both>>& team) {
    using small = matrix<16, 32>;
    const auto x = small::of(team);
    const auto compared = [&](ts::checks how) {
      return [&team, &x, how] {
        team.state()->checks = how;
        static_cast<void>(ts::to<small::columns>(x));
      };
    };
    for (int i = 0; i < (once ? 1 : 5000); ++i) compared(ts::checks::sampled)();
    all.take(team.rank(), 101, 200, compared(ts::checks::sampled), compared(ts::checks::never));
  });
  report("to.sampled_over_unchecked", all.ratio(0, 1), "1.02", "times");
}

/// Seconds of a training run from its launch on.
double training(ts::checks how) {
  using batch = ts::tensor<ts::partition<ts::mesh<both>, ts::blocks<both>, ts::whole>, ts::shape_of<64, 128>, float>;
  using model = ts::nn::sequential<batch, ts::nn::linear<256>, ts::nn::relu, ts::nn::linear<64>>;
  ts::launch_options options = threads();
  options.checks = how;
  const auto began = clock_type::now();
  ts::launch<ts::mesh<both>>(0, nullptr, options, [&](ts::team<ts::mesh<both>>& team) {
    const auto images = ts::from_local<batch>(team, at::ones({32, 128}));
    model net{team, ts::seed{7}};
    torch::optim::SGD optimizer(net.parameters(), 1e-3);
    for (int i = 0; i < (once ? 2 : 1000); ++i) {
      optimizer.zero_grad();
      ts::sum(net(images)).backward();
      optimizer.step();
    }
  });
  return std::chrono::duration<double>(clock_type::now() - began).count();
}
void sampled_training_over_unchecked() {
  std::vector<double> ratios;
  for (int i = 0; i < (once ? 1 : 21); ++i) {
    const bool checked_first = i % 2 == 0;
    const double first = training(checked_first ? ts::checks::sampled : ts::checks::never);
    const double second = training(checked_first ? ts::checks::never : ts::checks::sampled);
    ratios.push_back(checked_first ? first / second : second / first);
  }
  std::sort(ratios.begin(), ratios.end());
  report("training_1000_steps.sampled_over_unchecked", ratios[ratios.size() / 2], "1.01", "times");
}

constexpr int depth = 200;

template <class Layers>
struct deep;
template <int... I>
struct deep<std::integer_sequence<int, I...>> {
  template <int N>
  using layer = std::conditional_t<N % 2 == 0, ts::nn::linear<8>, ts::nn::relu>;
  using grid = ts::mesh<alone>;
  using net =
      ts::nn::sequential<ts::tensor<ts::partition<grid, ts::whole, ts::whole>, ts::shape_of<4, 8>, float>, layer<I>...>;
};

void layers_over_libtorch() {
  using model = deep<std::make_integer_sequence<int, depth>>;
  std::vector<double> more;
  ts::launch<model::grid>(0, nullptr, threads(), [&](ts::team<model::grid>& team) {
    model::net net{team, ts::seed{7}};
    const at::Tensor images = at::rand({4, 8});
    const auto x = ts::distribute<model::net::input>(team, images);
    const auto parameters = net.parameters();
    const auto ours = [&] { ts::sum(net(x)).backward(); };
    std::vector<at::Tensor> plain;
    for (const at::Tensor& p : parameters) plain.push_back(p.detach().clone().requires_grad_());
    const auto theirs = [&] {
      at::Tensor y = images;
      for (std::size_t i = 0; i < plain.size(); i += 2) y = at::relu(at::linear(y, plain[i], plain[i + 1]));
      y.sum().backward();
    };
    const auto timed = [](auto&& step, const auto& steps) {
      const auto began = clock_type::now();
      step();
      const double seconds = std::chrono::duration<double>(clock_type::now() - began).count();
      for (const at::Tensor& p : steps) p.mutable_grad().reset();
      return seconds;
    };
    for (int i = 0; i < (once ? 1 : 201); ++i) {
      const double mine = timed(ours, parameters);
      more.push_back(1e6 * (mine - timed(theirs, plain)) / depth);
    }
  });
  std::sort(more.begin(), more.end());
  report("200_layers_over_libtorch", more[more.size() / 2], "2.0", "microseconds more a layer");
}

}  // namespace

int main(int argc, char** argv) {
  once = argc > 1 && std::string_view(argv[1]) == "--once";
  change_over_exchange();
  if (!once) fresh_over_reused(true), fresh_over_reused(false);
  sampled_calls_over_unchecked();
  sampled_training_over_unchecked();
  layers_over_libtorch();
}
