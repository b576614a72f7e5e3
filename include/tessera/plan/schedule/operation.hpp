#pragma once

#include <tessera/plan/refusals.hpp>

#include <initializer_list>

namespace tessera::pipeline {

/// The work of a stage on a micro-batch.
enum class work : signed char {
  forward,
  backward,             ///< of inputs and weights together
  backward_of_inputs,   ///< what the stage before waits for
  backward_of_weights,  ///< what nobody waits for
  step,                 ///< of the stage's parameters, whose gradients are complete
};

/// An operation of a stage: a micro-batch goes through one of its chunks. A step is of all chunks, and names the
/// backward before it.
struct operation {
  work does = work::forward;
  int micro_batch = 0;
  int chunk = 0;

  friend constexpr bool operator==(const operation&, const operation&) = default;
};

/// Steps of time that operations take: each ≥ 1, a step of parameters ≥ 0.
struct times {
  int forward = 1;
  int backward = 1;
  int backward_of_inputs = 1;
  int backward_of_weights = 1;
  int step = 0;

  /// Refuses less (tessera.pipeline.times).
  constexpr refusal check() const {
    for (const int t : {forward, backward, backward_of_inputs, backward_of_weights})
      if (t < 1) return refusal{code::pipeline_times, t};
    return step < 0 ? refusal{code::pipeline_times, step} : refusal{};
  }
  constexpr int of(work does) const {
    switch (does) {
      case work::forward: return forward;
      case work::backward: return backward;
      case work::backward_of_inputs: return backward_of_inputs;
      case work::backward_of_weights: return backward_of_weights;
      default: return step;
    }
  }
};

/// The number of stages, of chunks of layers that each has, and of micro-batches that a batch is cut into.
///
/// Micro-batches go through the network's parts 0, 1, … Stage s has parts s, s + stages, …; or where the network turns
/// back at both ends, s, 2 · stages − 1 − s, 2 · stages + s, …, and the first stage has its end too.
struct extent {
  int stages = 1;
  int micro_batches = 1;
  int chunks = 1;
  bool turns = false;

  /// Refuses numbers below 1.
  constexpr refusal check() const {
    return stages < 1 || micro_batches < 1 || chunks < 1 ? refusal{code::pipeline_empty, stages, micro_batches, chunks}
                                                         : refusal{};
  }
  constexpr int forwards() const { return micro_batches * chunks; }  ///< of a stage
  constexpr int parts() const { return stages * chunks; }
  constexpr int part_of(int stage, int chunk) const {
    return chunk * stages + (turns && chunk % 2 == 1 ? stages - 1 - stage : stage);
  }
  constexpr int stage_of(int part) const {
    const int place = part % stages;
    return turns && part / stages % 2 == 1 ? stages - 1 - place : place;
  }
  friend constexpr bool operator==(const extent&, const extent&) = default;
};

}  // namespace tessera::pipeline
