#pragma once

#include <tessera/comm/team_state.hpp>
#include <tessera/topology/group.hpp>
#include <tessera/topology/mesh.hpp>

#include <cstdio>

namespace tessera {

/// A mesh bound to a transport; a copy is another handle to the same team.
template <Mesh M>
class team {
 public:
  using mesh_type = M;

  explicit team(std::shared_ptr<engine::transport> carrier)
      : team(std::make_shared<team_state>(std::move(carrier), M::value)) {}
  /// The typed face of a team on this mesh.
  explicit team(std::shared_ptr<team_state> state) : state_(std::move(state)) {}

  const std::shared_ptr<team_state>& state() const { return state_; }
  int rank() const { return state_->rank(); }
  const mesh_value& mesh() const { return state_->mesh(); }
  int size() const { return state_->size(); }
  bool inside() const { return state_->inside(); }

  /// This worker's coordinate along an axis or a product of axes; 0 along one that the mesh lacks.
  template <class A>
  int coordinate() const {
    return engine::coordinate_along<A>(M::value, state_->at());
  }

  /// Whether this worker is the first of the mesh: the one that prints what all know.
  bool first() const { return inside() && state_->mesh().number(state_->at()) == 0; }

  /// Another mesh over the workers of the same launch, checked as this one, with one observer and one count; all of
  /// them call it.
  template <Mesh Other>
  team<Other> over() const {
    return team<Other>(state_->over(Other::value));
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
template <Mesh M>
inline constexpr kind engine::kind_of<team<M>> = kind::team;

/// The same on a mesh that types know.
template <Mesh M>
void print_in_order(const team<M>& t, const std::string& text, std::FILE* to = stdout,
                    call_site at = call_site::here()) {
  print_in_order(t.state(), text, to, at);
}

}  // namespace tessera
