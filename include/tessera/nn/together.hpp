#pragma once

#include <tessera/tensor/tensor.hpp>

#include <algorithm>
#include <cstring>

namespace tessera::detail {

/// The text that each worker of a team hands in, on all of them, in row-major order.
inline std::vector<std::string> collect_text(const team_handle& team, const std::string& mine) {
  const std::vector<std::uint64_t> lengths = team->collect(mine.size());
  const auto longest = static_cast<index_t>(*std::max_element(lengths.begin(), lengths.end()));
  layout lines;
  lines.mesh = team->mesh();
  lines.roles.resize(lines.mesh.axes.count);
  for (const index_t extent : {static_cast<index_t>(lengths.size()), longest}) {
    dimension d;
    d.extent = extent;
    lines.dims.push(d);
  }
  for (int a = 0; a < lines.mesh.axes.count; ++a) lines.cut_by(0, a);
  const at::Tensor line = at::zeros({1, longest}, at::kByte);
  if (!mine.empty()) std::memcpy(line.data_ptr(), mine.data(), mine.size());
  const at::Tensor all = global(tensor<dyn>(team, lines, line));
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    texts.emplace_back(static_cast<const char*>(all[static_cast<index_t>(i)].data_ptr()), lengths[i]);
  return texts;
}

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
  const std::vector<std::uint64_t> codes = team->collect(static_cast<std::uint64_t>(mine.code));
  const auto failed = static_cast<std::size_t>(std::find_if(codes.begin(), codes.end(), [](auto c) { return c != 0; }) - codes.begin());
  if (failed == codes.size()) return;
  const std::vector<std::string> all = collect_text(team, std::string(reinterpret_cast<const char*>(&mine), sizeof mine) + where);
  const std::string& first = all[failed];
  refusal theirs;
  std::memcpy(&theirs, first.data(), sizeof theirs);
  const bool alike = std::count(all.begin(), all.end(), first) == static_cast<std::ptrdiff_t>(all.size());
  const int worker = team->mesh().rank(team->mesh().at(static_cast<int>(failed)));
  throw error(theirs, (alike ? "" : label_of(team->mesh(), worker) + ": ") + first.substr(sizeof theirs));
}

}  // namespace tessera::detail
