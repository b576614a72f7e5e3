#pragma once

#include <tessera/operation/program/chain.hpp>
#include <tessera/plan/schedule/assignment.hpp>

namespace tessera {

namespace nn {

/// How `staged` shares out its parts: as many for each stage, which is the default.
struct by_count {
  static constexpr void say(pipeline::assignment& how) { how.by = pipeline::share::count; }
};
/// So that the most parameters of a stage are least.
struct by_parameters {
  static constexpr void say(pipeline::assignment& how) { how.by = pipeline::share::parameters; }
};
/// So that the most bytes of a stage are least, of micro-batches of so many rows (`pipeline::by_memory`).
template <index_t Rows>
struct by_memory {
  static constexpr void say(pipeline::assignment& how) {
    how.by = pipeline::share::memory;
    how.rows = Rows;
  }
};
/// So that the most arithmetic of a stage is least, forward and backward, of micro-batches of so many rows.
template <index_t Rows>
struct by_time {
  static constexpr void say(pipeline::assignment& how) {
    how.by = pipeline::share::time;
    how.rows = Rows;
  }
};
/// So that the largest sum of these weights, one for each part, is least.
template <index_t... Each>
struct by_weights {
  static constexpr index_t weights[]{Each..., 0};
  static constexpr void say(pipeline::assignment& how) {
    how.by = pipeline::share::weights;
    how.given = {weights, sizeof...(Each)};
  }
};
/// So many parts for each stage; with chunks, for each chunk of each stage as micro-batches pass them.
template <index_t... Each>
struct by_sizes {
  static constexpr index_t sizes[]{Each..., 0};
  static constexpr void say(pipeline::assignment& how) {
    how.by = pipeline::share::sizes;
    how.given = {sizes, sizeof...(Each)};
  }
};
/// Each stage has so many chunks, and is passed as often.
template <int Count>
struct chunks {
  static constexpr void say(pipeline::assignment& how) { how.chunks = Count; }
};
/// The network turns back at its last stage, and at the first one again.
struct turning {
  static constexpr void say(pipeline::assignment& how) { how.turns = true; }
};

/// What all workers of an axis have goes to the next stage in shares, one from each, and is gathered there.
template <class Axis>
struct through_shards {
  static constexpr void say(pipeline::assignment& how) {
    how.through = engine::short_name_of<engine::bare_axis<Axis>>();
  }
};

}  // namespace nn

namespace detail {

template <class How>
concept StageOption = requires(pipeline::assignment& how) { How::say(how); };

template <class Axis>
constexpr text axis_name() {
  if constexpr (kind_of<Axis> == kind::axis) return short_name_of<bare_axis<Axis>>();
  else return {};
}

template <class... How>
constexpr pipeline::assignment assignment_said() {
  pipeline::assignment how;
  (How::say(how), ...);
  return how;
}

}  // namespace detail
}  // namespace tessera
