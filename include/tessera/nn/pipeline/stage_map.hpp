#pragma once

#include <tessera/nn/refusals.hpp>
#include <tessera/plan/schedule/schedule.hpp>
#include <tessera/topology/layout.hpp>

#include <vector>

namespace tessera::nn::engine {

/// A node as a pipeline sees it: the values that it takes, the first one that it gives, and whether it only moves one.
struct staged_node {
  std::vector<std::size_t> operands;
  std::size_t first_result = 0;
  std::size_t results = 0;
  bool moves_only = false;
};

/// A value that goes from one part of a network to a later one.
///
/// A node moves it, or it stays as it is where both parts are of one stage.
struct crossing {
  static constexpr std::size_t no_node = ~std::size_t{0};

  std::size_t node = no_node;
  std::size_t from = 0, to = 0;  ///< the value before and behind it
  int sender = 0, receiver = 0;  ///< parts: that which makes the value, the first that takes it
  bool stays = false;            ///< both are of one stage
};

/// The parts of a network that stages run one after another, read off the layouts of its values.
///
/// A stage is a coordinate of an axis. A node belongs to the first part of its stage that is not before those of its
/// operands. Where a network turns back, two parts of one stage follow each other: a move that moves nothing begins the
/// second one.
struct stage_map {
  static constexpr int before = -1;  ///< of what is done once with the whole batch, before micro-batches
  static constexpr int behind = -2;  ///< of what is done once with the whole outputs

  std::vector<int> part;  ///< of each node, or `before` or `behind`; of a node that is crossed, that of the receiver
  std::vector<crossing> crossings;
  std::vector<int> made_in;  ///< the part of each value

  /// The crossing of a node, if it is one.
  const crossing* crossing_of(std::size_t node) const {
    for (const crossing& c : crossings)
      if (c.node == node) return &c;
    return nullptr;
  }
};

/// The coordinate of an axis on which alone a tensor lies, or -1.
constexpr int stage_of(const layout& x, int axis) {
  if (x.mesh.axes[axis].extent == 1) return 0;
  return x.placements[axis].kind == placement::on ? x.placements[axis].coordinate : -1;
}

/// Reads the parts of nodes between values that lie so. Throws what does not fit, by the name of the node.
///
/// Nodes that only move inputs of the program run once before all micro-batches. Those that only move its outputs off
/// the stages run once behind them.
stage_map stages_of(const std::vector<staged_node>& nodes, const std::vector<const layout*>& values, int axis,
                    const pipeline::extent& of, const std::vector<const char*>& called);

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/pipeline/stage_map_impl.hpp>
#endif
