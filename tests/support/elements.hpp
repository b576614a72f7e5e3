#pragma once
// Exchanges of every element type on a line of workers, and what each must bring, computed here one after the other.

#include "flights.hpp"
#include "generate.hpp"

#include <complex>
#include <cstring>

namespace tessera::testing {

using namespace engine;

inline constexpr std::array combines{combine::sum,  combine::max, combine::min,
                                     combine::prod, combine::any, combine::all};

template <class Visit>
void each_element(Visit&& visit) {
  [&]<class... T>(detail::type_list<T...>) { (visit(T{}), ...); }(detail::element_types{});
}

template <class T>
inline constexpr bool is_half_like = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
template <class T>
inline constexpr bool is_complex_like = std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;

/// A worker's term of element i: floating ones round, those for any and all are often 0, those for a product stay
/// small.
template <class T>
T term(index_t i, int worker, combine with) {
  dice d{static_cast<std::uint64_t>(i) * 1000003u + static_cast<std::uint64_t>(worker) * 7919u +
         static_cast<std::uint64_t>(with)};
  const bool logical = with == combine::any || with == combine::all;
  const bool zero = logical && d.once_in(with == combine::any ? 2 : 6);
  if constexpr (std::is_same_v<T, bool>) return logical ? !zero : d.once_in(2);
  else if constexpr (is_half_like<T>) {
    const float f =
        zero ? 0.0f
             : (d.once_in(4) ? 8.0f : 0.01f) * static_cast<float>(d.roll(1, 999)) / (with == combine::prod ? 500 : 1);
    if constexpr (std::is_same_v<T, half>) return to_half(f);
    else return to_bfloat16(f);
  } else if constexpr (is_complex_like<T>) {
    using real = decltype(T::re);
    if (zero) return {};
    // products exact
    if (with != combine::sum) return {static_cast<real>(d.roll(-3, 3)), static_cast<real>(d.roll(0, 1))};
    return {static_cast<real>(d.roll(-999, 999)) / 7, static_cast<real>(d.roll(1, 999)) / 11};
  } else if constexpr (std::is_floating_point_v<T>) {
    return zero ? T{0} : static_cast<T>(d.roll(-999, 999)) / 7;
  } else {
    return zero ? T{0} : static_cast<T>(d.next());  // sums and products wrap
  }
}

/// The terms combined in their order in the next wider type, and rounded once: half types in float, float in double.
template <class T, class Wide = double>
T serial(const std::vector<T>& terms, combine with) {
  if constexpr (is_half_like<T>) {
    std::vector<float> wide;
    for (T t : terms) wide.push_back(to_float(t));
    if constexpr (std::is_same_v<T, half>) return to_half(serial<float, float>(wide, with));
    else return to_bfloat16(serial<float, float>(wide, with));
  } else if constexpr (is_complex_like<T>) {
    using number = std::complex<double>;
    std::vector<number> all;
    for (const T& t : terms) all.emplace_back(t.re, t.im);
    const auto nonzero = [](const number& z) { return z != number{}; };
    number r = with == combine::prod ? 1 : 0;
    for (const number& z : all) with == combine::prod ? r *= z : r += z;
    if (with == combine::any) r = std::any_of(all.begin(), all.end(), nonzero) ? 1 : 0;
    if (with == combine::all) r = std::all_of(all.begin(), all.end(), nonzero) ? 1 : 0;
    return {static_cast<decltype(T::re)>(r.real()), static_cast<decltype(T::re)>(r.imag())};
  } else {
    const auto nonzero = [](T t) { return t != T{}; };
    if (with == combine::max) return *std::max_element(terms.begin(), terms.end());
    if (with == combine::min) return *std::min_element(terms.begin(), terms.end());
    if (with == combine::any || (std::is_same_v<T, bool> && with == combine::sum))
      return std::any_of(terms.begin(), terms.end(), nonzero);
    if (with == combine::all || (std::is_same_v<T, bool> && with == combine::prod))
      return std::all_of(terms.begin(), terms.end(), nonzero);
    std::conditional_t<std::is_floating_point_v<T>, Wide, std::uint64_t> r = with == combine::prod ? 1 : 0;
    for (T t : terms)
      if (with == combine::prod) r *= static_cast<decltype(r)>(t);
      else r += static_cast<decltype(r)>(t);
    return static_cast<T>(r);
  }
}

/// What adding half numbers to half numbers gives.
template <class T>
T rounded_each_time(const std::vector<T>& terms) {
  T sum{};
  for (T t : terms) {
    if constexpr (std::is_same_v<T, half>) sum = to_half(to_float(sum) + to_float(t));
    if constexpr (std::is_same_v<T, bfloat16>) sum = to_bfloat16(to_float(sum) + to_float(t));
  }
  return sum;
}

/// Numbers in memory with gaps; the box lies in every `step`-th of them.
template <class T>
struct gapped {
  std::vector<unsigned char> memory;
  index_t step = 1;

