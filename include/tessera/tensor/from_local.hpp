#pragma once

#include <tessera/tensor/distribute.hpp>

namespace tessera {

namespace detail {

template <class... Given>
struct made_of_boxes {
  static constexpr refusal value = check_entry<Given...>();
};

/// The extents of every worker's box, one list a worker of the team's mesh in row-major order.
inline std::vector<std::vector<index_t>> gather_sizes(team_state& team, const at::Tensor& local, int dims) {
  std::vector<std::vector<index_t>> all(static_cast<std::size_t>(team.mesh().size()));
  for (int d = 0; d < dims; ++d) {
    const std::vector<std::uint64_t> each =
        team.collect(static_cast<std::uint64_t>(local.size(d)), "learning lengths of boxes");
    for (std::size_t w = 0; w < each.size(); ++w) all[w].push_back(static_cast<index_t>(each[w]));
  }
  return all;
}

/// The length of every part of a dimension, from the boxes of those who hold it; -1 for a part that nobody holds.
inline std::vector<index_t> lengths_of(const team_state& team, const cutting& of, int dim,
                                       const std::vector<std::vector<index_t>>& sizes) {
  std::vector<index_t> lengths(static_cast<std::size_t>(of.dims[dim].count()), -1);
  for (int w = 0; w < team.mesh().size(); ++w) {
    const int rank = team.mesh().rank(team.mesh().at(w));
    coordinates at;
    if (!of.locate(rank, at)) continue;
    index_t& length = lengths[static_cast<std::size_t>(of.dims[dim].at(at))];
    const index_t given = sizes[static_cast<std::size_t>(w)][static_cast<std::size_t>(dim)];
    if (length < 0) length = given;
    if (length != given) throw error(refusal{code::boxes_are_no_product, dim, rank, given, length}, team.label());
  }
  return lengths;
}

/// A tensor of the boxes that workers have, where nobody knows the others' extents. Lengths of parts are gathered, Σ_d
/// p integers; dynamic extents are their sums. Boxes whose lengths are no product over the dimensions are refused on
/// every worker, as are lengths that the layout does not allow.
inline tensor<dyn> learn_lengths(const team_handle& team, layout x, const at::Tensor& local, call_site at) {
  if (!local.defined()) throw error(refusal{code::undefined_tensor}, team->label());
  const scoped_context now(*team, {.at = at});
  team->agree(static_cast<std::uint64_t>(local.dim()) << 8 | static_cast<std::uint64_t>(local.scalar_type()),
              "making a tensor of a box", [&] {
                return fmt::format("making a tensor of a box of {} dimensions of {}", local.dim(),
                                   at::toString(local.scalar_type()));
              });
  if (local.dim() != x.dims.count) throw error(refusal{code::ranks_differ, x.dims.count, local.dim()}, team->label());
  const auto sizes = gather_sizes(*team, local, x.dims.count);
  std::vector<std::vector<index_t>> bounds(static_cast<std::size_t>(x.dims.count));
  const cutting of(x);
  for (int d = 0; d < x.dims.count; ++d) {
    std::vector<index_t>& b = bounds[static_cast<std::size_t>(d)];
    b.push_back(0);
    for (index_t n : lengths_of(*team, of, d, sizes)) b.push_back(b.back() + std::max<index_t>(n, 0));
    dimension& dim = x.dims[d];
    if (dim.kind != cover::tiled) continue;  // a window's extents are known from elsewhere
    if (dim.extent == dynamic) dim.extent = b.back();
    if (dim.extent != b.back()) throw error(refusal{code::extents_differ, d, dim.extent, b.back()}, team->label());
    if (dim.bounds == learned) dim.bounds = b.data();
  }
  check(check(x), *team);
  for (int w = 0; w < team->mesh().size(); ++w) {  // every worker sees what is wrong with any
    const std::vector<index_t> wanted = sizes_of(held_by(x, team->mesh().rank(team->mesh().at(w))));
    coordinates here;
    if (!of.locate(team->mesh().rank(team->mesh().at(w)), here)) continue;
    for (int d = 0; d < x.dims.count; ++d) {
      const auto i = static_cast<std::size_t>(d);
      const index_t given = sizes[static_cast<std::size_t>(w)][i];
      if (given != wanted[i])
        throw error(refusal{code::wrong_local_shape, d, wanted[i], given},
                    label_of(team->mesh(), team->mesh().rank(team->mesh().at(w))));
    }
  }
  const tensor<dyn> made = tensor_of(team, x, local, next_lineage(*team, x.mesh));
  compare_entry(made, at);
  return made;
}

/// Whether neither a layout nor what is bound tells how long some part is.
constexpr bool learns_lengths(const layout& x) {
  for (int d = 0; d < x.dims.count; ++d) {
    const dimension& dim = x.dims[d];
    if (dim.bounds == learned || (dim.kind == cover::tiled && dim.extent == dynamic && x.levels(d) > 0)) return true;
  }
  return false;
}

template <class T, class Team, class Box, class... Bindings>
auto typed_from_local(const Team& team, const Box& local, call_site at, const Bindings&... bindings) {
  using verdict = verdict_of<made_of_boxes<T, Team, Box, Bindings...>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) {
    layout x = bound_all(value_of<T>.layout, bindings...);
    if (learns_lengths(x)) {
      if (local.defined()) check(check_element(value_of<T>.element, local.scalar_type()), team);
      return T(learn_lengths(team.state(), x, local, at));
    }
    for (int d = 0; d < x.dims.count; ++d)  // what nothing cuts is seen from the box
      if (x.dims[d].extent == dynamic && x.levels(d) == 0 && local.defined() && d < local.dim() &&
          x.mesh.contains(team.rank()))
        x.dims[d].extent = local.size(d);
    T made = entered<T>(tensor_of(team.state(), x, value_of<T>.element, local, next_lineage(*team.state(), x.mesh)));
    compare_entry(made.dynamic(), at);
    return made;
  } else {
    return refused_like<as_tensor<T>>();
  }
}

/// Stands for the line that makes a tensor of this type, where bindings leave no place for it.
template <class T>
inline constexpr char made_by_type = 0;
template <class T>
inline constexpr call_site line_of_type{&made_by_type<T>, 0};

}  // namespace detail

/// Wraps this worker's box in a type, DTensor's `from_local`: shape, element and device are checked, dynamic extents
/// compared. Bindings give those that are cut: `from_local<T>(team, box, bind<batch>(64))`.
///
/// Lengths that neither the type nor a binding gives are learned from the boxes, by gathering an integer for each
/// worker and dimension. Then all workers of the team call it, those outside the mesh with a tensor of as many
/// dimensions. `from_local<tensor<partition<grid, lengths<a>, whole>, shape<batch, dim<5>>>>(team, box)`.
template <class T = void, class Team, class Box>
auto from_local(const Team& team, const Box& local, call_site at = call_site::here()) {
  return detail::typed_from_local<T>(team, local, at);
}
template <class T = void, class Team, class Box, class First, class... Bindings>
  requires(!std::is_same_v<First, call_site> && !std::is_same_v<Box, layout>)
auto from_local(const Team& team, const Box& local, const First& first, const Bindings&... bindings) {
  return detail::typed_from_local<T>(team, local, detail::line_of_type<T>, first, bindings...);
}

/// The same under a layout that is a value, which the workers compare: all lengths are learned.
inline tensor<dyn> from_local(const team_handle& team, const layout& x, const at::Tensor& local,
                              call_site at = call_site::here()) {
  return detail::learn_lengths(team, x, local, at);
}

}  // namespace tessera
