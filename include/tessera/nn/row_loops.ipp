// No include guard: each_machine.ipp includes this once for each set of instructions.

/// So many neighbours as one instruction takes.
template <class Real>
struct lanes_of {
  typedef Real type __attribute__((vector_size(lane_bytes)));
};
template <class Real>
using lanes = typename lanes_of<Real>::type;
template <class Real>
inline constexpr index_t lane_count = lane_bytes / static_cast<index_t>(sizeof(Real));

/// As many of another type.
template <class To, class V>
struct lanes_like {
  typedef To type __attribute__((vector_size(sizeof(V) / sizeof(V{}[0]) * sizeof(To))));
};

/// A number that all elements of a row have.
template <class Real>
struct same_number {
  Real value;
};
template <bool Along, class Real>
auto in_row(const Real* numbers, index_t row, Real none) {
  if constexpr (Along) return numbers;
  else return same_number<Real>{numbers == nullptr ? none : numbers[row]};
}

/// Elements from the i-th on, as V, which may be lanes of wider numbers than they are.
template <class V, class Real>
V read(const Real* at, index_t i) {
  if constexpr (std::is_arithmetic_v<V>) {
    return static_cast<V>(at[i]);
  } else {
    typename lanes_like<Real, V>::type v;
    std::memcpy(&v, at + i, sizeof v);
#if defined(__x86_64__) && !defined(__clang__)
    // which g++ makes of two halves
    if constexpr (sizeof(V) == 32 && sizeof v == 16) return __builtin_ia32_cvtps2pd256(v);
#endif
    return __builtin_convertvector(v, V);
  }
}
template <class V, class Real>
V read(same_number<Real> x, index_t) {
  return x.value - V{};
}
template <class V, class Real>
void write(Real* at, index_t i, V v) {
  std::memcpy(at + i, &v, sizeof v);
}

/// Writes lanes past the caches, which a fence has to follow. They lie on lanes.
template <class V, class Real>
void stream(Real* at, V v) {
#ifdef __clang__
  __builtin_nontemporal_store(v, reinterpret_cast<V*>(at));
#elif defined(__x86_64__)
  typedef float stored __attribute__((vector_size(16)));
  stored parts[sizeof(V) / sizeof(stored)];
  std::memcpy(parts, &v, sizeof v);
  for (std::size_t k = 0; k < std::size(parts); ++k)
    __builtin_ia32_movntps(reinterpret_cast<float*>(at) + 4 * k, parts[k]);
#else
  write(at, 0, v);
#endif
}
inline void fence() {
#ifdef __x86_64__
  __builtin_ia32_sfence();
#endif
}

/// Calls of(zero, i) for the elements i of a row: zero is of the type of lanes, or of what is left at the end.
template <class Real, class Of>
[[gnu::always_inline]] inline void each_lanes(index_t begin, index_t end, const Of& of) {
  index_t i = begin;
  for (; i + lane_count<Real> <= end; i += lane_count<Real>) of(lanes<Real>{}, i);
  for (; i < end; ++i) of(Real{}, i);
}

// How many terms are added in their own type before their sum goes to the others in double.
inline constexpr index_t terms_at_once = 64;

/// Adds what `terms` gives of each element of a row: two terms to those of columns, and the same by its third number to
/// `all`.
template <bool OfRows, bool OfColumns, class Real, class Terms>
void add_row(index_t n, const Terms& terms, double (&all)[2], Real* columns) {
  using wide = typename lanes_like<double, lanes<Real>>::type;
  wide lines[2]{};
  for (index_t first = 0; first < n; first += terms_at_once * lane_count<Real>) {
    lanes<Real> sums[2]{};
    each_lanes<Real>(first, std::min(n, first + terms_at_once * lane_count<Real>), [&](auto zero, index_t i) {
      using V = decltype(zero);
      const auto [a, b, by] = terms(zero, i);
      if constexpr (OfColumns) {
        write(columns, i, read<V>(columns, i) + a);
        write(columns, n + i, read<V>(columns, n + i) + b);
      }
      if constexpr (OfRows && std::is_same_v<V, Real>) {
        all[0] += a * by;
        all[1] += b * by;
      } else if constexpr (OfRows) {
        sums[0] += a * by;
        sums[1] += b * by;
      }
    });
    for (int t = 0; t < 2 && OfRows; ++t) lines[t] += __builtin_convertvector(sums[t], wide);
  }
  for (int t = 0; t < 2 && OfRows; ++t)
    for (index_t l = 0; l < lane_count<Real>; ++l) all[t] += lines[t][l];
}

/// The sums of rows [begin, end), each added in `Sum`; and of their columns, of some rows at a time.
template <bool OfRows, bool OfColumns, class Sum, class Terms>
void add_rows(const row_form& form, index_t begin, index_t end, const Terms& terms, double* of_rows,
              double* of_columns) {
  std::vector<Sum> added(static_cast<std::size_t>(OfColumns ? 2 * form.columns : 0));
  for (index_t r = begin; r < end;) {
    for (const index_t last = std::min(end, r + terms_at_once); r < last; ++r) {
      double of_row[2]{};
      add_row<OfRows, OfColumns, Sum>(form.columns, terms(r), of_row, added.data());
      for (int t = 0; t < 2 && OfRows; ++t) of_rows[t * form.rows + r] = of_row[t];
    }
    for (std::size_t i = 0; i < added.size(); ++i) of_columns[i] += static_cast<double>(std::exchange(added[i], Sum{}));
  }
}

