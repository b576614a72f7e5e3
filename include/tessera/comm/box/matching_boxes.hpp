#pragma once

#include <tessera/comm/box/combine_rows.hpp>

#include <algorithm>
#include <utility>

namespace tessera::engine {

/// Memory of a tensor: where it begins and the distance of neighbours in each dimension, in elements.
struct strided {
  std::byte* data;
  const index_t* strides;
};

/// Boxes of equal extents, each in a tensor of its own, which are copied or combined element by element.
///
/// Derived values of the tensors' strides are found again when the strides change.
class matching_boxes {
 public:
  matching_boxes(const box_vector& extents, std::vector<box_vector> begins)
      : extents_(extents),
        begins_(std::move(begins)),
        strides_(begins_.size(), extents),
        offsets_(begins_.size()),
        at_(begins_.size()) {}

  /// Says where the tensor of a box lies.
  void lies(std::size_t i, const strided& tensor, index_t size) {
    if (!known_ || !std::equal(strides_[i].begin(), strides_[i].end(), tensor.strides)) {
      changed_ = true;
      std::copy_n(tensor.strides, extents_.count, strides_[i].begin());
      offsets_[i] = 0;
      for (int d = 0; d < extents_.count; ++d) offsets_[i] += begins_[i][d] * tensor.strides[d] * size;
    }
    at_[i] = tensor.data + offsets_[i];
  }

  /// Copies the first box, in a tensor elsewhere, to the last, of two.
  void copy(const strided& from, const region& to) {
    const index_t size = bytes_of(to.element);
    lies(0, from, size);
    lies(1, {to.data, to.strides.begin()}, size);
    find();
    copy_rows(rows_, size, at_[0], at_[1]);
  }
  /// The last box = the others combined in their order.
  void combine_others(element e, combine with) {
    find();
    combine_rows(rows_, e, at_, with);
  }

 private:
  void find() {
    if (!changed_) return;
    std::vector<const index_t*> strides;
    for (const box_vector& s : strides_) strides.push_back(s.begin());
    rows_ = {extents_, strides};
    known_ = true;
    changed_ = false;
  }

  box_vector extents_;
  std::vector<box_vector> begins_;
  std::vector<box_vector> strides_;
  std::vector<index_t> offsets_;  // in bytes
  std::vector<std::byte*> at_;
  common_rows rows_;
  bool known_ = false;
  bool changed_ = false;
};

}  // namespace tessera::engine