  gapped(index_t n, index_t every)
      : memory(static_cast<std::size_t>((n * every + 1) * static_cast<index_t>(sizeof(T))), 0xee), step(every) {}
  void set(index_t i, T v) { std::memcpy(at(i), &v, sizeof(T)); }
  T get(index_t i) const {
    T v;
    std::memcpy(&v, const_cast<gapped*>(this)->at(i), sizeof(T));
    return v;
  }
  unsigned char* at(index_t i) { return memory.data() + i * step * static_cast<index_t>(sizeof(T)); }
  region where(index_t n) {
    region r{reinterpret_cast<std::byte*>(memory.data()), tessera::engine::element_of<T>, {}, {}};
    r.extents.push(n);
    r.strides.push(step);
    return r;
  }
};

inline constexpr index_t numbers_of_each = 53;

/// A Fold of one element; what came to this worker, without the gaps.
template <class T>
std::vector<T> folded(transport& c, combine with) {
  const step s{map::fold, on_line(c.size(), numbers_of_each, partial_by(with)),
               on_line(c.size(), numbers_of_each, {placement::cut}), with};
  const auto e = bind_exchange(c, s, tessera::engine::element_of<T>);
  gapped<T> in(numbers_of_each, 2);
  for (index_t i = 0; i < numbers_of_each; ++i) in.set(i, term<T>(i, c.rank(), with));
  const index_t n = e->output_extents()[0];
  gapped<T> out(n, 3);
  e->start(in.where(numbers_of_each), out.where(n)).finish();
  c.synchronise();
  std::vector<T> mine;
  for (index_t i = 0; i < n; ++i) mine.push_back(out.get(i));
  return mine;
}

/// A Move of one element, of any bits; what came to this worker.
template <class T>
std::vector<unsigned char> moved(transport& c, index_t step_in, index_t step_out) {
  const step s = gathered(c.size(), numbers_of_each);
  const auto e = bind_exchange(c, s, tessera::engine::element_of<T>);
  const box mine = cutting{s.from}.box_of(c.rank());
  gapped<T> in(mine[0].size(), step_in);
  for (index_t i = mine[0].lo; i < mine[0].hi; ++i)
    for (std::size_t b = 0; b < sizeof(T); ++b)
      in.at(i - mine[0].lo)[b] = static_cast<unsigned char>(i * 31 + static_cast<index_t>(b) * 101);
  gapped<T> out(numbers_of_each, step_out);
  e->start(in.where(mine[0].size()), out.where(numbers_of_each)).finish();
  c.synchronise();
  return out.memory;
}

template <class T>
bool same_bytes(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Every element with every combine that it has: what is wrong on this worker.
inline std::string every_fold(transport& c) {
  std::string wrong;
  each_element([&]<class T>(T) {
    for (const combine with : combines) {
      if (!check_combine(with, tessera::engine::element_of<T>).ok()) continue;
      const std::vector<T> mine = folded<T>(c, with);
      const box where = cutting{on_line(c.size(), numbers_of_each, {placement::cut})}.box_of(c.rank());
      int differ = 0;
      for (index_t i = 0; i < numbers_of_each; ++i) {
        std::vector<T> terms;
        for (int w = 0; w < c.size(); ++w) terms.push_back(term<T>(i, w, with));
        differ += is_half_like<T> && !same_bytes(serial(terms, with), rounded_each_time(terms));
        if (i >= where[0].lo && i < where[0].hi &&
            !same_bytes(mine[static_cast<std::size_t>(i - where[0].lo)], serial(terms, with)))
          wrong += fmt::format("{} combine {} element {}; ", name_of(tessera::engine::element_of<T>),
                               static_cast<int>(with), i);
      }
      if (is_half_like<T> && with == combine::sum && c.size() > 2 && differ == 0)
        wrong += "the data does not show how often sums are rounded; ";
    }
  });
  return wrong;
}

inline std::string every_move(transport& c) {
  std::string wrong;
  each_element([&]<class T>(T) {
    for (const index_t step_in : {1, 2})
      for (const index_t step_out : {1, 3}) {
        const std::vector<unsigned char> all = moved<T>(c, step_in, step_out);
        for (std::size_t k = 0; k < all.size(); ++k) {
          const auto i = static_cast<index_t>(k / sizeof(T));
          const auto b = static_cast<index_t>(k % sizeof(T));
          const bool gap = i % step_out != 0 || i / step_out >= numbers_of_each;
          if (all[k] != (gap ? 0xee : static_cast<unsigned char>(i / step_out * 31 + b * 101)))
            wrong += fmt::format("{} byte {} of {}; ", name_of(tessera::engine::element_of<T>), b, i);
        }
      }
  });
  return wrong;
}

/// What is wrong where the tensors of a phase on a line have gaps: element i is i, and a term of it worker · i.
inline std::string with_gaps(transport& c, const phase& p) {
  const auto e = bind_exchange(c, p, element::float64);
  const box from = cutting{p.from()}.box_of(c.rank());
  const box to = cutting{p.to()}.box_of(c.rank());
  const index_t n = from[0].size();
  gapped<double> in(n, 2);
  gapped<double> out(to[0].size(), 3);
  const bool fold = p.adds();
  for (index_t i = 0; i < n; ++i) in.set(i, static_cast<double>((from[0].lo + i) * (fold ? c.rank() : 1)));
  e->start(in.where(n), out.where(to[0].size())).finish();
  c.synchronise();
  gapped<double> wanted(to[0].size(), 3);
  for (index_t i = 0; i < to[0].size(); ++i)
    wanted.set(i, static_cast<double>((to[0].lo + i) * (fold ? c.size() * (c.size() - 1) / 2 : 1)));
  return out.memory == wanted.memory ? "" : "with gaps; ";
}

/// What a library of collectives knows by name, of n numbers: a gather, a scatter of sums and a broadcast of the last
/// worker's.
inline std::string every_collective(transport& c, index_t n) {
  const int size = c.size();
  std::string wrong;
  for (const step& s : {gathered(size, n), summed(size, n),
                        step{map::move, on_line(size, n, held_on(size - 1)), on_line(size, n, {}), combine::sum}}) {
    flight f(c, s, 5);
    f.start();
    f.finish();
    wrong += f.right() + with_gaps(c, s);
  }
  return wrong;
}

}  // namespace tessera::testing
