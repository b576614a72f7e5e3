#pragma once

#include <tessera/meta/call_site.hpp>
#include <tessera/operation/function/function_layer.hpp>
#include <tessera/operation/function/loss_layouts.hpp>
#include <tessera/operation/function/operands.hpp>

namespace tessera {

namespace functions {

namespace detail {

/// Refuses indices of another element, and terms, which name nothing before they are added.
constexpr refusal check_index_operand(const tensor_value& indices, int operand) {
  const layout& l = indices.layout;
  if (indices.element != element::int64) return refusal{code::wrong_element, element::int64, indices.element};
  for (int a = 0; a < l.placements.count; ++a)
    if (l.placements[a].kind == placement::partial && l.mesh.axes[a].extent > 1)
      return refusal{code::nonlinear_on_partial, l.mesh.axes[a].name, operand};
  for (int d = 0; d < l.dims.count; ++d)
    if (l.dims[d].kind == cover::pending && !l.dims[d].tiles()) return refusal{code::pending_not_linear, operand, d};
  return {};
}

}  // namespace detail

namespace engine {

/// A function of indices: how many are wrong is summed over the workers, so that all tell of one.
struct by_index : function {
  call_site at;

  /// The result for a tensor and indices, of whose letters each function writes a signature.
  template <class Write>
  static constexpr function_value looked_up(takes elements, const tensor_value& x, const tensor_value& indices, int dim,
                                            const Write& write) {
    const int dims = x.layout.dims.count;
    refusal why = first_of(check_takes(elements, x.element), detail::check_index_operand(indices, 1));
    if (dim < 0 || dim >= dims) why = first_of(why, refusal{code::dimension_not_there, dim, dims});
    if (!why.ok()) return {{}, why};
    signature s;
    s.kind = linearity::multilinear;
    s.operands.push(letters_of(dims));
    s.why = write(s, s.operands[0]);
    return infer_values(s, x.element, x.element, true, x, indices);
  }
  /// The combine of an operand's terms, which pass where nothing is added.
  static constexpr combine combine_of(const layout& x) {
    combine with = combine::sum;
    for (const axis_placement& r : x.placements)
      if (r.kind == placement::partial) with = r.with;
    return with;
  }
  static constexpr exchange_values judging(const tensor_value& indices) {
    exchange_values all = no_items<exchange_value, 4>;
    all.push(detail::summing(indices.layout, 1));
    return all;
  }
};

}  // namespace engine

/// y[… k… …] = x[… i[k…] …]: a dimension by rows that indices of any shape name.
template <int Dim>
struct index_select : engine::by_index {
  static constexpr const char* name = "index_select";

  constexpr engine::function_value on(const tensor_value& x, const tensor_value& indices) const {
    return looked_up(engine::takes::arithmetic, x, indices, Dim, [&](signature& s, const engine::letters& own) {
      const engine::letters named = engine::letters_of(indices.layout.dims.count, 'A');
      const int dims = own.count - 1 + named.count;
      if (dims > engine::letters::capacity) return refusal{code::signature_too_large, 2, dims};
      s.with = combine_of(x.layout);
      s.operands.push(named);
      for (int d = 0; d < own.count; ++d) {
        if (d != Dim) s.result.push(own[d]);
        for (int k = 0; d == Dim && k < named.count; ++k) s.result.push(named[k]);
      }
      const char whole[]{own[Dim], '\0'};
      s = s.whole(whole);
      return s.why;
    });
  }
  constexpr engine::exchange_values exchanges(const tensor_value&, const tensor_value& indices) const {
    return judging(indices);
  }
  constexpr void hold(layer_plan& p, const tensor_value&, const tensor_value&) const {
    p.saves = engine::saved_tensors::saving(1u << 1);
  }
};

/// y[… k …] = x[… i[… k …] …]: elements along a dimension, each by an index of its own. Indices that the library made
/// are not judged.
template <int Dim, bool Judged = true>
struct take_along : engine::by_index {
  static constexpr const char* name = "take_along";

  constexpr engine::function_value on(const tensor_value& x, const tensor_value& indices) const {
    return looked_up(engine::takes::arithmetic, x, indices, Dim, [&](signature& s, const engine::letters& own) {
      const int dims = indices.layout.dims.count;
      if (dims != own.count) return refusal{code::operand_of_other_dimensions, 1, own.count, dims};
      s.with = combine_of(x.layout);
      s.result = own;
      s.result[Dim] = 'A';
      s.operands.push(s.result);
      const char whole[]{own[Dim], '\0'};
      s = s.whole(whole);
      return s.why;
    });
  }
  constexpr engine::exchange_values exchanges(const tensor_value&, const tensor_value& indices) const {
    return Judged ? judging(indices) : engine::no_items<engine::exchange_value, 4>;
  }
  constexpr void hold(layer_plan& p, const tensor_value&, const tensor_value&) const {
    p.saves = engine::saved_tensors::saving(1u << 1);
  }
};

/// y[… n …] = Σ x[… k …] over the k whose index is n: the adjoint of take_along, and with one index a row that of
/// index_select.
template <int Dim>
struct scatter_add_to : engine::by_index {
  static constexpr const char* name = "scatter_add";
  using held = scatter_add_to;  ///< what a program that is put together while it runs holds
  index_t extent = 0;

