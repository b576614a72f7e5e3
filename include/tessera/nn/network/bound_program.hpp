#pragma once

#include <tessera/nn/call/call.hpp>
#include <tessera/nn/call/measured_call.hpp>

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <vector>

namespace tessera::nn {

namespace engine {

/// Whether data give an extent of it.
constexpr bool is_open(const layout& x) {
  for (const dimension& d : x.dims)
    if (d.extent == dynamic) return true;
  return false;
}

/// The values made last, by use; an earlier one is made again when it is needed.
template <class T>
class recently_used {
 public:
  static constexpr std::size_t most = 64;

  /// One for which this holds, or null.
  template <class Is>
  std::shared_ptr<const T> find(const Is& is) {
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return is(*one); });
    if (found == all_.end()) return nullptr;
    all_.splice(all_.begin(), all_, found);
    return all_.front();
  }
  std::shared_ptr<const T> keep(T made) {
    all_.push_front(std::make_shared<const T>(std::move(made)));
    if (all_.size() > most) all_.pop_back();
    return all_.front();
  }

 private:
  std::list<std::shared_ptr<const T>> all_;
};

/// A layer of a program, bound for operands that lie so, and for the extent that data give it.
struct bound_step {
  std::vector<shared_layout_handle> operands;
  std::vector<element> elements;  ///< of the operands
  std::optional<open_extents> extent;
  bound_layer layer;
  std::vector<element> gives;  ///< the elements of the results

  const shared_layout_handle& result(std::size_t r) const { return layer.results[r].to; }
};

/// The program bound for inputs that lie alike. Where data give an extent, a layer is bound when it runs.
struct bound_program {
  std::vector<shared_layout_handle> where;  ///< of each value; open where data give an extent
  std::vector<element> elements;
  std::vector<std::shared_ptr<const bound_step>> steps;  ///< null where an operand or a result is open
  bool is_open = false;                                  ///< some are

  const layout& layout_of(std::size_t v) const { return where[v]->layout(); }
};

}  // namespace engine

}  // namespace tessera::nn
