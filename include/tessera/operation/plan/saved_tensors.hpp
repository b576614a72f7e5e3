#pragma once

#include <tessera/meta/static_vector.hpp>
#include <tessera/operation/plan/attended_keys.hpp>
#include <tessera/operation/window/padding_plan.hpp>
#include <tessera/topology/window.hpp>

namespace tessera::engine {

/// What a tensor that a local operation makes is for: its backward as well, or that alone. Others are workspace of the
/// operation or of its backward.
enum class made_for : signed char { always, backward, now, now_in_backward };

/// The memory of a layer's local operation besides operands and results: what LibTorch saves for backward, and the
/// workspace of its functions. A layer says so in its plan (`saves`), and which tensors it makes besides (`make`,
/// `remember`, `take`).
///
/// One that says nothing is taken to save all that it reads and gives.
struct saved_tensors {
  attended_keys attends;    ///< of attention
  unsigned operands = 0xf;  ///< bit i: operand i is saved, as it is used
  unsigned weights = 0xff;  ///< bit i: parameter i is saved, as it is used
  unsigned results = 0xf;   ///< bit i: result i is saved, as the operation gives it
  bool exchanges = true;    ///< what goes between local operations is saved, where anything is
  /// the first result takes the memory of an operand at least, and the gradient of that the memory of a result
  bool begins_as_operand = false;
  bool adds = false;    ///< something is added to the first result where it leaves, in another box
  bool view = false;    ///< the first result lies in the memory of the first operand
  unsigned passes = 0;  ///< bit i: the gradient of operand i is that of the result
  /// how many more tensors as the first result, or as what is exchanged, there are at once while it runs
  index_t scratch = 0;
  index_t returning = 0;    ///< the same while its backward runs
  index_t later = 0;        ///< the same behind its first step, which does not keep the gradient of the result
  index_t copies = 0;       ///< how many more tensors as the first operand there are at once while it runs
  index_t copies_back = 0;  ///< the same while its backward runs
  /// over the last dimensions of the first operand: it reads a padding around its box
  static_vector<sliding, 8> windows;
  builtin_padding pads = builtin_padding::none;  ///< what of that padding the operation makes itself
  bool spreads = false;  ///< over the first result, to which each element gives what lies under them
  /// it copies out what each output reads of so many features at a time, as LibTorch's convolution does; or what each
  /// input gives
  index_t columns = 0;
  index_t groups = 1;  ///< of features, which a convolution takes one after the other

  /// Saves these operands, parameters and results, each a bit.
  static constexpr saved_tensors saving(unsigned operands, unsigned weights = 0, unsigned results = 0) {
    saved_tensors f;
    f.operands = operands;
    f.weights = weights;
    f.results = results;
    return f;
  }
  /// Computes nothing: what it gives is the first operand seen otherwise, and so are their gradients.
  static constexpr saved_tensors viewing() {
    saved_tensors f = saving(0);
    f.view = true;
    f.passes = 1;
    return f;
  }
};

}  // namespace tessera::engine