  constexpr engine::function_value on(const tensor_value& x, const tensor_value& indices) const {
    return looked_up(engine::takes::numbers, x, indices, Dim, [&](signature& s, const engine::letters& own) {
      const int dims = indices.layout.dims.count;
      if (dims != own.count && dims != 1) return refusal{code::operand_of_other_dimensions, 1, own.count, dims};
      if (extent < 0) return refusal{code::extent_negative, Dim, extent};
      if (dims == own.count) {
        s.operands.push(own);
      } else {
        s.operands.push({});
        s.operands[1].push(own[Dim]);
      }
      s.result = own;
      s.result[Dim] = 'A';
      s = s.added('A', extent);
      return s.why;
    });
  }
  constexpr engine::exchange_values exchanges(const tensor_value&, const tensor_value& indices) const {
    return judging(indices);
  }
  constexpr void hold(layer_plan& p, const tensor_value&, const tensor_value&) const {
    p.saves = engine::saved_tensors::saving(1u << 1);
  }
};

/// The same to an extent that a type names.
template <int Dim, index_t N>
struct scatter_add : scatter_add_to<Dim> {
  constexpr scatter_add() { this->extent = N; }
};

/// 1 at each index along a new last dimension, 0 elsewhere.
struct one_hot_of : engine::by_index {
  static constexpr const char* name = "one_hot";
  static constexpr engine::saved saves = engine::saved::nothing;
  using held = one_hot_of;  ///< what a program that is put together while it runs holds
  index_t extent = 0;
  element to = element::int64;
  refusal kinds;

  constexpr engine::function_value on(const tensor_value& indices) const {
    refusal why = engine::first_of(kinds, detail::check_index_operand(indices, 0));
    const int dims = indices.layout.dims.count + 1;
    if (extent < 0) why = engine::first_of(why, refusal{code::extent_negative, dims - 1, extent});
    if (dims > engine::letters::capacity) why = engine::first_of(why, refusal{code::signature_too_large, 1, dims});
    if (!why.ok()) return {{}, why};
    signature s;
    s.operands.push(engine::letters_of(dims - 1));
    s.result = engine::letters_of(dims);
    return engine::infer_values(s.added(s.result[dims - 1], extent), to, element::int64, false, indices);
  }
  constexpr engine::exchange_values exchanges(const tensor_value& indices) const { return judging(indices); }
};

/// The same of an extent and an element that types name.
template <index_t N, class Element>
struct one_hot : one_hot_of {
  constexpr one_hot() {
    extent = N;
    to = engine::element_of<Element>;
    kinds = tessera::detail::check_kinds<kind::call, kind::element, Element>();
  }
};

}  // namespace functions

namespace detail {

/// A function, with where it was called.
template <class F>
constexpr F called_at(F f, const call_site& at) {
  f.at = at;
  return f;
}

template <class X>
concept DynamicTensor = engine::kind_of<X> == kind::dynamic_tensor || engine::DynamicFlow<X>;

}  // namespace detail

/// x[… i[k…] …], rows of a whole dimension by indices of any shape, in their place: `index_select<0>(x, i)`. An index
/// of no row is told on all workers.
template <int Dim, engine::AnyTensor X, engine::AnyTensor I>
constexpr auto index_select(const X& x, const I& indices, call_site at = call_site::here()) {
  return call(tessera::detail::called_at(functions::index_select<Dim>{}, at), x, indices);
}

/// Elements along a whole dimension, y[… k …] = x[… i[… k …] …], LibTorch's `gather`: `take_along<1>(x, i)`.
template <int Dim, engine::AnyTensor X, engine::AnyTensor I>
constexpr auto take_along(const X& x, const I& indices, call_site at = call_site::here()) {
  return call(tessera::detail::called_at(functions::take_along<Dim>{}, at), x, indices);
}

/// Sums along a dimension at equal indices, to n elements: `scatter_add<0, n>(x, i)`. Indices are like x, or one for
/// each row. Of a cut dimension they are terms.
template <int Dim, index_t N, engine::AnyTensor X, engine::AnyTensor I>
constexpr auto scatter_add(const X& x, const I& indices, call_site at = call_site::here()) {
  return call(tessera::detail::called_at(functions::scatter_add<Dim, N>{}, at), x, indices);
}
/// The same to an extent that only run time knows.
template <int Dim, detail::DynamicTensor X, class I>
auto scatter_add(const X& x, const I& indices, index_t extent, call_site at = call_site::here()) {
  functions::scatter_add_to<Dim> f;
  f.extent = extent;
  return call(tessera::detail::called_at(f, at), x, indices);
}

/// 1 at each index along a new last dimension of n elements, 0 elsewhere: `one_hot<10, float>(labels)`.
template <index_t N, class Element = std::int64_t, engine::AnyTensor I>
constexpr auto one_hot(const I& indices, call_site at = call_site::here()) {
  return call(tessera::detail::called_at(functions::one_hot<N, Element>{}, at), indices);
}
/// The same of an extent that only run time knows.
template <class Element = std::int64_t, detail::DynamicTensor I>
auto one_hot(const I& indices, index_t extent, call_site at = call_site::here()) {
  functions::one_hot_of f = functions::one_hot<0, Element>();
  f.extent = extent;
  return call(tessera::detail::called_at(f, at), indices);
}

}  // namespace tessera
