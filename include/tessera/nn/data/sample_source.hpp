#pragma once

#include <tessera/comm/base/error.hpp>

#include <torch/data/datasets/base.h>
#include <torch/data/example.h>
#include <tessera/tensor/box/aten.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera::nn::engine {

/// A data set of LibTorch whose samples have numbers, `torch::data::datasets::BatchDataset`: no stream, no state.
template <class Data>
concept NumberedDataset = requires(Data& data, at::ArrayRef<std::size_t> numbers) {
  { data.get_batch(numbers) } -> std::same_as<typename Data::BatchType>;
  { data.size() } -> std::same_as<std::optional<std::size_t>>;
} && !Data::is_stateful;

/// Samples by number, as a loader reads them: a tensor of inputs, dimension 0 the samples', and one of targets where
/// there are any.
struct sample_source {
  std::function<std::optional<std::size_t>()> size;
  std::function<std::vector<at::Tensor>(at::ArrayRef<std::size_t>)> read;
};

/// How the batches of a data set become tensors: examples one by one are stacked, those that a collation joined are
/// taken as they are.
template <class Batch>
struct batch_columns;

inline at::Tensor sample_tensor(const at::Tensor& x) { return x; }
template <class Number>
  requires std::is_arithmetic_v<Number>
at::Tensor sample_tensor(Number x) {
  return at::scalar_tensor(x, c10::CppTypeToScalarType<Number>::value);
}

template <class Data, class Target>
struct batch_columns<torch::data::Example<Data, Target>> {
  static constexpr bool labelled = !std::is_void_v<Target>;
  static std::vector<at::Tensor> of(torch::data::Example<Data, Target> batch) {
    if constexpr (labelled) return {std::move(batch.data), std::move(batch.target)};
    else return {std::move(batch.data)};
  }
};

template <class Data, class Target>
struct batch_columns<std::vector<torch::data::Example<Data, Target>>> {
  static constexpr bool labelled = !std::is_void_v<Target>;
  static std::vector<at::Tensor> of(const std::vector<torch::data::Example<Data, Target>>& batch) {
    std::vector<at::Tensor> data, targets;
    for (const auto& one : batch) {
      data.push_back(sample_tensor(one.data));
      if constexpr (labelled) targets.push_back(sample_tensor(one.target));
    }
    if constexpr (labelled) return {at::stack(data), at::stack(targets)};
    else return {at::stack(data)};
  }
};

/// Whether samples of a data set have targets.
template <NumberedDataset Data>
inline constexpr bool labelled = batch_columns<typename Data::BatchType>::labelled;

/// The samples of a data set, which it keeps.
template <NumberedDataset Data>
sample_source samples_of(Data data) {
  auto kept = std::make_shared<Data>(std::move(data));
  return {[kept] { return kept->size(); },
          [kept](at::ArrayRef<std::size_t> numbers) {
            return batch_columns<typename Data::BatchType>::of(kept->get_batch(numbers));
          }};
}

}  // namespace tessera::nn::engine
