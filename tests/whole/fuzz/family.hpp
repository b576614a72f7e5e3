#pragma once
// What the fuzz knows of a layer. One more is a row of a list in families.cpp, or of a file beside it that `families()`
// names:
//
//   {"global_avg_pool",
//    [](roller& r) { r.take({r.batch(), r.roll(1, 5), r.roll(1, 9), r.roll(1, 9)}); },
//    [](const serial_call& s) { return tensors{s.x[0].mean({2, 3}, true)}; }}
//
// It says how options and operands are rolled, and what LibTorch makes of them in one process. The rest is every
// layer's: the partition of each operand, elements, memory, outputs, gradients, a step of the parameters, buffers, and
// that workers and LibTorch refuse alike.

#include "layers.hpp"

#include <ATen/ATen.h>

#include <functional>
#include <map>

namespace tessera::testing::fuzz {

using namespace engine;

using tensors = std::vector<at::Tensor>;

/// Rolls one case.
class roller {
 public:
  roller(dice& with, layer_case& into);

  int roll(int lo, int hi) { return d.roll(lo, hi); }
  bool once_in(int n) { return d.once_in(n); }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[roll(0, static_cast<int>(all.size()) - 1)];
  }
  /// A number of samples, now and then none.
  index_t batch(int most = 3) { return once_in(15) ? 0 : roll(1, most); }
  std::vector<index_t> numbers(int count, int lo, int hi);

  /// An option, as files say it.
  template <class T>
  void say(const char* name, const T& value) {
    c.options[name] = value;
  }
  /// One that is left out now and then, and then is what it is `otherwise`.
  template <class T>
  void say_unless(const char* name, const T& value, const std::type_identity_t<T>& otherwise) {
    if (value != otherwise || once_in(4)) say(name, value);
  }
  /// cut_out, cut_in, output_as, weights_as: how the weight of a contraction is cut, and how `dims` dimensions of its
  /// result are.
  void say_cuts(int dims);
  /// sharded_over, gathered: parameters as tiles.
  void say_stored();
  /// A partition of so many dimensions.
  file::json partition(int dims);
  /// Names of some axes.
  std::vector<std::string> axes(int one_in);

  /// An operand of these extents that lies anyhow: of the case's element unless it is said, with terms of sums if
  /// `linear`, else seldom.
  void take(std::initializer_list<index_t> extents, bool linear = false) {
    take(std::vector<index_t>(extents), linear);
  }
  void take(const std::vector<index_t>& extents, bool linear = false) { take(extents, e, linear); }
  void take(const std::vector<index_t>& extents, element of, bool linear = false);
  /// An operand that lies as this layout.
  void take(const layout& x, element of);

  dice& d;
  layer_case& c;
  element e;  ///< of numbers: double, float and the half types
  mesh_value mesh;
};

/// What the serial layer is given: operands, options, and parameters and buffers under their keys, which it may assign.
struct serial_call {
  const layer_case& of;
  tensors x;
  std::map<std::string, at::Tensor> state;

  /// A parameter or a buffer; undefined where the layer has none.
  at::Tensor operator[](const char* key) const;
  /// An option, or what it is where nobody says it.
  template <class T>
  T option(const char* name, T otherwise) const {
    return of.options.value(name, otherwise);
  }
  /// One number for each of `count` dimensions.
  std::vector<index_t> numbers(const char* name, std::size_t count, index_t otherwise) const {
    return option(name, std::vector<index_t>(count, otherwise));
  }
};

struct family {
  std::string name;                                   ///< by lines
  std::function<void(roller&)> roll;                  ///< options and operands
  std::function<tensors(const serial_call&)> serial;  ///< what LibTorch gives; what it throws it refuses
  std::vector<std::string> refuses{};                 ///< codes of what it is right to refuse among what is rolled
  /// the layer or function that it is, {"layer": name} unless it is said
  file::json node{};
  /// The values of an operand, of numbers of a grid between -1 and 1; these unless it is said.
  std::function<at::Tensor(const layer_case&, std::size_t operand, const at::Tensor&)> value{};
  /// A function of tensors that is no layer of the table.
  std::function<std::vector<tensor<dyn>>(const file::json& options, const std::vector<tensor<dyn>>&)> function{};
  /// LibTorch's other way to the same, whose roundings are as good as those of `serial`.
  std::function<tensors(const serial_call&)> likewise{};
};

/// What one worker makes of a case that has these operands, in double: for what follows from seeds, as a dropout's mask
/// does.
tensors on_one_worker(const layer_case& c, const tensors& x);

/// f of the dimension that options name, which types say.
template <class F>
auto along(const file::json& o, const F& f) {
  switch (o.value("dim", 0)) {
    case 0: return f.template operator()<0>();
    case 1: return f.template operator()<1>();
    case 2: return f.template operator()<2>();
    default: return f.template operator()<3>();
  }
}

std::vector<family> window_families();  ///< contractions, and what slides, pads or resamples
std::vector<family> layer_families();   ///< normalisations, and what looks up, attends, drops, shapes
std::vector<family> loss_families();
std::vector<family> fourier_families();
std::vector<family> function_families();  ///< indices, orders, sums along a dimension, rotations
std::vector<family> verb_families();      ///< programs of verbs and functions

/// Rotary embedding: pairs of features are turned by their place along a dimension, by angles of powers of 1/base.
at::Tensor turned(const at::Tensor& x, index_t dim, double base);

/// LibTorch's product of each expert, one serial layer.
at::Tensor by_expert(const serial_call& s);

/// All of them.
const std::vector<family>& families();

}  // namespace tessera::testing::fuzz
