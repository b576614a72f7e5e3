#pragma once

#include <tessera/nn/parameter/state_value.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tessera::nn {

/// How weights are averaged.
struct average_options {
  double decay = 0.9999;
  bool only_trained = true;  ///< parameters that ask for no gradient keep the value that they have
  /// Update n, from 0 on, takes min(decay, (1 + n) / (10 + n)), so the first values are soon forgotten.
  bool warms_up = false;
};

namespace engine {

/// A tensor of a training run, and what is kept of it: its average, or a copy.
struct averaged_tensor {
  explicit averaged_tensor(state_value v) : of(std::move(v)) {}
  explicit averaged_tensor(const parameter& p) : averaged_tensor(p, true) { stored = p; }
  explicit averaged_tensor(const buffer& b) : averaged_tensor(b, false) {}

  state_value of;
  std::optional<parameter> stored{};  ///< where it is a network's

 private:
  averaged_tensor(const state_tensor& t, bool stepped);
};

/// Those of a network, or of what shows its state, in its order.
template <class Network>
std::vector<averaged_tensor> averaged_tensors(const Network& net) {
  std::vector<averaged_tensor> all;
  if constexpr (shows_values<Network>) {
    for (const state_value& v : net.values()) all.emplace_back(v);
  } else {
    net.each_parameter([&](const parameter& p) { all.emplace_back(p); });
    if constexpr (requires { net.each_buffer([](const buffer&) {}); })
      net.each_buffer([&](const buffer& b) { all.emplace_back(b); });
  }
  return all;
}

}  // namespace engine

/// The exponential moving average of a network's weights: avg ← decay·avg + (1 − decay)·p at each update, and of
/// buffers the last values. The network may be a module of LibTorch that `data_parallel` or `bundle_shards` has.
///
///   nn::average average(net);
///   optimizer.step();
///   average.update();
///   {
///     const auto in = average.swapped_in();
///     evaluate(net);
///   }
///
/// An update is elementwise, so each worker keeps a tile of what it shares with others: 1/p of the memory of p copies.
/// Of shards it keeps its own interval, and averages what the optimizer steps. Nothing moves, and the bits are those of
/// one worker. Averages of half types are kept in float, where (1 − decay)·p is not rounded away. They begin with the
/// weights as they are. All workers of the network's team make it, and call what it has, in one order. (B. T. Polyak,
/// A. B. Juditsky, Acceleration of Stochastic Approximation by Averaging, SIAM J. Control Optim. 1992.)
class average {
  struct kept_state;

 public:
  template <class Network>
  explicit average(const Network& net, const average_options& options = {}, call_site at = call_site::here())
      : average(engine::team_that_steps(net), engine::averaged_tensors(net), options, at) {}
  average(const average&) = delete;
  average& operator=(const average&) = delete;

  /// Behind each step of the optimizer. Moves nothing.
  void update(call_site at = call_site::here());

  /// While it lives, the averages stand in the network's place; then its weights, gradients and buffers come back, to
  /// the bit. Meanwhile backward and a step are refused where they read a gradient. Training that happens all the same
  /// is reported by the next update or swap.
  class [[nodiscard]] swapped {
   public:
    swapped(const swapped&) = delete;
    swapped& operator=(const swapped&) = delete;
    ~swapped();

   private:
    friend class average;
    struct set_aside;
    explicit swapped(std::shared_ptr<kept_state> of);  // without anything yet
    swapped(std::shared_ptr<kept_state> of, call_site at);

    std::shared_ptr<kept_state> of_;
    std::vector<set_aside> all_;
  };
  /// One gathering of each average, rounded first where the network has a half type.
  swapped swapped_in(call_site at = call_site::here()) const { return {kept_, at}; }

  index_t updates() const;

  /// Calls visit(key, tensor) for all that is kept, in the network's order: averages, and copies of buffers and of what
  /// is not trained. Tensors lie as tiles, those of shards in one dimension; what they are given stays.
  template <class Visit>
  void each_tensor(Visit&& visit) const {
    for (const engine::state_value& v : values()) {
      std::vector<tensor<dyn>> parts = v.members.empty() ? std::vector{v.lies} : engine::members_of(v);
      for (std::size_t m = 0; m < parts.size(); ++m) visit(v.members.empty() ? v.name : v.members[m].name, parts[m]);
    }
  }
  const std::vector<engine::state_value>& values() const;
  /// Its numbers, the same on every worker; tensors are not among them.
  state_dict state() const;
  void load_state(const state_dict& numbers);

 private:
  average(const team_handle& team, std::vector<engine::averaged_tensor> all, const average_options& options,
          call_site at);

  std::shared_ptr<kept_state> kept_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/training/average_impl.hpp>
#endif
