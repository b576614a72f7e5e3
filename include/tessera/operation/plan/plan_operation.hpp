#pragma once

#include <tessera/operation/plan/signature_products.hpp>

namespace tessera {

/// A parameter of a layer of one's own: its serial name, and how it begins (as zeros unless said).
struct own_parameter {
  const char* name = nullptr;
  initial_value initial{};
};

namespace detail {

/// The plan of a layer that is one local operation on an operand, which others join: what comes out is its result.
constexpr layer_plan one_operation(const layout& given, const layout& used, const signature& op,
                                   const static_vector<operand, 4>& operands) {
  const inferred y = infer(op, operands);
  layer_plan p;
  p.add_input(given, used);
  p.add_output(y.layout);
  p.why = y.why;
  return p;
}

// The layout in which a parameter with some of x's dimensions meets x: cut where x is, copies of the same kind
// elsewhere.
constexpr refusal meet_parameter(const layout& x, const letters& input, const letters& of, layout& used) {
  used.mesh = x.mesh;
  used.placements.resize(x.placements.count);
  for (char letter : of) {
    const int d = index_of(input, letter);
    if (d < 0) return refusal{code::letter_from_nowhere, index_of(of, letter)};
    if (x.dims[d].extent == dynamic) return refusal{code::extent_not_static, d};
    if (!x.has_each_once(d)) return refusal{code::dimension_needed_whole, 0, d};
    used.dims.push(x.dims[d]);
  }
  for (int a = 0; a < x.placements.count; ++a) {
    const axis_placement& r = x.placements[a];
    used.placements[a] = r;
    if (r.kind == placement::partial) used.placements[a] = {};
    if (r.kind == placement::cut) {
      used.placements[a].dimension = static_cast<signed char>(index_of(of, input[r.dimension]));
      if (used.placements[a].dimension < 0) used.placements[a] = {};
    }
  }
  return {};
}

}  // namespace detail

/// Plans a layer that is one local operation: its signature's first operand is the input, the others are parameters,
/// each with dimensions of the input. They lie cut where the input is, and their gradients are summed over whatever
/// else cuts it.
template <class... Parameters>
constexpr layer_plan plan_operation(const signature& op, const layout& x, const Parameters&... own) {
  layer_plan p;
  p.why = op.check();
  if (!p.why.ok()) return p;
  constexpr int given = 1 + static_cast<int>(sizeof...(own));
  if (given > decltype(signature::operands)::capacity)
    return engine::refused_layer(refusal{code::signature_too_large, given, 0});
  if (op.operands.count != given) {
    p.why = refusal{code::wrong_number_of_operands, op.operands.count, given};
    return p;
  }
  if (op.operands[0].count != x.dims.count) {
    p.why = refusal{code::layer_takes_other_dimensions, op.operands[0].count, x.dims.count};
    return p;
  }
  static_vector<operand, 4> operands = engine::no_items<operand, 4>;
  operands.push({x, false});
  static_vector<parameter_value, 3> parameters;
  [[maybe_unused]] const auto add = [&](const own_parameter& w) {
    layout used;
    if (p.why.ok()) p.why = detail::meet_parameter(x, op.operands[0], op.operands[operands.count], used);
    parameters.push({w.name, stored_form(used), used, w.initial});
    operands.push({used, false});
  };
  (add(own), ...);
  if (!p.why.ok()) return p;
  p = detail::one_operation(x, x, op, operands);
  for (const parameter_value& w : parameters) p.add_parameter(w);
  engine::count_products(p, op);
  return p;
}

}  // namespace tessera
