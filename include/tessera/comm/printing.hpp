#pragma once

#include <tessera/comm/team.hpp>

#include <iostream>
#include <ostream>

namespace tessera {

/// A stream that the first worker of a team writes, and no other: `printing(team) << "loss " << loss << '\n';`.
///
/// On the others the stream is bad, so that numbers and words are not put into text. A value that all workers find
/// together, as `item` and `full_tensor` do, is found by all of them in front of it.
class printing : public std::ostream {
 public:
  /// Writes where `to` leads.
  template <Mesh M>
  explicit printing(const team<M>& of, std::ostream& to = std::cout)
      : std::ostream(of.first() ? to.rdbuf() : nullptr) {}
  explicit printing(const team_state& of, std::ostream& to = std::cout)
      : std::ostream(of.inside() && of.mesh().number(of.at()) == 0 ? to.rdbuf() : nullptr) {}
};

}  // namespace tessera
