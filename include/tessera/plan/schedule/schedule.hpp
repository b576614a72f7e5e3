#pragma once

#include <tessera/plan/schedule/v_list.hpp>

#include <span>

namespace tessera::pipeline {

/// Orders of operations that follow from the numbers alone.
enum class order : signed char {
  gpipe,        ///< all forwards, then all backwards (Y. Huang et al., GPipe, NeurIPS 2019)
  one_f_one_b,  ///< a forward and a backward in turns (D. Narayanan et al., PipeDream-Flush, ICML 2021)
  interleaved,  ///< the same over several chunks a stage (D. Narayanan et al., Megatron-LM, SC 2021)
  zb_h1,        ///< 1F1B whose backwards of weights fill what waits (P. Qi et al., Zero Bubble, ICLR 2024)
  zb_v,         ///< over two chunks that turn back, backwards of weights apart, without waiting (the same)
  forward_only
};

/// A schedule by a formula: the i-th operation of each stage.
///
/// A stage begins with some forwards, its warm-up, then runs forwards and backwards in turns, then the backwards that
/// are left. Let there be S stages, M micro-batches and C chunks, and R micro-batches in the first interleaved round.
/// The warm-up of stage s is M C for GPipe, min(M, S − 1 − s) for 1F1B, and min(M C, 2 (S − 1 − s) + (C − 1) R) for
/// interleaved.
///
/// ZB-H1 begins with min(M, S − s) forwards. Then it runs the backward of inputs of micro-batch i, that of weights of i
/// − s, and the next forward, in turns. Where all take as long it waits S − 1 steps, a third of what 1F1B does (for M ≥
/// S), and keeps as much.
///
/// ZB-V (`engine::v_list`) has two chunks a stage and turns back. Where all take as long no stage waits between its
/// first and its last operation, for M ≥ 2 S − 1. It keeps 2 S chunks at most, half a stage each.
///
/// With `steps` a stage's last operation is the step of its parameters, as soon as their gradients are complete. None
/// waits for other stages (P. Qi et al., Zero Bubble, §4).
struct schedule {
  order by = order::one_f_one_b;
  extent of;
  bool steps = false;  ///< each stage steps its parameters behind its last backward

  constexpr refusal check() const {
    if (by == order::zb_v && (of.chunks != 2 || !of.turns)) return refusal{code::pipeline_not_v, of.chunks};
    return of.check();
  }
  constexpr int count() const {
    const int each = by == order::forward_only ? 1 : by == order::zb_h1 || by == order::zb_v ? 3 : 2;
    return each * of.forwards() + steps;
  }

  constexpr int warm_up(int stage) const {
    const int all = of.forwards(), behind = of.stages - 1 - stage;
    switch (by) {
      case order::one_f_one_b: return behind < all ? behind : all;
      case order::zb_h1: return behind + 1 < all ? behind + 1 : all;
      case order::zb_v: return engine::v_list{of.stages, of.micro_batches, stage}.warm_up();
      case order::interleaved: {
        const int some = 2 * behind + (of.chunks - 1) * first_round();
        return some < all ? some : all;
      }
      default: return all;
    }
  }

  /// The i-th operation of a stage, 0 ≤ i < count().
  constexpr operation at(int stage, int i) const {
    if (steps && i > 0 && i == count() - 1) {
      operation x = at(stage, i - 1);
      x.does = work::step;
      return x;
    }
    if (by == order::zb_v) return engine::v_list{of.stages, of.micro_batches, stage}.at(i);
    const int warm = warm_up(stage), in_turns = of.forwards() - warm, k = i - warm;
    if (i < warm) return forward(i);
    if (by == order::zb_h1) return zero_bubble(stage, warm, k);
    if (k >= 2 * in_turns) return backward(k - in_turns);
    return k % 2 == 0 ? forward(warm + k / 2) : backward(k / 2);
  }

 private:
  // Interleaved micro-batches come in rounds; each round passes all chunks before the next begins. A round has as many
  // micro-batches as stages; those left over join the first. A short round of their own would let stages wait for one
  // another.
  constexpr int first_round() const {
    return of.micro_batches < of.stages ? of.micro_batches : of.stages + of.micro_batches % of.stages;
  }
  constexpr operation numbered(int k, work does) const {
    if (by != order::interleaved) return {does, k % of.micro_batches, k / of.micro_batches};
    const int first = first_round(), behind = k - first * of.chunks;
    if (behind < 0) return {does, k % first, k / first};
    const int round = behind / (of.stages * of.chunks), rest = behind % (of.stages * of.chunks);
    return {does, first + round * of.stages + rest % of.stages, rest / of.stages};
  }
  // The k-th operation behind the warm-up. Turn i has a backward of inputs, of weights from turn `stage` on, and a
  // forward while there are some.
  constexpr operation zero_bubble(int stage, int warm, int k) const {
    const int all = of.forwards(), forwards = all - warm;
    const auto before = [&](int i) { return i + (i > stage ? i - stage : 0) + (i < forwards ? i : forwards); };
    int i = k / 3;
    while (i < all && before(i + 1) <= k) ++i;
    if (i >= all) return numbered((all > stage ? all - stage : 0) + k - before(all), work::backward_of_weights);
    const int place = k - before(i);
    if (place == 0) return numbered(i, work::backward_of_inputs);
    return place == 1 && i >= stage ? numbered(i - stage, work::backward_of_weights) : forward(warm + i);
  }
  constexpr operation forward(int k) const { return numbered(k, work::forward); }
  constexpr operation backward(int k) const {
    operation x = numbered(k, work::backward);
    x.chunk = of.chunks - 1 - x.chunk;
    return x;
  }
};

/// A schedule of one's own: a list for each stage, which stay elsewhere.
struct listed_schedule {
  extent of;
  std::span<const std::span<const operation>> stages;

  constexpr refusal check() const {
    if (const refusal r = of.check(); !r.ok()) return r;
    if (static_cast<int>(stages.size()) != of.stages) return refusal{code::pipeline_lists, of.stages, stages.size()};
    return {};
  }
  constexpr int count(int stage) const { return static_cast<int>(stages[static_cast<std::size_t>(stage)].size()); }
  constexpr operation at(int stage, int i) const {
    return stages[static_cast<std::size_t>(stage)][static_cast<std::size_t>(i)];
  }
};

}  // namespace tessera::pipeline
