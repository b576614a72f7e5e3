#pragma once
// What a case comes to: what its workers do, and how they judge it.

#include "trial.hpp"

#include <tessera/comm/workers.hpp>

#include <functional>

namespace conformance {

/// A case that was read.
struct task {
  int workers = 0;  ///< of the launch that it needs; 0 where nothing runs on workers, and `run` is given no team
  std::function<verdict(const team_handle&)> run;  ///< the same verdict on all of them
};

}  // namespace conformance
