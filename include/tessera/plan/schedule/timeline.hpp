#pragma once

#include <tessera/plan/schedule/schedule.hpp>

namespace tessera::pipeline {

/// An operation of a stage as it ran, in seconds since the batch began there.
struct timed_operation {
  operation does;
  double begins = 0;
  double waits = 0;  ///< for what other stages sent
  double ends = 0;
};

/// From the first operation to the last, in seconds, of lists of operations by stage.
template <class Stages>
double span_of(const Stages& stages) {
  double last = 0;
  for (const auto& all : stages)
    for (const timed_operation& x : all)
      if (x.ends > last) last = x.ends;
  return last;
}

/// The share of the stages' time in which they ran no operation, or waited in one.
template <class Stages>
double bubble_of(const Stages& stages) {
  double busy = 0, whole = 0;
  for (const auto& all : stages) {
    whole += span_of(stages);
    for (const timed_operation& x : all) busy += x.ends - x.begins - x.waits;
  }
  return whole > 0 ? 1 - busy / whole : 0;
}

}  // namespace tessera::pipeline
