#pragma once

#include <tessera/nn/file/checkpoint_index.hpp>

#include <filesystem>
#include <map>
#include <memory>

namespace tessera::detail {

class regular_file;

}  // namespace tessera::detail

namespace tessera::nn::engine {

/// Reads boxes of the tensors of a checkpoint: of each file the bytes of their elements, and no others.
class box_reader {
 public:
  box_reader(std::filesystem::path checkpoint, const checkpoint_index& index);
  ~box_reader();
  box_reader(const box_reader&) = delete;
  box_reader& operator=(const box_reader&) = delete;

  /// Fills a tensor of this host with the elements of a serial tensor from `begin` on; refuses boxes that leave some
  /// out.
  void read(const std::string& key, const std::vector<index_t>& begin, const at::Tensor& into);

  index_t bytes_read() const { return bytes_read_; }

 private:
  const tessera::detail::regular_file& open(std::size_t file);
  void read_rows(const filed_box& box, const std::vector<index_t>& begin, const at::Tensor& into);

  std::filesystem::path checkpoint_;
  const checkpoint_index* index_;
  std::map<std::size_t, std::unique_ptr<tessera::detail::regular_file>> open_;
  index_t bytes_read_ = 0;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/file/box_reader_impl.hpp>
#endif
