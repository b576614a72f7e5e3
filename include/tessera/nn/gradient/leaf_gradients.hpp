#pragma once

#include <tessera/nn/gradient/travelling_bundles.hpp>
#include <tessera/nn/parameter/state_value.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tessera::nn::engine {

/// When gradients of leaves travel, and how sums become gradients.
struct gradient_rule {
  bool averages = true;  ///< divided by the sum of the weights, or not
  bool each = false;     ///< every backward of a window brings its sums, not the last alone
  tessera::engine::bundle_limits limits;
};

/// The gradients of a list of leaves, which workers with copies of them sum inside `backward()`, bundle by bundle.
///
/// A *window* is one or more backwards before a step. Its last one brings the sums. Behind the others no leaf has a
/// gradient that could be stepped, and nothing moves unless each brings its own. What becomes of sums says who derives.
class leaf_gradients : public travelling_bundles {
 public:
  TESSERA_INLINE ~leaf_gradients() override;

  /// Hears of gradients from now on; `twice` is why not, where somebody does already.
  void listen(const reason& twice);
  /// Calls this at the end of each window's last backward, on all workers.
  void behind(std::function<void()> f) { behind_ = std::move(f); }

  /// Says whether the backwards that come are the last of their window, and the weight by which each counts. It is 1 on
  /// all workers unless given.
  void open_passes(bool last, std::optional<double> weight);
  void close_passes();

  const std::vector<named_leaf>& leaves() const { return leaves_; }
  /// What an optimizer steps on this worker.
  virtual std::vector<state_value> values() const = 0;

 protected:
  /// Leaves in the order in which forward takes them; bundles begin with the last.
  leaf_gradients(const team_handle& team, std::vector<named_leaf> leaves, gradient_rule how, const char* doing,
                 call_site at);

  /// Packs leaves of one element and one group into bundles, which lie so when they are summed over workers. Sums are
  /// given range by range or in one. Returns the members of each.
  std::vector<std::vector<std::size_t>> pack(const std::vector<int>& groups,
                                             const std::function<layout(index_t elements)>& sums, bool in_one);

  /// The first gradient of a window comes.
  virtual void open_window() = 0;
  /// Somebody let go of the gradient of a leaf since the backward before.
  virtual void let_go(std::size_t) {}
  /// A later backward of it begins.
  virtual void go_on() {}
  /// A backward that was not its last is over.
  virtual void interrupt() {}
  /// Its last one is over, and all sums are there.
  virtual void close_window(double factor) = 0;
  /// By what sums are multiplied before they are given.
  virtual double given_times(double factor) const { return factor; }

  at::Tensor& gradient_of(std::size_t leaf) const { return leaves_[leaf].leaf.mutable_grad(); }
  const at::Tensor& waiting_of(std::size_t leaf) const { return states_[leaf].waiting; }
  /// Lets this worker's terms of a leaf go.
  void forget(std::size_t leaf);

 private:
  struct passes {
    bool last = true;
    double weight = 1;
    bool weighed = false;
  };
  /// The gradient of a leaf while a window is open.
  struct leaf_state {
    at::Tensor waiting;  ///< its gradient between two passes: without memory
    at::Tensor terms;    ///< of this worker, between two passes
    bool came = false;
  };
  class arrival;

  void comes(std::size_t leaf, const at::Tensor& gradient);
  at::Tensor weighed(const at::Tensor& gradient) const;
  void came(std::size_t leaf);
  void open_pass();
  void set_aside();
  void take_up();
  bool reduces() const { return next_.last || how_.each; }
  TESSERA_INLINE at::Tensor take(std::size_t leaf) final;
  bool learns(std::size_t leaf) const final { return leaves_[leaf].leaf.requires_grad(); }
  TESSERA_INLINE void end_pass() final;
  double factor();

  std::vector<named_leaf> leaves_;
  gradient_rule how_;
  std::function<void()> behind_;
  std::vector<leaf_state> states_;  ///< of each leaf
  std::vector<unsigned> hooks_;

  passes next_;
  bool passes_open_ = false;
  bool open_ = false;  ///< a window has gradients that wait
  double weight_ = 0;  ///< of this worker's passes in the window
  bool weighed_ = false;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/leaf_gradients_impl.hpp>
#endif
