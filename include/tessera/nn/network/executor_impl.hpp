#pragma once

#include <tessera/nn/gradient/held_gradients.hpp>
#include <tessera/nn/network/check_replicas.hpp>
#include <tessera/nn/network/executor_run_impl.hpp>
#include <tessera/nn/network/program_path.hpp>

#include <algorithm>
#include <exception>
#include <mutex>
#include <set>

namespace tessera::detail {

/// A layer's name in messages, also of a backward that outlives its network; it is kept as long as the process runs.
inline const char* kept_name(const std::string& name) {
  static std::mutex one_at_a_time;
  static std::set<std::string> all;
  const std::lock_guard lock(one_at_a_time);
  return all.insert(name).first->c_str();
}

/// Whether two layouts differ in nothing but the coordinates of axes on which alone they lie.
inline bool differ_by_place(layout a, const layout& b) {
  if (!(a.mesh == b.mesh)) return false;
  for (int i = 0; i < a.placements.count; ++i)
    if (a.placements[i].kind == placement::on && b.placements[i].kind == placement::on)
      a.placements[i] = b.placements[i];
  return a == b;
}

}  // namespace tessera::detail

namespace tessera::nn::engine {

TESSERA_INLINE executor::state::state(team_handle of, const program_type& p, std::shared_ptr<const void> owner)
    : team(std::move(of)), program(p), kept(std::move(owner)) {
  std::size_t values = static_cast<std::size_t>(p.inputs);
  const auto index_of = [&](const program_value& v) {
    return static_cast<std::size_t>(v.index) + (v.node < 0 ? 0 : steps[static_cast<std::size_t>(v.node)].first_result);
  };
  for (const auto& node : p) {
    step s{node.record, tessera::detail::path_of(p, node), steps.size(), {}, {}, values, {}, node.scalar, nullptr,
           nullptr};
    for (std::size_t i = 0;
         i < steps.size() && node.scope >= 0 && p.scopes[node.scope].shared && s.owner == steps.size(); ++i)
      if (p.nodes[i].scope == node.scope && p.nodes[i].number == node.number) s.owner = i;
    for (int i = 0; i < node.operands; ++i) s.operands.push_back(index_of(p.operand(node, i)));
    const layer_plan typed = node.record->plan();
    for (int i = 0; i < typed.inputs(); ++i) s.open.push_back(open_dimensions(typed.given(i)));
    s.called = tessera::detail::kept_name(tessera::detail::layer_at(s.path, s.record->name));
    s.seen = std::make_shared<const observed_node>(observed_node{observer, s.path, s.record->name});
    values += static_cast<std::size_t>(node.results);
    steps.push_back(std::move(s));
  }
  bound_steps.resize(steps.size());
  for (int i = 0; i < p.outputs; ++i) outputs.push_back(index_of(p.output(i)));
  std::vector<bool> read(values);
  for (const std::size_t v : outputs) read[v] = true;
  for (std::size_t i = steps.size(); i-- > 0;)
    for (const std::size_t v : steps[i].operands) {
      if (!read[v]) steps[i].done_with.push_back(v);
      read[v] = true;
    }
  for (int i = 0; i < p.recomputed_count; ++i) {
    recomputed_steps part{
        static_cast<std::size_t>(p.recomputed[i].first), static_cast<std::size_t>(p.recomputed[i].end), {}, {}};
    if (part.first == part.end) continue;
    const std::size_t begin = steps[part.first].first_result;
    const std::size_t end = part.end < steps.size() ? steps[part.end].first_result : values;
    std::set<std::size_t> in, out;
    for (std::size_t k = 0; k < steps.size(); ++k)
      for (const std::size_t v : steps[k].operands) {
        const bool inside = k >= part.first && k < part.end;
        if (inside && v < begin) in.insert(v);
        if (!inside && v >= begin && v < end) out.insert(v);
      }
    for (const std::size_t v : outputs)
      if (v >= begin && v < end) out.insert(v);
    part.reads.assign(in.begin(), in.end());
    part.gives.assign(out.begin(), out.end());
    recomputed.push_back(std::move(part));
  }
}

TESSERA_INLINE void executor::state::note_copies() const {
  left->clear();
  if (calls == 0 || compared_every == 0) return;
  tessera::detail::keyed_parameters all;
  for (const layer_state& layer : states)
    for (const parameter& p : layer.parameters) all.emplace(p.path(), &p);
  *left = tessera::detail::copies_of(all);
}
TESSERA_INLINE executor::state::~state() {
  if (std::uncaught_exceptions() > 0 || team->checks == checks::never || team->carrier().ended()) return;
  try {
    note_copies();
  } catch (...) {  // what cannot be read any more is not compared
  }
}

TESSERA_INLINE executor::executor(const team_handle& team, const seed& s, const program_type& program,
                                  std::shared_ptr<const void> kept)
    : state_(std::make_shared<state>(team, program, std::move(kept))) {
  begin(s, nullptr);
}

TESSERA_INLINE executor::executor(const network_part& of, const program_type& program, std::shared_ptr<const void> kept)
    : state_(std::make_shared<state>(of.team, program, std::move(kept))) {
  begin(of.begun, &of);
}

TESSERA_INLINE void executor::begin(const seed& s, const network_part* of) {
  state& my = *state_;
  my.begun = s;
  fingerprint f;
  std::set<std::string> paths;
  network_part known = of == nullptr ? network_part{} : *of;
  const bool one_layer = of != nullptr && my.steps.size() == 1 && of->is_one_layer();  // it has the part's own keys
  for (std::size_t i = 0; i < my.steps.size(); ++i) {
    const step& now = my.steps[i];
    const layer_plan p = now.record->plan();
    const auto find_or_make = [&](auto& all, const char* name, const layout& stored, element e,
                                  const auto& make) -> const auto& {
      const std::string prefix = one_layer ? std::string() : now.path;
      const std::string path = prefix + (prefix.empty() || *name == 0 ? "" : ".") + name;
      const std::string key = s.key(path);
      if (now.owner == i && !paths.insert(path).second) throw error(refusal{code::parameter_named_twice}, path);
      if (now.owner == i && of == nullptr) all.emplace(key, make(path));
      const auto found = all.find(key);
      if (found == all.end())
        throw error(refusal{of == nullptr ? code::shared_differ : code::parameter_not_shared}, key);
      const layout& lies = found->second.stored().layout();
      const bool elsewhere = now.owner != i && tessera::detail::differ_by_place(lies, stored);  // on another stage
      if (!(same(lies, stored) || elsewhere) || found->second.stored().type() != e)
        throw error(refusal{code::shared_differ}, key);
      f << stored;
      return found->second;
    };
    layer_state& own = my.states.emplace_back();
    for (int k = 0; k < p.parameters(); ++k) {
      const parameter_value w = p.parameter(k);
      const element e = p.parameter_element(k, now.record->elements[0]);
      const element comes = p.parameter_comes_as(k, now.record->elements[0]);
      const auto make = [&](const std::string& path) {
        return parameter(my.team, path, w, e, s).used_as(w.used, comes, p.times(k));
      };
      const parameter& kept = find_or_make(known.parameters, w.name, w.stored, e, make);
      const bool held = p.held(k);
      if (kept.frozen() != w.frozen || holds(kept.times()) != held)
        throw error(refusal{code::shared_differ}, kept.path());
      const bool elsewhere = !same(kept.stored().layout(), w.stored);  // each call brings it, unless a pipeline does
      const auto rewrites = [&](const step& one) { return one.owner == now.owner && one.record->plan().rewritten(k); };
      if (elsewhere && std::any_of(my.steps.begin(), my.steps.end(), rewrites))
        throw error(refusal{code::shared_rewritten}, kept.path());
      own.parameters.push_back(kept.used_as(w.used, comes, elsewhere ? gathering::once : p.times(k)));
      f << w.used;
    }
    for (int k = 0; k < p.buffers(); ++k) {
      const buffer_value b = p.buffer(k);
      const auto make = [&](const std::string& path) { return buffer(my.team, path, b, s); };
      own.buffers.push_back(find_or_make(known.buffers, b.name, b.stored, b.element, make));
    }
    for (int k = 0; k < p.inputs(); ++k) f << p.given(k);
    for (int k = 0; k < p.outputs(); ++k) f << p.output(k);
  }
  f << s.value << text(s.path.data(), static_cast<int>(s.path.size())).hash;
  my.lineage = tessera::detail::next_lineage(*my.team, my.team->mesh());
  if (my.team->inside())
    my.team->agree(f.value(), "making a network", [&] {
      return fmt::format("making a network of {} layers, seed {} {}", my.program.count, s.value, s.path);
    });
  if (of == nullptr) compare_at_the_end();
  hear_of_bundled();
}

TESSERA_INLINE const std::shared_ptr<engine::held_gradients>& executor::held_gradients() const {
  state& my = here();
  if (my.held) return my.held;
  std::vector<held_member> members;
  for (const layer_state& layer : my.states)
    for (const parameter& p : layer.parameters)
      if (const held_member one = p.waiting();
          holds(p.times()) && !p.frozen() && std::find(members.begin(), members.end(), one) == members.end())
        members.push_back(one);
  my.held = std::make_shared<engine::held_gradients>(my.team, std::move(members));
  return my.held;
}

TESSERA_INLINE void executor::hear_of_bundled() const {
  bool unheard = false;
  for (const layer_state& layer : here().states)
    for (const parameter& p : layer.parameters)
      if (p.times() == gathering::bundled && !p.frozen()) unheard = unheard || !p.waiting().of->is_heard(p.waiting());
  if (unheard) held_gradients()->reduce_always({});
}

TESSERA_INLINE void executor::begin_call() const {
  each_parameter([](const parameter& p) { p.doubt(); });
}

TESSERA_INLINE executor::executor(const executor& other, copying)
    : state_(std::make_shared<state>(other.team(), other.state_->program, other.state_->kept)) {
  state_->training = other.training();
  state_->begun = other.state_->begun;
  state_->lineage = tessera::detail::next_lineage(*other.team(), other.team()->mesh());
  state_->calls = other.state_->calls;
  state_->calls_without_training = other.state_->calls_without_training;
  state_->compared_every = other.state_->compared_every;
  state_->compares_indices = other.state_->compares_indices;
  network_part known;
  const auto cloned = [](auto& all, const auto& one) -> const auto& {
    const auto found = all.find(one.path());
    return found == all.end() ? all.emplace(one.path(), one.clone()).first->second : found->second;
  };
  for (const layer_state& layer : other.state_->states) {
    layer_state& mine = state_->states.emplace_back();
    for (const parameter& p : layer.parameters)
      mine.parameters.push_back(cloned(known.parameters, p).used_as(p.used(), p.comes_as(), p.times()));
    for (const buffer& b : layer.buffers) mine.buffers.push_back(cloned(known.buffers, b));
  }
  compare_at_the_end();
  hear_of_bundled();
}

TESSERA_INLINE void executor::compare_at_the_end() const {
  constexpr std::size_t most = 64;
  if (here().team->checks == checks::never) return;
  auto& exit_hooks = here().team->carrier().exit_hooks;
  exit_hooks.push_back([team = std::weak_ptr(here().team), here = std::weak_ptr(state_), left = here().left] {
    const team_handle at = team.lock();
    if (const auto lives = here.lock()) lives->note_copies();
    if (!at || left->empty()) return;
    const scoped_context now(*at, {.name = "comparing copies at the end"});
    tessera::detail::agree_on_copies(at, *left);
  });
  if (exit_hooks.size() > most) exit_hooks.pop_front();
}

TESSERA_INLINE bool executor::compares_now() const {
  state& my = here();
  index_t& calls = my.training ? my.calls : my.calls_without_training;
  ++calls;
  const checks how = my.team->checks;
  const index_t every = my.compared_every.value_or(how == checks::never ? 0 : usual);
  return every > 0 && ((my.training && calls % every == 0) || compares(how, static_cast<std::uint64_t>(calls)));
}

TESSERA_INLINE std::vector<at::Tensor> executor::parameters() const {
  std::vector<at::Tensor> all;
  each_parameter([&](const parameter& p) { all.push_back(p.stored().local()); });
  return all;
}

TESSERA_INLINE network_part executor::at(std::string_view path) const {
  network_part all{team(), path.empty() ? here().begun : here().begun.at(path), {}, {}};
  each_parameter([&](const parameter& p) { all.parameters.emplace(p.path(), p); });
  each_buffer([&](const buffer& b) { all.buffers.emplace(b.path(), b); });
  return all;
}

TESSERA_INLINE std::vector<tensor<dyn>> executor::forward(std::span<const tensor<dyn>* const> inputs,
                                                          call_site at) const {
  state& my = here();
  for (const tensor<dyn>* x : inputs)
    if (x->team()->shared_carrier() != my.team->shared_carrier())
      throw error(refusal{code::other_team}, my.team->label());
  const std::shared_ptr<const bound_program> bound = bound_for(inputs);
  begin_call();
  std::vector<at::Tensor> values(bound->where.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[i] = inputs[i]->local();
  const auto now = std::make_shared<const run>(state_, bound, at);
  now->all(values);
  if (compares_now()) agree_on_copies(*this, at);
  std::vector<tensor<dyn>> outputs;
  fingerprint from;
  from << my.lineage;
  for (const tensor<dyn>* x : inputs) from << x->lineage();
  for (const std::size_t v : my.outputs)
    outputs.push_back(
        tessera::detail::tensor_of(my.team, now->where(v), values[v], tessera::detail::lineage_of(v, {from.value()})));
  return outputs;
}

}  // namespace tessera::nn::engine
