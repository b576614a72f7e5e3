#pragma once

#include <tessera/comm/exchange.hpp>
#include <tessera/topology/mesh.hpp>

#include <cstdio>
#include <set>
#include <unordered_map>

namespace tessera {

/// Called around every exchange; null costs one test.
struct observer {
  void (*exchange_started)(void* self, const step& what, element e) = nullptr;
  void (*exchange_finished)(void* self, const step& what, element e, const received& got) = nullptr;
  void* self = nullptr;
};

/// A worker by its coordinates, "row 0 col 1"; one outside the mesh by its world rank, "worker 5".
inline std::string label_of(const mesh_value& mesh, int rank) {
  coordinates at;
  if (!mesh.locate(rank, at) || mesh.axes.empty()) return fmt::format("worker {}", rank);
  std::string label;
  for (int a = 0; a < mesh.axes.count; ++a) {
    const text& name = mesh.axes[a].name;
    label += fmt::format("{}{} {}", a == 0 ? "" : " ", std::string_view(name.data, static_cast<std::size_t>(name.size)), at[a]);
  }
  return label;
}

/// A change of layout with its plan, kept by the team that made it.
struct planned_change {
  layout from;
  layout to;
  change plan;
};

/// A mesh bound to a transport, seen from one worker: what tensors and layers hold.
class team_state {
 public:
  team_state(std::shared_ptr<transport> carrier, const mesh_value& mesh) : carrier_(std::move(carrier)), mesh_(own(mesh)) {
    check(tessera::check(mesh_));
    for (int i = 0; i < mesh.size(); ++i)
      if (const int r = mesh.rank(mesh.at(i)); r < 0 || r >= carrier_->size())
        throw error(refusal{code::mesh_larger_than_world, mesh.size(), carrier_->size()});
    inside_ = mesh.locate(carrier_->rank(), at_);
    fingerprint f;
    layout only_mesh;
    only_mesh.mesh = mesh;
    f << only_mesh;
    if (inside_) agree(f.value());
  }

  const mesh_value& mesh() const { return mesh_; }
  transport& carrier() const { return *carrier_; }
  const std::shared_ptr<transport>& shared_carrier() const { return carrier_; }
  int rank() const { return carrier_->rank(); }
  bool inside() const { return inside_; }
  const coordinates& at() const { return at_; }

  /// The exchange of one transfer, bound on its first use.
  exchange& bound(const step& s, element e) {
    auto& slot = exchanges_[fingerprint_of(s, e)];
    if (!slot) slot = std::make_unique<exchange>(s, rank(), e);
    return *slot;
  }

  /// The plan of a change of layout, made on its first use; it stays where it is as long as the team.
  const planned_change& planned(const layout& from, const layout& to) {
    fingerprint f;
    f << from << to;
    auto& slot = changes_[f.value()];
    if (slot) return *slot;
    check(first_of(check(from), check(to), check_change(from, to), check_lengths(from), check_lengths(to)), label());
    const layout a = own(from);
    const layout b = own(to);
    slot = std::make_unique<planned_change>(planned_change{a, b, change_between(a, b)});
    return *slot;
  }

  // Lengths that only a type says are learned have no numbers to plan with.
  static refusal check_lengths(const layout& x) {
    for (int d = 0; d < x.dims.count; ++d)
      if (x.dims[d].bounds == learned) return refusal{code::lengths_not_known, d};
    return {};
  }

  /// The same layout with its lists (explicit parts, ranks) kept by this team, so that it outlives whoever made them.
  layout own(layout x) {
    x.mesh = own(x.mesh);
    for (int d = 0; d < x.dims.count; ++d) {
      const index_t*& bounds = x.dims[d].bounds;
      if (bounds != nullptr && bounds != learned) bounds = bounds_.insert({bounds, bounds + x.parts(d) + 1}).first->data();
    }
    return x;
  }
  mesh_value own(const mesh_value& mesh) {
    if (mesh.ranks == nullptr) return mesh;
    std::vector<int> list;
    for (int i = 0; i < mesh.size(); ++i) list.push_back(mesh.rank(mesh.at(i)));
    return row_major(mesh, 0, ranks_.insert(std::move(list)).first->data());
  }

