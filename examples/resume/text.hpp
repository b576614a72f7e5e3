#pragma once

#include <torch/data/datasets/base.h>
#include <torch/data/example.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../gpt/text.hpp"
#include "model.hpp"

namespace resume {

using gpt::read;
using gpt::text;

/// Pieces of a text, one behind the other, as samples by number: `length` bytes, and the same ones a byte further.
class pieces : public torch::data::datasets::Dataset<pieces, torch::data::Example<>> {
 public:
  explicit pieces(const std::string& of)
      : bytes_(at::from_blob(const_cast<char*>(of.data()), {static_cast<std::int64_t>(of.size())}, at::kByte).clone()) {
  }

  torch::data::Example<> get(std::size_t i) override {
    const at::Tensor both = bytes_.narrow(0, static_cast<std::int64_t>(i) * length, length + 1).to(at::kLong);
    return {both.narrow(0, 0, length), both.narrow(0, 1, length)};
  }
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>((bytes_.numel() - 1) / length); }

 private:
  at::Tensor bytes_;
};

}  // namespace resume
