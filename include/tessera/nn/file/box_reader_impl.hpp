#pragma once

#include <tessera/nn/file/atomic_file.hpp>
#include <tessera/nn/file/box_reader.hpp>

#include <algorithm>

namespace tessera::nn::engine {

TESSERA_INLINE box_reader::box_reader(std::filesystem::path checkpoint, const checkpoint_index& index)
    : checkpoint_(std::move(checkpoint)), index_(&index) {}
TESSERA_INLINE box_reader::~box_reader() = default;

TESSERA_INLINE const tessera::detail::regular_file& box_reader::open(std::size_t file) {
  constexpr std::size_t most_open = 64;
  if (open_.size() >= most_open && open_.count(file) == 0) open_.clear();
  auto& one = open_[file];
  if (!one) one = std::make_unique<tessera::detail::regular_file>(checkpoint_ / index_->files[file].name);
  return *one;
}

TESSERA_INLINE void box_reader::read(const std::string& key, const std::vector<index_t>& begin,
                                     const at::Tensor& into) {
  index_t left = into.numel();
  for (const filed_box& box : index_->tensors.at(key).boxes) {
    std::vector<index_t> from;  // the overlap, in the box
    at::Tensor part = into;
    for (std::size_t d = 0; d < begin.size() && part.defined(); ++d) {
      const index_t lo = std::max(begin[d], box.begin[d]);
      const index_t hi = std::min(begin[d] + into.size(static_cast<index_t>(d)), box.begin[d] + box.extents[d]);
      from.push_back(lo - box.begin[d]);
      part = lo < hi ? part.narrow(static_cast<index_t>(d), lo - begin[d], hi - lo) : at::Tensor();
    }
    if (!part.defined() || part.numel() == 0) continue;
    left -= part.numel();
    if (left < 0) break;
    if (part.is_contiguous()) {
      read_rows(box, from, part);
    } else {
      const at::Tensor rows = at::empty(part.sizes(), part.options());
      read_rows(box, from, rows);
      at::Tensor(part).copy_(rows);
    }
  }
  if (left != 0) throw error(refusal{code::file_altered}, fmt::format("{}: {}", checkpoint_.string(), key));
}

// What lies together in the file is read at once.
TESSERA_INLINE void box_reader::read_rows(const filed_box& box, const std::vector<index_t>& begin,
                                          const at::Tensor& into) {
  const std::size_t dims = begin.size();
  std::vector<index_t> strides(dims, 1);
  for (std::size_t d = dims; d-- > 1;) strides[d - 1] = strides[d] * box.extents[d];
  std::size_t outer = dims;  // the dimensions behind it lie together
  index_t row = 1;
  while (outer > 0) {
    --outer;
    row *= into.size(static_cast<index_t>(outer));
    if (into.size(static_cast<index_t>(outer)) != box.extents[outer]) break;
  }
  const index_t width = static_cast<index_t>(into.element_size());
  const tessera::detail::regular_file& file = open(box.file);
  auto* to = static_cast<char*>(into.data_ptr());
  std::vector<index_t> at(outer, 0);
  for (index_t rows = into.numel() / row; rows > 0; --rows) {
    index_t element = 0;
    for (std::size_t d = 0; d < dims; ++d) element += (begin[d] + (d < outer ? at[d] : 0)) * strides[d];
    file.read(to, static_cast<std::uint64_t>(row * width), box.byte + static_cast<std::uint64_t>(element * width));
    bytes_read_ += row * width;
    to += row * width;
    for (std::size_t d = outer; d-- > 0;) {
      if (++at[d] < into.size(static_cast<index_t>(d))) break;
      at[d] = 0;
    }
  }
}

}  // namespace tessera::nn::engine
