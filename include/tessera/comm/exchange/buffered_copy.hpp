#pragma once

#include <tessera/comm/box/matching_boxes.hpp>
#include <tessera/comm/exchange/exchange_plan.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tessera::detail {

/// Copies what others read of a worker's tensor, so that a call may end before they have.
class buffered_copy {
 public:
  static constexpr std::uint64_t most_ahead = 3;  ///< calls that end before their readers have read

  /// reads(worker) says who reads.
  template <class Reads>
  buffered_copy(const exchange_plan& plan, Reads&& reads) {
    std::vector<box_transfer> distinct;
    index_t bytes = 0;
    for (const box_transfer& l : plan.sends) {
      const auto same = [&](const box_transfer& other) { return other.here == l.here && other.extents == l.extents; };
      if (!reads(l.peer) || std::any_of(distinct.begin(), distinct.end(), same)) continue;
      distinct.push_back(l);
      bytes += count_of(l.extents) * bytes_of(plan.element);
    }
    for (const box_transfer& l : distinct) boxes_.push_back({l.extents, {l.here, l.here}});
    ahead_ = !boxes_.empty() && bytes <= most_bytes && count_of(plan.in) * bytes_of(plan.element) <= largest_tensor;
  }

  /// How many calls may end before the boxes of the first of them have been read: none where boxes are large.
  std::uint64_t ahead() const { return ahead_ ? most_ahead : 0; }
  void copy(const region& tensor, const region& to) {
    for (matching_boxes& box : boxes_) box.copy({tensor.data, tensor.strides.begin()}, to);
  }

 private:
  static constexpr index_t most_bytes = 8192;       // of boxes
  static constexpr index_t largest_tensor = 16384;  // in bytes

  std::vector<matching_boxes> boxes_;
  bool ahead_ = false;
};

}  // namespace tessera::detail
