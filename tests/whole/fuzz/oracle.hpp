#pragma once
// What a change of layout has to do, worked out number by number and one worker after the other. Of the engine it uses
// nothing: layouts are values, and tests/support/oracle.hpp says what a dimension means.

#include "tests/support/oracle.hpp"

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>

namespace tessera::testing::fuzz {

using namespace engine;

/// What one worker of a mesh holds.
struct holder {
  int rank = 0;
  std::vector<int> at;                      ///< its coordinates
  bool holds = true;                        ///< false where axes of one coordinate name another
  std::vector<std::vector<index_t>> along;  ///< what it holds of each dimension, in the order of memory
  std::vector<int> numbers;                 ///< its elements in the order of memory, by row-major number
};

/// What every worker of a layout holds.
inline std::vector<holder> holders_of(const layout& x) {
  std::vector<holder> all;
  std::vector<std::map<std::vector<int>, std::vector<index_t>>> known(static_cast<std::size_t>(x.dims.count));
  std::vector<int> at(static_cast<std::size_t>(x.mesh.axes.count), 0);
  while (true) {
    holder w;
    w.at = at;
    w.rank = x.mesh.first;
    coordinates c;
    for (int a = 0; a < x.mesh.axes.count; ++a) {
      const int k = at[static_cast<std::size_t>(a)];
      c.push(k);
      w.rank += x.mesh.axes[a].stride * k;
      if (x.placements[a].kind == placement::on && x.placements[a].coordinate != k) w.holds = false;
    }
    if (x.mesh.ranks != nullptr) w.rank = x.mesh.ranks[w.rank];
    if (w.holds) w.numbers.push_back(0);
    for (int d = 0; d < x.dims.count && w.holds; ++d) {
      std::vector<int> key;
      for (int level = 0; level < x.levels(d); ++level) key.push_back(c[x.cutter(d, level)]);
      auto& part = known[static_cast<std::size_t>(d)];
      auto found = part.find(key);
      if (found == part.end()) found = part.emplace(key, oracle::held(x, d, c)).first;
      w.along.push_back(found->second);
      std::vector<int> longer;
      for (int n : w.numbers)
        for (index_t i : found->second) longer.push_back(n * static_cast<int>(x.dims[d].extent) + static_cast<int>(i));
      w.numbers = std::move(longer);
    }
    all.push_back(std::move(w));
    int a = x.mesh.axes.count - 1;
    for (; a >= 0 && ++at[static_cast<std::size_t>(a)] == x.mesh.axes[a].extent; --a)
      at[static_cast<std::size_t>(a)] = 0;
    if (a < 0) return all;
  }
}

inline int volume_of(const layout& x) {
  int n = 1;
  for (const auto& d : x.dims) n *= static_cast<int>(d.extent);
  return n;
}

/// Whether a layout has terms of one combine only, and which: terms of a window are sums, and so is one term.
inline std::optional<combine> one_combine(const layout& x) {
  std::optional<combine> one;
  for (const dimension& d : x.dims)
    if (d.kind == cover::pending) one = combine::sum;
  for (int a = 0; a < x.placements.count; ++a) {
    if (x.placements[a].kind != placement::partial || x.mesh.axes[a].extent == 1) continue;
    if (one && *one != x.placements[a].with) return {};
    one = x.placements[a].with;
  }
  return one ? one : combine::sum;
}

/// Whether several workers hold terms of one element.
inline bool has_terms(const layout& x) {
  for (const dimension& d : x.dims)
    if (d.kind == cover::pending) return true;
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::partial && x.mesh.axes[a].extent > 1) return true;
  return false;
}

inline bool takes_truths(combine with) { return with == combine::any || with == combine::all; }

/// How a layout means numbers: terms along the axes that sum, copies along replicate and invariant ones.
struct layout_oracle {
  const layout& of;
  std::vector<holder> holders = holders_of(of);
  combine with = *one_combine(of);

  bool has_terms_along(int axis) const {
    const axis_placement& r = of.placements[axis];
    return r.kind == placement::partial || (r.kind == placement::cut && of.dims[r.dimension].kind == cover::pending);
  }
  bool has_copies_along(int axis) const {
    return of.placements[axis].kind == placement::replicate || of.placements[axis].kind == placement::invariant;
  }
  /// The number of a holder among those that hold terms together.
  int term(const holder& w) const {
    int n = 0;
    for (int a = 0; a < of.placements.count; ++a)
      if (has_terms_along(a)) n = n * of.mesh.axes[a].extent + w.at[static_cast<std::size_t>(a)];
    return n;
  }
  /// The coordinates that holders of one sum have alike.
  std::vector<int> group(const holder& w) const {
    std::vector<int> g;
    for (int a = 0; a < of.placements.count; ++a)
      if (!has_terms_along(a)) g.push_back(w.at[static_cast<std::size_t>(a)]);
    return g;
  }
  bool is_first_copy(const holder& w) const {
    for (int a = 0; a < of.placements.count; ++a)
      if (has_copies_along(a) && w.at[static_cast<std::size_t>(a)] != 0) return false;
    return true;
  }
  /// In the pairing an invariant axis counts once.
  bool is_paired(const holder& w) const {
    for (int a = 0; a < of.placements.count; ++a)
      if (of.placements[a].kind == placement::invariant && w.at[static_cast<std::size_t>(a)] != 0) return false;
    return true;
  }
};