/// Calls f with which numbers are of columns, groups' and parameters', as types.
template <class F>
void with_form(const row_form& form, const F& f) {
  using no = std::false_type;
  using yes = std::true_type;
  if (form.groups_along) f(yes{}, yes{});
  else if (form.parameters_along) f(no{}, yes{});
  else f(no{}, no{});
}

/// The elements of a row from the mean, in deviations.
template <bool Along, class Real>
auto standardised_row(const row_operands<Real>& of, index_t r) {
  return
      [row = of.x + r * of.form.columns, origin = in_row<Along>(of.origin, r, Real{}),
       scale = in_row<Along>(of.scale, r, Real{}), shift = in_row<Along>(of.shift, r, Real{})](auto zero, index_t i) {
        using V = decltype(zero);
        return (read<V>(row, i) - read<V>(origin, i)) * read<V>(scale, i) + read<V>(shift, i);
      };
}

template <class Real>
void moments(const row_operands<Real>& of, index_t begin, index_t end, double* of_rows, double* of_columns) {
  with_form(of.form, [&](auto groups, auto) {
    constexpr bool along = decltype(groups)::value;
    const auto terms = [&](index_t r) {
      return [row = of.x + r * of.form.columns, origin = in_row<along>(of.origin, r, Real{})](auto zero, index_t i) {
        using V = decltype(zero);
        const V d = read<V>(row, i) - read<V>(origin, i);
        return std::array<V, 3>{d, d * d, 1.0 - V{}};
      };
    };
    add_rows<!along, along, double>(of.form, begin, end, terms, of_rows, of_columns);
  });
}

template <class Real>
void products(const row_operands<Real>& of, index_t begin, index_t end, double* of_rows, double* of_columns) {
  with_form(of.form, [&](auto groups, auto parameters) {
    constexpr bool along = decltype(groups)::value;
    constexpr bool weighted = decltype(parameters)::value && !along;
    const auto terms = [&](index_t r) {
      return [standardised = standardised_row<along>(of, r), row = of.gradient + r * of.form.columns,
              w = in_row<weighted>(weighted ? of.weight : nullptr, 0, Real{1})](auto zero, index_t i) {
        using V = decltype(zero);
        const V d = read<V>(row, i);
        return std::array<V, 3>{d, d * standardised(zero, i), read<V>(w, i)};
      };
    };
    add_rows<!along, decltype(parameters)::value, Real>(of.form, begin, end, terms, of_rows, of_columns);
  });
}

/// Writes what `elements` gives of each element of these rows.
template <class Real, class Elements>
void write_rows(const row_form& form, index_t begin, index_t end, Real* to, const Elements& elements) {
  const bool on_lanes = reinterpret_cast<std::uintptr_t>(to) % lane_bytes == 0 && form.columns % lane_count<Real> == 0;
  const bool streamed = on_lanes && form.elements() * static_cast<index_t>(sizeof(Real)) >= streamed_from;
  for (index_t r = begin; r < end; ++r)
    each_lanes<Real>(0, form.columns, [of = elements(r), row = to + r * form.columns, streamed](auto zero, index_t i) {
      if constexpr (!std::is_same_v<decltype(zero), Real>)
        if (streamed) return stream(row + i, of(zero, i));
      write(row, i, of(zero, i));
    });
  if (streamed) fence();
}

template <class Real>
void result(const row_operands<Real>& of, index_t begin, index_t end, Real* to) {
  with_form(of.form, [&](auto groups, auto parameters) {
    write_rows(of.form, begin, end, to, [&](index_t r) {
      return [standardised = standardised_row<decltype(groups)::value>(of, r),
              w = in_row<decltype(parameters)::value>(of.weight, r, Real{1}),
              b = in_row<decltype(parameters)::value>(of.bias, r, Real{0})](auto zero, index_t i) {
        using V = decltype(zero);
        return standardised(zero, i) * read<V>(w, i) + read<V>(b, i);
      };
    });
  });
}

template <class Real>
void gradient(const row_operands<Real>& of, index_t begin, index_t end, Real* to) {
  with_form(of.form, [&](auto groups, auto parameters) {
    constexpr bool along = decltype(groups)::value;
    write_rows(of.form, begin, end, to, [&](index_t r) {
      return [standardised = standardised_row<along>(of, r), row = of.gradient + r * of.form.columns,
              w = in_row<decltype(parameters)::value>(of.weight, r, Real{1}),
              scale = in_row<along>(of.scale, r, Real{}), slope = in_row<along>(of.slope, r, Real{}),
              offset = in_row<along>(of.offset, r, Real{})](auto zero, index_t i) {
        using V = decltype(zero);
        return read<V>(row, i) * read<V>(w, i) * read<V>(scale, i) +
               (standardised(zero, i) * read<V>(slope, i) + read<V>(offset, i));
      };
    });
  });
}

template <class Real>
inline constexpr row_loops<Real> loops{moments<Real>, products<Real>, result<Real>, gradient<Real>};
