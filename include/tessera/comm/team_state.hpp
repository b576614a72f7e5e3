#pragma once

#include <tessera/comm/exchanges.hpp>

#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

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

/// A mesh by its axes: "row 2 col 3".
inline std::string words_of(const mesh_value& mesh) {
  std::string words;
  for (const axis_value& a : mesh.axes)
    words += fmt::format("{}{} {}", words.empty() ? "" : " ", std::string_view(a.name.data, static_cast<std::size_t>(a.name.size)), a.extent);
  return words;
}

/// A change of layout with its plan, kept by the team that made it.
struct planned_change {
  layout from;
  layout to;
  change plan;
  movement moves;
};

/// A mesh bound to a transport, seen from one worker: what tensors and layers hold.
class team_state {
 public:
  team_state(std::shared_ptr<transport> carrier, const mesh_value& mesh, const char* what = "making a team")
      : checked(carrier->checked), carrier_(std::move(carrier)), exchanges_(*carrier_), mesh_(own(mesh)), among_(*carrier_, ranks_of(mesh_)) {
    check(tessera::check(mesh_));
    inside_ = mesh.locate(carrier_->rank(), at_);
    fingerprint f;
    layout only_mesh;
    only_mesh.mesh = mesh;
    f << only_mesh;
    if (inside_) agree(f.value(), what, [&] { return fmt::format("{} of {}", what, words_of(mesh_)); });
  }

  const mesh_value& mesh() const { return mesh_; }
  transport& carrier() const { return *carrier_; }
  const std::shared_ptr<transport>& shared_carrier() const { return carrier_; }
  int rank() const { return carrier_->rank(); }
  bool inside() const { return inside_; }
  const coordinates& at() const { return at_; }

  /// The exchange of one transfer, bound on its first use by all the workers that take part in it.
  std::shared_ptr<bound_exchange> bound(const step& s, element e, const activity& what = {}) {
    check_thread();
    return exchanges_.bound(s, e, what);
  }

  /// The plan of a change of layout, made on its first use; it stays where it is as long as the team.
  const planned_change& planned(const layout& from, const layout& to) {
    check_thread();
    fingerprint f;
    f << from << to;
    auto& slot = changes_[f.value()];
    if (slot) return *slot;
    for (const layout* x : {&from, &to}) check(first_of(check_known(*x), check(*x)), label());
    check(check_change(from, to), label());
    const layout a = own(from);
    const layout b = own(to);
    slot = std::make_unique<planned_change>(planned_change{a, b, change_between(a, b), {a, b}});
    return *slot;
  }

  /// The same layout with its lists (explicit parts, ranks) kept by this team, so that it outlives whoever made them.
  layout own(layout x) {
    check_thread();
    x.mesh = own(x.mesh);
    for (int d = 0; d < x.dims.count; ++d) {
      const index_t*& bounds = x.dims[d].bounds;
      if (bounds != nullptr && bounds != learned) bounds = bounds_.insert({bounds, bounds + x.parts(d) + 1}).first->data();
    }
    return x;
  }
  mesh_value own(const mesh_value& mesh) {
    const auto insist = [&](index_t lowest, index_t highest) {  // every worker of a mesh was started
      if (lowest < 0 || highest >= carrier_->size()) throw error(refusal{code::mesh_larger_than_world, mesh.size(), carrier_->size()});
    };
    if (mesh.ranks == nullptr) {
      index_t lowest = mesh.first;
      index_t highest = mesh.first;
      for (const axis_value& a : mesh.axes) (a.stride < 0 ? lowest : highest) += index_t{a.stride} * (a.extent - 1);
      insist(lowest, highest);
      return mesh;
    }
    std::vector<int> list;
    for (int i = 0; i < mesh.size(); ++i) list.push_back(mesh.rank(mesh.at(i)));
    for (const int r : list) insist(r, r);
    return row_major(mesh, 0, ranks_.insert(std::move(list)).first->data());
  }

  /// The numbers that each worker of the mesh hands in, equally many, on all of them, in row-major order. `what` it is for is the same
  /// literal on all.
  std::vector<std::uint64_t> collect(std::vector<std::uint64_t> mine, const char* what) {
    check_thread();
    return among_.gather(std::move(mine), said(what), agreeing(what));
  }
  std::vector<std::uint64_t> collect(std::uint64_t mine, const char* what = "collecting numbers") { return collect(std::vector{mine}, what); }

