#pragma once

#include <tessera/operation/rule/local_boxes.hpp>
#include <tessera/tensor/change/change.hpp>

namespace tessera::engine {

/// A change of layout that is bound to a team.
struct redistribution {
  shared_layout_handle from, to;
};

/// The argument of a function with exchanges: the places of its boxes, and its changes of layout in order.
struct bound_exchanges {
  const team_handle& team;
  const local_boxes& boxes;
  const std::vector<redistribution>& exchanges;
  static_vector<const layout*, 4> operands = {};

  at::Tensor exchanged(const at::Tensor& x, std::size_t i) const {
    return change_layout(team, exchanges[i].from, exchanges[i].to, x, {}, {});
  }
};

}  // namespace tessera::engine
