#pragma once
// Runs a trial on the workers of a team and judges it.

#include "trial.hpp"

#include <tessera/comm/workers.hpp>

#include <functional>
#include <memory>

namespace conformance {

/// What the workers of the team come to, the same on all of them: they compute, agree on the numbers and then judge.
verdict evaluate(const team_handle& team, const trial& t);

/// Runs a program on so many workers: threads, or the processes that a launcher started; over devices where something
/// carries what lies there. Returns what went wrong first.
std::string on_workers(int workers, bool under_mpi, const transport_layer& over,
                       const std::function<void(const team_handle&)>& program);

/// Another team over all workers of the same launch: nothing that an earlier case bound is left in it.
team_handle fresh_team(const team_handle& of);

int rank_of(const team_handle& team);

}  // namespace conformance
