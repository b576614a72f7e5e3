#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/nn/kernel/routed_rows.hpp>

namespace tessera::nn::engine {

TESSERA_INLINE at::Tensor inverse(const at::Tensor& places, const at::Tensor& sources, index_t count, index_t none) {
  return at::full({count + 1}, none, places.options())
      .scatter_(0, places.flatten(), sources.flatten())
      .narrow(0, 0, count);
}

TESSERA_INLINE at::Tensor groups_of_rows(const std::vector<index_t>& groups, const at::TensorOptions& options) {
  std::vector<index_t> all;
  for (std::size_t g = 0; g < groups.size(); ++g)
    all.insert(all.end(), static_cast<std::size_t>(groups[g]), static_cast<index_t>(g));
  return at::tensor(all, at::TensorOptions(at::kLong)).to(options.device());
}

TESSERA_INLINE at::Tensor slots_of_numbers(const at::Tensor& numbers, const interval& experts, index_t groups,
                                           index_t slots) {
  const index_t each = slots > 0 ? slots : 1;
  const at::Tensor group = at::arange(groups, numbers.options()).view({groups, 1, 1});
  const at::Tensor expert = at::div(numbers, each, "floor") - experts.lo;
  const at::Tensor slot = (expert * groups + group) * each + at::remainder(numbers, each);
  return at::where(numbers >= 0, slot, experts.size() * groups * slots);
}

TESSERA_INLINE row_lists listed_rows(const routed_rows& of) {
  const index_t rows = of.chosen.size(0), k = of.chosen.size(1);
  const auto groups = static_cast<index_t>(of.groups.size()), places = static_cast<index_t>(of.places.size());
  const at::TensorOptions whole = of.chosen.options();
  const auto listed = [&](const std::vector<index_t>& all) {
    return at::tensor(all, at::TensorOptions(at::kLong)).to(whole.device());
  };
  std::vector<index_t> place_of_expert, begins(1, 0);
  for (index_t p = 0; p < places; ++p)
    place_of_expert.insert(place_of_expert.end(),
                           static_cast<std::size_t>(of.places[static_cast<std::size_t>(p)].size()), p);
  for (index_t n : of.groups) begins.push_back(begins.back() + n);
  begins.pop_back();
  const auto experts = static_cast<index_t>(place_of_expert.size());
  const at::Tensor group = groups_of_rows(of.groups, whole);

  // First choices before second ones, rows in order: the rank of each among those of its group and expert.
  const at::Tensor key = (group * experts + of.chosen.t()).flatten();
  at::Tensor order;
  if (of.by_score) {
    const at::Tensor largest = std::get<1>(at::sort(of.gates.t().flatten(), true, 0, true));
    order = largest.index_select(0, std::get<1>(at::sort(key.index_select(0, largest), true, 0, false)));
  } else {
    order = std::get<1>(at::sort(key, true, 0, false));
  }
  const at::Tensor sorted = key.index_select(0, order);
  const at::Tensor begin = at::searchsorted(sorted, at::arange(groups * experts, whole));
  const at::Tensor rank = at::arange(rows * k, whole) - begin.index_select(0, sorted);
  const at::Tensor room = listed(of.room).index_select(0, at::div(sorted, experts, "floor"));
  const at::Tensor slot = at::empty({k * rows}, whole)
                              .scatter_(0, order, at::where(rank < room, rank, -1))
                              .view({k, rows})
                              .t();  // −1: dropped
  const at::Tensor kept = slot >= 0;

  // The rows that go to each place, in order.
  const at::Tensor place = listed(place_of_expert).index_select(0, of.chosen.flatten()).view({rows, k});
  const at::Tensor there = at::logical_and(place.unsqueeze(2) == at::arange(places, whole), kept.unsqueeze(2));
  const at::Tensor goes = there.any(1);
  const at::Tensor before = at::constant_pad_nd(goes.cumsum(0), {0, 0, 1, 0});
  const at::Tensor number =
      before.narrow(0, 1, rows) - 1 - before.index_select(0, listed(begins)).index_select(0, group);
  const at::Tensor line = at::arange(places, whole) * groups + group.unsqueeze(1);
  const index_t packed = places * groups * of.rows;
  const at::Tensor at = at::where(goes, line * of.rows + number, packed);

  const at::Tensor among = there.cumsum(1).gather(2, place.unsqueeze(2)).squeeze(2) - 1;
  const at::Tensor entry = at::where(kept, at.gather(1, place) * of.numbers + among, packed * of.numbers);
  const at::Tensor each = at::arange(rows, whole).unsqueeze(1);
  const at::Tensor at_row = number.gather(1, place);
  return {inverse(at, each.expand({rows, places}), packed, rows),
          inverse(entry, at::arange(rows * k, whole), packed * of.numbers, rows * k),
          inverse(entry, of.chosen * of.slots + slot, packed * of.numbers, -1),
          at::full({rows, experts}, -1, whole).scatter_(1, of.chosen, at::where(kept, at_row, -2))};
}

}  // namespace tessera::nn::engine
