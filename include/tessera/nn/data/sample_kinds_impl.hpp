#pragma once

#include <tessera/nn/data/sample_kinds.hpp>
#include <tessera/nn/file/throw_on_all.hpp>
#include <tessera/nn/refusals.hpp>

#include <algorithm>

namespace tessera::nn::engine {

/// A number for what samples are; neither 0 nor 1, which say that there are none.
inline std::uint64_t number_of(const std::vector<sample_kind>& kinds) {
  fingerprint f;
  for (const sample_kind& one : kinds) {
    f << static_cast<int>(one.type) << static_cast<int>(one.sizes.size());
    for (const index_t n : one.sizes) f << n;
  }
  return f.value() | 2;
}

TESSERA_INLINE void sample_kinds::agree(const team_handle& team, std::uint64_t batch, const own_samples& mine) {
  constexpr std::uint64_t failed = 0, none = 1;
  std::vector<sample_kind> kinds;
  for (const at::Tensor& one : mine.columns) kinds.push_back({one.scalar_type(), one.sizes().slice(1).vec()});
  const auto tell = [&] {
    if (!mine.failure.empty()) throw error::unpacked(mine.failure);
  };
  if (!team->inside()) {
    tell();
    kinds_ = kinds;
    return;
  }
  const std::uint64_t read = !mine.failure.empty() ? failed : kinds.empty() ? none : number_of(kinds);
  const std::vector<std::uint64_t> all = team->agree(team->crew_of(team->mesh()), batch, read, team->doing());
  if (std::find(all.begin(), all.end(), failed) != all.end())
    tessera::detail::throw_on_all(team, code::sample_not_read, tell);
  const std::uint64_t known = number_of(kinds_);
  if (kinds_.empty() || std::any_of(all.begin(), all.end(), [&](auto one) { return one != none && one != known; }))
    learn(team, kinds);
}

/// A row a worker: for each column element, number of extents and one, extents; zeros where there is no sample.
TESSERA_INLINE void sample_kinds::learn(const team_handle& team, const std::vector<sample_kind>& mine) {
  constexpr std::size_t cell = 2 + max_dimensions;
  std::vector<std::uint64_t> row(columns_ * cell);
  for (std::size_t c = 0; c < mine.size(); ++c) {
    row[c * cell] = static_cast<std::uint64_t>(mine[c].type);
    row[c * cell + 1] = mine[c].sizes.size() + 1;
    std::copy(mine[c].sizes.begin(), mine[c].sizes.end(), &row[c * cell + 2]);
  }
  const std::vector<std::uint64_t> all = team->collect(row, "learning what samples are");
  const std::uint64_t* known = nullptr;  // the first row with samples
  int first = 0;
  for (int w = 0; w < team->size(); ++w) {
    const std::uint64_t* const its = &all[static_cast<std::size_t>(w) * row.size()];
    const int rank = team->mesh().rank(team->mesh().at(w));
    if (its[1] == 0) continue;
    if (known != nullptr && !std::equal(known, known + row.size(), its))
      throw error(refusal{code::samples_differ, first, rank});
    if (known == nullptr) first = rank;
    known = known == nullptr ? its : known;
  }
  if (known == nullptr) throw error(refusal{code::sample_not_read}, "no worker of the team has a sample");
  kinds_.clear();
  for (const std::uint64_t* c = known; c != known + row.size(); c += cell)
    kinds_.push_back({static_cast<at::ScalarType>(c[0]), {c + 2, c + 1 + c[1]}});
}

}  // namespace tessera::nn::engine
