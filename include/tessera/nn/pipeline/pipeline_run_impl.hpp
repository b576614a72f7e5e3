#pragma once

#include <tessera/nn/pipeline/pipeline_run.hpp>

#include <algorithm>
#include <chrono>
#include <sstream>

namespace tessera::nn::engine {

TESSERA_INLINE pipeline_run::pipeline_run(const executor& net, std::vector<tensor_value> inputs, std::string_view axis,
                                          const pipeline::extent& of, operations all, pipeline_options options)
    : inputs_(std::move(inputs)), of_(of), operations_(std::move(all)), options_(std::move(options)) {
  net.here();
  net_.state_ = net.state_;
  const mesh_value& mesh = my().team->mesh();
  axis_ = mesh.find(text(axis.data(), static_cast<int>(axis.size())));
  const index_t extent = axis_ < 0 ? 0 : mesh.axes[axis_].extent;
  check(extent == of.stages ? refusal{} : refusal{code::no_stage_axis, of.stages, extent}, axis);
  coordinates at;
  if (mesh.locate(my().team->rank(), at)) stage_ = at[axis_];

  std::vector<staged_node> nodes;
  std::vector<layout> lie(static_cast<std::size_t>(my().program.inputs));
  std::vector<const char*> called;
  for (const executor::step& s : my().steps) {
    const layer_plan p = s.record->plan();
    nodes.push_back({s.operands, s.first_result, static_cast<std::size_t>(p.outputs()), s.record->moves_only});
    called.push_back(s.called);
    for (std::size_t i = 0; i < s.operands.size(); ++i) lie[s.operands[i]] = p.given(static_cast<int>(i));
    for (int r = 0; r < p.outputs(); ++r) lie.push_back(p.output(r));
  }
  std::vector<const layout*> values;
  for (const layout& x : lie) values.push_back(&x);
  map_ = stages_of(nodes, values, axis_, of_, called);
  take_states();
  crossed_.assign(nodes.size(), nullptr);
  for (const crossing& c : map_.crossings) {
    const std::string word = fmt::format("crossing {}", &c - map_.crossings.data());
    names_.push_back(tessera::detail::kept_name(c.node == crossing::no_node ? word : word + ", " + called[c.node]));
    if (c.node != crossing::no_node) crossed_[c.node] = &c;
  }
  for (const executor::recomputed_steps& r : my().recomputed)
    for (std::size_t i = r.first; i < r.end; ++i)
      if (crossed_[i] != nullptr || map_.part[i] != map_.part[r.first])
        throw error(refusal{code::recomputed_over_stages, of_.stage_of(map_.part[r.first])}, called[i]);
  const auto count_of = [&](pipeline::work does) {
    index_t count = 0;
    for (const auto& list : operations_)
      count += std::count_if(list.begin(), list.end(), [&](const pipeline::operation& x) { return x.does == does; });
    return count;
  };
  const index_t steps = count_of(pipeline::work::step), functions = options_.step ? 1 : 0;
  check((steps > 0) == (functions > 0) ? refusal{} : refusal{code::pipeline_steps, steps, functions}, axis);
  const bool apart = !options_.forward && !options_.backward && count_of(pipeline::work::backward_of_weights) > 0;
  for (int part = 0; part < of_.parts(); ++part)
    weighted_.push_back(apart ? steps_with_weights(part) : std::vector<std::size_t>{});
}

TESSERA_INLINE std::vector<tensor<dyn>> pipeline_run::run(std::span<const tensor<dyn>> inputs, bool trains, bool last,
                                                          call_site at) {
  using pipeline::work;
  batch b = begin(inputs, trains, at);
  b.last = last;
  bring_tied(at);
  times_.clear();
  const auto began = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  if (stage_ >= 0) {
    const std::vector<pipeline::operation>& mine = operations_[static_cast<std::size_t>(stage_)];
    const auto goes_back = [](const pipeline::operation& x) { return x.does != work::forward && x.does != work::step; };
    b.backwards_left = static_cast<std::size_t>(std::count_if(mine.begin(), mine.end(), goes_back));
    for (const pipeline::operation& x : mine) {
      if ((x.does != work::forward && !trains) || (x.does == work::step && !last)) continue;
      if (goes_back(x)) --b.backwards_left;
      const double begins = seconds();
      waited_ = 0;
      try {
        if (x.does == work::forward) forward(b, x);
        else if (x.does == work::backward_of_weights) backward_of_weights(b, x);
        else if (x.does == work::step) step(b, x);
        else backward(b, x);
      } catch (const std::exception& e) {
        if (my().team->carrier().failure()) throw;
        const char* const word = x.does == work::forward ? "forward" : x.does == work::step ? "step" : "backward";
        std::throw_with_nested(
            error(refusal{code::pipeline_failed, stage_, x.micro_batch}, fmt::format("{}: {}", word, e.what())));
      }
      times_.push_back({x, begins, waited_, seconds()});
    }
    for (int s = 0; s < of_.stages; ++s) end_taken(s, ~std::size_t{0});
  }
  if (trains) complete_gradients(b);
  for (returned& one : b.tied) one.goes->finish();
  let_go_tied();
  return leave(b);
}

TESSERA_INLINE std::vector<std::vector<pipeline::timed_operation>> pipeline_run::timeline() const {
  team_state& team = *my().team;
  std::string mine = fmt::format("{}", stage_);
  for (const pipeline::timed_operation& x : times_)
    mine += fmt::format(" {} {} {} {} {} {}", static_cast<int>(x.does.does), x.does.micro_batch, x.does.chunk, x.begins,
                        x.waits, x.ends);
  std::vector<std::vector<pipeline::timed_operation>> all;
  all.resize(static_cast<std::size_t>(of_.stages));
  for (const std::string& text : team.collect_text(mine)) {
    std::istringstream words(text);
    int stage = -1, does = 0;
    words >> stage;
    if (stage < 0 || !all[static_cast<std::size_t>(stage)].empty()) continue;
    for (pipeline::timed_operation x;
         words >> does >> x.does.micro_batch >> x.does.chunk >> x.begins >> x.waits >> x.ends;) {
      x.does.does = static_cast<pipeline::work>(does);
      all[static_cast<std::size_t>(stage)].push_back(x);
    }
  }
  return all;
}

TESSERA_INLINE tessera::engine::call_context pipeline_run::context_of(const batch& b, const crossing& c,
                                                                      bool back) const {
  return {.why = back ? purpose::backward : purpose::forward, .name = names_[number_of(c)], .at = b.at, .order = 1};
}
TESSERA_INLINE std::shared_ptr<tessera::engine::bound_change> pipeline_run::change_of(
    const micro_batch& m, const crossing& c, bool back, const tessera::engine::call_context& now) const {
  team_state& team = *my().team;
  const tessera::engine::shared_layout_handle &from = m.bound->where[c.from], &to = m.bound->where[c.to];
  const element e = m.bound->elements[c.from];
  if (!back) return tessera::detail::bound_change_of(team, from, to, e, now);
  return tessera::detail::bound_change_of(team, team.intern(cotangent(to->layout())),
                                          team.intern(cotangent(from->layout())), e, now);
}
TESSERA_INLINE std::size_t pipeline_run::maker_of(std::size_t v) const {
  const auto& steps = my().steps;
  const auto behind = std::upper_bound(
      steps.begin(), steps.end(), v, [](std::size_t value, const executor::step& s) { return value < s.first_result; });
  return static_cast<std::size_t>(behind - steps.begin()) - 1;
}
TESSERA_INLINE std::size_t pipeline_run::output_of(std::size_t k) const {
  std::size_t v = my().outputs[k];
  while (map_.made_in[v] == stage_map::behind) v = my().steps[maker_of(v)].operands[0];
  return v;
}
TESSERA_INLINE bool pipeline_run::has_gradient(const batch& b, const crossing& c) const {
  return has_cotangent(b.bound->elements[c.from]);
}

TESSERA_INLINE std::size_t pipeline_run::place_of(int part, pipeline::work does, int m) const {
  const auto& list = operations_[static_cast<std::size_t>(of_.stage_of(part))];
  const auto is = [&](const pipeline::operation& x) {
    const bool alike = does == pipeline::work::forward
                           ? x.does == does
                           : x.does == pipeline::work::backward || x.does == pipeline::work::backward_of_inputs;
    return alike && x.chunk == part / of_.stages && x.micro_batch == m;
  };
  return static_cast<std::size_t>(std::find_if(list.begin(), list.end(), is) - list.begin());
}

TESSERA_INLINE void pipeline_run::send(const batch& b, const crossing& c, const at::Tensor& x,
                                       const pipeline::operation& of, bool back) {
  const tessera::engine::call_context context = context_of(b, c, back);
  const tessera::engine::scoped_context here(*my().team, context);
  const auto change = change_of(b.of[static_cast<std::size_t>(of.micro_batch)], c, back, context);
  if (change->stays()) return;
  const int part = back ? c.sender : c.receiver;
  const std::size_t taken_at = place_of(part, of.does, of.micro_batch);
  under_way_.push_back({of_.stage_of(part), taken_at, change,
                        std::make_unique<tessera::engine::running_change>(*change, x.detach(), context)});
}

TESSERA_INLINE at::Tensor pipeline_run::receive(const batch& b, const crossing& c, const pipeline::operation& of,
                                                bool back) {
  const tessera::engine::call_context context = context_of(b, c, back);
  const tessera::engine::scoped_context here(*my().team, context);
  const auto change = change_of(b.of[static_cast<std::size_t>(of.micro_batch)], c, back, context);
  const at::TensorOptions options =
      tessera::detail::options_of(*my().team, tessera::detail::scalar_type_of(b.bound->elements[c.from]));
  const auto room = [&](const tessera::engine::box_vector& sizes) {
    return tessera::detail::empty_box(at::IntArrayRef(sizes.begin(), sizes.end()), options);
  };
  if (change->stays()) return room(change->to()->extents());
  tessera::engine::running_change comes(*change, room(change->from()->extents()), context);
  const auto began = std::chrono::steady_clock::now();
  const at::Tensor y = comes.finish();
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const int part = back ? c.receiver : c.sender;
  end_taken(of_.stage_of(part), place_of(part, of.does, of.micro_batch));
  return y;
}

TESSERA_INLINE void pipeline_run::end_taken(int stage, std::size_t before) {
  for (auto s = under_way_.begin(); s != under_way_.end();) {
    if (s->stage != stage || s->taken_at >= before) {
      ++s;
      continue;
    }
    s->goes->finish();
    s = under_way_.erase(s);
  }
}

}  // namespace tessera::nn::engine
