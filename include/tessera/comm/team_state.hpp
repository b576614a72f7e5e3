#pragma once

#include <tessera/comm/base/checks.hpp>
#include <tessera/comm/exchange/crew.hpp>
#include <tessera/comm/exchange/exchanges.hpp>
#include <tessera/comm/exchange/shared_layout.hpp>

#include <cstdio>
#include <map>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

namespace tessera {

namespace engine {

/// Called around every exchange; null costs one test.
struct observer {
  void (*exchange_started)(void* self, const phase& carried, element e) = nullptr;
  void (*exchange_finished)(void* self, const phase& carried, element e, const received& got) = nullptr;
  void* self = nullptr;
};

/// An observer of the exchanges of a worker's teams, with the bytes that they brought.
struct exchange_record {
  observer watch;
  received total;
};

/// A worker by its coordinates, "row 0 col 1"; one outside the mesh by its world rank, "worker 5".
std::string label_of(const mesh_value& mesh, int rank);

/// A mesh by its axes: "row 2 col 3".
std::string words_of(const mesh_value& mesh);

class scoped_context;

}  // namespace engine

/// A mesh bound to a transport, seen from one worker: what tensors and layers hold.
class team_state {
  std::shared_ptr<engine::exchange_record> record_;  // first: what is public refers to it

 public:
  team_state(std::shared_ptr<engine::transport> carrier, const mesh_value& mesh, const char* subject = "making a team",
             std::shared_ptr<engine::exchange_record> record = std::make_shared<engine::exchange_record>());

  /// Another mesh over the workers of the same launch, checked as this one, with one observer and one count; all of
  /// them call it.
  std::shared_ptr<team_state> over(const mesh_value& mesh) const;

  const mesh_value& mesh() const { return over_->layout().mesh; }
  int size() const { return mesh().size(); }  ///< workers of the mesh
  engine::transport& carrier() const { return *carrier_; }
  const std::shared_ptr<engine::transport>& shared_carrier() const { return carrier_; }
  int rank() const { return carrier_->rank(); }
  /// Where its tensors lie.
  const engine::tensor_device& tensors() const { return tensors_; }
  bool inside() const { return inside_; }
  const coordinates& at() const { return at_; }

  /// The exchange of one phase, bound on its first use by all the workers that take part in it.
  std::shared_ptr<engine::bound_exchange> bound(const phase& p, element e, const engine::call_context& context = {});

  /// A layout as all tensors of the team share it, with its lists; equal ones are one, so they are compared by address.
  std::shared_ptr<const engine::shared_layout> intern(const layout& x);

  /// State that a higher floor keeps with the team, made on first use.
  template <class Kept>
  Kept& kept() {
    check_thread();
    std::shared_ptr<void>& slot = kept_[&type_id<Kept>];
    if (!slot) slot = std::make_shared<Kept>();
    return *static_cast<Kept*>(slot.get());
  }

  /// The workers of a mesh, in row-major order.
  engine::crew& crew_of(const mesh_value& of);
  /// The workers that hold something of a layout, or of two, the first one's before the others. A tensor that lies `on`
  /// one coordinate concerns the workers there alone: no other one waits for what they agree on.
  engine::crew& crew_of(const layout& of) { return crew_of(of, of); }
  engine::crew& crew_of(const layout& of, const layout& and_of);

  /// Gathers the numbers of each worker of a crew, equally many on all, in the order of the crew. Their `subject` is
  /// the same literal on all.
  std::vector<std::uint64_t> collect(const engine::crew& workers, std::vector<std::uint64_t> mine, const char* subject);
  /// The same of the workers of the team's mesh, in row-major order.
  std::vector<std::uint64_t> collect(std::vector<std::uint64_t> mine, const char* subject) {
    return collect(everybody_, std::move(mine), subject);
  }
  std::vector<std::uint64_t> collect(std::uint64_t mine, const char* subject = "collecting numbers") {
    return collect(std::vector{mine}, subject);
  }

  /// The text that each worker of the mesh hands in, on all of them, in row-major order.
  std::vector<std::string> collect_text(const std::string& mine);

  /// Throws on every worker of the mesh unless all hand in the same number; describe() says, where they differ, what
  /// stands for it.
  template <class Describe>
  void agree(std::uint64_t mine, const char* subject, Describe&& describe) {
    everybody_.among().throw_if_different(collect(mine, subject), 1, agreeing(subject), describe);
  }
  void agree(std::uint64_t mine, const char* subject = "comparing numbers") {
    agree(mine, subject, [&] { return fmt::format("{}: {}", subject, mine); });
  }

  /// Throws on every worker of a crew unless all do the same now, by a fingerprint of it, and says what each does.
  /// Returns the number `besides` of each worker, in the order of the crew.
  std::vector<std::uint64_t> agree(const engine::crew& workers, std::uint64_t does, std::uint64_t besides,
                                   const engine::call_context& context);

