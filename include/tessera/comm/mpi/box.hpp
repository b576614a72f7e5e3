#pragma once

#include <tessera/comm/box/region.hpp>

#include <boost/mpi/config.hpp>

#include <utility>

namespace tessera::engine {

/// A box as MPI carries it: contiguous bytes, or a derived datatype, which MPI packs piece by piece while earlier
/// pieces travel.
class mpi_box {
 public:
  index_t offset = 0;  ///< where it begins in its tensor, in bytes
  int count = 0;

  mpi_box() = default;
  /// MPI counts up to `most` of a kind; more are several times as many.
  mpi_box(index_t begin, const region& of, index_t most = index_t{1} << 30) : offset(begin) {
    const index_t size = bytes_of(of.element);
    index_t row = size;
    int d = of.extents.count - 1;
    for (; d >= 0 && (of.extents[d] == 1 || of.strides[d] * size == row); --d) row *= of.extents[d];
    if (d < 0 && row <= most) {
      count = static_cast<int>(row);
      return;
    }
    count = 1;
    type_ = repeated(MPI_BYTE, row, 1, most);
    for (; d >= 0; --d) {
      MPI_Datatype inner = type_;
      type_ = repeated(inner, of.extents[d], of.strides[d] * size, most);
      release(inner);
    }
    MPI_Type_commit(&type_);
  }
  mpi_box(mpi_box&& other) noexcept
      : offset(other.offset), count(other.count), type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
  mpi_box& operator=(mpi_box&& other) noexcept {
    offset = other.offset;
    count = other.count;
    std::swap(type_, other.type_);
    return *this;
  }
  ~mpi_box() { release(type_); }

  MPI_Datatype type() const { return type_ == MPI_DATATYPE_NULL ? MPI_BYTE : type_; }

 private:
  static void release(MPI_Datatype& type) {
    if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
  }

  // So many of one, each so many bytes behind the one before.
  static MPI_Datatype repeated(MPI_Datatype one, index_t n, index_t stride, index_t most) {
    MPI_Datatype all = MPI_DATATYPE_NULL;
    if (n <= most) {
      MPI_Type_create_hvector(static_cast<int>(n), 1, stride, one, &all);
      return all;
    }
    MPI_Datatype row = repeated(one, most, stride, most);
    MPI_Datatype parts[]{repeated(row, n / most, most * stride, most), repeated(one, n % most, stride, most)};
    const int once[]{1, 1};
    const MPI_Aint offsets[]{0, n / most * most * stride};
    MPI_Type_create_struct(2, once, offsets, parts, &all);
    for (MPI_Datatype* part : {&row, &parts[0], &parts[1]}) release(*part);
    return all;
  }

  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

}  // namespace tessera::engine
