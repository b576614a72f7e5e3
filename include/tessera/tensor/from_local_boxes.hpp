#pragma once

#include <tessera/tensor/distribute.hpp>

namespace tessera {

namespace detail {

/// The extents of every worker's box, one list a worker of the team's mesh in row-major order.
inline std::vector<std::vector<index_t>> gather_sizes(team_state& team, const at::Tensor& local, int dims) {
  std::vector<std::vector<index_t>> all(static_cast<std::size_t>(team.mesh().size()));
  for (int d = 0; d < dims; ++d) {
    const std::vector<std::uint64_t> each = team.collect(static_cast<std::uint64_t>(local.size(d)), "adopting boxes");
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

}  // namespace detail

/// Makes a tensor of the boxes that workers have, where nobody knows the others' extents: `x` says how they lie
/// together.
///
/// The lengths of parts are learned by gathering Σ_d p integers, and dynamic extents are their sums. Boxes whose
/// lengths are no product over the dimensions are refused on every worker, as are lengths that the layout does not
/// allow. All workers of the team call it, those outside the layout's mesh with a tensor of as many dimensions.
inline tensor<dyn> adopt(const team_handle& team, layout x, const at::Tensor& local, call_site at = call_site::here()) {
  if (!local.defined()) throw error(refusal{code::undefined_tensor}, team->label());
  const during now(*team, {.at = at});
  team->agree(static_cast<std::uint64_t>(local.dim()) << 8 | static_cast<std::uint64_t>(local.scalar_type()),
              "adopting a box", [&] {
                return fmt::format("adopting a box of {} dimensions of {}", local.dim(),
                                   at::toString(local.scalar_type()));
              });
  if (local.dim() != x.dims.count) throw error(refusal{code::ranks_differ, x.dims.count, local.dim()}, team->label());
  const auto sizes = detail::gather_sizes(*team, local, x.dims.count);
  std::vector<std::vector<index_t>> bounds(static_cast<std::size_t>(x.dims.count));
  const cutting of(x);
  for (int d = 0; d < x.dims.count; ++d) {
    std::vector<index_t>& b = bounds[static_cast<std::size_t>(d)];
    b.push_back(0);
    for (index_t n : detail::lengths_of(*team, of, d, sizes)) b.push_back(b.back() + std::max<index_t>(n, 0));
    dimension& dim = x.dims[d];
    if (dim.kind != cover::tiled) continue;  // a window's extents are known from elsewhere
    if (dim.extent == dynamic) dim.extent = b.back();
    if (dim.extent != b.back()) throw error(refusal{code::extents_differ, d, dim.extent, b.back()}, team->label());
    if (dim.bounds == learned) dim.bounds = b.data();
  }
  check(check(x), *team);
  for (int w = 0; w < team->mesh().size(); ++w) {  // every worker sees what is wrong with any
    const std::vector<index_t> wanted = detail::sizes_of(held_by(x, team->mesh().rank(team->mesh().at(w))));
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
  const tensor<dyn> adopted = detail::tensor_of(team, x, local, detail::next_lineage(*team, x.mesh));
  detail::compare_entry(adopted, at);
  return adopted;
}

namespace detail {

template <class... Given>
struct adopts {
  static constexpr refusal value = check_entry<Given...>();
};

}  // namespace detail

/// The same into a type: `adopt<tensor<partition<grid, lengths<a>, whole>, shape<batch, dim<5>>>>(team, box)`.
template <class T = void, class Team, class Box>
auto adopt(const Team& team, const Box& local, call_site at = call_site::here()) {
  using verdict = verdict_of<detail::adopts<T, Team, Box>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) {
    if (local.defined()) check(detail::check_element(value_of<T>.element, local.scalar_type()), team);
    return T(adopt(team.state(), value_of<T>.layout, local, at));
  } else {
    return detail::refused_like<detail::as_tensor<T>>();
  }
}

}  // namespace tessera
