#pragma once

#include <tessera/comm/exchange.hpp>
#include <tessera/topology/group.hpp>
#include <tessera/topology/mesh.hpp>

#include <cstdio>
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
      : checked(carrier->checked), carrier_(std::move(carrier)), mesh_(own(mesh)) {
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

  /// The exchange of one transfer, bound on its first use.
  exchange& bound(const step& s, element e) {
    check_thread();
    auto& slot = exchanges_[fingerprint_of(s, e)];
    if (!slot) slot = std::make_unique<exchange>(s, rank(), e);
    return *slot;
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

  /// The numbers that each worker of the mesh hands in, equally many, on all of them, in row-major order. `what` it is for is the
  /// same literal on all.
  std::vector<std::uint64_t> collect(std::vector<std::uint64_t> mine, const char* what) {
    const auto count = static_cast<index_t>(mine.size());
    std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(mesh_.size()), 0);
    layout own;
    own.mesh = mesh_;
    own.roles.resize(mesh_.axes.count);
    dimension workers;
    workers.extent = mesh_.size() * count;
    own.dims.push(workers);
    const layout every = own;
    for (int a = 0; a < mesh_.axes.count; ++a) own.cut_by(0, a);
    exchange& gather = bound({map::move, own, every, combine::sum}, element::int64);
    region in{reinterpret_cast<std::byte*>(mine.data()), element::int64, {}, {}};
    in.extents.push(count);
    in.strides.push(1);
    region out{reinterpret_cast<std::byte*>(all.data()), element::int64, {}, {}};
    out.extents.push(workers.extent);
    out.strides.push(1);
    activity does{.why = purpose::agreement, .what = doing_.why == purpose::state ? doing_.what : what, .at = doing_.at};
    gather.finish(*carrier_, gather.start(*carrier_, in, out, does));
    return all;
  }
  std::vector<std::uint64_t> collect(std::uint64_t mine, const char* what = "collecting numbers") { return collect(std::vector{mine}, what); }

  /// The text that each worker of the mesh hands in, on all of them, in row-major order.
  std::vector<std::string> collect_text(const std::string& mine) {
    const std::vector<std::uint64_t> lengths = collect(mine.size(), "telling the others");
    const std::size_t words = *std::max_element(lengths.begin(), lengths.end()) / 8 + 1;
    std::vector<std::uint64_t> packed(words);
    std::memcpy(packed.data(), mine.data(), mine.size());
    const std::vector<std::uint64_t> all = collect(packed, "telling the others");
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < lengths.size(); ++i) texts.emplace_back(reinterpret_cast<const char*>(&all[i * words]), lengths[i]);
    return texts;
  }

  /// Throws on every worker of the mesh unless all hand in the same number; describe() says, where they differ, what stands for.
  template <class Describe>
  void agree(std::uint64_t mine, const char* what, Describe&& describe) {
    const std::vector<std::uint64_t> all = collect(mine, what);
    const auto other = std::find_if(all.begin(), all.end(), [&](std::uint64_t theirs) { return theirs != all[0]; });
    if (other == all.end()) return;
    const auto place = static_cast<int>(other - all.begin());
    const std::vector<std::string> each = collect_text(describe());
    const int one = mesh_.rank(mesh_.at(0));
    const int another = mesh_.rank(mesh_.at(place));
    disagree(error(refusal{code::workers_disagree, one, another}, told(one, each[0]) + "; " + told(another, each[static_cast<std::size_t>(place)])));
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
        disagree(error(refusal{code::extents_disagree, dimensions[d], all[d], mesh_.rank(mesh_.at(static_cast<int>(i / mine.size()))), all[i]}));
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
        disagree(error(refusal{code::copies_differ, one, other}, text_of(before)));
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

  // The launch fails with it, even where the program catches it.
  [[noreturn]] void disagree(const error& why) {
    carrier_->disagreement = why;
    throw why;
  }

  std::thread::id owner_ = std::this_thread::get_id();
  activity doing_;
  std::uint64_t changed_ = 0;
  std::shared_ptr<transport> carrier_;
  std::set<std::vector<index_t>> bounds_;
  std::set<std::vector<int>> ranks_;
  mesh_value mesh_;
  bool inside_ = false;
  coordinates at_;
  std::unordered_map<std::uint64_t, std::unique_ptr<planned_change>> changes_;
  std::unordered_map<std::uint64_t, std::unique_ptr<exchange>> exchanges_;
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

  /// This worker's coordinate along an axis or a product of axes; 0 along one that the mesh lacks.
  template <class A>
  int coordinate() const {
    return coordinate_along<A>(M::value, state_->at());
  }

  /// Whether this worker is the first of the mesh: the one that prints what all know.
  bool first() const { return inside() && state_->mesh().number(state_->at()) == 0; }

  /// Another mesh over the workers of the same launch, checked and observed as this one; all of them call it.
  template <Mesh Other>
  team<Other> over() const {
    team<Other> workers(state_->shared_carrier());
    workers.state()->checked = state_->checked;
    workers.state()->watch = state_->watch;
    return workers;
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
