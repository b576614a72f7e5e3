#pragma once

#include <tessera/nn/pipeline/pipeline_run.hpp>
#include <tessera/tensor/change/running_change.hpp>

#include <chrono>

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
      if (found == tied_.end()) found = tied_.insert(found, {p.held_apart(), p, tessera::detail::kept_name(p.path())});
      p = found->taken;
    }
  }
}

TESSERA_INLINE void pipeline_run::bring_tied(call_site at) const {
  for (const tied_parameter& p : tied_) {
    const tessera::engine::scoped_context here(*my().team, {.why = purpose::forward, .name = p.name, .at = at});
    static_cast<void>(p.taken.use());
  }
}

TESSERA_INLINE void pipeline_run::let_go_tied() const {
  for (const tied_parameter& p : tied_) p.taken.waiting().of->let_go();
}

TESSERA_INLINE tessera::engine::call_context pipeline_run::context_of_return(const batch& b, const tied_parameter& p) {
  return {.why = purpose::backward, .name = p.name, .at = b.at};
}

TESSERA_INLINE std::shared_ptr<tessera::engine::bound_change> pipeline_run::return_of(
    const tied_parameter& p, const tessera::engine::call_context& now) const {
  team_state& team = *my().team;
  const tensor<dyn>& stored = p.taken.stored();
  return tessera::detail::bound_change_of(team, team.intern(cotangent(p.taken.used())),
                                          team.intern(cotangent(stored.layout())), stored.type(), now);
}

TESSERA_INLINE void pipeline_run::return_tied(batch& b) {
  const at::NoGradGuard none;
  for (const tied_parameter& p : tied_) {
    const at::Tensor& stored = p.taken.stored().local();
    const tessera::engine::call_context context = context_of_return(b, p);
    const tessera::engine::scoped_context here(*my().team, context);
    const auto change = return_of(p, context);
    if (!is_learned(p.taken) || !change->workers().has(my().team->rank())) continue;
    const held_member where = p.taken.waiting();
    at::Tensor terms = where.of->take(where.used, where.as);
    if (!terms.defined()) terms = at::zeros_like(where.of->kept(where.used, where.as));
    terms = terms.to(stored.scalar_type());
    b.tied.push_back({&p, change, std::make_unique<tessera::engine::running_change>(*change, terms, context)});
    if (!stores(p)) where.of->give(at::zeros_like(stored), true);
  }
  for (const returned& one : b.tied) {
    if (!stores(*one.of)) continue;
    const tessera::engine::scoped_context here(*my().team, context_of_return(b, *one.of));
    const auto began = std::chrono::steady_clock::now();
    const at::Tensor sum = one.goes->finish();
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    one.of->known.waiting().of->give(sum, false);  // others may wait as well
  }
}

}  // namespace tessera::nn::engine
