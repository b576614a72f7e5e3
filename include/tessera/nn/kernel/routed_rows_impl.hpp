#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/nn/kernel/routed_rows.hpp>

namespace tessera::nn::engine {

TESSERA_INLINE at::Tensor inverse(const at::Tensor& places, const at::Tensor& sources, index_t count, index_t none) {
  return at::full({count + 1}, none, places.options())
      .scatter_(0, places.flatten(), sources.flatten())
      .narrow(0, 0, count);
}

TESSERA_INLINE at::Tensor places_of_experts(const std::vector<interval>& places, const at::TensorOptions& options) {
  std::vector<index_t> all;
  for (std::size_t p = 0; p < places.size(); ++p)
    all.insert(all.end(), static_cast<std::size_t>(places[p].size()), static_cast<index_t>(p));
  return at::tensor(all, at::TensorOptions(at::kLong)).to(options.device());
}

TESSERA_INLINE at::Tensor bins_of_rows(const std::vector<index_t>& bins, const at::TensorOptions& options) {
  std::vector<index_t> all;
  for (std::size_t i = 0; i < bins.size(); ++i)
    all.insert(all.end(), static_cast<std::size_t>(bins[i]), static_cast<index_t>(i));
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

/// The rank of each among those of its key, in order; keys are below n.
inline at::Tensor ranks(const at::Tensor& key, index_t n) {
  const auto [sorted, order] = at::sort(key, true, 0, false);
  const at::Tensor begin = at::searchsorted(sorted, at::arange(n, key.options()));
  const at::Tensor rank = at::arange(key.numel(), key.options()) - begin.index_select(0, sorted);
  return at::empty_like(key).scatter_(0, order, rank);
}

inline at::Tensor listed_on(const std::vector<index_t>& all, const at::Tensor& with) {
  return at::tensor(all, at::TensorOptions(at::kLong)).to(with.device());
}

TESSERA_INLINE at::Tensor kept_choices(const row_choices& of) {
  const index_t rows = of.experts.size(0), k = of.experts.size(1);
  const auto groups = static_cast<index_t>(of.groups.size());
  const at::Tensor group = bins_of_rows(of.groups, of.experts.options());
  const at::Tensor key = (group * of.of_all + of.experts.t()).flatten();
  const index_t keys = groups * of.of_all;
  at::Tensor rank;
  if (of.by_score) {
    const at::Tensor largest = std::get<1>(at::sort(of.gates.t().flatten(), true, 0, true));
    rank = at::empty_like(key).scatter_(0, largest, ranks(key.index_select(0, largest), keys));
  } else {
    rank = ranks(key, keys);
  }
  return rank.view({k, rows}).t() < listed_on(of.room, key).index_select(0, group).unsqueeze(1);
}

TESSERA_INLINE row_lists listed_rows(const routed_rows& of) {
  const index_t rows = of.chosen.size(0), k = of.chosen.size(1);
  const auto bins = static_cast<index_t>(of.bins.size()), places = static_cast<index_t>(of.places.size());
  const at::TensorOptions whole = of.chosen.options();
  std::vector<index_t> begins(1, 0);
  for (index_t n : of.bins) begins.push_back(begins.back() + n);
  begins.pop_back();
  const at::Tensor place_of_each = places_of_experts(of.places, whole);
  const index_t experts = place_of_each.numel();
  const at::Tensor bin = bins_of_rows(of.bins, whole);
  const at::Tensor kept = of.kept.defined() ? of.kept : at::ones_like(of.chosen, at::kBool);

  // First choices before second ones, rows in order: their slots.
  const at::Tensor key = at::where(kept.t(), bin * experts + of.chosen.t(), bins * experts);
  const at::Tensor slot = ranks(key.flatten(), bins * experts + 1).view({k, rows}).t();

  // The rows that go to each place, in order.
  const at::Tensor place = place_of_each.index_select(0, of.chosen.flatten()).view({rows, k});
  const at::Tensor there = at::logical_and(place.unsqueeze(2) == at::arange(places, whole), kept.unsqueeze(2));
  const at::Tensor goes = there.any(1);
  const at::Tensor before = at::constant_pad_nd(goes.cumsum(0), {0, 0, 1, 0});
  const at::Tensor number =
      before.narrow(0, 1, rows) - 1 - before.index_select(0, listed_on(begins, bin)).index_select(0, bin);
  const at::Tensor line = at::arange(places, whole) * bins + bin.unsqueeze(1);
  const index_t packed = places * bins * of.rows;
  const at::Tensor lies = at::where(goes, line * of.rows + number, packed);

  const at::Tensor among = there.cumsum(1).gather(2, place.unsqueeze(2)).squeeze(2) - 1;
  const at::Tensor entry = at::where(kept, lies.gather(1, place) * of.numbers + among, packed * of.numbers);
  const at::Tensor each = at::arange(rows, whole).unsqueeze(1);
  return {inverse(lies, each.expand({rows, places}), packed, rows),
          inverse(entry, at::arange(rows * k, whole), packed * of.numbers, rows * k),
          inverse(entry, of.chosen * of.slots + slot, packed * of.numbers, -1),
          at::full({rows, experts}, -1, whole).scatter_(1, of.chosen, at::where(kept, number.gather(1, place), -2))};
}

}  // namespace tessera::nn::engine
