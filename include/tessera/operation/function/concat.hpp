#pragma once

#include <tessera/operation/function/shaping.hpp>
#include <tessera/plan/all_reduce_cost.hpp>

namespace tessera {

namespace detail {

/// Layouts in which tensors are concatenated: along the dimension, each is cut as its range of one tiling. Each worker
/// has its part of the result when it puts its boxes end to end.
struct end_to_end {
  refusal why;
  static_vector<layout, 4> used = no_items<layout, 4>;

  constexpr void add(const tensor_value& x, const layout& range) {
    why = first_of(why, check_change(x.layout, range));
    used.push(range);
  }
};

constexpr index_t extent_of_all(const static_vector<tensor_value, 4>& x, int dim) {
  index_t n = 0;
  for (const tensor_value& one : x)
    if (n != dynamic) n = one.layout.dims[dim].extent == dynamic ? dynamic : n + one.layout.dims[dim].extent;
  return n;
}

// Operands that do not cut the dimension.
constexpr end_to_end as_they_lie(const static_vector<tensor_value, 4>& x) {
  end_to_end all;
  for (const tensor_value& one : x) all.used.push(one.layout);
  return all;
}

// Each operand in its range of the dimension as `like` cuts it, balanced; along other axes and dimensions as it was.
constexpr end_to_end ranges_as(const static_vector<tensor_value, 4>& x, int dim, const layout& like) {
  end_to_end all;
  index_t begin = 0;
  dimension tiling = like.dims[dim];
  tiling.tile();
  tiling.tag = {};
  tiling.extent = extent_of_all(x, dim);
  tiling.balance(tiling.grain());
  for (const tensor_value& one : x) {
    layout used = one.layout;
    const index_t length = used.dims[dim].extent;
    for (int a = 0; a < used.placements.count; ++a) {
      const placement kept = like.placements[a].kind;
      if (used.placements[a].kind == placement::cut && used.placements[a].dimension == dim)
        used.placements[a] = {kept == placement::invariant ? kept : placement::replicate};
    }
    used.dims[dim] = tiling;
    for (int level = 0; level < like.levels(dim); ++level) {
      const int a = like.cutter(dim, level);
      const placement now = used.placements[a].kind;
      if (now == placement::replicate || now == placement::invariant) used.placements[a] = like.placements[a];
    }
    used.close_levels(dim);
    used.dims[dim].narrow(begin, length);
    all.add(one, used);
    begin += length;
  }
  return all;
}

// The same of a partition that is named.
constexpr end_to_end ranges_of(const static_vector<tensor_value, 4>& x, int dim, const layout& named) {
  end_to_end all;
  index_t begin = 0;
  for (const tensor_value& one : x) {
    layout used = named;
    for (int d = 0; d < used.dims.count; ++d) {
      const dimension& given = one.layout.dims[d];
      used.dims[d].extent = d == dim && used.levels(d) > 0 ? extent_of_all(x, dim) : given.extent;
      used.dims[d].tag = given.tag;
    }
    if (used.levels(dim) > 0) used.dims[dim].narrow(begin, one.layout.dims[dim].extent);
    all.add(one, used);
    begin += one.layout.dims[dim].extent;
  }
  return all;
}

// What it moves, of one element along each dimension that is not known.
constexpr index_t moved(const static_vector<tensor_value, 4>& x, const end_to_end& to) {
  if (!to.why.ok()) return INT64_MAX;
  index_t n = 0;
  for (int o = 0; o < x.count; ++o) {
    layout from = x[o].layout;
    layout target = to.used[o];
    for (int d = 0; d < from.dims.count; ++d)
      if (from.dims[d].extent == dynamic) from.dims[d].extent = target.dims[d].extent = 1;
    n = capped_sum(n, cost_between(from, target).total);
  }
  return n;
}

}  // namespace detail

namespace functions {

/// Tensors one behind the other along a dimension. Where an operand cuts it, each is taken to its range of the result,
/// which lies in partition Q. Without Q the result is balanced, and cut as the operand whose cut moves least.
template <int Dim, class Q = void>
struct concat : engine::function {
  static constexpr const char* name = "concat";
  static constexpr engine::saved saves = engine::saved::passes;

