#pragma once

#include <tessera/plan/schedule/operation.hpp>

namespace tessera::pipeline::engine {

/// The operations of a stage in ZB-V (P. Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024), by a formula.
///
/// A micro-batch goes down the stages through chunk 0 and back up through chunk 1. Let F, B, W be forwards and
/// backwards of chunk 0, f, b, w of chunk 1, and r = S − 1 − s. With M ≥ 2 S − 1 micro-batches stage s of S runs
///
///   F^(2r+1) (f F)^s f   b w (f b w)^r   (F B W f b w)^(M−2S+1+s)   (B W f b w)^r   (B b)^s B (W B)^r W…
///
/// without the w before the last group. Backwards of weights come in the order of those of inputs. It begins in step
/// s and never waits: it runs 6 M steps. The first two groups are 2 S forwards, and each forward behind them follows a
/// backward of weights, so a stage keeps 2 S chunks at most. Fewer micro-batches run as in the schedule of 2 S − 1,
/// without those that are not there, and wait 2 (2 S − 1 − M) steps at most.
class v_list {
 public:
  constexpr v_list(int stages, int micro_batches, int stage)
      : stages_(stages),
        wanted_(micro_batches),
        all_(micro_batches < 2 * stages - 1 ? 2 * stages - 1 : micro_batches),
        stage_(stage),
        behind_(stages - 1 - stage) {}

  /// Forwards before the first backward.
  constexpr int warm_up() const {
    const int down = 2 * stages_ - 1 - stage_, up = stage_ + 1;
    return (wanted_ < down ? wanted_ : down) + (wanted_ < up ? wanted_ : up);
  }

  /// The i-th operation, 0 ≤ i < 6 M.
  constexpr operation at(int i) const {
    if (all_ == wanted_) return of_all(i);
    for (int k = 0;; ++k)
      if (const operation x = of_all(k); x.micro_batch < wanted_ && i-- == 0) return x;
  }

 private:
  constexpr operation of_all(int i) const {
    using enum work;
    const int s = stage_, r = behind_, alone = 2 * r + 1, turns = all_ - 2 * stages_ + 1 + s;
    if (i < alone) return {forward, i, 0};
    i -= alone;
    if (i < 2 * s + 1) return i % 2 == 0 ? operation{forward, i / 2, 1} : operation{forward, alone + i / 2, 0};
    i -= 2 * s + 1;
    if (i == 0) return {backward_of_inputs, 0, 1};
    if (i == 1 && r + turns > 0) return {backward_of_weights, 0, 1};
    i -= 2;  // one before where that is left for the end
    if (i >= 0 && i < 3 * r) return of_up(i % 3, i / 3);
    i -= 3 * r;
    const int six = 6 * turns, five = 5 * r;
    if (i >= 0 && i < six + five - 1) {
      const int group = i < six ? i / 6 : turns + (i - six) / 5;
      const int place = i < six ? i % 6 : (i - six) % 5 + 1;
      if (place == 0) return {forward, alone + s + group, 0};
      if (place < 3) return {place == 1 ? backward_of_inputs : backward_of_weights, group, 0};
      return of_up(place - 3, r + group);
    }
    return of_end(i - (six + five - 1));
  }
  // A forward of chunk 1 and the backwards of another micro-batch there, of which s more went forward than back.
  constexpr operation of_up(int place, int group) const {
    if (place == 0) return {work::forward, stage_ + 1 + group, 1};
    return {place == 1 ? work::backward_of_inputs : work::backward_of_weights, group + 1, 1};
  }
  constexpr operation of_end(int i) const {
    const int s = stage_, turns = 2 * s, first = turns + 1 + 2 * behind_;
    if (i < turns) return of_inputs(i + 1);
    if (i < first) return (i - turns) % 2 == 0 ? of_inputs(turns + 1 + (i - turns) / 2) : of_weights((i - turns) / 2);
    return of_weights(behind_ + i - first);
  }
  // The k-th backward of inputs whose weights are left for the end: b, then B and b in turns, then B.
  constexpr operation of_inputs(int k) const {
    const int s = stage_;
    if (k <= 2 * s) {
      if (k % 2 == 0) return {work::backward_of_inputs, all_ - 1 - s + k / 2, 1};
      return {work::backward_of_inputs, all_ - stages_ + k / 2, 0};
    }
    return {work::backward_of_inputs, all_ - stages_ + s + k - 2 * s - 1, 0};
  }
  constexpr operation of_weights(int k) const {
    operation x = of_inputs(k);
    x.does = work::backward_of_weights;
    return x;
  }

  int stages_, wanted_, all_, stage_, behind_;
};

}  // namespace tessera::pipeline::engine
