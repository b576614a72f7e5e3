#pragma once

#include <tessera/nn/file/kept_tensor.hpp>
#include <tessera/plan/cutting.hpp>

#include <algorithm>

namespace tessera::nn::engine {

TESSERA_INLINE kept_tensor kept_tensor::of(const state_tensor& t, const std::string& before) {
  return {before + t.key(), t.stored().layout(), t.stored().type(), t.stored().local().detach(),
          t.serial(),       t.serial_sizes(),    t.only_here(),     true};
}

TESSERA_INLINE kept_tensor kept_tensor::of(std::string key, const tensor<dyn>& t) {
  kept_tensor kept{std::move(key), t.layout(), t.type(), t.local().detach(), {}, {}};
  for (const dimension& d : t.layout().dims) kept.serial_sizes.push_back(d.extent);
  return kept;
}

TESSERA_INLINE index_t serial_piece::elements() const {
  index_t n = 1;
  for (const index_t e : extents) n *= e;
  return n;
}

TESSERA_INLINE at::Tensor serial_piece::in(const at::Tensor& local) const {
  at::Tensor x = local;
  for (std::size_t d = 0; d < own_begin.size(); ++d)
    x = x.narrow(static_cast<index_t>(d), own_begin[d], own_extents[d]);
  return x.view(extents);
}

/// Intervals of one dimension of a box, with where each begins in the worker's memory.
struct held_interval {
  interval elements;
  index_t at = 0;
};

/// A part of a group of neighbouring dimensions that is one interval of their product.
struct joined_interval {
  index_t begin = 0;
  index_t extent = 0;
  std::vector<index_t> own_begin, own_extents;
};

/// The intervals of the product of dimensions, the outermost first: those inside one that is not whole come one by one.
inline std::vector<joined_interval> joined(const std::vector<std::vector<held_interval>>& dims,
                                           const std::vector<index_t>& sizes) {
  std::size_t last = dims.size();  // the innermost dimension that is not whole
  index_t inside = 1;
  while (last > 1 && dims[last - 1].size() == 1 && dims[last - 1][0].elements.size() == sizes[last - 1])
    inside *= sizes[--last];
  std::vector<joined_interval> all{{0, 1, {}, {}}};
  for (std::size_t d = 0; d < last; ++d) {
    std::vector<joined_interval> next;
    const bool one_by_one = d + 1 < last;
    for (const joined_interval& before : all)
      for (const held_interval& h : dims[d])
        for (index_t i = 0; i < (one_by_one ? h.elements.size() : 1); ++i) {
          joined_interval one = before;
          one.begin = before.begin * sizes[d] + h.elements.lo + i;
          one.extent = one_by_one ? 1 : h.elements.size();
          one.own_begin.push_back(h.at + i);
          one.own_extents.push_back(one.extent);
          next.push_back(std::move(one));
        }
    all = std::move(next);
  }
  for (joined_interval& one : all) {
    one.begin *= inside;
    one.extent *= inside;
    for (std::size_t d = last; d < dims.size(); ++d) {
      one.own_begin.push_back(0);
      one.own_extents.push_back(sizes[d]);
    }
  }
  return all;
}

/// The boxes of a tensor whose elements from one on to another lie end to end.
inline std::vector<serial_piece> boxes_between(const std::vector<index_t>& sizes, index_t from, index_t to) {
  std::vector<serial_piece> all;
  for (index_t next = from; next < to;) {
    serial_piece one;
    index_t row = 1;  // elements of a step along the dimension
    std::size_t d = sizes.size();
    while (d > 0) {  // the outermost dimension of which whole steps fit
      const index_t wider = row * sizes[d - 1];
      if (d == 1 || next % wider != 0 || to - next < wider) break;
      row = wider;
      --d;
    }
    index_t left = next;
    for (const index_t n : sizes) one.extents.push_back(n);
    one.begin.assign(sizes.size(), 0);
    for (std::size_t i = sizes.size(); i-- > 0; left /= sizes[i]) one.begin[i] = left % sizes[i];
    index_t elements = row;
    if (d > 0) {
      const index_t steps = std::min((to - next) / row, sizes[d - 1] - one.begin[d - 1]);
      for (std::size_t i = 0; i + 1 < d; ++i) one.extents[i] = 1;
      one.extents[d - 1] = steps;
      elements *= steps;
    }
    one.own_begin = {next - from};
    one.own_extents = {elements};
    next += elements;
    all.push_back(std::move(one));
  }
  return all;
}

TESSERA_INLINE std::vector<serial_piece> pieces_of(const kept_tensor& t, const layout& lies, int rank) {
  const tessera::engine::cutting cut{lies};
  coordinates here;
  if (!cut.locate(rank, here)) return {};
  if (t.flat_from) {
    const interval mine = cut.held_by(rank)[0][0];
    return boxes_between(t.serial_sizes, mine.lo, mine.hi);
  }
  std::vector<std::vector<held_interval>> dims;
  std::vector<index_t> sizes;
  for (const intervals& held : cut.held_by(rank)) {
    dims.emplace_back();
    index_t at = 0;
    for (const interval& i : held) {
      if (!i.empty()) dims.back().push_back({i, at});
      at += i.size();
    }
    sizes.push_back(lies.dims[static_cast<int>(sizes.size())].extent);
    if (dims.back().empty()) return {};
  }
  std::vector<serial_piece> all{{}};
  const bool viewed = !(t.serial == serial_view{});
  const auto joined_at = static_cast<std::size_t>(t.serial.dimension);
  const auto factors = static_cast<std::size_t>(std::max(t.serial.factors, 1));
  for (std::size_t d = 0; d < dims.size();) {
    const bool group = viewed && d == joined_at;
    const std::size_t end = d + (group ? factors : 1);
    const auto from = static_cast<std::ptrdiff_t>(d), to = static_cast<std::ptrdiff_t>(end);
    const auto along = joined({dims.begin() + from, dims.begin() + to}, {sizes.begin() + from, sizes.begin() + to});
    std::vector<serial_piece> next;
    for (const serial_piece& before : all)
      for (const joined_interval& i : along) {
        serial_piece one = before;
        one.begin.push_back(i.begin + (group ? t.serial.begin : 0));
        one.extents.push_back(i.extent);
        one.own_begin.insert(one.own_begin.end(), i.own_begin.begin(), i.own_begin.end());
        one.own_extents.insert(one.own_extents.end(), i.own_extents.begin(), i.own_extents.end());
        next.push_back(std::move(one));
      }
    all = std::move(next);
    d = end;
  }
  return all;
}

TESSERA_INLINE layout chosen_copies::next(const kept_tensor& t) {
  layout one = t.lies;
  std::vector<int> axes;  // along which there are copies
  index_t copies = 1;
  for (int a = 0; a < one.placements.count; ++a)
    if (const placement kind = one.placements[a].kind; kind == placement::invariant || kind == placement::replicate) {
      axes.push_back(a);
      copies *= one.mesh.axes[a].extent;
    }
  const auto copy_at = [&](const coordinates& at) {
    index_t n = 0;
    for (const int a : axes) n = n * one.mesh.axes[a].extent + at[a];
    return static_cast<std::size_t>(n);
  };
  const auto each_worker = [&](auto&& visit) {
    for (int i = 0; i < one.mesh.size(); ++i) visit(one.mesh.at(i), one.mesh.rank(one.mesh.at(i)));
  };
  std::vector<index_t> most(static_cast<std::size_t>(copies), 0);
  each_worker([&](const coordinates& at, int rank) {
    if (!workers_.contains(rank)) throw error(refusal{code::other_team}, t.key);
    most[copy_at(at)] = std::max(most[copy_at(at)], bytes_[rank]);
  });
  const std::size_t chosen =
      t.alike ? static_cast<std::size_t>(std::min_element(most.begin(), most.end()) - most.begin()) : 0;
  std::size_t left = chosen;
  for (auto a = axes.rbegin(); a != axes.rend(); ++a) {
    const auto extent = static_cast<std::size_t>(one.mesh.axes[*a].extent);
    one.placements[*a] = tessera::engine::held_on(static_cast<int>(left % extent));
    left /= extent;
  }
  const tessera::engine::cutting cut{one};
  each_worker([&](const coordinates&, int rank) { bytes_[rank] += cut.elements_of(rank) * bytes_of(t.type); });
  return one;
}

}  // namespace tessera::nn::engine