  template <class... Values>
  constexpr engine::function_value on(const tensor_value& x, const Values&... rest) const {
    const operands all = listed(x, rest...);
    const tessera::detail::end_to_end to = taken(all);
    if (!to.why.ok()) return {{}, to.why};
    signature s;
    s.kind = engine::linearity::additive;
    s.result = engine::letters_of(x.layout.dims.count);
    static_vector<operand, 4> used = engine::no_items<operand, 4>;
    for (int o = 0; o < all.count; ++o) {
      engine::letters own = s.result;
      own[Dim] = static_cast<char>('A' + o);
      s.operands.push(own);
      const char letter[]{own[Dim], 0};
      s = s.concatenated(letter, 'Z');
      used.push({to.used[o], !engine::has_cotangent(x.element)});
    }
    s.result[Dim] = 'Z';
    const inferred y = infer(s, used);
    return {{y.layout, x.element}, y.why};
  }

  template <class... Values>
  constexpr engine::exchange_values exchanges(const tensor_value& x, const Values&... rest) const {
    const operands all = listed(x, rest...);
    const tessera::detail::end_to_end to = taken(all);
    engine::exchange_values each = engine::no_items<engine::exchange_value, 4>;
    for (int o = 0; o < to.used.count; ++o) each.push({all[o].layout, to.used[o], x.element});
    return each;
  }

 private:
  using operands = static_vector<tensor_value, 4>;

  template <class... Values>
  static constexpr operands listed(const Values&... x) {
    operands all = engine::no_items<tensor_value, 4>;
    if constexpr (sizeof...(x) <= operands::capacity) (all.push(x), ...);
    return all;
  }

  static constexpr tessera::detail::end_to_end taken(const operands& x) {
    if (x.empty()) return {refusal{code::signature_too_large, operands::capacity + 1, 0}};
    const int rank = x[0].layout.dims.count;
    bool cuts = false;
    for (int o = 0; o < x.count; ++o) {
      if (x[o].element != x[0].element)
        return {refusal{code::wrong_element, static_cast<int>(x[0].element), static_cast<int>(x[o].element)}};
      if (x[o].layout.dims.count != rank)
        return {refusal{code::operand_of_other_dimensions, o, rank, x[o].layout.dims.count}};
      if (const refusal why = engine::check_dims<Dim>(rank); !why.ok()) return {why};
      cuts = cuts || x[o].layout.levels(Dim) > 0;
    }
    for (int o = 0; o < x.count && (cuts || !std::is_void_v<Q>); ++o)
      if (!(x[o].layout.mesh == x[0].layout.mesh)) return {refusal{code::meshes_differ, o}};
    if constexpr (std::is_void_v<Q>) {
      return cuts ? least(x) : tessera::detail::as_they_lie(x);
    } else if constexpr (PartitionType<Q>) {
      const auto& named = tessera::detail::partition_draft<Q>::value;
      if (!named.why.ok()) return {named.why};
      if (named.value.dims.count != rank)
        return {refusal{code::wrong_number_of_dimensions, named.value.dims.count, rank}};
      if (!(named.value.mesh == x[0].layout.mesh)) return {refusal{code::meshes_differ, 0}};
      if (named.value.dims[Dim].zigzag) return {refusal{code::interval_wanted, Dim}};
      if (named.value.levels(Dim) > 0 && tessera::detail::extent_of_all(x, Dim) == dynamic)
        return {refusal{code::ranges_not_known, Dim}};
      return tessera::detail::ranges_of(x, Dim, named.value);
    } else {
      return {tessera::detail::check_kinds<kind::call, kind::partition, Q>()};
    }
  }

  static constexpr tessera::detail::end_to_end least(const operands& x) {
    tessera::detail::end_to_end best;
    index_t fewest = INT64_MAX;
    if (tessera::detail::extent_of_all(x, Dim) == dynamic) return {refusal{code::ranges_not_known, Dim}};
    for (const tensor_value& one : x) {
      if (one.layout.levels(Dim) == 0) continue;
      const tessera::detail::end_to_end to = tessera::detail::ranges_as(x, Dim, one.layout);
      const index_t moved = tessera::detail::moved(x, to);
      if (best.used.empty() || moved < fewest) best = to;
      fewest = tessera::detail::smaller(fewest, moved);
    }
    return best;
  }
};

}  // namespace functions

/// Up to 4 tensors one behind the other along a dimension; `concat<d, Q>(x, y)` in partition Q.
template <int Dim, class Q = void, engine::AnyTensor X, engine::AnyTensor... Rest>
constexpr auto concat(const X& x, const Rest&... rest) {
  return call(functions::concat<Dim, Q>{}, x, rest...);
}
/// Up to 4 tensors one behind the other along a dimension of its own.
template <int Dim, engine::AnyTensor X, engine::AnyTensor... Rest>
constexpr auto stack(const X& x, const Rest&... rest) {
  return concat<Dim>(unsqueeze<Dim>(x), unsqueeze<Dim>(rest)...);
}

}  // namespace tessera