  /// The text that each worker of the mesh hands in, on all of them, in row-major order.
  std::vector<std::string> collect_text(const std::string& mine) {
    check_thread();
    return among_.gather(mine, agreeing("telling the others"));
  }

  /// Throws on every worker of the mesh unless all hand in the same number; describe() says, where they differ, what stands for it.
  template <class Describe>
  void agree(std::uint64_t mine, const char* what, Describe&& describe) {
    among_.insist(collect(mine, what), 1, agreeing(what), describe);
  }
  void agree(std::uint64_t mine, const char* what = "comparing numbers") {
    agree(mine, what, [&] { return fmt::format("{}: {}", what, mine); });
  }

  /// Throws on every worker of the mesh unless all give these dimensions of a tensor the same extents.
  void agree_on_extents(const std::vector<int>& dimensions, const std::vector<std::uint64_t>& mine) {
    const std::vector<std::uint64_t> all = collect(mine, "comparing extents");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t d = i % mine.size();
      if (all[i] != all[d])
        among_.disagree(error(refusal{code::extents_disagree, dimensions[d], all[d], mesh_.rank(mesh_.at(static_cast<int>(i / mine.size()))), all[i]}));
    }
  }

  /// Throws on every worker of the mesh unless copies along replicate and invariant axes have the same fingerprint; the layout
  /// may lie on another mesh of these workers.
  void agree_on_copies(const layout& x, std::uint64_t mine, const activity& before) {
    const std::vector<std::uint64_t> all = collect(mine, "comparing copies");
    for (int i = 0; i < x.mesh.size(); ++i) {
      coordinates first = x.mesh.at(i);
      for (int a = 0; a < x.roles.count; ++a)
        if (x.roles[a].kind == role::replicate || x.roles[a].kind == role::invariant) first[a] = 0;
      const int one = x.mesh.rank(first);
      const int other = x.mesh.rank(x.mesh.at(i));
      coordinates here, there;
      if (mesh_.locate(one, here) && mesh_.locate(other, there) &&
          all[static_cast<std::size_t>(mesh_.number(here))] != all[static_cast<std::size_t>(mesh_.number(there))])
        among_.disagree(error(refusal{code::copies_differ, one, other}, text_of(before)));
    }
  }

  /// What the worker does now, by the outermost function that says so (`during`).
  const activity& doing() const { return doing_; }

  /// Throws where another thread than the worker's own uses the team; after the launch there is no such thread.
  void check_thread() const {
    if (std::this_thread::get_id() != owner_ && !carrier_->ended()) throw error(refusal{code::other_thread, rank()}, label());
  }

  /// The number of the next change of layout.
  std::uint64_t next_number() { return ++changed_; }

  /// This worker by its coordinates: "row 0 col 1".
  std::string label() const { return label_of(mesh_, rank()); }

  observer watch;
  received total;  ///< bytes and messages that exchanges brought since the team was made
  bool checked = false;  ///< every operation compares what the workers do and hold

 private:
  friend class during;

  // Saving and gathering state call the same agreements as other calls do, but never meet them.
  const char* said(const char* what) const { return doing_.why == purpose::state ? doing_.what : what; }
  activity agreeing(const char* what) const { return {.why = purpose::agreement, .what = said(what), .at = doing_.at}; }

  static std::vector<int> ranks_of(const mesh_value& mesh) {
    std::vector<int> ranks;
    for (int i = 0; i < mesh.size(); ++i) ranks.push_back(mesh.rank(mesh.at(i)));
    return ranks;
  }

  std::thread::id owner_ = std::this_thread::get_id();
  activity doing_;
  std::uint64_t changed_ = 0;
  std::shared_ptr<transport> carrier_;
  exchanges exchanges_;
  std::set<std::vector<index_t>> bounds_;
  std::set<std::vector<int>> ranks_;
  mesh_value mesh_;
  agreement among_;
  bool inside_ = false;
  coordinates at_;
  std::unordered_map<std::uint64_t, std::unique_ptr<planned_change>> changes_;
};

/// While it lives, what a team's calls are for; the outermost says it in words, and where the user called.
class during {
 public:
  during(team_state& team, const activity& now) : team_(team), before_(team.doing_) {
    team.check_thread();
    team.doing_ = now;
    if (before_.what != nullptr) team.doing_.what = before_.what;
    if (before_.at.file != nullptr) team.doing_.at = before_.at;
  }
  during(const during&) = delete;
  during& operator=(const during&) = delete;
  ~during() { team_.doing_ = before_; }

 private:
  team_state& team_;
  activity before_;
};

}  // namespace tessera
