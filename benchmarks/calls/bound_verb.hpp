#pragma once

#include "problem.hpp"

#include <tessera/comm/team.hpp>

namespace calls {

/// A verb bound to one worker, its outputs reused: the one place that knows how the library binds an exchange.
class bound_verb {
 public:
  bound_verb(tessera::team_state& team, matrices& m) : carrier_(team.carrier()) {
    const tessera::change& plan = team.planned(m.of.from(), m.of.to()).plan;
    double* data = m.in.data();
    for (const tessera::step& s : plan.steps) {
      tessera::exchange& bound = team.bound(s, tessera::element::float64);
      const tessera::region from = region_at(data, bound.input_extents());
      if (&s + 1 != plan.steps.end()) {
        between_.emplace_back(static_cast<std::size_t>(region_at(nullptr, bound.output_extents()).count()));
        data = between_.back().data();
      } else {
        data = m.out.data();
      }
      stages_.push_back({&bound, from, region_at(data, bound.output_extents()), s.with});
    }
  }

  void operator()() {
    for (const stage& s : stages_) {
      if (s.bound->fold()) fill_neutral(s.out, s.with);
      s.bound->finish(carrier_, s.bound->start(carrier_, s.in, s.out));
    }
  }

 private:
  struct stage {
    tessera::exchange* bound;
    tessera::region in, out;
    tessera::combine with;
  };

  static tessera::region region_at(double* data, const tessera::static_vector<index_t, tessera::max_dimensions>& extents) {
    tessera::region r;
    r.element = tessera::element::float64;
    r.extents = r.strides = extents;
    return r.packed_at(reinterpret_cast<std::byte*>(data));
  }

  tessera::transport& carrier_;
  std::vector<std::vector<double>> between_;
  std::vector<stage> stages_;
};

}  // namespace calls
