#pragma once

#include <tessera/meta/heap_array.hpp>
#include <tessera/plan/schedule/schedule.hpp>

namespace tessera::pipeline {

/// The run of a schedule in which each operation takes its steps of time and begins as soon as it can.
struct run {
  refusal why;   ///< whether all operations run, each once
  int span = 0;  ///< steps from the first operation to the last
  tessera::engine::heap_array<int>
      live;                ///< by stage: most forwards whose backward has not run, which is what a stage keeps
  index_t operations = 0;  ///< of all stages
  index_t busy = 0;        ///< steps of time in which a stage runs one, of all stages
  int longest = 0;         ///< the operations of the stage that has most
  tessera::engine::heap_array<int> begins;  ///< of the operations of each stage, `longest` places for each

  /// The step in which a stage's i-th operation begins.
  constexpr int begin_of(int stage, int i) const { return begins[stage * longest + i]; }

  /// The share of a stage's time in which it waits, over all stages: 1 − busy / (stages · span).
  constexpr double bubble() const {
    const auto all = static_cast<double>(live.size()) * span;
    return all > 0 ? 1 - static_cast<double>(busy) / all : 0;
  }
};

namespace engine {

// When operations end, by what they do, the part of the network and the micro-batch; 0: not yet. A step is no part's.
class ends {
 public:
  constexpr explicit ends(const extent& of) : of_(of), steps_(index_t{4} * of.stages * of.chunks * of.micro_batches) {}
  constexpr int parts() const { return of_.parts(); }
  constexpr int& at(work does, int part, int micro_batch) {
    const int kind = static_cast<int>(does);
    return steps_[(kind * parts() + part) * of_.micro_batches + micro_batch];
  }
  /// When the gradient of a part's inputs is there.
  constexpr int returned(int part, int micro_batch) {
    const int whole = at(work::backward, part, micro_batch);
    return whole > 0 ? whole : at(work::backward_of_inputs, part, micro_batch);
  }

 private:
  extent of_;
  tessera::engine::heap_array<int> steps_;
};

// What an operation waits for: when that ends, or -1 where it has not run, and on which stage it is.
struct awaited {
  int end = 0;
  int stage = -1;
};

// The micro-batches that each part ran, in their order: the part behind runs them in the same, as a transport brings
// them. So does the part before of their backwards.
class passages {
 public:
  constexpr explicit passages(const extent& of)
      : of_(of),
        ran_(index_t{2} * of.stages * of.chunks * of.micro_batches),
        count_(index_t{2} * of.stages * of.chunks) {}

  /// Notes an operation; the micro-batch that should have been in its place, or -1.
  constexpr int overtaken(int stage, const operation& x) {
    if (x.does == work::backward_of_weights || x.does == work::step) return -1;
    const int part = of_.part_of(stage, x.chunk), back = x.does == work::forward ? 0 : 1;
    const int before = back == 0 ? part - 1 : part + 1;
    const int place = count_[back * parts() + part]++;
    ran_[(back * parts() + part) * of_.micro_batches + place] = x.micro_batch;
    if (before < 0 || before >= parts()) return -1;
    const int other = ran_[(back * parts() + before) * of_.micro_batches + place];
    return other == x.micro_batch ? -1 : other;
  }

 private:
  constexpr int parts() const { return of_.parts(); }

