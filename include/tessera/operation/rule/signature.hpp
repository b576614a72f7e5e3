#pragma once

#include <tessera/generated/operation.hpp>
#include <tessera/operation/rule/treatment.hpp>

namespace tessera {

namespace engine {

/// How an operation depends on its operands.
enum class linearity : signed char {
  additive,     ///< linear in all operands together: sums, differences, reshapes
  multilinear,  ///< linear in each operand: products and contractions
  nonlinear     ///< anything else
};

}  // namespace engine

/// The action of a local operation on named dimensions. Its result's layout, its legality and the placements of its
/// gradients follow. A letter of the operands that the result lacks is summed over.
///
/// `operation("nk,mk->nm").multilinear()` writes one; each of the functions below gives it one more role.
struct signature {
  engine::linearity kind = engine::linearity::nonlinear;
  static_vector<engine::letters, 4> operands;
  engine::letters result;
  static_vector<engine::treated, 16> special = engine::no_items<engine::treated, 16>;
  /// how dimensions that the result lacks are put together; what is not summed is not linear
  combine with = combine::sum;
  bool products = false;  ///< its arithmetic is that of the products of its letters, whatever its kind
  refusal why;            ///< what cannot be read in its text or roles

  constexpr engine::treated of(char letter) const {
    for (int i = 0; i < special.count; ++i)
      if (special.items[i].letter == letter) return special.items[i];
    return {letter, engine::treatment::plain};
  }

  /// Linear in all operands together, linear in each, or neither; neither unless said.
  constexpr signature linear() const { return of_kind(engine::linearity::additive); }
  constexpr signature multilinear() const { return of_kind(engine::linearity::multilinear); }
  constexpr signature nonlinear() const { return of_kind(engine::linearity::nonlinear); }

  /// Its arithmetic is that of products of its operands, one after another, though it is not linear in them: attention
  /// is `operation("qd,kd,ke->qe").whole("kde").multiplying()`. A multilinear operation that sums says so by itself.
  constexpr signature multiplying() const {
    signature s = *this;
    s.products = true;
    return s;
  }

  /// Dimensions that the result lacks are combined, not summed: a maximum over a cut dimension gives terms of a
  /// maximum.
  constexpr signature combined(combine how) const {
    signature s = *this;
    s.with = how;
    return s;
  }

  /// Each of these dimensions is needed at once, so none may be cut: `.whole("c")`.
  constexpr signature whole(const char* dims) const { return each(dims, engine::treatment::whole); }

  /// Every output needs a window: a cut dimension must hold the halo of just this kernel.
  constexpr signature windowed(char dim, const sliding& kernel) const {
    return with_role({dim, engine::treatment::windowed, kernel, 0, 0, 0});
  }

  /// The result has n elements of which each needs what this window says: a cut dimension must hold just that.
  constexpr signature resampled(char dim, const window& reads, index_t n) const {
    return with_role({dim, engine::treatment::resampled, {}, 0, 0, n, reads});
  }

  /// The transpose of a window: the result has n elements, and each of the dimension gives terms to those that this
  /// window says. Of a cut dimension every worker has the terms that its part gives: the result is pending.
  constexpr signature spread(char dim, const window& gives, index_t n) const {
    return with_role({dim, engine::treatment::spread, {}, 0, 0, n, gives});
  }

  /// The result has the elements [begin, end). Each worker keeps what it held of them, so of 10 over 3 from 2 on it has
  /// `haloed<blocks<axis>, 10, 1, -2, -2>`: [0,2) [2,5) [5,8). That is a tiling, which a change balances.
  constexpr signature narrowed(char dim, index_t begin, index_t end) const {
    return with_role({dim, engine::treatment::narrowed, {1, 1, -begin, 0, 1, boundary::zero}, 0, 0, end - begin});
  }

  /// The result has `times` elements for each; a cut grows with it, in grains of as many.
  constexpr signature scaled(char dim, index_t times) const {
    return with_role({dim, engine::treatment::scaled, {}, 0, 0, times});
  }

  /// The result has neighbours as one dimension, outermost first; a cut of the outermost becomes a cut in grains.
  constexpr signature merged(const char* dims, char into) const { return each(dims, engine::treatment::merged, into); }

