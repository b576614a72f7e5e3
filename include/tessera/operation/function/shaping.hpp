#pragma once

#include <tessera/operation/function/operands.hpp>
#include <tessera/operation/plan/function.hpp>

namespace tessera {

namespace functions {

namespace engine {

/// Refuses dimensions that a tensor has not, or that are named twice.
template <int... Dims>
constexpr refusal check_dims(int rank) {
  const int dims[]{Dims..., 0};
  for (int i = 0; i < static_cast<int>(sizeof...(Dims)); ++i) {
    if (dims[i] < 0 || dims[i] >= rank) return refusal{code::dimension_not_there, dims[i], rank};
    for (int before = 0; before < i; ++before)
      if (dims[before] == dims[i]) return refusal{code::letter_named_twice, 0, dims[i]};
  }
  return {};
}
template <int... Dims>
constexpr refusal check_dims(const layout& x) {
  return check_dims<Dims...>(x.dims.count);
}

/// Whether a dimension is one of these.
template <int... Dims>
constexpr bool among(int dim) {
  bool found = false;
  for (int d : {Dims..., -1}) found = found || d == dim;
  return found;
}

/// A function that only reshapes one tensor, so that it passes terms of any combine: `write` makes the signature from
/// the operand's letters.
template <class Write>
constexpr signature shaped(const layout& x, const refusal& why, const Write& write) {
  signature s;
  s.kind = linearity::additive;
  s.operands.push(letters_of(x.dims.count));
  s.why = why;
  for (const axis_placement& r : x.placements)
    if (r.kind == placement::partial) s.with = r.with;
  if (why.ok()) write(s, s.operands[0]);
  return s;
}

}  // namespace engine

/// Dimensions in another order.
template <int... Dims>
struct permute : engine::function {
  static constexpr const char* name = "permute";
  static constexpr engine::saved saves = engine::saved::view;
  constexpr signature signature_on(const layout& x) const {
    constexpr int given = sizeof...(Dims);
    const refusal count =
        given == x.dims.count ? refusal{} : refusal{code::operand_of_other_dimensions, 0, given, x.dims.count};
    return engine::shaped(x, engine::first_of(count, engine::check_dims<Dims...>(x)),
                          [](signature& s, const engine::letters& own) { (s.result.push(own[Dims]), ...); });
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::local(signature_on(x.layout), engine::takes::everything, engine::gives::same, x);
  }
};

/// Two dimensions exchanged.
template <int First, int Second>
struct transpose : engine::function {
  static constexpr const char* name = "transpose";
  static constexpr engine::saved saves = engine::saved::view;
  constexpr signature signature_on(const layout& x) const {
    return engine::shaped(x, engine::first_of(engine::check_dims<First>(x), engine::check_dims<Second>(x)),
                          [](signature& s, const engine::letters& own) {
                            s.result = own;
                            s.result[First] = own[Second];
                            s.result[Second] = own[First];
                          });
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::local(signature_on(x.layout), engine::takes::everything, engine::gives::same, x);
  }
};

/// New dimensions of one element; they are those of the result.
template <int... Dims>
struct unsqueeze : engine::function {
  static constexpr const char* name = "unsqueeze";
  static constexpr engine::saved saves = engine::saved::view;
  constexpr signature signature_on(const layout& x) const {
    const int rank = x.dims.count + static_cast<int>(sizeof...(Dims));
    const refusal room = rank <= engine::max_dimensions ? refusal{} : refusal{code::too_many, rank};
    return engine::shaped(x, engine::first_of(room, engine::check_dims<Dims...>(rank)),
                          [rank](signature& s, const engine::letters& own) {
                            for (int d = 0, from = 0; d < rank; ++d) {
                              const bool fresh = engine::among<Dims...>(d);
                              s.result.push(fresh ? static_cast<char>('A' + d) : own[from++]);
                              if (fresh) s = s.added(s.result[d], 1);
                            }
                          });
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::local(signature_on(x.layout), engine::takes::everything, engine::gives::same, x);
  }
};

/// Without these dimensions, which have one element each.
template <int... Dims>
struct squeeze : engine::function {
  static constexpr const char* name = "squeeze";
  static constexpr engine::saved saves = engine::saved::view;
  constexpr signature signature_on(const layout& x) const {
    refusal why = engine::check_dims<Dims...>(x);
    for (int d = 0; why.ok() && d < x.dims.count; ++d)
      if (engine::among<Dims...>(d) && x.dims[d].extent != 1) why = refusal{code::not_single, d, x.dims[d].extent};
    return engine::shaped(x, why, [](signature& s, const engine::letters& own) {
      for (int d = 0; d < own.count; ++d) {
        const char letter[]{own[d], 0};
        if (engine::among<Dims...>(d)) s = s.whole(letter);
        else s.result.push(own[d]);
      }
    });
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::local(signature_on(x.layout), engine::takes::everything, engine::gives::same, x);
  }
};

/// A dimension of one element repeated.
template <int Dim, index_t Extent>
struct expand : engine::function {
  static constexpr const char* name = "expand";
  static constexpr engine::saved saves = engine::saved::view;
  constexpr signature signature_on(const layout& x) const {
    refusal why = engine::check_dims<Dim>(x);
    if (why.ok() && x.dims[Dim].extent != 1) why = refusal{code::not_single, Dim, x.dims[Dim].extent};
    return engine::shaped(x, why, [](signature& s, const engine::letters& own) {
      const char letter[]{own[Dim], 0};
      s.result = own;
      s.result[Dim] = 'Z';
      s = s.whole(letter).added('Z', Extent);
    });
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::local(signature_on(x.layout), engine::takes::everything, engine::gives::same, x);
  }
};

/// Neighbouring dimensions as one; a cut of the first becomes a cut in grains.
template <int First, int Last>
struct flatten : engine::function {
  static constexpr const char* name = "flatten";
  static constexpr engine::saved saves = engine::saved::view;
  constexpr signature signature_on(const layout& x) const {
    const refusal order = First <= Last ? refusal{} : refusal{code::dimension_not_there, Last, First};
    return engine::shaped(x, engine::first_of(engine::check_dims<First>(x), engine::check_dims<Last>(x), order),
                          [](signature& s, const engine::letters& own) {
                            for (int d = 0; d < own.count; ++d) {
                              const char letter[]{own[d], 0};
                              if (d >= First && d <= Last) s = s.merged(letter, 'Z');
                              if (d < First || d > Last) s.result.push(own[d]);
                              else if (d == First) s.result.push('Z');
                            }
                          });
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::local(signature_on(x.layout), engine::takes::everything, engine::gives::same, x);
  }
};

/// A dimension as two, of which the inner has a given extent. A cut in grains of a multiple of that extent becomes a
/// cut of the outer one.
template <int Dim, index_t Inner>
struct unflatten : engine::function {
  static constexpr const char* name = "unflatten";
  static constexpr engine::saved saves = engine::saved::view;
  constexpr signature signature_on(const layout& x) const {
    return engine::shaped(x, engine::check_dims<Dim>(x), [](signature& s, const engine::letters& own) {
      for (int d = 0; d < own.count; ++d) {
        if (d != Dim) s.result.push(own[d]);
        else
          for (char c : {'Y', 'Z'}) s.result.push(c);
      }
      s = s.split(own[Dim], 'Y', 'Z', Inner);
    });
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::local(signature_on(x.layout), engine::takes::everything, engine::gives::same, x);
  }
};

/// The elements [Begin, End) of a dimension; an End below 0 counts from the far end. Of a cut one each worker keeps
/// what it held.
template <int Dim, index_t Begin, index_t End>
struct slice : engine::function {
  static constexpr const char* name = "slice";
  static constexpr engine::saved saves = engine::saved::view;
  constexpr signature signature_on(const layout& x) const {
    refusal why = engine::check_dims<Dim>(x);
    const index_t n = why.ok() ? x.dims[Dim].extent : 0;
    const bool open = End < 0 && n == dynamic;
    const index_t end = End >= 0 || open ? End : n + End;
    if (why.ok() && (Begin < 0 || (!open && end < Begin))) why = refusal{code::range_outside, Dim, n, Begin, end};
    return engine::shaped(x, why, [=](signature& s, const engine::letters& own) {
      s.result = own;
      s = open ? s.windowed(own[Dim], {1, 1, -Begin, End, 1, boundary::zero, true}) : s.narrowed(own[Dim], Begin, end);
    });
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::local(signature_on(x.layout), engine::takes::everything, engine::gives::same, x);
  }
};

}  // namespace functions

/// Dimensions in another order: `permute<1, 0>(x)`.
template <int... Dims, engine::AnyTensor X>
constexpr auto permute(const X& x) {
  return call(functions::permute<Dims...>{}, x);
}
/// Two dimensions exchanged.
template <int First, int Second, engine::AnyTensor X>
constexpr auto transpose(const X& x) {
  return call(functions::transpose<First, Second>{}, x);
}
/// New dimensions of one element, as the result counts them.
template <int... Dims, engine::AnyTensor X>
constexpr auto unsqueeze(const X& x) {
  return call(functions::unsqueeze<Dims...>{}, x);
}
/// Without dimensions of one element.
template <int... Dims, engine::AnyTensor X>
constexpr auto squeeze(const X& x) {
  return call(functions::squeeze<Dims...>{}, x);
}
/// A dimension of one element repeated to an extent.
template <int Dim, index_t Extent, engine::AnyTensor X>
constexpr auto expand(const X& x) {
  return call(functions::expand<Dim, Extent>{}, x);
}
/// The dimensions from First to Last as one.
template <int First, int Last, engine::AnyTensor X>
constexpr auto flatten(const X& x) {
  return call(functions::flatten<First, Last>{}, x);
}
/// A dimension as several, of which all but the outermost are named: `unflatten<1, 3, 4>(x)` makes n/12 × 3 × 4 of n.
template <int Dim, index_t Inner, index_t... Innermost, engine::AnyTensor X>
constexpr auto unflatten(const X& x) {
  if constexpr (sizeof...(Innermost) == 0) return call(functions::unflatten<Dim, Inner>{}, x);
  else return unflatten<Dim + 1, Innermost...>(call(functions::unflatten<Dim, (Inner * ... * Innermost)>{}, x));
}
/// The elements [Begin, End) of a dimension; an End below 0 counts from the far end.
template <int Dim, index_t Begin, index_t End, engine::AnyTensor X>
constexpr auto slice(const X& x) {
  return call(functions::slice<Dim, Begin, End>{}, x);
}

}  // namespace tessera