  /// Throws on every worker of the mesh unless all give these dimensions of a tensor the same extents.
  void agree_on_extents(const std::vector<int>& dimensions, const std::vector<std::uint64_t>& mine);

  /// Throws on every worker of a layout's mesh unless copies along replicate and invariant axes have the same
  /// fingerprint.
  void agree_on_copies(const layout& x, std::uint64_t mine, const engine::call_context& before);

  /// The same of numbers that a crew collected before, to which the mesh's workers belong: `theirs(i)` is that of its
  /// i-th worker.
  template <class Theirs>
  void compare_copies(const engine::crew& workers, const layout& x, Theirs&& theirs,
                      const engine::call_context& before) {
    if (const auto two = differing_copies(workers, x, theirs))
      workers.among().disagree(error(refusal{code::copies_differ, two->first, two->second}, text_of(before)));
  }
  /// The first two workers of a crew whose copies such numbers tell apart, if any.
  template <class Theirs>
  static std::optional<std::pair<int, int>> differing_copies(const engine::crew& workers, const layout& x,
                                                             Theirs&& theirs) {
    for (int i = 0; i < x.mesh.size(); ++i) {
      coordinates first = x.mesh.at(i);
      for (int a = 0; a < x.placements.count; ++a)
        if (x.placements[a].kind == placement::replicate || x.placements[a].kind == placement::invariant) first[a] = 0;
      const int one = x.mesh.rank(first);
      const int other = x.mesh.rank(x.mesh.at(i));
      if (workers.has(one) && workers.has(other) && theirs(workers.index_of(one)) != theirs(workers.index_of(other)))
        return std::make_pair(one, other);
    }
    return std::nullopt;
  }

  /// The worker's present work, by the outermost function that names it (`during`).
  const engine::call_context& doing() const { return doing_; }

  /// Throws where another thread than the worker's own uses the team; after the launch there is no such thread.
  void check_thread() const;

  /// This worker by its coordinates: "row 0 col 1".
  std::string label() const { return engine::label_of(mesh(), rank()); }

  engine::observer& watch = record_->watch;  ///< of this team and those over other meshes that were made of it
  engine::received& total = record_->total;  ///< bytes and messages that their exchanges brought
  tessera::checks checks = checks::sampled;  ///< how often workers compare what they do and hold

 private:
  friend class engine::scoped_context;

  // Saving and gathering state call the same agreements as other calls do, but never meet them.
  const char* subject_of(const char* subject) const { return doing_.why == purpose::state ? doing_.name : subject; }
  engine::call_context agreeing(const char* subject) const {
    return {.why = purpose::agreement, .name = subject_of(subject), .at = doing_.at};
  }

  template <class Kept>
  static constexpr char type_id = 0;  // its address tells types apart

  std::thread::id owner_ = std::this_thread::get_id();
  engine::call_context doing_;
  std::shared_ptr<engine::transport> carrier_;
  engine::tensor_device tensors_;
  engine::exchanges exchanges_;
  std::unordered_map<std::uint64_t, std::weak_ptr<const engine::shared_layout>> shared_layouts_;
  std::size_t interned_ = 64;  // when those that are gone were last looked for
  std::shared_ptr<const engine::shared_layout> over_;
  engine::crew& crew_of(const std::vector<int>& ranks);
  std::map<std::vector<int>, engine::crew> crews_;  // by the workers' ranks
  engine::crew& everybody_;
  bool inside_ = false;
  coordinates at_;
  std::unordered_map<const char*, std::shared_ptr<void>> kept_;
};

/// A team's state as its tensors, layers and exchanges share it.
using team_handle = std::shared_ptr<team_state>;

namespace engine {

/// While it lives, what a team's calls are for; the outermost says it in words, and where the user called.
class scoped_context {
 public:
  scoped_context(team_state& team, const call_context& now) : team_(team), before_(team.doing_) {
    team.check_thread();
    team.doing_ = now;
    if (before_.name != nullptr) team.doing_.name = before_.name;
    if (before_.at.file != nullptr) team.doing_.at = before_.at;
  }
  scoped_context(const scoped_context&) = delete;
  scoped_context& operator=(const scoped_context&) = delete;
  ~scoped_context() { team_.doing_ = before_; }

 private:
  team_state& team_;
  call_context before_;
};

}  // namespace engine

/// Prints the text of each worker of the mesh as a line, in row-major order, on the first of them, so that lines never
/// mix. A worker without text gets no line. All of them call it, and nobody goes on before all is printed.
void print_in_order(const team_handle& team, const std::string& text, std::FILE* to = stdout,
                    call_site at = call_site::here());

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/comm/team_state_impl.hpp>
#endif