  /// The result has these dimensions concatenated, in the order of the operands. Where they are cut, each is cut as its
  /// range of the result: a worker's parts, end to end, are one part of it.
  constexpr signature concatenated(const char* dims, char into) const {
    return each(dims, engine::treatment::concatenated, into);
  }

  /// The result has n elements as n / extent times extent. A cut whose parts are multiples of extent becomes a cut of
  /// the outer ones, in grains of a multiple or even.
  constexpr signature split(char dim, char outer, char inner, index_t extent) const {
    return with_role({dim, engine::treatment::split, {}, outer, inner, extent});
  }

  /// The parts of a dimension come one after another. Where it is cut its operand counts as gathered, but of that no
  /// more is held than `rows` of two parts, or what the library takes. Where no operand has it cut, the terms of each
  /// part go to its owner: axes along which the result would be partial cut it.
  constexpr signature streamed(char dim, index_t rows = 0) const {
    return with_role({dim, engine::treatment::streamed, {}, 0, 0, rows});
  }
  /// The letter of the dimension that is streamed, or 0.
  constexpr char streams() const {
    for (const engine::treated& t : special)
      if (t.how == engine::treatment::streamed) return t.letter;
    return 0;
  }

  /// The result has another dimension of n equal elements, which nothing cuts.
  constexpr signature added(char dim, index_t n) const {
    return with_role({dim, engine::treatment::added, {}, dim, 0, n});
  }

  /// Refuses letters and roles that say nothing, whatever the operands are.
  constexpr refusal check() const;

 private:
  constexpr signature of_kind(engine::linearity k) const {
    signature s = *this;
    s.kind = k;
    return s;
  }
  constexpr signature with_role(const engine::treated& role) const {
    signature s = *this;
    if (s.special.count < s.special.capacity) s.special.push(role);
    else s.why = refusal{code::role_does_not_fit, s.special.count};
    return s;
  }
  constexpr signature each(const char* dims, engine::treatment how, char into = 0) const {
    signature s = *this;
    for (; *dims != '\0'; ++dims) s = s.with_role({*dims, how, {}, into, 0, 0});
    return s;
  }
};

namespace detail {

// Whether role t of a signature fits the letters around it.
constexpr bool role_fits(const signature& s, int t) {
  const treated& role = s.special[t];
  if (role.how == treatment::added) {
    for (const letters& o : s.operands)
      if (index_of(o, role.letter) >= 0) return false;
    for (int other = 0; other < s.special.count; ++other)
      if (other != t && (s.special[other].into == role.letter || s.special[other].inner == role.letter)) return false;
    return role.extent >= 0 && index_of(s.result, role.letter) >= 0;
  }
  int owner = -1;
  for (int o = 0; o < s.operands.count; ++o)
    if (index_of(s.operands[o], role.letter) >= 0) owner = o;
  if (owner < 0) return false;
  for (int before = 0; before < t; ++before)
    if (s.special[before].letter == role.letter) return false;
  const auto in_operands = [&s](char letter) {
    for (const letters& o : s.operands)
      if (index_of(o, letter) >= 0) return true;
    return false;
  };
  const bool kept = index_of(s.result, role.letter) >= 0;
  switch (role.how) {
    case treatment::plain:
    case treatment::whole: return true;
    case treatment::windowed: return kept;
    case treatment::scaled: return kept && role.extent > 0;
    case treatment::resampled:
      return kept && role.reads.a > 0 && role.reads.c > 0 && role.reads.c > role.reads.b - role.reads.b2;
    case treatment::spread:
      return kept && s.kind != linearity::nonlinear && role.reads.a > 0 && role.reads.c == 1 &&
             role.reads.b <= role.reads.b2;
    case treatment::narrowed: return kept && role.extent >= 0 && role.kernel.before <= 0;
    case treatment::merged: {
      if (kept || s.operands.count > 1 || in_operands(role.into) || index_of(s.result, role.into) < 0) return false;
      const bool first = t == 0 || s.special[t - 1].how != treatment::merged || s.special[t - 1].into != role.into;
      for (int before = 0; first && before < t; ++before)
        if (s.special[before].into == role.into) return false;
      return first || index_of(s.operands[0], s.special[t - 1].letter) + 1 == index_of(s.operands[0], role.letter);
    }
    case treatment::concatenated:
      for (int o = 0; o < owner; ++o)
        if (index_of(s.operands[o], role.letter) >= 0) return false;
      for (int other = 0; other < s.special.count; ++other)
        if (other != t && s.special[other].into == role.into &&
            (s.special[other].how != treatment::concatenated ||
             index_of(s.operands[owner], s.special[other].letter) >= 0))
          return false;
      return !kept && !in_operands(role.into) && index_of(s.result, role.into) >= 0;
    case treatment::split:
      for (int other = 0; other < s.special.count; ++other)
        if (other != t && (s.special[other].into == role.into || s.special[other].into == role.inner)) return false;
      return !kept && s.operands.count == 1 && role.extent > 0 && role.into != role.inner && !in_operands(role.into) &&
             !in_operands(role.inner) && index_of(s.result, role.into) >= 0 && index_of(s.result, role.inner) >= 0;
    case treatment::streamed:
      for (int other = 0; other < s.special.count; ++other)
        if (other != t && s.special[other].how == treatment::streamed) return false;
      return role.extent >= 0 && s.with == combine::sum;
    case treatment::added: return false;
  }
  return false;
}

// Which letters there are: asked for in one step, as every operation is checked.
struct letter_set {
  std::uint64_t quarters[4]{};

