#pragma once

#include <tessera/tensor/tensor.hpp>

#include <vector>

namespace tessera {

namespace detail {

/// What is wrong with a call that makes a tensor of type T on a team of a LibTorch tensor.
template <class T, class Team, class Box, class... Bindings>
constexpr refusal check_entry() {
  return first_of(check_kinds<kind::call, kind::tensor, T>(0), check_kinds<kind::call, kind::team, Team>(1), check_kinds<kind::call, kind::box, Box>(2),
                  check_kinds<kind::call, kind::binding, Bindings...>(3));
}

/// Whether a tensor enters by its box alone: learned lengths come with `adopt`.
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

/// The dynamic extents of a tensor that enters, compared once over the team: no exchange that follows need see a difference.
template <TensorType T>
T entered(tensor<dyn> x) {
  std::vector<int> open;
  std::vector<std::uint64_t> extents;
  for (int d = 0; d < x.layout().dims.count; ++d) {
    if (value_of<T>.layout.dims[d].extent != dynamic) continue;
    open.push_back(d);
    extents.push_back(static_cast<std::uint64_t>(x.layout().dims[d].extent));
  }
  if (!open.empty() && x.team()->inside()) x.team()->agree_on_extents(open, extents);
  return T(std::move(x));
}

}  // namespace detail

/// Wraps this worker's box in a type: shape, element and device are checked, dynamic extents compared. Bindings give those that are
/// cut: `assume<T>(team, box, bind<batch>(64))`.
template <class T = void, class Team, class Box, class... Bindings>
auto assume(const Team& team, const Box& local, const Bindings&... bindings) {
  using verdict = verdict_of<detail::enters<T, Team, Box, Bindings...>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) {
    layout x = detail::bound_all(value_of<T>.layout, bindings...);
    for (int d = 0; d < x.dims.count; ++d)  // what nothing cuts is seen from the box
      if (x.dims[d].extent == dynamic && x.levels(d) == 0 && local.defined() && d < local.dim() && x.mesh.contains(team.rank()))
        x.dims[d].extent = local.size(d);
    return detail::entered<T>(detail::tensor_of(team.state(), x, value_of<T>.element, local));
  } else {
    return detail::refused_like<detail::as_tensor<T>>();
  }
}

namespace detail {

/// This worker's box of a tensor that everybody has; nothing moves. Of pending terms coordinate 0 has it all, the others what adds nothing.
inline tensor<dyn> take_value(const team_handle& team, layout x, element e, const at::Tensor& global) {
  tessera::check(check_plain(global), team->label());
  if (global.dim() != x.dims.count) throw error(refusal{code::ranks_differ, x.dims.count, global.dim()}, team->label());
  for (int d = 0; d < x.dims.count; ++d) {
    if (x.dims[d].extent == dynamic) x.dims[d].extent = global.size(d);
    if (x.dims[d].extent != global.size(d))
      throw error(refusal{code::extents_differ, d, x.dims[d].extent, global.size(d)}, team->label());
  }
  tessera::check(first_of(check_element(e, global.scalar_type()), check_known(x)), team->label());
  at::Tensor part = global.detach();
  int d = 0;
  for (const intervals& held : held_by(x, team->rank())) {
    std::vector<at::Tensor> pieces;
    for (const interval& i : held) pieces.push_back(part.narrow(d, i.lo, i.size()));
    part = pieces.size() == 1 ? pieces[0] : at::cat(pieces, d);
    ++d;
  }
  const tensor<dyn> taken = tensor_of(team, x, part.clone(at::MemoryFormat::Contiguous));
  for (const axis_role& r : x.roles)
    if (r.kind == role::partial && !is_first_copy(taken, role::partial)) fill_neutral(region_of(taken.local(), e), r.with);
  return taken;
}

}  // namespace detail

/// My part of a global tensor that every worker has: nothing moves but the dynamic extents, which are compared.
template <class T = void, class Team, class Box>
auto take(const Team& team, const Box& global) {
  using verdict = verdict_of<detail::enters<T, Team, Box>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) return detail::entered<T>(detail::take_value(team.state(), value_of<T>.layout, value_of<T>.element, global));
  else return detail::refused_like<detail::as_tensor<T>>();
}

}  // namespace tessera
