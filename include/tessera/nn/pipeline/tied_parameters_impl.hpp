#pragma once

#include <tessera/nn/pipeline/pipeline_run.hpp>
#include <tessera/tensor/change/change.hpp>

namespace tessera::nn::engine {

TESSERA_INLINE void pipeline_run::take_states() {
  for (const layer_state& all : my().states) {
    layer_state& mine = states_.emplace_back(all);
    for (parameter& p : mine.parameters) {
      const int stored = stage_of(p.stored().layout(), axis_), used = stage_of(p.used(), axis_);
      if (stored < 0 || used < 0 || stored == used) continue;
      const held_member here = p.waiting();
      const auto is_it = [&](const tied_parameter& q) { return q.known.waiting() == here; };
      auto found = std::find_if(tied_.begin(), tied_.end(), is_it);
      if (found == tied_.end()) found = tied_.insert(found, {p.held_apart(), p});
      p = found->taken;
    }
  }
}

TESSERA_INLINE void pipeline_run::bring_tied(call_site at) const {
  for (const auto& [p, known] : tied_) {
    const tessera::engine::scoped_context here(*my().team,
                                               {.why = purpose::forward, .name = p.path().c_str(), .at = at});
    static_cast<void>(p.use());
  }
}

TESSERA_INLINE void pipeline_run::let_go_tied() const {
  for (const tied_parameter& p : tied_) p.taken.waiting().of->let_go();
}

TESSERA_INLINE void pipeline_run::return_tied(call_site at) const {
  const at::NoGradGuard none;
  for (const auto& [p, known] : tied_) {
    if (p.frozen() || !p.stored().local().requires_grad()) continue;
    const held_member where = p.waiting();
    const tensor<dyn>& stored = p.stored();
    const tessera::engine::scoped_context here(*my().team,
                                               {.why = purpose::backward, .name = p.path().c_str(), .at = at});
    at::Tensor terms = where.of->take(where.used, where.as);
    if (!terms.defined()) terms = at::zeros_like(where.of->kept(where.used, where.as));
    const auto from = my().team->intern(cotangent(p.used())), to = my().team->intern(cotangent(stored.layout()));
    const at::Tensor sum = tessera::engine::change_layout(my().team, from, to, terms.to(stored.local().scalar_type()));
    if (stage_ == stage_of(stored.layout(), axis_)) known.waiting().of->give(sum, false);  // others may wait as well
    else where.of->give(sum, true);
  }
}

}  // namespace tessera::nn::engine
