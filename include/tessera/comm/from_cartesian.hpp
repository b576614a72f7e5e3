#pragma once

#include <tessera/comm/mpi/exchange.hpp>
#include <tessera/comm/team.hpp>

#include <initializer_list>

namespace tessera {

/// The processes of a Cartesian communicator of MPI's as a team, and which of its axes are rings: `from_cartesian`
/// makes it.
class cartesian_workers {
 public:
  const team_handle& team() const { return team_; }
  const mesh_value& mesh() const { return team_->mesh(); }

  /// Whether the last process along an axis is a neighbour of the first.
  bool is_ring(int axis) const { return rings_[axis]; }

  /// The rank in the communicator of who is `steps` further along an axis, as `MPI_Cart_shift` finds it: around a ring,
  /// and beyond an end MPI_PROC_NULL.
  int neighbour(int axis, int steps = 1) const {
    coordinates at = team_->at();
    const index_t n = mesh().axes[axis].extent;
    const index_t there = index_t{at[axis]} + steps;
    if (!rings_[axis] && (there < 0 || there >= n)) return MPI_PROC_NULL;
    at[axis] = static_cast<int>(detail::modulo(there, n));
    return mesh().rank(at);
  }

 private:
  friend cartesian_workers from_cartesian(MPI_Comm grid, const static_vector<text, engine::max_axes>& names,
                                          const mesh_value* wanted, const mpi_options& options);

  cartesian_workers(team_handle team, const static_vector<bool, engine::max_axes>& rings)
      : team_(std::move(team)), rings_(rings) {}

  team_handle team_;
  static_vector<bool, engine::max_axes> rings_;
};

/// The same on a mesh that types know.
template <Mesh M>
class cartesian : public cartesian_workers {
 public:
  explicit cartesian(const cartesian_workers& grid) : cartesian_workers(grid) {}

  tessera::team<M> workers() const { return tessera::team<M>(team()); }

  template <class A>
  bool is_ring() const {
    return cartesian_workers::is_ring(index_of<A>());
  }
  template <class A>
  int neighbour(int steps = 1) const {
    return cartesian_workers::neighbour(index_of<A>(), steps);
  }

 private:
  template <class A>
  static constexpr int index_of() {
    using verdict = engine::verdict_of<detail::axes_check<kind::call, A>>;
    verdict::template refuse<verdict>();
    constexpr int at = M::value.find(engine::short_name_of<engine::bare_axis<A>>());
    static_assert(at >= 0, "the mesh has no such axis");
    return at;
  }
};

inline cartesian_workers from_cartesian(MPI_Comm grid, const static_vector<text, engine::max_axes>& names,
                                        const mesh_value* wanted, const mpi_options& options) {
  int started = 0, ended = 0, kind = MPI_UNDEFINED, dims = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  if (started == 0 || ended != 0) throw error(refusal{code::mpi_not_running});
  if (grid != MPI_COMM_NULL) MPI_Topo_test(grid, &kind);
  if (kind != MPI_CART) throw error(refusal{code::not_cartesian});
  MPI_Cartdim_get(grid, &dims);
  if (dims != names.count) throw error(refusal{code::grids_differ, text("dimensions"), names.count, dims});
  int extents[engine::max_axes + 1], periods[engine::max_axes + 1], at[engine::max_axes + 1];
  MPI_Cart_get(grid, dims, extents, periods, at);
  mesh_value mesh;
  static_vector<bool, engine::max_axes> rings;
  for (int a = 0; a < dims; ++a) {
    mesh.axes.push({names[a], extents[a], 0});
    rings.push(periods[a] != 0);
    if (wanted != nullptr && wanted->axes[a].extent != extents[a])
      throw error(refusal{code::grids_differ, names[a], wanted->axes[a].extent, extents[a]});
  }
  mesh = row_major(mesh);  // which is how MPI numbers a grid, reordered or not
  engine::check(engine::check(mesh), "a Cartesian communicator");
  if (wanted != nullptr && !(mesh == *wanted))
    throw error(refusal{code::grids_differ, text("first"), wanted->first, 0});
  const auto carrier =
      std::make_shared<mpi_transport>(boost::mpi::communicator(grid, boost::mpi::comm_attach), options);
  return {std::make_shared<team_state>(carrier, mesh), rings};
}

/// The processes of a Cartesian communicator (`MPI_Cart_create`) as a team. Its rank r is worker r, at the coordinates
/// that MPI gives it, also where MPI reordered ranks or left processes out.
///
/// The communicator is duplicated, so messages of its own and those of the library never meet, and may be freed. A
/// communicator without a Cartesian topology is refused on each process alike. So is one with other axes or extents
/// than the mesh, which lies row-major from rank 0.
template <Mesh M>
cartesian<M> from_cartesian(MPI_Comm grid, const mpi_options& options = {}) {
  static_vector<text, engine::max_axes> names;
  for (const engine::axis_value& a : M::value.axes) names.push(a.name);
  return cartesian<M>(from_cartesian(grid, names, &M::value, options));
}

/// The same where the extents are the communicator's; the names are those of its axes, in MPI's order, and live as long
/// as the program.
inline cartesian_workers from_cartesian(MPI_Comm grid, std::initializer_list<const char*> names,
                                        const mpi_options& options = {}) {
  static_vector<text, engine::max_axes> all;
  if (names.size() > engine::max_axes) throw error(refusal{code::too_many, names.size()});
  for (const char* name : names) all.push(text(name));
  return from_cartesian(grid, all, nullptr, options);
}

}  // namespace tessera
