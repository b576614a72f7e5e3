// Attention by LibTorch's fused kernels of GPUs, whose keys and values come part by part, beside that of the whole
// sequence in double on the host: a thread or a process for each worker, which may share a device. With --time it is
// timed beside LibTorch's own of the whole sequence, on one device: one JSON line a figure.

#include "here.hpp"

#include "tests/support/streamed_attention.hpp"

#include <tessera/comm/nccl/over_nccl.hpp>
#include <tessera/nn/kernel/attention_step.hpp>
#include <tessera/tensor/device/staged_transport.hpp>

#include <ATen/ops/scaled_dot_product_attention.h>

#include <chrono>

namespace {

using namespace streamed_attention;

constexpr int skipped = 77;

/// What differs of forms and elements on these workers; of fewer where processes take turns on a device.
std::string differences(const team_handle& t, bool fewer) {
  const sizes every[]{{2, 8, 8, 2, 1, 4, 4},       {1, 7, 7, 1, 2, 5, 5},     {2, 5, 5, 2, 1, 3, 2},
                      {1, 3, 9, 1, 1, 4, 4},       {2, 70, 70, 2, 2, 8, 8},   {1, 130, 130, 2, 1, 64, 64},
                      {1, 130, 130, 1, 1, 40, 24}, {1, 64, 200, 2, 1, 16, 16}};
  std::string all;
  int number = 0;
  for (const sizes& n : every)
    for (const bool causal : {false, true})
      for (const bool masked : {false, true})
        for (const index_t rows : {0, 3, 33})
          for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
            if (causal && n.queries != n.keys) continue;
            if (number++ % (fewer ? 7 : 3) != 0) continue;
            const std::string why = differs(t, n, {.causal = causal, .masked = masked, .rows = rows}, causal, type);
            if (!why.empty())
              all += fmt::format("{} queries, {} keys, {} and {} features,{}{} by {} in {}: {}\n", n.queries, n.keys,
                                 n.features, n.values, causal ? " causal" : "", masked ? " masked" : "", rows,
                                 c10::toString(type), why);
          }
  return all;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// Forward and backward beside LibTorch's, in turns: of a network on one worker, or of the pieces that a ring of
/// workers meets, without their way.
void time(const team_handle& t, at::ScalarType type, index_t length, index_t features, bool causal, index_t pieces) {
  constexpr index_t heads = 16;
  const at::TensorOptions of = at::TensorOptions(device_of(*t)).dtype(type);
  const at::Tensor all = at::randn({4, 1, length, heads, features}, of);
  const at::Tensor seed_of = all[3].flatten(2);
  std::vector<at::Tensor> theirs;
  for (int i = 0; i < 4; ++i) theirs.push_back(all[i].transpose(1, 2).contiguous().requires_grad_(i < 3));

  std::vector<tensor<dyn>> x;
  nn::program p;
  std::vector<nn::dynamic_flow> flows;
  for (int i = 0; i < 3; ++i) {
    const layout q = lying(t->mesh(), {1, length, heads, 1, features}, 1, false);
    const layout k = lying(t->mesh(), {1, length, heads, features}, 1, false);
    x.push_back(distribute(t, i == 0 ? q : k, i == 0 ? all[0].unsqueeze(3) : all[i]));
    x.back().requires_grad();
    flows.push_back(p.input({x.back().layout(), x.back().type()}));
  }
  p.output(nn::attention_layer{.causal = causal, .streamed = true}(flows[0], flows[1], flows[2]));
  const nn::dynamic_network net(t, seed{1}, p);

  const nn::engine::attention_step step({{{0, length}}, 1, false, 0, {.causal = causal}, {}, {}});
  const auto gradient = step.gradient();
  const auto by_pieces = [&] {
    const at::NoGradGuard none;
    const at::Tensor &q = all[0], y = at::empty_like(q, at::kFloat);
    const at::Tensor l = at::empty({1, heads, length}, of.dtype(at::kFloat));
    const auto each = [&](const auto& f) {
      for (index_t i = 0; i < pieces; ++i) {
        const interval here{i * length / pieces, (i + 1) * length / pieces};
        f(here, all[1].narrow(1, here.lo, here.size()), all[2].narrow(1, here.lo, here.size()), i == 0);
      }
    };
    each([&](const interval& here, const at::Tensor& k, const at::Tensor& v, bool first) {
      step.add({q, k, v}, here, {{y, first}, {l, first}});
    });
    const at::Tensor rounded = y.to(type), of_q = at::empty_like(y);
    each([&](const interval& here, const at::Tensor& k, const at::Tensor& v, bool first) {
      gradient->add({q, k, v, rounded, l, all[3], {}}, here,
                    {{of_q, first}, {at::empty_like(k, at::kFloat), true}, {at::empty_like(v, at::kFloat), true}});
    });
  };

  const auto now = [&] {
    t->carrier().synchronise();
    return std::chrono::steady_clock::now();
  };
  std::vector<double> ratios, ours_took;
  for (int turn = 0; turn < 12; ++turn) {
    const auto began = now();
    if (pieces > 0) by_pieces();
    else net(x)[0].local().backward(seed_of);
    const auto between = now();
    at::scaled_dot_product_attention(theirs[0], theirs[1], theirs[2], std::nullopt, 0, causal).backward(theirs[3]);
    const auto ended = now();
    if (turn < 3) continue;
    const double a = std::chrono::duration<double>(between - began).count();
    ratios.push_back(a / std::chrono::duration<double>(ended - between).count());
    ours_took.push_back(a);
  }
  fmt::print(R"({{"name": "gpu.attention", "of": "{}", "element": "{}", "length": {}, "heads": {}, "features": {}, )"
             R"("causal": {}, "milliseconds": {:.3f}, "ratio": {:.3f}}})"
             "\n",
             pieces > 0 ? fmt::format("{} pieces", pieces) : "network", c10::toString(type), length, heads, features,
             causal, 1e3 * median(ours_took), median(ratios));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const devices_here devices;
  const launch_environment launched = read_environment();
  const auto kind = devices.torch_kind();
  if (devices_seen() == 0 || !kind) {
    if (launched.rank == 0)
      fmt::print("skipped: {}\n", kind ? "this machine has no device" : devices.why_without_torch());
    return skipped;
  }
  share_devices(launched);
  const bool timed = argc > 1 && std::string_view(argv[1]) == "--time";
  launch_options options;
  options.threads = timed ? 1 : 2;
  options.time_limit = std::chrono::seconds{250};
  std::string wrong;
  std::mutex one_at_a_time;
  int ways = 0;
  for (const bool by_nccl : {false, true}) {
    if (by_nccl && (timed || launched.by == launcher::none)) continue;
    options.over = by_nccl ? over_nccl(std::make_shared<torch_boxes>(*kind)) : through_host(*kind);
    const int status = launch(argc, argv, options, "line", [&](const team_handle& t) {
      at::set_num_threads(1);
      if (timed) {
        for (const at::ScalarType type : {at::kBFloat16, at::kFloat})
          for (const bool causal : {false, true})
            for (const index_t pieces : {0, 1, 2, 8})
              time(t, type, type == at::kFloat ? 4096 : 16384, 64, causal, pieces);
        return;
      }
      const std::string mine = differences(t, launched.by != launcher::none);
      const std::scoped_lock now(one_at_a_time);
      if (wrong.empty()) wrong = mine;
    });
    if (status != 0) return status;
    ++ways;
  }
  if (!wrong.empty()) {
    fmt::print(stderr, "worker {}: {}", launched.rank, wrong);
    return 1;
  }
  if (launched.rank == 0 && !timed)
    fmt::print("attention by parts is attention on {} devices, in {} ways\n", devices_seen(), ways);
  return 0;
}
