#pragma once

#include <tessera/primitive/verb.hpp>
#include <tessera/topology/layout.hpp>

#include <stdexcept>
#include <string_view>

/// What three workers carry as a verb: numbers enough that those of a node read them where they lie.
struct change_of_layout {
  tessera::layout from;
  tessera::layout to;
};

inline tessera::layout numbers(const tessera::mesh_value& mesh, tessera::engine::axis_placement how,
                               int cut_dimension = 0) {
  tessera::layout x;
  x.mesh = mesh;
  how.dimension = static_cast<signed char>(cut_dimension);
  x.placements.push(how);
  for (int i = 0; i < 2; ++i) {
    tessera::engine::dimension d;
    d.extent = 120;
    x.dims.push(d);
  }
  return x;
}

inline change_of_layout verb_named(std::string_view name, const tessera::mesh_value& mesh) {
  using tessera::placement, tessera::verb;
  const auto all = [&](tessera::engine::axis_placement r, int dimension = 0) { return numbers(mesh, r, dimension); };
  const tessera::layout copies = all({}), rows = all({placement::cut}), columns = all({placement::cut}, 1),
                        terms = all({placement::partial}), first = all(tessera::engine::held_on(0));
  tessera::layout dealt = rows;
  dealt.dims[0].balance(7);
  tessera::layout haloed = rows.halo(0, {3, 1, 1, 1, 1});
  const auto is = [&](verb v) { return name == tessera::engine::name_of(v); };
  if (is(verb::broadcast)) return {first, copies};
  if (is(verb::sum_reduce)) return {terms, first};
  if (is(verb::all_reduce)) return {terms, copies};
  if (is(verb::all_gather)) return {rows, copies};
  if (is(verb::reduce_scatter)) return {terms, rows};
  if (is(verb::scatter)) return {first, rows};
  if (is(verb::gather)) return {rows, first};
  if (is(verb::all_to_all)) return {rows, columns};
  if (is(verb::repartition)) return {rows, dealt};
  if (is(verb::halo_exchange)) return {rows, haloed};
  if (is(verb::halo_accumulate)) return {tessera::cotangent(haloed), tessera::cotangent(rows)};
  throw std::invalid_argument("no verb: " + std::string(name));
}
