#pragma once

#include <tessera/topology/layout.hpp>

namespace tessera {

/// How an operation depends on its operands.
enum class linearity : signed char {
  additive,     ///< linear in all operands together: sums, differences, reshapes
  multilinear,  ///< linear in each operand: products and contractions
  nonlinear     ///< anything else
};

/// What an operation does along one of its dimensions besides keeping or summing it.
enum class treatment : signed char {
  plain,     ///< kept where the result names it, summed where it does not
  whole,     ///< needs all of it at once: softmax, sort, FFT
  windowed,  ///< each output needs a window of it
  merged     ///< the result joins it with the dimensions that follow, outermost first
};

/// A special treatment of the dimension with this letter.
struct treated {
  char letter = 0;
  treatment how = treatment::plain;
  sliding kernel;   ///< windowed: which inputs an output needs
  char into = 0;    ///< merged: the letter of the joint dimension
};

/// The letters of an operand's dimensions, outermost first: "nchw".
using letters = static_vector<char, max_dimensions>;

constexpr letters named(const char* from) {
  letters l;
  for (int i = 0; from[i] != '\0'; ++i) l.push(from[i]);
  return l;
}

/// One letter a dimension, in order: "abc" for three.
constexpr letters letters_of(int dims, char first = 'a') {
  letters l;
  for (int i = 0; i < dims; ++i) l.push(static_cast<char>(first + i));
  return l;
}

/// What a local operation does to named dimensions: with it, its result's layout, its legality and the meanings of its
/// gradients follow. A letter of the operands that the result lacks is summed over.
struct signature {
  linearity kind = linearity::nonlinear;
  static_vector<letters, 4> operands;
  letters result;
  static_vector<treated, 16> special;

  constexpr treated of(char letter) const {
    for (const treated& t : special)
      if (t.letter == letter) return t;
    return {letter, treatment::plain, {}, 0};
  }
};

constexpr int place(const letters& in, char letter) {
  for (int i = 0; i < in.count; ++i)
    if (in[i] == letter) return i;
  return -1;
}

/// One operand: its layout, and whether it is constant (it has no cotangent, so it counts as replicate or invariant as needed).
struct operand {
  tessera::layout layout;
  bool constant = false;
};

}  // namespace tessera
