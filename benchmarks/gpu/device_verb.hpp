#pragma once
// A verb on the memory of a worker's device.

#include "tools/fabric/bandwidth.hpp"
#include "tools/fabric/boxes.hpp"

#include <tessera/comm/nccl/exchange.hpp>

#include <deque>

namespace gpu {

using namespace tessera;
using namespace tessera::engine;

/// Floats on the current device.
class floats {
 public:
  explicit floats(const box_vector& extents) : extents_(extents), memory_(4 * count_of(extents), nullptr) {}

  region where() const {
    region r{memory_.data(), element::float32, extents_, extents_};
    return r.packed_at(r.data);
  }
  float* data() const { return reinterpret_cast<float*>(memory_.data()); }

  void set(const std::vector<float>& x) { copy(x.data(), memory_.data(), cudaMemcpyHostToDevice); }
  std::vector<float> get() const {
    std::vector<float> x(static_cast<std::size_t>(count_of(extents_)));
    copy(memory_.data(), x.data(), cudaMemcpyDeviceToHost);
    return x;
  }

 private:
  void copy(const void* from, void* to, cudaMemcpyKind how) const {
    if (count_of(extents_) == 0) return;
    tessera::detail::throw_if_failed(
        cudaMemcpyAsync(to, from, static_cast<std::size_t>(4 * count_of(extents_)), how, nullptr), "copying");
    tessera::detail::throw_if_failed(cudaStreamSynchronize(nullptr), "copying");
  }

  box_vector extents_;
  device_memory memory_;
};

/// What a worker has before a verb, and what it is to get. A term is the element times its worker's number.
struct problem {
  fabric::way of;
  int rank = 0;
  floats in{fabric::extents_at(of.from, rank)};
  floats out{fabric::extents_at(of.to, rank)};

  problem(const fabric::way& w, int r) : of(w), rank(r) { in.set(values(of.from, sums() ? rank + 1 : 1)); }

  void forget() { out.set(std::vector<float>(static_cast<std::size_t>(count_of(out.where().extents)), -1)); }

  /// Whether everything that the verb brings is there.
  bool right() const {
    const int n = of.from.mesh.size();
    return cutting(of.to).elements_of(rank) == 0 || out.get() == values(of.to, sums() ? n * (n + 1) / 2 : 1);
  }

 private:
  bool sums() const { return of.from.placements[0].kind == placement::partial; }

  std::vector<float> values(const layout& x, index_t times) const {
    std::vector<float> all(static_cast<std::size_t>(count_of(fabric::extents_at(x, rank))));
    fabric::each_element(x, rank, [&](std::size_t place, index_t i, index_t, index_t k) {
      all[place] = static_cast<float>((7 * i + k) % 997 * times);
    });
    return all;
  }
};

/// The library's exchanges of a verb, bound to a team of workers on devices.
class bound_verb {
 public:
  bound_verb(team_state& team, const problem& p) {
    region data = p.in.where();
    const change plan = change_between(p.of.from, p.of.to);
    const phases all = phases_of(plan);
    for (const phase& each : all) {
      const auto bound = team.bound(each, element::float32);
      const bool last = &each + 1 == all.end();
      const region to = last ? p.out.where() : between_.emplace_back(bound->output_extents()).where();
      stages_.push_back({bound, data, to});
      data = to;
    }
  }

  void operator()() {
    for (const stage& s : stages_) s.bound->start(s.in, s.out).finish();
  }

 private:
  struct stage {
    std::shared_ptr<bound_exchange> bound;
    region in, out;
  };

  std::deque<floats> between_;
  std::vector<stage> stages_;
};

}  // namespace gpu