  extent of_;
  tessera::engine::heap_array<int> ran_, count_;
};

template <class Schedule>
constexpr int count_of(const Schedule& s, int stage) {
  if constexpr (requires { s.count(stage); }) return s.count(stage);
  else return s.count();
}

constexpr awaited awaited_by(ends& so_far, const extent& of, int stage, const operation& x) {
  const int part = of.part_of(stage, x.chunk);
  awaited last;
  if (x.does == work::step) return last;
  const auto needs = [&](int end, int on_part) {
    if (last.end < 0) return;
    if (end == 0) last = {-1, of.stage_of(on_part)};
    else if (end > last.end) last = {end, of.stage_of(on_part)};
  };
  if (x.does == work::forward) {
    if (part > 0) needs(so_far.at(work::forward, part - 1, x.micro_batch), part - 1);
  } else {
    needs(so_far.at(work::forward, part, x.micro_batch), part);
    if (x.does == work::backward_of_weights) needs(so_far.at(work::backward_of_inputs, part, x.micro_batch), part);
    else if (part + 1 < so_far.parts()) needs(so_far.returned(part + 1, x.micro_batch), part + 1);
  }
  return last;
}

// Whether an operation is one of the schedule's, and has not run, nor its backward before its forward. Where a step may
// stand is said by what its stage has left.
constexpr bool may_follow(ends& so_far, const extent& of, int stage, const operation& x) {
  if (x.micro_batch < 0 || x.micro_batch >= of.micro_batches || x.chunk < 0 || x.chunk >= of.chunks) return false;
  const int part = of.part_of(stage, x.chunk);
  const auto ran = [&](work does) { return so_far.at(does, part, x.micro_batch) > 0; };
  switch (x.does) {
    case work::step: return true;
    case work::forward: return !ran(work::forward);
    case work::backward:
    case work::backward_of_inputs: return ran(work::forward) && so_far.returned(part, x.micro_batch) == 0;
    default: return ran(work::backward_of_inputs) && !ran(work::backward_of_weights);
  }
}

}  // namespace engine

/// Runs a schedule: an operation begins when the stage's one before has ended and what it needs has arrived.
///
/// A forward needs the forward of the part before. A backward needs its own forward and the backward of the part
/// behind. A backward of weights needs that of inputs, and a step all backwards of its stage. Sends are begun behind an
/// operation and hold up nobody, so a schedule that ends here ends on any transport.
///
/// Refused: an operation that is none, comes twice or too early on its own stage (tessera.pipeline.operation); a step
/// that does (tessera.pipeline.step); stages that wait for one another (tessera.pipeline.deadlock). Then operations
/// left out (tessera.pipeline.incomplete), micro-batches that overtake each other (tessera.pipeline.order) and times
/// that are none (tessera.pipeline.times).
template <class Schedule>
constexpr run run_of(const Schedule& s, const times& each = {}) {
  run r;
  r.why = tessera::engine::first_of(s.check(), each.check());
  if (!r.why.ok()) return r;
  const extent& of = s.of;
  engine::ends ends(of);
  tessera::engine::heap_array<int> next(of.stages), free = next, kept = next, returned = next, stepped = next;
  engine::passages passed(of);
  r.live = next;
  for (int stage = 0; stage < of.stages; ++stage)
    if (const int n = engine::count_of(s, stage); n > r.longest) r.longest = n;
  r.begins = tessera::engine::heap_array<int>(index_t{of.stages} * r.longest);
  bool training = false, steps = false;
  for (bool moved = true; moved;) {
    moved = false;
    for (int stage = 0; stage < of.stages; ++stage) {
      while (next[stage] < engine::count_of(s, stage)) {
        const operation x = s.at(stage, next[stage]);
        if (!engine::may_follow(ends, of, stage, x)) {
          r.why = refusal{code::pipeline_operation, stage, next[stage]};
          return r;
        }
        if (x.does == work::step && (returned[stage] < of.forwards() || stepped[stage] > 0)) {
          r.why = refusal{code::pipeline_step, stage, next[stage]};
          return r;
        }
        const engine::awaited last = engine::awaited_by(ends, of, stage, x);
        if (last.end < 0) break;
        if (const int other = passed.overtaken(stage, x); other >= 0) {
          r.why = refusal{code::pipeline_overtakes, stage, next[stage], other};
          return r;
        }
        const int begin = last.end > free[stage] ? last.end : free[stage];
        free[stage] = begin + each.of(x.does);
        r.begins[stage * r.longest + next[stage]] = begin;
        r.busy += each.of(x.does);
        if (x.does == work::step) {
          ++stepped[stage];
          steps = true;
        } else {
          ends.at(x.does, of.part_of(stage, x.chunk), x.micro_batch) = free[stage];
        }
        if (x.does == work::forward) ++kept[stage];
        if (kept[stage] > r.live[stage]) r.live[stage] = kept[stage];
        if (x.does == work::backward || x.does == work::backward_of_weights) --kept[stage], ++returned[stage];
        training = training || x.does != work::forward;
        if (free[stage] > r.span) r.span = free[stage];
        ++r.operations;
        ++next[stage];
        moved = true;
      }
    }
  }
  for (int stage = 0; stage < of.stages; ++stage) {
    const int done = next[stage];
    if (done < engine::count_of(s, stage)) {
      r.why =
          refusal{code::pipeline_deadlock, stage, done, engine::awaited_by(ends, of, stage, s.at(stage, done)).stage};
      return r;
    }
  }
  for (int stage = 0; stage < of.stages; ++stage) {
    int missing = steps && stepped[stage] == 0;
    for (int chunk = 0; chunk < of.chunks; ++chunk)
      for (int m = 0; m < of.micro_batches; ++m) {
        const int part = of.part_of(stage, chunk);
        missing += ends.at(work::forward, part, m) == 0;
        if (!training) continue;
        missing += ends.returned(part, m) == 0;
        missing += ends.at(work::backward_of_inputs, part, m) > 0 && ends.at(work::backward_of_weights, part, m) == 0;
      }
    if (missing > 0) r.why = refusal{code::pipeline_incomplete, stage, missing};
    if (missing > 0) return r;
  }
  return r;
}

}  // namespace tessera::pipeline
