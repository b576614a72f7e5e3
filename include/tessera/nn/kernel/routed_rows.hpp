#pragma once

#include <tessera/plan/parts.hpp>

#include <tessera/tensor/box/aten.hpp>

#include <vector>

namespace tessera::nn::engine {

using tessera::engine::interval;

/// Choices [row, choice] of rows, in groups that fill slots apart.
struct row_choices {
  at::Tensor experts;           ///< from the largest gate on
  at::Tensor gates;             ///< drops by score read them
  std::vector<index_t> groups;  ///< how many rows each has, one after the other
  std::vector<index_t> room;    ///< how many of each an expert takes
  index_t of_all = 0;           ///< experts
  bool by_score = false;
};

/// Which choices find room: first ones before second ones, rows in order, or the largest gates.
at::Tensor kept_choices(const row_choices& of);

/// Rows of a worker in bins, what they chose and what found room.
struct routed_rows {
  at::Tensor chosen;             ///< [row, choice]: experts
  at::Tensor kept;               ///< alike; undefined: all
  std::vector<index_t> bins;     ///< how many rows each has, one after the other
  std::vector<interval> places;  ///< the experts of each place
  index_t slots = 0;             ///< of an expert for a bin
  index_t rows = 0;              ///< of a bin for a place
  index_t numbers = 0;           ///< of a row at a place
};

/// Where they go: lists that LibTorch gathers by, without a wait for a device.
struct row_lists {
  at::Tensor rows;     ///< [place · group · row]: which row lies there; as many as there are rows: none
  at::Tensor choices;  ///< [place · group · row · number]: which choice of all; as many as there are: none
  at::Tensor numbers;  ///< alike: expert · slots + slot, or −1
  at::Tensor became;   ///< [row, expert]: −1 not chosen, −2 dropped, else the row's number at the place
};
row_lists listed_rows(const routed_rows& of);

/// The place of each expert.
at::Tensor places_of_experts(const std::vector<interval>& places, const at::TensorOptions& options);

/// The bin of each row.
at::Tensor bins_of_rows(const std::vector<index_t>& bins, const at::TensorOptions& options);

/// The slots of this worker, [expert, group, slot], that numbers [group, row, number] mean; as many as there are: none.
at::Tensor slots_of_numbers(const at::Tensor& numbers, const interval& experts, index_t groups, index_t slots);

/// Which of n sources stands at each of so many places, by lists of places that are named once; n: none. A place that
/// is one too large is nobody's.
at::Tensor inverse(const at::Tensor& places, const at::Tensor& sources, index_t count, index_t none);

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/kernel/routed_rows_impl.hpp>
#endif
