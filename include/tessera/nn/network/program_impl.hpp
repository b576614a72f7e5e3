#pragma once

#include <tessera/nn/network/program.hpp>
#include <tessera/nn/network/program_memory.hpp>
#include <tessera/operation/network/multiply_adds.hpp>

#include <limits>

namespace tessera::nn {

TESSERA_INLINE dynamic_flow program::input(const tensor_value& x, std::string name) {
  tessera::engine::check(tessera::engine::check(x.layout), "an input");
  kept_->inputs.push_back({std::move(name), x});
  return {this, {-1, static_cast<int>(kept_->inputs.size()) - 1}};
}

TESSERA_INLINE void program::output(const dynamic_flow& y, std::string name) {
  const tensor_value& is = value_of(y);
  kept_->ends.push_back({std::move(name), is});
  kept_->outputs.push_back(y.from);
}

TESSERA_INLINE const tensor_value& program::value_of(const dynamic_flow& x) const {
  own(x);
  return x.from.node < 0
             ? kept_->inputs[static_cast<std::size_t>(x.from.index)].is
             : kept_->results[static_cast<std::size_t>(x.from.node)][static_cast<std::size_t>(x.from.index)];
}

TESSERA_INLINE void program::refuse(const refusal& why, const char* name) const {
  if (why.ok()) return;
  const auto here = writes_.here();
  tessera::engine::check(
      why, tessera::detail::layer_at(tessera::detail::path_of(kept_->scopes.data(), here.scope, here.next), name));
}

TESSERA_INLINE tessera::engine::arithmetic_value program::multiply_adds(index_t rows) const {
  const tessera::engine::arithmetic_value all = tessera::engine::arithmetic_of(finish().view, rows);
  tessera::engine::check(tessera::engine::check(all), "multiply_adds");
  return all;
}

TESSERA_INLINE tessera::engine::memory_value program::peak_memory(index_t rows) const {
  std::vector<tensor_value> inputs;
  for (const engine::program_end& x : kept_->inputs) inputs.push_back(x.is);
  const tessera::engine::memory_value all = tessera::engine::peak_memory_of(finish().view, inputs, rows);
  tessera::engine::check(tessera::engine::check(all), "peak_memory");
  return all;
}

TESSERA_INLINE program::finished program::finish() const {
  if (kept_->outputs.empty()) throw error(refusal{code::program_without_output});
  const auto own = std::make_shared<parts>(*kept_);
  own->values.resize(static_cast<std::size_t>(writes_.value_count));
  own->values.insert(own->values.end(), own->outputs.begin(), own->outputs.end());
  return {own,
          {own->nodes.data(), writes_.node_count, own->values.data(), writes_.value_count,
           static_cast<int>(own->outputs.size()), own->scopes.data(), static_cast<int>(own->inputs.size()),
           own->recomputed.data(), writes_.recomputed_count},
          own->inputs,
          own->ends};
}

TESSERA_INLINE void program::make_room(std::size_t operands) {
  kept_->nodes.resize(static_cast<std::size_t>(writes_.node_count) + 1);
  kept_->values.resize(static_cast<std::size_t>(writes_.value_count) + operands);
  kept_->scopes.resize(static_cast<std::size_t>(writes_.scope_count) + 1);
  kept_->recomputed.resize(static_cast<std::size_t>(writes_.recomputed_count) + 1);
  writes_.go_on_in(kept_->nodes.data(), kept_->values.data(), kept_->scopes.data(), kept_->recomputed.data());
}

TESSERA_INLINE std::vector<dynamic_flow> program::arrived(std::span<const dynamic_flow> x) {
  std::vector<dynamic_flow> there;
  for (const dynamic_flow& one : x) {
    const static_vector<layout, 3> way = stages_->leads(one.from, value_of(one).layout);
    dynamic_flow now = one;
    if (!way.empty()) {
      engine::program_value& moved = stages_->moved(one.from);
      for (int i = 0; i < way.count && moved.node < 0; ++i) {
        const auto own = std::make_shared<const engine::shared_layout>(way[i], 0, std::numeric_limits<int>::max());
        keep(own);
        const tessera::detail::change_to_layout move{{own->layout()}};
        now.from = {stages_->moving([&] { return add_node(engine::placed(move), false, std::span(&now, 1)); }), 0};
      }
      if (moved.node < 0) moved = now.from;
      now.from = moved;
    }
    there.push_back(now);
  }
  return there;
}

TESSERA_INLINE int program::add_node(std::unique_ptr<tessera::detail::placed_node> placed, bool numbered,
                                     std::span<const dynamic_flow> given) {
  std::optional<engine::node_stages::unit> here;
  std::vector<dynamic_flow> x(given.begin(), given.end());
  if (stages_ && !stages_->is_moving()) {
    here.emplace(*stages_);
    x = arrived(given);
  }
  std::vector<tensor_value> operands;
  std::vector<engine::program_value> from;
  for (const dynamic_flow& one : x) {
    operands.push_back(value_of(one));
    from.push_back(one.from);
  }
  placed->stand(std::move(operands), over_);
  const engine::node_record& record = placed->record;
  const layer_plan p = placed->plan();
  const int results = placed->results();
  refuse(p.why.ok() && p.outputs() != results ? refusal{code::other_results, p.outputs(), results} : p.why,
         record.name);
  std::vector<tensor_value> y;
  for (int i = 0; i < results; ++i) y.push_back({p.output(i), p.element_of(i, record.elements[0])});
  if (stages_) stages_->added(writes_.node_count, p, record.elements, writes_.times_again);
  make_room(x.size());
  kept_->records.emplace_back(std::shared_ptr<const tessera::detail::placed_node>(std::move(placed)), &record);
  kept_->results.push_back(std::move(y));
  return writes_.add(&record, std::span<const engine::program_value>(from), results, numbered);
}

TESSERA_INLINE void program::drop_since(const tessera::detail::recorder<engine::node_record>& before) {
  writes_ = before;
  recomputed_until_ = -1;
  kept_->records.resize(static_cast<std::size_t>(before.node_count));
  kept_->results.resize(static_cast<std::size_t>(before.node_count));
}

TESSERA_INLINE std::vector<dynamic_flow> program::add(std::unique_ptr<tessera::detail::placed_node> layer,
                                                      bool numbered, const std::vector<dynamic_flow>& x) {
  std::vector<engine::program_value> values(static_cast<std::size_t>(layer->results()));
  put(std::move(layer), numbered, x, values);
  std::vector<dynamic_flow> y;
  for (const engine::program_value& one : values) y.push_back({this, one});
  return y;
}

TESSERA_INLINE void program::put(std::unique_ptr<tessera::detail::placed_node> placed, bool numbered,
                                 std::span<const dynamic_flow> x, std::span<engine::program_value> y) {
  if (!replaced_.empty() && !placed->is_function()) {
    const auto here = writes_.here();
    const read_layer layer{tessera::detail::path_of(kept_->scopes.data(), here.scope, here.next), placed->record.name};
    for (std::size_t i = replaced_.size(); i-- > 0;) {
      if (!replaced_[i].holds(layer)) continue;
      struct again {
        std::vector<engine::replacement>& list;
        std::vector<engine::replacement> all;
        ~again() { list = std::move(all); }
      } const back{replaced_, replaced_};
      replaced_.erase(replaced_.begin() + static_cast<std::ptrdiff_t>(i));
      const std::vector<dynamic_flow> given = back.all[i].add({x.begin(), x.end()}, numbered);
      const auto wanted = static_cast<index_t>(y.size()), gives = static_cast<index_t>(given.size());
      refuse(wanted == gives ? refusal{} : refusal{code::other_results, gives, wanted}, layer.name);
      for (std::size_t r = 0; r < y.size(); ++r) y[r] = given[r].from;
      return;
    }
  }
  const int node = add_node(std::move(placed), numbered, x);
  for (std::size_t r = 0; r < y.size(); ++r) y[r] = {node, static_cast<int>(r)};
}

TESSERA_INLINE std::vector<tensor<dyn>> dynamic_network::called(std::span<const tensor<dyn>> x, call_site at) const {
  if (x.size() != inputs_.size())
    throw error(refusal{code::wrong_number_of_operands, inputs_.size(), x.size()}, team()->label());
  std::vector<const tensor<dyn>*> all;
  for (const tensor<dyn>& one : x) {
    engine::check(tessera::detail::check_fits({one.layout(), one.type()}, inputs_[all.size()].is), *one.team());
    all.push_back(&one);
  }
  return forward(all, at);
}

}  // namespace tessera::nn
