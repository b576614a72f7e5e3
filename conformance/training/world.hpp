#pragma once
// A world of a case: a mesh over some workers of a launch, and how the case's tensors lie there.

#include "../grids.hpp"

namespace conformance::training {

/// One entry of a case's `worlds`. What nobody asked for is known afterwards, as of the case's parameters.
class world {
 public:
  explicit world(const json& said);

  const mesh_value& mesh() const { return mesh_; }
  /// The workers of its launch, which may be more than those of its mesh.
  int workers() const { return workers_; }
  /// How many rows or features travel at a time, one run each; {0} where the world does not say.
  const integers& chunks() const { return chunks_; }

  bool names(const std::string& tensor) const { return layouts_.contains(tensor); }
  /// How a tensor of these extents lies; whole and invariant where the world does not name it.
  ///
  /// A dimension that is a product of factors counts as that many dimensions: [6, 4] with the first one as 3·2 lies as
  /// [3, 2, 4].
  layout lying(const std::string& tensor, const integers& extents);
  /// The same where the world says it of the first dimensions alone; those behind them are whole.
  layout lying_first(const std::string& tensor, const integers& extents);

  /// The same on one worker: nothing is cut.
  world alone() const;

  std::vector<std::string> unread() const;

 private:
  layout named(const json& lies, const integers& extents) const;
  int axis(const std::string& name) const;

  mesh_value mesh_;
  int workers_ = 1;
  integers chunks_{0};
  json layouts_ = json::object();
  std::set<std::string> read_;
};

/// An axis name that lives as long as the program.
text kept_name(const std::string& name);

/// A mesh of such axes over the first workers, row-major; not checked.
mesh_value mesh_of(const std::vector<std::pair<std::string, index_t>>& axes);

}  // namespace conformance::training
