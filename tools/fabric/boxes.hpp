#pragma once
// A worker's part of a tensor of whole numbers, and changes of layout between such parts.

#include <tessera/comm/team_state.hpp>
#include <tessera/plan/change.hpp>
#include <tessera/plan/cutting.hpp>

#include <range/v3/view/zip.hpp>

#include <vector>

namespace tessera::fabric {

using namespace engine;

/// Doubles in memory, row-major.
struct memory {
  box_vector extents;
  std::vector<double> data;

  explicit memory(const box_vector& e) : extents(e), data(static_cast<std::size_t>(count_of(e))) {}
  region where() {
    region r{reinterpret_cast<std::byte*>(data.data()), element::float64, extents, extents};
    return r.packed_at(r.data);
  }
};

inline box_vector extents_at(const layout& x, int rank) {
  box_vector e;
  for (const intervals& held : held_by(x, rank)) e.push(size_of(held));
  return e;
}

/// Calls visit(place in memory, i, j, k) for each element that a worker holds.
template <class Visit>
void each_element(const layout& x, int rank, const Visit& visit) {
  if (cutting(x).elements_of(rank) == 0) return;
  std::vector<std::vector<index_t>> all;
  for (const intervals& held : held_by(x, rank)) {
    all.emplace_back();
    for (const interval& i : held)
      for (index_t n = i.lo; n < i.hi; ++n) all.back().push_back(n);
  }
  std::size_t place = 0;
  for (const index_t i : all[0])
    for (const index_t j : all[1])
      for (const index_t k : all[2]) visit(place++, i, j, k);
}

/// A change of layout, bound to its workers.
class bound_way {
 public:
  bound_way(team_state& team, const layout& from, const layout& to) {
    const change plan = change_between(from, to);
    for (const phase& p : phases_of(plan)) {
      phases_.push_back(team.bound(p, element::float64));
      between_.emplace_back(phases_.back()->output_extents());
    }
  }

  /// What becomes of x.
  memory& operator()(memory& x) {
    memory* in = &x;
    for (const auto& [phase, out] : ranges::views::zip(phases_, between_)) {
      phase->start(in->where(), out.where()).finish();
      in = &out;
    }
    return *in;
  }

 private:
  std::vector<std::shared_ptr<bound_exchange>> phases_;
  std::vector<memory> between_;
};

}  // namespace tessera::fabric