/// a combined with b, in numbers that all element types hold exactly.
inline double combined(double a, double b, combine with, bool boolean = false) {
  switch (with) {
    case combine::sum: return boolean ? static_cast<double>(a != 0 || b != 0) : a + b;
    case combine::max: return std::max(a, b);
    case combine::min: return std::min(a, b);
    case combine::prod: return a * b;
    case combine::any: return a != 0 || b != 0;
    case combine::all: return a != 0 && b != 0;
  }
  return 0;
}

/// What changes nothing when it is combined.
inline double neutral(combine with) {
  constexpr double endless = std::numeric_limits<double>::infinity();
  constexpr double all[]{0, -endless, endless, 1, 0, 1};
  return all[static_cast<int>(with)];
}

/// The values of a tensor: for each holder those of its numbers, in their order.
using values = std::vector<std::vector<double>>;

/// Which values go through a change: numbers from -4 to 4; 1 and -1 to be multiplied; truths.
enum class kind_of_values { numbers, signs, truths };

inline kind_of_values kind_for(const layout_oracle& from, const layout_oracle& to) {
  if (takes_truths(from.with) || takes_truths(to.with)) return kind_of_values::truths;
  return from.with == combine::prod ? kind_of_values::signs : kind_of_values::numbers;
}

/// A term of an element: a small whole number, so that every element type holds what becomes of many of them; from 0 on
/// for those without a sign.
inline double value_at(std::uint64_t salt, int number, int term, kind_of_values kind, bool negative = true) {
  std::uint64_t z = (salt * 1000003u + static_cast<std::uint64_t>(number)) * 7919u + static_cast<std::uint64_t>(term);
  for (int i = 0; i < 2; ++i) z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u + 0x9e3779b97f4a7c15u;
  const int roll = static_cast<int>(z >> 40);
  if (kind == kind_of_values::numbers) return negative ? roll % 9 - 4 : roll % 5;
  if (roll % 2 == 0) return 1;
  return kind == kind_of_values::signs && negative ? -1 : 0;
}

/// Values that mean something, of f(number, term): copies are equal, terms arbitrary.
template <class Value>
values dealt(const layout_oracle& m, Value&& f) {
  values all;
  for (const holder& w : m.holders) {
    all.emplace_back();
    const int term = m.term(w);
    for (int n : w.numbers) all.back().push_back(f(n, term));
  }
  return all;
}

/// The tensor that values mean, by number; an element that nobody holds is an empty combination.
inline std::vector<double> global_of(const layout_oracle& m, const values& v, bool boolean = false) {
  std::vector<double> all(static_cast<std::size_t>(volume_of(m.of)), neutral(m.with));
  for (std::size_t i = 0; i < m.holders.size(); ++i) {
    if (!m.is_first_copy(m.holders[i])) continue;
    for (std::size_t k = 0; k < v[i].size(); ++k) {
      double& sum = all[static_cast<std::size_t>(m.holders[i].numbers[k])];
      sum = combined(sum, v[i][k], m.with, boolean);
    }
  }
  return all;
}

/// Where values do not mean a global tensor: every copy must be it, terms must combine to it, as `same(found, wanted)`
/// has it.
template <class Same = std::equal_to<>>
std::string differs(const layout_oracle& m, const values& v, const std::vector<double>& global, bool boolean = false,
                    const Same& same = {}) {
  std::map<std::vector<int>, std::vector<double>> sums;
  for (std::size_t i = 0; i < m.holders.size(); ++i) {
    const holder& w = m.holders[i];
    if (v[i].size() != w.numbers.size())
      return "rank " + std::to_string(w.rank) + " ends with " + std::to_string(v[i].size()) + " elements instead of " +
             std::to_string(w.numbers.size());
    auto [found, is_new] = sums.try_emplace(m.group(w));
    if (is_new) found->second.assign(global.size(), neutral(m.with));
    for (std::size_t k = 0; k < v[i].size(); ++k) {
      double& sum = found->second[static_cast<std::size_t>(w.numbers[k])];
      sum = combined(sum, v[i][k], m.with, boolean);
    }
  }
  for (std::size_t i = 0; i < m.holders.size(); ++i)
    for (int n : m.holders[i].numbers) {
      const double found = sums[m.group(m.holders[i])][static_cast<std::size_t>(n)];
      const double wanted = global[static_cast<std::size_t>(n)];
      if (!same(found, wanted)) {
        std::ostringstream s;
        s << "element " << n << " on rank " << m.holders[i].rank << " is " << found << " instead of " << wanted;
        return s.str();
      }
    }
  return {};
}

/// Σ x y over all holders, an invariant axis counted once.
inline double paired(const layout_oracle& m, const values& x, const values& y) {
  double sum = 0;
  for (std::size_t i = 0; i < m.holders.size(); ++i)
    if (m.is_paired(m.holders[i]))
      for (std::size_t k = 0; k < x[i].size(); ++k) sum += x[i][k] * y[i][k];
  return sum;
}

}  // namespace tessera::testing::fuzz