  /// The number that each worker of the mesh hands in, on all of them, in row-major order.
  std::vector<std::uint64_t> collect(std::uint64_t mine) {
    std::vector<std::uint64_t> all(static_cast<std::size_t>(mesh_.size()), 0);
    layout own;
    own.mesh = mesh_;
    own.roles.resize(mesh_.axes.count);
    dimension workers;
    workers.extent = mesh_.size();
    own.dims.push(workers);
    const layout every = own;
    for (int a = 0; a < mesh_.axes.count; ++a) own.cut_by(0, a);
    exchange& gather = bound({map::move, own, every, combine::sum}, element::int64);
    region in{reinterpret_cast<std::byte*>(&mine), element::int64, {}, {}};
    in.extents.push(1);
    in.strides.push(1);
    region out{reinterpret_cast<std::byte*>(all.data()), element::int64, {}, {}};
    out.extents.push(mesh_.size());
    out.strides.push(1);
    gather.finish(*carrier_, gather.start(*carrier_, in, out));
    return all;
  }

  /// Throws on every worker of the mesh unless all hand in the same number.
  void agree(std::uint64_t mine) {
    const std::vector<std::uint64_t> all = collect(mine);
    for (int i = 0; i < mesh_.size(); ++i)
      if (all[static_cast<std::size_t>(i)] != all[0])
        throw error(refusal{code::workers_disagree, mesh_.rank(mesh_.at(0)), mesh_.rank(mesh_.at(i))});
  }

  /// Throws on every worker of the mesh unless copies along replicate and invariant axes have the same fingerprint; the layout
  /// may lie on another mesh of these workers.
  void agree_on_copies(const layout& x, std::uint64_t mine, std::string_view what = {}) {
    const std::vector<std::uint64_t> all = collect(mine);
    for (int i = 0; i < x.mesh.size(); ++i) {
      coordinates first = x.mesh.at(i);
      for (int a = 0; a < x.roles.count; ++a)
        if (x.roles[a].kind == role::replicate || x.roles[a].kind == role::invariant) first[a] = 0;
      const int one = x.mesh.rank(first);
      const int other = x.mesh.rank(x.mesh.at(i));
      coordinates here, there;
      if (mesh_.locate(one, here) && mesh_.locate(other, there) &&
          all[static_cast<std::size_t>(mesh_.number(here))] != all[static_cast<std::size_t>(mesh_.number(there))])
        throw error(refusal{code::copies_differ, one, other}, what);
    }
  }

  /// This worker by its coordinates: "row 0 col 1".
  std::string label() const { return label_of(mesh_, rank()); }

  observer watch;
  received total;  ///< bytes and messages that exchanges brought since the team was made
  bool checked = false;  ///< every operation compares what the workers do and hold

 private:
  std::shared_ptr<transport> carrier_;
  std::set<std::vector<index_t>> bounds_;
  std::set<std::vector<int>> ranks_;
  mesh_value mesh_;
  bool inside_ = false;
  coordinates at_;
  std::unordered_map<std::uint64_t, std::unique_ptr<planned_change>> changes_;
  std::unordered_map<std::uint64_t, std::unique_ptr<exchange>> exchanges_;
};

/// A mesh bound to a transport; a copy is another handle to the same team.
template <Mesh M>
class team {
 public:
  using mesh_type = M;

  explicit team(std::shared_ptr<transport> carrier)
      : state_(std::make_shared<team_state>(std::move(carrier), M::value)) {}

  const std::shared_ptr<team_state>& state() const { return state_; }
  int rank() const { return state_->rank(); }
  int size() const { return state_->mesh().size(); }
  bool inside() const { return state_->inside(); }

  /// This worker's coordinate along an axis; 0 along one that the mesh lacks.
  template <class A>
  int coordinate() const {
    const int a = M::value.find(short_name_of<bare_axis<A>>());
    return a < 0 ? 0 : state_->at()[a];
  }

  /// Whether this worker is the first of the mesh: the one that prints what all know.
  bool first() const { return inside() && state_->mesh().number(state_->at()) == 0; }

  /// Another mesh over the workers of the same launch; all of them call it.
  template <Mesh Other>
  team<Other> over() const {
    return team<Other>(state_->shared_carrier());
  }

  std::string label() const { return state_->label(); }

  /// Prints a line that says which worker it comes from.
  void say(std::string_view text) const {
    const std::string line = fmt::format("[{}] {}\n", label(), text);
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  }

 private:
  std::shared_ptr<team_state> state_;
};

}  // namespace tessera
