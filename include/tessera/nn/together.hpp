#pragma once

#include <tessera/tensor/tensor.hpp>

#include <algorithm>

namespace tessera::detail {

/// Runs f on this worker. What one worker meets is thrown on every worker of the team, so that none goes on alone; where they did
/// not all meet the same, it says which worker that was. What LibTorch or the standard library throws gets the code `otherwise`.
template <class F>
void together(const team_handle& team, const reason& otherwise, F&& f) {
  std::string mine;
  try {
    f();
  } catch (const error& e) {
    mine = e.packed();
  } catch (const std::exception& e) {
    mine = error(refusal{otherwise}, e.what()).packed();
  }
  const std::vector<std::uint64_t> failures = team->collect(mine.empty() ? 0 : 1, "telling how it went");
  const auto failed = static_cast<std::size_t>(std::find(failures.begin(), failures.end(), 1) - failures.begin());
  if (failed == failures.size()) return;
  const std::vector<std::string> all = team->collect_text(mine);
  const error first = error::unpacked(all[failed]);
  if (std::all_of(all.begin(), all.end(), [&](const std::string& other) { return other == all[failed]; })) throw first;
  throw first.at(label_of(team->mesh(), team->mesh().rank(team->mesh().at(static_cast<int>(failed)))) + ": " + first.where());
}

}  // namespace tessera::detail
