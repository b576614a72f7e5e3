#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tessera::engine {

/// Where the values of a program run beside its rows: inputs, nodes and outputs, one under the other.
///
/// A value that only the next row reads goes straight down. One that is read later has a lane of its own, from its
/// maker to its last reader: each row shows the values that live.
struct lanes {
  /// From a row to one that reads what it gives, on a lane.
  struct strand {
    int from = 0;
    int to = 0;
    int lane = 0;
  };

  std::vector<int> row_lane;  ///< where each row has its mark
  std::vector<strand> strands;
  int count = 0;

  /// `reads[r]`: the rows whose values row r reads; each is above it.
  explicit lanes(const std::vector<std::vector<int>>& reads) {
    const int rows = static_cast<int>(reads.size());
    std::vector<int> busy;    // until which row each lane is taken
    std::vector<int> coming;  // the lane that brings what row r reads first
    std::vector<std::vector<int>> readers(reads.size());
    for (int r = 0; r < rows; ++r)
      for (const int from : reads[at(r)])
        if (readers[at(from)].empty() || readers[at(from)].back() != r) readers[at(from)].push_back(r);
    const auto free_lane = [&](int row) {
      const auto found = std::find_if(busy.begin(), busy.end(), [row](int until) { return until <= row; });
      if (found != busy.end()) return static_cast<int>(found - busy.begin());
      busy.push_back(0);
      return static_cast<int>(busy.size()) - 1;
    };
    coming.assign(reads.size(), -1);
    for (int r = 0; r < rows; ++r) {
      const int mine = coming[at(r)] >= 0 ? coming[at(r)] : free_lane(r);
      row_lane.push_back(mine);
      const std::vector<int>& to = readers[at(r)];
      const bool next = !to.empty() && to.front() == r + 1;
      const bool later = !to.empty() && to.back() > r + 1;
      busy[at(mine)] = std::max(busy[at(mine)], next ? r + 1 : later ? to.back() : r);
      int side = mine;
      if (next && later) {
        side = free_lane(r);
        busy[at(side)] = to.back();
      }
      for (const int reader : to) {
        const int lane = reader == r + 1 ? mine : side;
        strands.push_back({r, reader, lane});
        // A mark stands where a lane ends that comes to it, the leftmost of several.
        if (busy[at(lane)] == reader && (coming[at(reader)] < 0 || lane < coming[at(reader)]))
          coming[at(reader)] = lane;
      }
    }
    count = static_cast<int>(busy.size());
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
};

}  // namespace tessera::engine
