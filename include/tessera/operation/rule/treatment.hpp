#pragma once

#include <tessera/topology/layout.hpp>

namespace tessera::engine {

/// The action of an operation along one of its dimensions besides keeping or summing it.
enum class treatment : signed char {
  plain,         ///< kept where the result names it, summed where it does not
  whole,         ///< needs all of it at once: softmax, sort, FFT
  windowed,      ///< each output needs a window of it, under a kernel
  resampled,     ///< the result has another number of elements, each of which needs a window of it
  spread,        ///< the result has another number of elements; each of it gives terms to a window of them
  merged,        ///< the result joins it with the dimensions that follow, outermost first
  narrowed,      ///< the result has a range of it
  scaled,        ///< the result has several elements for each of it
  concatenated,  ///< the result has it behind those of other operands
  split,         ///< the result has it as two dimensions, the inner one of a given extent
  streamed,      ///< its parts come, or go, one after another
  added          ///< no operand has it: the result repeats what it has
};

/// A special treatment of the dimension with this letter.
struct treated {
  char letter = 0;
  treatment how = treatment::plain;
  sliding kernel = {};  ///< windowed and narrowed: which inputs an output needs
  /// merged and concatenated: the letter of the joint dimension; split: of the outer one; added: its own
  char into = 0;
  char inner = 0;  ///< split: the letter of the inner dimension
  /// narrowed: of the range; scaled: how many for each; split: of the inner dimension; added: its own; resampled and
  /// spread: of the result. Streamed: how much of a part comes at once, 0 for what the library takes.
  index_t extent = 0;
  window reads = {};  ///< resampled: which inputs an output needs; spread: to which outputs an input gives

  constexpr bool windows() const { return how == treatment::windowed || how == treatment::resampled; }
  constexpr window needs() const { return how == treatment::windowed ? kernel.needs() : reads; }
  constexpr index_t outputs(index_t n) const { return how == treatment::windowed ? kernel.outputs(n) : extent; }
};

/// The letters of an operand's dimensions, outermost first: "nchw".
using letters = static_vector<char, max_dimensions>;

/// The letters of a word, in order.
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

/// Where a letter is among others, or -1.
constexpr int index_of(const letters& in, char letter) {
  for (int i = 0; i < in.count; ++i)
    if (in.items[i] == letter) return i;
  return -1;
}

}  // namespace tessera::engine
