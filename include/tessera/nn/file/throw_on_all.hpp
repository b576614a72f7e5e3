#pragma once

#include <tessera/tensor/tensor.hpp>

#include <algorithm>

namespace tessera::detail {

/// What f throws, to be sent; "" if nothing. What LibTorch or the standard library throws gets a code.
template <class F>
std::string packed_failure(const reason& otherwise, F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.packed();
  } catch (const std::exception& e) {
    return error(refusal{otherwise}, e.what()).packed();
  }
  return "";
}

/// Runs f on the first worker of the team alone, for all of them: what it meets is thrown on each.
template <class F>
void on_first(const team_handle& team, const reason& otherwise, F&& f) {
  const bool first = team->mesh().number(team->at()) == 0;
  const std::string mine = first ? packed_failure(otherwise, f) : "";
  if (team->collect(mine.empty() ? 0 : 1, "telling how it went").front() == 0) return;
  throw error::unpacked(team->collect_text(mine).front());
}

/// Runs f on this worker. An error of one worker is thrown on every worker of the team, so that none goes on alone.
/// Where errors differ, it names the worker that it is of. What LibTorch or the standard library throws gets the code
/// `otherwise`.
template <class F>
void throw_on_all(const team_handle& team, const reason& otherwise, F&& f) {
  const std::string mine = packed_failure(otherwise, f);
  const std::vector<std::uint64_t> failures = team->collect(mine.empty() ? 0 : 1, "telling how it went");
  const auto failed = static_cast<std::size_t>(std::find(failures.begin(), failures.end(), 1) - failures.begin());
  if (failed == failures.size()) return;
  const std::vector<std::string> all = team->collect_text(mine);
  const error first = error::unpacked(all[failed]);
  if (std::all_of(all.begin(), all.end(), [&](const std::string& other) { return other == all[failed]; })) throw first;
  throw first.at(label_of(team->mesh(), team->mesh().rank(team->mesh().at(static_cast<int>(failed)))) + ": " +
                 first.where());
}

}  // namespace tessera::detail
