#pragma once

#include "problem.hpp"

#include <tessera/comm/team.hpp>

namespace calls {

/// A verb bound to one worker: the one place that knows how the library binds an exchange. Its outputs are reused, or
/// fresh at every call as those of tensors.
class bound_verb {
 public:
  bound_verb(tessera::team_state& team, matrices& m, bool fresh = false) : fresh_(fresh), out_(m.out.size()) {
    const tessera::change plan = tessera::change_between(m.of.from(), m.of.to());
    const tessera::engine::phases all = tessera::phases_of(plan);
    double* data = m.in.data();
    for (const tessera::phase& p : all) {
      const std::shared_ptr<tessera::engine::bound_exchange> bound = team.bound(p, tessera::element::float64);
      const tessera::engine::region from = region_at(data, bound->input_extents());
      if (&p + 1 != all.end()) {
        between_.emplace_back(static_cast<std::size_t>(region_at(nullptr, bound->output_extents()).count()));
        data = between_.back().data();
      } else {
        data = m.out.data();
      }
      stages_.push_back({bound, from, region_at(data, bound->output_extents())});
    }
  }

  /// What the last call with fresh outputs brought.
  const double* brought() const { return out_.now(); }

  void operator()() {
    if (fresh_) stages_.back().out.data = reinterpret_cast<std::byte*>(out_.next());
    for (const stage& s : stages_) s.bound->start(s.in, s.out).finish();
  }

 private:
  struct stage {
    std::shared_ptr<tessera::engine::bound_exchange> bound;
    tessera::engine::region in, out;
  };

  static tessera::engine::region region_at(
      double* data, const tessera::static_vector<index_t, tessera::engine::max_dimensions>& extents) {
    tessera::engine::region r;
    r.element = tessera::element::float64;
    r.extents = r.strides = extents;
    return r.packed_at(reinterpret_cast<std::byte*>(data));
  }

  bool fresh_;
  fresh_output out_;
  std::vector<numbers> between_;
  std::vector<stage> stages_;
};

}  // namespace calls
