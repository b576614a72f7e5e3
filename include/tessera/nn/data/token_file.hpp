#pragma once

#include <tessera/comm/team.hpp>

#include <torch/data/datasets/base.h>
#include <torch/data/example.h>
#include <tessera/tensor/box/aten.hpp>

#include <filesystem>
#include <memory>
#include <optional>

namespace tessera::detail {
class mapped_file;
}  // namespace tessera::detail

namespace tessera::nn {

/// A file of tokens as a data set of LibTorch: plain binary in the machine's order of bytes, as nanoGPT's train.bin.
///
/// Sample i begins at token i · stride. Its inputs are `length` tokens from there on, its targets the same number one
/// further; both are int64, as embeddings and losses take them. There are ⌊(tokens - length - 1) / stride⌋ + 1 samples.
///
/// The file is mapped into memory to be read: workers of one machine share its pages, and none are read that no sample
/// needs. A copy is a handle to the same memory. All workers of the team open it, each by a path of its own if need be.
/// An error of one worker is an error on all.
class token_file : public torch::data::datasets::BatchDataset<token_file, torch::data::Example<>> {
 public:
  /// How a file of tokens is read.
  struct options {
    index_t length = 1;                    ///< tokens of a sample
    index_t stride = 0;                    ///< tokens from one sample to the next; 0: as many as a sample has
    at::ScalarType element = at::kUInt16;  ///< of a token in the file: uint16, uint32, int32 or int64
    index_t header_bytes = 0;              ///< before the first token
  };

  token_file(const team_handle& team, const std::filesystem::path& path, const options& how,
             call_site at = call_site::here());
  template <Mesh M>
  token_file(const team<M>& of, const std::filesystem::path& path, const options& how, call_site at = call_site::here())
      : token_file(of.state(), path, how, at) {}

  index_t tokens() const { return tokens_; }
  std::optional<std::size_t> size() const override { return samples_; }

  /// The samples of these numbers: inputs and targets, numbers × length.
  TESSERA_INLINE torch::data::Example<> get_batch(at::ArrayRef<std::size_t> numbers) override;

 private:
  options how_;
  std::shared_ptr<const tessera::detail::mapped_file> file_;
  index_t tokens_ = 0;
  std::size_t samples_ = 0;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/data/token_file_impl.hpp>
#endif
