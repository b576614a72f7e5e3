#pragma once

#include <tessera/operation/layer/local_layers.hpp>
#include <tessera/operation/layer/setting.hpp>

#include <initializer_list>

namespace tessera::engine {

/// A number for each dimension that a kernel slides over: `{3, 3}`, or `{1}` for all of them.
template <class Number>
class numbers_per_dimension {
 public:
  constexpr numbers_per_dimension() = default;
  constexpr numbers_per_dimension(std::initializer_list<Number> all) {
    for (Number n : all) numbers_.push(n);
  }

  constexpr void push(Number n) { numbers_.push(n); }
  constexpr bool is_set() const { return !numbers_.empty(); }
  constexpr int count() const { return numbers_.count; }
  constexpr Number operator[](int i) const { return numbers_[numbers_.count == 1 ? 0 : i]; }

  /// Refuses another number of them than `wanted`, unless it is one for all.
  constexpr refusal check(int wanted) const {
    return numbers_.count <= 1 || numbers_.count == wanted
               ? refusal{}
               : refusal{code::option_of_other_dimensions, wanted, numbers_.count};
  }

 private:
  static_vector<Number, 6> numbers_;
};
/// An integer for each dimension: kernels, strides, paddings.
using per_dimension = numbers_per_dimension<index_t>;

/// The boundary of the dimensions that a kernel slides over: `boundary::reflect` of all, or one for each,
/// `{boundary::periodic, boundary::zero}`; zeros unless said.
class boundaries : public numbers_per_dimension<boundary> {
 public:
  using numbers_per_dimension::numbers_per_dimension;
  constexpr boundaries() = default;
  constexpr boundaries(boundary all) { push(all); }
  constexpr boundaries(const numbers_per_dimension& all) : numbers_per_dimension(all) {}

  constexpr boundary at(int i) const { return is_set() ? (*this)[i] : boundary::zero; }
};

/// Names of axes, outermost first: `{"model"}`.
class axis_names {
 public:
  constexpr axis_names() = default;
  constexpr axis_names(std::initializer_list<const char*> all) {
    for (const char* name : all) names_.push(text(name));
  }
  constexpr explicit axis_names(const static_vector<text, max_axes>& all) : names_(all) {}

  constexpr const static_vector<text, max_axes>& list() const { return names_; }

 private:
  static_vector<text, max_axes> names_;
};

/// Kernels as the options of a layer say them; of padding also two numbers a dimension, before and after it.
struct kernel_options {
  per_dimension kernel, stride, padding, dilation;
  boundaries edge = {};
  bool steps_by_kernel = false;  ///< where no stride is said

  constexpr refusal check() const {
    const int count = kernel.count();
    return count < 1 || count > 3 ? refusal{code::wrong_kernel, count}
                                  : first_of(stride.check(count), at_ends(count) ? refusal{} : padding.check(count),
                                             dilation.check(count), edge.check(count));
  }
  constexpr static_vector<sliding, 8> list() const {
    static_vector<sliding, 8> all;
    for (int i = 0; i < kernel.count(); ++i) {
      sliding s{kernel[i], steps_by_kernel ? kernel[i] : 1, 0, 0, 1, edge.at(i)};
      if (stride.is_set()) s.stride = stride[i];
      if (padding.is_set()) s.before = s.after = padding[i];
      if (at_ends(kernel.count())) {
        s.before = padding[2 * i];
        s.after = padding[2 * i + 1];
      }
      if (dilation.is_set()) s.dilation = dilation[i];
      all.push(s);
    }
    return all;
  }

 private:
  constexpr bool at_ends(int dimensions) const { return padding.count() == 2 * dimensions; }
};

}  // namespace tessera::engine
