#pragma once

#include <tessera/plan/phase.hpp>
#include <tessera/topology/tensor_type.hpp>

namespace tessera::engine {

/// A number that two workers have alike when they mean the same thing: 64 bits, multiplied by an odd number a word, and
/// folded.
class fingerprint {
 public:
  constexpr fingerprint& operator<<(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15u;
    value_ ^= value_ >> 32;
    return *this;
  }
  constexpr fingerprint& operator<<(index_t word) { return *this << static_cast<std::uint64_t>(word); }
  constexpr fingerprint& operator<<(int word) { return *this << static_cast<index_t>(word); }
  constexpr fingerprint& operator<<(const layout& x) {
    *this << x.mesh.first << x.mesh.axes.count;
    for (const auto& a : x.mesh.axes) *this << a.name.hash << a.extent << a.stride;
    if (x.mesh.ranks != nullptr)
      for (int i = 0; i < x.mesh.size(); ++i) *this << x.mesh.rank(x.mesh.at(i));
    for (const auto& r : x.placements)
      *this << (static_cast<int>(r.kind) | (r.dimension + 1) << 4 | r.level << 12 | static_cast<int>(r.joined) << 20 |
                static_cast<int>(r.with) << 21)
            << r.coordinate;
    *this << x.dims.count;
    for (int d = 0; d < x.dims.count; ++d) {
      const dimension& dim = x.dims[d];
      const window& w = dim.needs;
      *this << dim.extent << dim.grain() << dim.turned
            << (static_cast<int>(dim.kind) | static_cast<int>(dim.zigzag) << 2);
      if (dim.kind != cover::tiled)
        *this << dim.outputs << w.a << w.b << w.b2 << w.c << w.unreached_before << w.unreached_after
              << static_cast<int>(w.edge);
      if (dim.bounds == learned) *this << dynamic;
      else if (dim.bounds != nullptr)
        for (int i = 0; i <= x.part_count(d); ++i) *this << dim.bounds[i];
    }
    return *this;
  }

  constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

/// The fingerprint of what is carried in one phase of one element type.
constexpr std::uint64_t fingerprint_of(const phase& p, element e) {
  fingerprint f;
  for (int i = 0; i < p.count; ++i)
    f << static_cast<int>(p.steps[i].kind) << p.steps[i].from << p.steps[i].to << static_cast<int>(p.steps[i].with);
  f << static_cast<int>(e);
  return f.value();
}

}  // namespace tessera::engine
