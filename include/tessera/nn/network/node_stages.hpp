#pragma once

#include <tessera/comm/base/error.hpp>
#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/operation/network/staged_layers.hpp>
#include <tessera/operation/program/program.hpp>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera::nn {

/// How the nodes of a part are assigned to stages (`pipeline::assignment`), as values.
struct stage_options {
  pipeline::share by = pipeline::share::count;
  std::vector<index_t> given{};  ///< weights of nodes, or sizes of parts
  index_t rows = 1;              ///< by memory or time: the extent of what only run time knows, in a micro-batch
  int chunks = 1;                ///< parts of a stage
  bool turns = false;            ///< the network turns back at both ends
  std::string through{};         ///< an axis whose workers send a share each of what they all have

  /// The same, which lives as long as this.
  pipeline::assignment assigned() const {
    return {by, given, rows, chunks, turns, text(through.data(), static_cast<int>(through.size()))};
  }
};

namespace engine {

/// Where the nodes of a program go that are added now. It learns what units of them cost, then shares them out over the
/// coordinates of an axis.
class node_stages {
 public:
  node_stages(const text& axis, const pipeline::assignment& how, const mesh_value& mesh);

  /// Nodes that are of one stage: a node by itself, or all that is added while the outermost unit lasts.
  class unit {
   public:
    explicit unit(node_stages& of, bool goes_on = false) : of_(of) {
      if (of_.depth_++ == 0 && !goes_on) of_.begin();
    }
    ~unit() { --of_.depth_; }
    unit(const unit&) = delete;
    unit& operator=(const unit&) = delete;

   private:
    node_stages& of_;
  };

  /// Ends learning. Throws what cannot be shared out.
  void share_out();

  /// The layouts through which a value must be led for the unit; none if it is there.
  static_vector<layout, 3> leads(const program_value& from, const layout& lies) const;
  /// What it became there, or nothing yet.
  program_value& moved(const program_value& from) { return moved_[{{from.node, from.index}, place_of(from)}]; }

  /// Runs what adds a move, which is of no unit.
  template <class F>
  auto moving(const F& f) {
    struct until_then {
      bool& on;
      ~until_then() { on = false; }
    } const now{moving_ = true};
    return f();
  }
  bool is_moving() const { return moving_; }

  /// Notes a node that is added to the unit, and is computed again so many times.
  void added(int node, const layer_plan& p, const operand_elements& elements, int times_again);

 private:
  using value = std::pair<int, int>;

  void begin();
  /// The part of the unit; the first one while it learns, so that operands meet.
  int part_now() const { return learns_ ? 0 : part_[static_cast<index_t>(unit_)]; }
  /// The part that made a value, or -1 where that is none of these.
  int made_in(const program_value& x) const {
    const auto found = made_in_.find(x.node);
    return found == made_in_.end() ? -1 : found->second;
  }
  /// What one move serves: a part; of what comes from outside a stage.
  int place_of(const program_value& x) const;

  int axis_;
  pipeline::extent of_;
  std::vector<index_t> given_;
  std::string through_;
  pipeline::assignment how_;
  std::vector<pipeline::layer_cost> costs_;
  bool learns_ = true;
  tessera::engine::heap_array<int> part_;  ///< of each unit
  int unit_ = -1;
  int depth_ = 0;
  bool moving_ = false;
  std::map<int, int> made_in_;  ///< by node
  std::map<std::pair<value, int>, program_value> moved_;
};

}  // namespace engine

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/network/node_stages_impl.hpp>
#endif
