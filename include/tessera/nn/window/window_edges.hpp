#pragma once

#include <tessera/nn/window/overlapped_halo.hpp>
#include <tessera/nn/window/window_reading.hpp>
#include <tessera/operation/window/halo_split.hpp>

namespace tessera::detail {

/// The edges of a part under windows, for an exchange that brings only a halo. how(0) says how the operation takes the
/// part, how(i) the i-th edge. They serve while no more than a share of the outputs is at edges.
template <class How>
class edges_of_windows : public overlapped_halo {
 public:
  bool serve() const { return serves_; }
  const How& how(std::size_t i) const { return how_[i]; }

 protected:
  /// Finds edges by `find(dimension, own, held, outputs)`, which serves or not, and adds each by `add(dimension,
  /// edge)`.
  template <class Find, class Add>
  void find(const redistribution& x, int rank, const holding& outputs, int first, int count, double most,
            const Find& find, const Add& add) {
    const layout &from = x.from->layout(), &to = x.to->layout();
    if (!brings_a_halo(from, to)) return;
    const holding mine = held_by(from, rank), comes = held_by(to, rank);
    double share = 0;
    begins.resize(mine.count);
    held = x.to->extents();
    parts = x.from->extents();
    for (int d = 0; d < mine.count; ++d) {
      if (d < first || d >= first + count) {
        if (!(mine[d] == comes[d])) return;
        continue;
      }
      if (mine[d].count != 1 || comes[d].count != 1 || outputs[d].count != 1) return;
      const interval own = mine[d][0], all = comes[d][0], gives = outputs[d][0];
      const halo_split e = find(d, own, all, gives);
      if (!e.serves) return;
      begins[d] = own.lo - all.lo + around.before[d];
      for (const halo_split::edge& at : e.edges) {
        edge found{
            .begins = {}, .sizes = held, .dimension = d, .begin = at.outputs.lo - gives.lo, .size = at.outputs.size()};
        found.begins.resize(held.count);
        for (int k = 0; k < held.count; ++k) found.sizes[k] += around.before[k] + around.behind[k];
        found.begins[d] = at.reads.lo - all.lo + around.before[d];
        found.sizes[d] = at.reads.size();
        edges.push_back(found);
        add(d, at, edges.back());
        share += static_cast<double>(at.outputs.size()) / static_cast<double>(gives.size());
      }
    }
    serves_ = share <= most;
  }

  std::vector<How> how_;

 private:
  bool serves_ = false;
};

/// A worker's reading where only the outputs at the edges of its part need what others hold. The operation pads the
/// part itself; each edge is computed again from a padded box of its own.
class window_edges : public edges_of_windows<kernel_lists> {
 public:
  window_edges(const redistribution& x, int rank, const holding& outputs, double most, int first,
               const static_vector<sliding, 8>& kernels, builtin_padding by, const window_reading& reading) {
    if (!reading.reads_all()) return;
    around = reading.around();
    how_.emplace_back(kernels);
    find(
        x, rank, outputs, first, kernels.count, most,
        [&](int d, const interval& own, const interval& all, const interval& gives) {
          const halo_split e = halo_split_of(kernels[d - first], own, all, gives, by);
          how_[0].padding[static_cast<std::size_t>(d - first)] = e.padded;
          return e;
        },
        [&](int d, const halo_split::edge&, const edge&) {
          how_.push_back(reading.lists());
          how_.back().padding[static_cast<std::size_t>(d - first)] = 0;
        });
  }
};

/// The same of transposed windows: what the halo gives is added.
class given_edges : public edges_of_windows<window_giving> {
 public:
  given_edges(const redistribution& x, int rank, const holding& outputs, double most, int first,
              const static_vector<sliding, 8>& kernels) {
    const holding mine = held_by(x.from->layout(), rank), comes = held_by(x.to->layout(), rank);
    around.before.resize(mine.count);
    around.behind.resize(mine.count);
    adds = true;
    if (brings_a_halo(x.from->layout(), x.to->layout())) how_.emplace_back(mine, outputs, first, kernels);
    find(
        x, rank, outputs, first, kernels.count, most,
        [&](int d, const interval& own, const interval& all, const interval& gives) {
          return adding_of(kernels[d - first], own, all, gives);
        },
        [&](int d, const halo_split::edge& at, edge& found) {
          holding reads = comes, wanted = outputs;
          for (int k = first; k < d; ++k) {  // what lies beside two dimensions is the first one's
            reads[k] = mine[k];
            found.begins[k] = begins[k];
            found.sizes[k] = parts[k];
          }
          reads[d][0] = at.reads;
          wanted[d][0] = at.outputs;
          how_.emplace_back(reads, wanted, first, kernels);
        });
  }
};

}  // namespace tessera::detail
