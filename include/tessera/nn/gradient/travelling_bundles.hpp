#pragma once

#include <tessera/nn/gradient/gradient_bundle.hpp>
#include <tessera/operation/plan/bundles.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace tessera::nn::engine {

/// The members of each bundle, numbered in the order in which forward takes them. Backward comes to the last one first,
/// so that one begins the first bundle. `place(packer, member)` says where a member lies, or that it travels alone.
template <class Kind, int Kinds, class Place>
std::vector<std::vector<std::size_t>> packed_backwards(std::size_t members,
                                                       const tessera::engine::bundle_limits& limits,
                                                       const Place& place) {
  std::vector<std::vector<std::size_t>> all;
  std::vector<std::size_t> numbered;  // which of `all` a bundle of the packer is
  tessera::engine::bundle_packer<Kind, Kinds> packer(limits);
  for (std::size_t i = members; i-- > 0;) {
    const tessera::engine::bundle_range lies = place(packer, i);
    const bool opens = !lies.alone() && lies.bundle == static_cast<int>(numbered.size());
    if (opens) numbered.push_back(all.size());
    if (opens || lies.alone()) all.emplace_back();
    (lies.alone() ? all.back() : all[numbered[static_cast<std::size_t>(lies.bundle)]]).push_back(i);
  }
  // A bundle travels when its last member is there.
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.back() > b.back(); });
  return all;
}

/// Gradients that travel in bundles inside a backward, in one order on all workers.
///
/// A bundle begins when it and all bundles before it are complete, whatever a worker's graph did. The engine's callback
/// at the end of backward lets who derives begin what is left, and end all.
class travelling_bundles : public std::enable_shared_from_this<travelling_bundles> {
 public:
  virtual ~travelling_bundles() = default;
  travelling_bundles(const travelling_bundles&) = delete;
  travelling_bundles& operator=(const travelling_bundles&) = delete;

  /// The bytes of each exchange, in the order in which they begin.
  std::vector<index_t> bundle_bytes() const;

 protected:
  travelling_bundles(const team_handle& team, const char* doing, call_site at) : team_(team), doing_(doing), at_(at) {}

  /// Adds the bundle of some members; bundles travel in the order in which they are added. One that is not `here` is
  /// others'.
  void add(gradient_bundle bundle, std::vector<std::size_t> members, bool here = true);

  /// Whether a gradient that comes is the first of its backward.
  bool is_first_of_pass();
  /// Counts gradients from now on, until `end_pass` is called behind this backward.
  void begin_pass();
  /// A member's gradient is there.
  void count(std::size_t member) { --bundles_[bundle_of_[member]].missing; }
  /// Begins the bundles whose turn it is.
  void begin_complete();
  /// Begins the bundles that have not begun.
  void begin_rest();
  /// Ends all, and gives their sums times a factor.
  void end_all(double factor = 1);
  /// The same behind backward: nothing was counted.
  void travel() {
    begun_ = 0;
    begin_rest();
    end_all();
  }

  /// This worker's terms of a member's gradient, which are its bundle's from now on.
  virtual at::Tensor take(std::size_t member) = 0;
  /// Whether a member has gradients here, and is not frozen.
  virtual bool learns(std::size_t member) const = 0;
  /// Sums of a bundle: one for each of its members, or the block of this worker.
  virtual void give(const std::vector<std::size_t>& members, std::vector<at::Tensor> sums) = 0;
  /// Backward is over.
  virtual void end_pass() = 0;

  const team_handle& team() const { return team_; }
  call_context doing() const { return {.why = purpose::backward, .name = doing_, .at = at_}; }
  void called_at(call_site at) { at_ = at; }

 private:
  struct travelling {
    gradient_bundle bundle;
    std::vector<std::size_t> members;
    bool here = true;         ///< this worker is one of those that sum it
    std::size_t missing = 0;  ///< members in this pass
  };

  void begin_next();

  team_handle team_;
  const char* doing_;
  call_site at_;
  std::vector<travelling> bundles_;     ///< in the order in which they travel
  std::vector<std::size_t> bundle_of_;  ///< of each member
  int pass_ = -1;                       ///< the backward that runs, as LibTorch numbers it
  std::size_t begun_ = 0;               ///< bundles that travel
  std::vector<at::Tensor> terms_;       ///< of the bundle that begins
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/travelling_bundles_impl.hpp>
#endif
