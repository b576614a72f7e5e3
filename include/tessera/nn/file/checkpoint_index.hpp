#pragma once

#include <tessera/nn/file/kept_tensor.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace tessera::nn::engine {

/// Numbers and words of a part of a checkpoint, which every worker has alike: steps, learning rates.
using small_values = std::map<std::string, std::variant<std::int64_t, double, std::string>>;

/// Where a box of a serial tensor lies: row-major, from a byte of a file on.
struct filed_box {
  std::size_t file = 0;
  std::uint64_t byte = 0;
  std::vector<index_t> begin;
  std::vector<index_t> extents;
};

/// A serial tensor of a checkpoint: each of its elements is in one box.
struct filed_tensor {
  element type{};
  std::vector<index_t> shape;
  std::vector<filed_box> boxes;
};

struct checkpoint_file {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sum;  ///< as the file itself says it (`file_sum.hpp`)
};

struct filed_entry {
  std::string kind;
  small_values values;
};

/// The index of a checkpoint: the file `index.json`, written behind all others.
struct checkpoint_index {
  static constexpr std::int64_t version = 1;
  static constexpr const char* name = "index.json";

  std::vector<checkpoint_file> files;
  std::map<std::string, filed_entry> entries;
  std::map<std::string, filed_tensor> tensors;  ///< by key, behind the name of the entry: "net/0.weight"

  /// As JSON with a sum of itself. `read` takes it back, and refuses a text that is no index, was altered or has
  /// another version. It refuses boxes outside their tensor or file, and boxes that do not fill the tensor.
  std::string write() const;
  static checkpoint_index read(const std::string& text, const std::string& from);

  /// The keys of an entry's tensors.
  std::vector<std::string> keys_of(const std::string& entry) const;
};

/// A number as one word that is read back to the bit, also where it is none or infinite.
std::string words_of(const small_values& values);

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/file/checkpoint_index_impl.hpp>
#endif
