#pragma once

#include <tessera/primitive/primitive.hpp>
#include <tessera/tensor/change/lineage.hpp>

namespace tessera {

namespace detail {

/// A box that is known to be this worker's.
tensor<dyn> tensor_of(const team_handle& team, shared_layout_handle where, at::Tensor local, std::uint64_t lineage = 0);
/// A tensor whose layout follows from what the workers agreed on before.
tensor<dyn> tensor_of(const team_handle& team, const layout& x, element e, at::Tensor local, std::uint64_t lineage = 0);
tensor<dyn> tensor_of(const team_handle& team, const layout& x, at::Tensor local, std::uint64_t lineage = 0);

/// Throws on every worker of the team unless all give a tensor this layout.
void agree_on_layout(const tensor<dyn>& x);

/// Says that what is wrapped was checked.
struct proved {};

}  // namespace detail

/// A distributed tensor whose layout is a value: this worker's box, the layout and the team.
template <>
class tensor<dyn> {
 public:
  tensor() = default;

  /// Takes this worker's box; all workers of the team do, and compare the layout.
  tensor(const team_handle& team, const tessera::layout& layout, at::Tensor local, call_site at = call_site::here());

  const tessera::layout& layout() const { return where()->layout(); }
  /// The layout as all tensors of the team share it.
  const engine::shared_layout_handle& where() const {
    static_cast<void>(local());
    return where_;
  }
  const team_handle& team() const {
    static_cast<void>(local());
    return team_;
  }
  element type() const { return detail::element_of_scalar(local().scalar_type()); }
  /// How it came about, as a number that its workers compare; 0 where that is not known.
  std::uint64_t lineage() const { return lineage_; }

  /// This worker's box as a LibTorch tensor, DTensor's `to_local`.
  const at::Tensor& local() const {
    if (!local_.defined()) throw error(refusal{code::undefined_tensor});
    return local_;
  }

  /// As of a tensor whose layout is in its type; what that refuses while compiling is thrown.
  tensor& requires_grad();
  tensor grad() const;
  void backward(bool keep_graph = false, bool create_graph = false, call_site at = call_site::here()) const;

 private:
  friend tensor<dyn> detail::tensor_of(const team_handle& team, engine::shared_layout_handle where, at::Tensor local,
                                       std::uint64_t lineage);

  team_handle team_;
  engine::shared_layout_handle where_;
  at::Tensor local_;
  std::uint64_t lineage_ = 0;
};

namespace detail {

/// Everything that a tensor type fixes must hold of a value at run time; dynamic extents and learned lengths take the
/// value's.
refusal check_fits(const tensor_value& given, tensor_value typed);

/// Whether backward may start from a tensor.
constexpr refusal check_start(const layout& x, element e) {
  return x.dims.count > 0 ? refusal{code::not_a_scalar, x.dims.count} : check_gradient(x, e);
}

template <class T>
struct differentiable {
  static constexpr refusal value = check_gradient(value_of<T>.layout, value_of<T>.element);
};
template <class T>
struct starts_backward {
  static constexpr refusal value =
      first_of(described<T>::verdict_source::value, check_start(value_of<T>.layout, value_of<T>.element));
};

/// Whether a tensor type converts to another freely: both spell one layout, or the first is what something refused
/// gives.
template <class From, class To>
inline constexpr bool converts = [] {
  const refusal& why = described<From>::verdict_source::value;
  return why.is(code::refused_before) || (why.ok() && same(described<From>::value.layout, described<To>::value.layout));
}();

}  // namespace detail

/// A distributed tensor with partition, global shape and element in its type; dynamic extents are values that it
/// carries.
template <class Partition, class Shape, class Element>
class tensor {
 public:
  using partition_type = Partition;
  using shape_type = Shape;
  using element_type = Element;
  using mesh_type = typename Partition::mesh_type;

  tensor() = default;

  /// Takes a dynamic tensor of the same partition, shape and element; anything else throws.
  explicit tensor(tensor<dyn> of) : of_(std::move(of)) {
    engine::check(detail::check_fits({of_.layout(), of_.type()}, value_of<tensor>), *of_.team());
  }

  tensor(tensor<dyn> of, detail::proved) : of_(std::move(of)) {}

  /// Another spelling of the same layout converts freely.
  template <class P, class S>
    requires(TensorType<tensor<P, S, Element>> && !std::is_same_v<tensor<P, S, Element>, tensor> &&
             detail::converts<tensor<P, S, Element>, tensor>)
  tensor(const tensor<P, S, Element>& other) : of_(other.dynamic()) {}

  /// Assignment of any other type is deleted here, lest a compiler print the class once for each assignment that there
  /// is.
  template <class Other>
    requires(!std::is_convertible_v<const Other&, tensor>)
  tensor& operator=(const Other&) = delete;

  const at::Tensor& local() const { return of_.local(); }
  const tessera::layout& layout() const { return of_.layout(); }
  const team_handle& team() const { return of_.team(); }
  const tensor<dyn>& dynamic() const { return of_; }

  /// Asks for a gradient: on all workers together, empty boxes included.
  tensor& requires_grad() {
    using verdict = engine::verdict_of<detail::differentiable<tensor>>;
    verdict::template refuse<verdict>();
    of_.requires_grad();
    return *this;
  }

  /// The gradient that backward left, in the type of the cotangent; an error where there is none.
  auto grad() const { return cotangent_type<tensor>(of_.grad()); }

  /// Back-propagates from a scalar, seeded in its cotangent, so that no replica counts twice. The seed is 1 everywhere
  /// along invariant and partial axes. Along replicate axes, and those of one coordinate, it is 1 on one coordinate and
  /// 0 elsewhere. A graph of the gradient keeps this one.
  void backward(bool keep_graph = false, bool create_graph = false, call_site at = call_site::here()) const;

 private:
  tessera::tensor<dyn> of_;

  using type_verdict = typename detail::described<tensor>::verdict;
  static_assert((type_verdict::template refuse<type_verdict>(), true));
};

namespace detail {

/// Whether this worker holds the tensor, and holds coordinate 0 of every axis with the placement `copies`.
bool is_first_copy(const tensor<dyn>& of, placement copies);
/// The seed of backward on this worker.
at::Tensor seed_of(const tensor<dyn>& loss);

}  // namespace detail

template <class P, class S, class E>
void tensor<P, S, E>::backward(bool keep_graph, bool create_graph, call_site at) const {
  using verdict = engine::verdict_of<detail::starts_backward<tensor>>;
  verdict::template refuse<verdict>();
  of_.backward(keep_graph, create_graph, at);
}

/// x apart from what it was computed from: what follows has no gradient in it.
inline tensor<dyn> detach(const tensor<dyn>& x) {
  return detail::tensor_of(x.team(), x.where(), x.local().detach(), x.lineage());
}
template <class P, class S, class E>
tensor<P, S, E> detach(const tensor<P, S, E>& x) {
  return tensor<P, S, E>(detach(x.dynamic()));
}

/// The global tensor on every worker of x's team, DTensor's `full_tensor`: what is partial is summed, what is cut is
/// gathered. No gradient passes. A worker outside of the team's mesh, which may call it too, is refused.
at::Tensor full_tensor(const tensor<dyn>& x, call_site at = call_site::here());
template <class P, class S, class E>
at::Tensor full_tensor(const tensor<P, S, E>& x, call_site at = call_site::here()) {
  return full_tensor(x.dynamic(), at);
}

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/tensor_impl.hpp>
#endif
