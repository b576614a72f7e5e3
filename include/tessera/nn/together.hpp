#pragma once

#include <tessera/tensor/tensor.hpp>

#include <algorithm>
#include <cstring>

namespace tessera::detail {

/// Runs f on this worker. What one worker meets is thrown on every worker of the team, so that none goes on alone; where they did
/// not all meet the same, it says which worker that was. What LibTorch or the standard library throws gets the code `otherwise`.
template <class F>
void together(const team_handle& team, code otherwise, F&& f) {
  refusal mine;
  std::string where;
  try {
    f();
  } catch (const error& e) {
    mine = e.why();
    where = e.where();
  } catch (const std::exception& e) {
    mine = refusal{otherwise};
    where = e.what();
  }
  const std::vector<std::uint64_t> codes = team->collect(static_cast<std::uint64_t>(mine.code), "telling how it went");
  const auto failed = static_cast<std::size_t>(std::find_if(codes.begin(), codes.end(), [](auto c) { return c != 0; }) - codes.begin());
  if (failed == codes.size()) return;
  const std::vector<std::string> all = team->collect_text(std::string(reinterpret_cast<const char*>(&mine), sizeof mine) + where);
  const std::string& first = all[failed];
  refusal theirs;
  std::memcpy(&theirs, first.data(), sizeof theirs);
  const auto words = [](const std::string& of) { return std::string_view(of).substr(sizeof theirs); };
  const bool alike = std::all_of(all.begin(), all.end(), [&](const std::string& other) { return words(other) == words(first); });
  const int worker = team->mesh().rank(team->mesh().at(static_cast<int>(failed)));
  throw error(theirs, (alike ? "" : label_of(team->mesh(), worker) + ": ") + first.substr(sizeof theirs));
}

}  // namespace tessera::detail