  constexpr bool has(char letter) const { return (quarters[bit_of(letter) / 64] >> bit_of(letter) % 64 & 1u) != 0; }
  constexpr void add(char letter) { quarters[bit_of(letter) / 64] |= std::uint64_t{1} << bit_of(letter) % 64; }

 private:
  static constexpr unsigned bit_of(char letter) { return static_cast<unsigned char>(letter); }
};

constexpr int named_twice(const letters& l) {
  letter_set before;
  for (int i = 0; i < l.count; ++i) {
    if (before.has(l.items[i])) return i;
    before.add(l.items[i]);
  }
  return -1;
}

}  // namespace detail

constexpr refusal signature::check() const {
  if (!why.ok()) return why;
  for (int o = 0; o < operands.count; ++o)
    if (const int d = detail::named_twice(operands[o]); d >= 0) return refusal{code::letter_named_twice, o, d};
  if (const int d = detail::named_twice(result); d >= 0) return refusal{code::letter_named_twice, operands.count, d};
  for (int t = 0; t < special.count; ++t)
    if (!detail::role_fits(*this, t)) return refusal{code::role_does_not_fit, t};
  detail::letter_set known;
  for (const engine::letters& o : operands)
    for (char letter : o) known.add(letter);
  for (const engine::treated& t : special) {
    known.add(t.into);
    known.add(t.inner);
  }
  for (int d = 0; d < result.count; ++d)
    if (!known.has(result[d])) return refusal{code::letter_from_nowhere, d};
  return {};
}

/// Reads a signature: `operation("nchw,oc->nohw")`, a letter for each dimension, commas between operands; spaces are
/// free. It is non-linear until it is given another kind.
///
/// An unreadable signature is refused where the operation is used, and by `check()`.
constexpr signature operation(const char* text) {
  signature s;
  engine::letters now;
  bool arrow = false;
  const auto finish = [&s](const engine::letters& done) {
    if (s.operands.count < s.operands.capacity) s.operands.push(done);
    else s.why = refusal{code::signature_too_large, s.operands.count + 1, done.count};
  };
  for (int i = 0; text[i] != '\0' && s.why.ok(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      if (now.count < now.capacity) now.push(c);
      else s.why = refusal{code::signature_too_large, s.operands.count + 1, now.count + 1};
    } else if (c == ',' && !arrow) {
      finish(now);
      now = {};
    } else if (c == '-' && text[i + 1] == '>' && !arrow) {
      finish(now);
      now = {};
      arrow = true;
      ++i;
    } else {
      s.why = refusal{code::signature_unreadable, i};
    }
  }
  if (s.why.ok() && !arrow) s.why = refusal{code::signature_unreadable, -1};
  s.result = now;
  return s;
}

/// One operand: its layout, and whether it is constant (it has no cotangent, so it counts as replicate or invariant as
/// needed).
struct operand {
  tessera::layout layout;
  bool constant = false;
};

}  // namespace tessera
