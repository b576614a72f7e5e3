#pragma once

#include <tessera/tensor/tensor.hpp>

#include <string>
#include <vector>

namespace tessera::nn::engine {

/// The kind of one sample in a column.
struct sample_kind {
  at::ScalarType type = at::kFloat;
  std::vector<index_t> sizes;
};

/// A worker's part of a batch: columns, whose dimension 0 is the samples', if it has any samples; or the error of
/// reading.
struct own_samples {
  std::vector<at::Tensor> columns;
  std::string failure;
};

/// The kind of samples in each column, as the workers of a team agreed last; workers without samples know it too.
class sample_kinds {
 public:
  explicit sample_kinds(std::size_t columns) : columns_(columns) {}

  const sample_kind& operator[](std::size_t column) const { return kinds_[column]; }

  /// Compares the number of the batch that workers read and what its samples are; throws on every worker what one of
  /// them met. Two numbers a worker, and the extents where they are not those of the batch before.
  void agree(const team_handle& team, std::uint64_t batch, const own_samples& mine);

 private:
  void learn(const team_handle& team, const std::vector<sample_kind>& mine);

  std::size_t columns_;
  std::vector<sample_kind> kinds_;  ///< none before the first batch
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/data/sample_kinds_impl.hpp>
#endif
