#pragma once

#include <tessera/operation/memory/layer_memory.hpp>
#include <tessera/operation/network/peak_memory.hpp>
#include <tessera/operation/plan/layer_arithmetic.hpp>
#include <tessera/operation/program/program.hpp>

#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace tessera {

namespace detail {

// Tables of a program that is put together while it runs.
template <class T>
struct numbered_as<T, at_run_time> {
  using type = std::vector<T>;
};

// What all its bundles take on their way.
template <class Record>
index_t bundles_between(const program_view<Record>& program) {
  std::deque<bundle_member> of_all;
  std::vector<const bundle_member*> members;
  for (int i = 0; i < program.count; ++i)
    if (!taken_before(program, i) && !takes_tied(program, i))
      each_bundled(program.nodes[i].record->plan(), program.nodes[i].record->elements,
                   [&](const bundle_member& m) { members.push_back(&of_all.emplace_back(m)); });
  index_t all = 0;
  each_bundle<at_run_time>(members.data(), static_cast<int>(members.size()),
                           [&](const bundle_kind& kind, const bundle_member* const* those, int n) {
                             all = capped_sum(all, bundle_between(kind, those, n));
                           });
  return all;
}

}  // namespace detail

namespace engine {

/// The memory of a program that is put together while it runs, where extents that only data give are `rows`; inputs
/// may have gradients.
template <class Record>
memory_value peak_memory_of(const program_view<Record>& program, std::span<const tensor_value> inputs, index_t rows,
                            bool inputs_have_gradients = false) {
  std::vector<index_t> given;
  const auto graded = std::make_unique<bool[]>(inputs.size());
  for (tensor_value x : inputs) {
    bind_rows(x.layout, rows);
    graded[given.size()] = inputs_have_gradients && has_cotangent(x.element);
    given.push_back(detail::bytes_held(x.layout, x.element));
  }
  std::vector<detail::layer_memory> each;
  for (const program_node<Record>& node : program) {
    layer_plan p = node.record->plan();
    bind_rows(p, rows);
    each.push_back(detail::memory_of(p, node.record->elements));
  }
  memory_value all = detail::memory_of_layers<detail::at_run_time, detail::at_run_time>(
      program, each.data(), given.data(), nullptr, graded.get());
  all.travelling = detail::capped_sum(all.travelling, detail::bundles_between(program));
  return all;
}

}  // namespace engine

}  // namespace tessera
