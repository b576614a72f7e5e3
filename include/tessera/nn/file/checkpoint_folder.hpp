#pragma once

#include <tessera/nn/file/checkpoint_index.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::nn::engine {

/// The checkpoints of a folder: `checkpoint_00000012` is the twelfth that was saved there, a folder of its own. It is
/// one when it has an index, which comes last and goes first. One worker calls these.
class checkpoint_folder {
 public:
  explicit checkpoint_folder(std::filesystem::path path) : path_(std::move(path)) {}

  /// Where the checkpoint of a number is.
  std::filesystem::path at(std::int64_t number) const;
  /// The numbers of those that are whole, in their order.
  std::vector<std::int64_t> whole() const;
  /// Makes room for the next one, and says its number: what a save that was killed left there goes.
  std::int64_t begin_next() const;
  /// Removes all that are older than a number but for the newest `keep`; all that are whole stay where that is
  /// negative.
  void remove_older(std::int64_t than, int keep) const;
  /// Removes what is not to become one.
  void abandon(std::int64_t number) const;

 private:
  std::vector<std::int64_t> numbers() const;

  std::filesystem::path path_;
};

/// The checkpoint that a path names: itself, or the newest one of a folder of them. Refuses a path without one.
std::filesystem::path checkpoint_at(const std::filesystem::path& path);

/// The text of an index.
std::string index_text(const std::filesystem::path& checkpoint);

/// Throws unless a file is the one that the index means, and has its sum.
void verify_file(const std::filesystem::path& checkpoint, const checkpoint_file& file);

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/file/checkpoint_folder_impl.hpp>
#endif
