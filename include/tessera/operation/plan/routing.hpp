#pragma once

#include <tessera/meta/refusal.hpp>
#include <tessera/meta/static_vector.hpp>
#include <tessera/meta/text.hpp>
#include <tessera/operation/refusals.hpp>
#include <tessera/topology/mesh_value.hpp>

#include <limits>

namespace tessera::engine {

/// How a router gives rows to experts.
struct routing {
  index_t experts = 0;
  index_t choices = 1;      ///< how many experts a row has
  bool is_limited = false;  ///< an expert has so many slots for the rows of a group; more of them are dropped
  double capacity = 0;      ///< these slots over an even share
  bool sigmoid = false;     ///< a gate is the sigmoid of its score, else the softmax of a row's scores
  bool normalised = false;  ///< the gates of a row add up to 1
  bool by_score = false;    ///< full experts drop the smallest gates, else what comes last
  index_t groups = 0;       ///< groups of rows that fill slots apart; 0: one for each part of the rows
  double noise = 0;         ///< the deviation of what training adds to scores
  double rate = 0;          ///< the step of the biases that balance the choice; 0: there are none
  static_vector<text, max_axes> over = no_items<text, max_axes>;  ///< axes that cut the experts
  bool is_over = false;                                           ///< these alone, else those that cut the rows
  refusal why = {};                                               ///< what does not fit in the options themselves

  /// How many slots an expert has for the rows of a group, ⌈c·rows·k/E⌉: never more than rows.
  constexpr index_t slots_for(index_t rows) const {
    const double share =
        capacity * static_cast<double>(rows) * static_cast<double>(choices) / static_cast<double>(experts);
    if (!is_limited || share >= static_cast<double>(rows)) return rows;
    const auto whole = static_cast<index_t>(share);
    return static_cast<double>(whole) < share ? whole + 1 : whole;
  }

  constexpr refusal check() const {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    if (!why.ok()) return why;
    if (experts < 1 || choices < 1 || choices > experts) return refusal{code::choices_not_there, choices, experts};
    if (is_limited && !(capacity > 0 && capacity < infinite)) return refusal{code::no_capacity};
    if (groups < 0) return refusal{code::groups_below_none, groups};
    if (!(noise >= 0 && noise < infinite && rate >= 0 && rate < infinite)) return refusal{code::routing_option};
    return {};
  }
};

}  // namespace tessera::engine
