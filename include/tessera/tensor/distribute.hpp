#pragma once

#include <tessera/tensor/comparing.hpp>
#include <tessera/tensor/tensor.hpp>

namespace tessera {

namespace engine {

/// What distributes a tensor by its type; tensor<dyn> has no such thing.
template <class P>
concept Distributes = !std::is_same_v<P, dyn>;

/// A tensor that no type distributes.
template <class X>
concept UntypedTensor = kind_of<X> == kind::dynamic_tensor || kind_of<X> == kind::libtorch_tensor;

}  // namespace engine

namespace detail {

/// Refuses a tensor where one is wanted that is distributed by a type, and tells what was asked of it.
template <class X, class... Asked>
using untyped = std::conditional_t<UntypedTensor<X>, verdicts::tensor_wanted<Asked..., X>, fits>;

/// The refusal of a call that makes a tensor of type T on a team from a LibTorch tensor.
template <class T, class Team, class Box, class... Bindings>
constexpr refusal check_entry() {
  return first_of(check_kinds<kind::call, kind::tensor, T>(0), check_kinds<kind::call, kind::team, Team>(1),
                  check_kinds<kind::call, kind::libtorch_tensor, Box>(2),
                  check_kinds<kind::call, kind::binding, Bindings...>(3));
}

/// Whether a tensor enters as a whole: lengths that are learned are learned of boxes, by `from_local`.
template <class T, class... Given>
struct enters {
  static constexpr refusal value = [] {
    constexpr refusal why = check_entry<T, Given...>();
    if constexpr (why.ok())
      for (int d = 0; d < value_of<T>.layout.dims.count; ++d)
        if (value_of<T>.layout.dims[d].bounds == learned) return refusal{code::lengths_not_known, d};
    return why;
  }();
};

/// Compares the dynamic extents of a tensor that enters once over the team: no exchange that follows need see a
/// difference.
void agree_on_open(const tensor<dyn>& x, const layout& typed);

template <TensorType T>
T entered(tensor<dyn> x) {
  agree_on_open(x, value_of<T>.layout);
  return T(std::move(x));
}

/// This worker's box of a tensor that everybody has, on the team's device or, if that is said, anywhere; no worker
/// gives another one anything. Of pending terms coordinate 0 has it all, the others what adds nothing.
tensor<dyn> distribute_value(const team_handle& team, layout x, element e, const at::Tensor& global,
                             bool from_anywhere = false);
/// The same under a layout that is a value, which workers compare.
tensor<dyn> distribute_value(const team_handle& team, const layout& x, const at::Tensor& global, const call_site& line);

/// The same where every worker has written the whole of its box: it may hold terms, of which the first keeps it.
tensor<dyn> first_term(tensor<dyn> x);

}  // namespace detail

/// This worker's part of a global tensor that every worker has, DTensor's `distribute_tensor`. Only dynamic extents
/// move, which are compared, and now and then a hash of the whole.
template <class T = void, class Team, class Box>
auto distribute(const Team& team, const Box& global, call_site at = call_site::here()) {
  using verdict = engine::verdict_of<detail::enters<T, Team, Box>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) {
    T taken =
        detail::entered<T>(detail::distribute_value(team.state(), value_of<T>.layout, value_of<T>.element, global));
    detail::compare_entry(taken.dynamic(), at, global);
    return taken;
  } else {
    return detail::refused_like<detail::as_tensor<T>>();
  }
}

/// The same under a layout that is a value; the workers compare it.
inline tensor<dyn> distribute(const team_handle& team, const layout& x, const at::Tensor& global,
                              call_site at = call_site::here()) {
  return detail::distribute_value(team, x, global, at);
}
template <class Team>
tensor<dyn> distribute(const Team& team, const layout& x, const at::Tensor& global, call_site at = call_site::here()) {
  return distribute(team.state(), x, global, at);
}

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/distribute_impl.hpp>
#endif
