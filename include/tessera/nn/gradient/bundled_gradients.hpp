#pragma once

#include <tessera/nn/gradient/gradient_bundle.hpp>
#include <tessera/operation/plan/bundles.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tessera::nn::engine {

/// A leaf of autograd's graph with its name.
struct named_leaf {
  std::string name;
  at::Tensor leaf;
};

/// The gradients of a list of leaves, which workers with copies of them sum inside `backward()`, bundle by bundle.
///
/// A *window* is one or more backwards before a step. In the last of them a bundle begins to travel when it and all
/// bundles before it are complete. This is one order on all workers, whatever each graph did. The engine's callback at
/// the end of backward begins what is left and ends all. In the other passes of a window nothing moves, and behind them
/// no leaf has a gradient that could be stepped.
class bundled_gradients : public std::enable_shared_from_this<bundled_gradients> {
 public:
  /// How sums become gradients.
  struct rule {
    bool averages = true;  ///< divided by the sum of the weights, or not
    tessera::engine::bundle_limits limits;
    std::function<void()> behind;  ///< called at the end of each window's last backward, on all workers
  };

  /// Leaves in the order in which forward takes them; bundles begin with the last.
  bundled_gradients(const team_handle& team, std::vector<named_leaf> leaves, const rule& how, call_site at);
  ~bundled_gradients();
  bundled_gradients(const bundled_gradients&) = delete;
  bundled_gradients& operator=(const bundled_gradients&) = delete;

  /// Hears of gradients from now on.
  void listen();

  /// Says whether the next backward is the last of its window, and the weight by which it counts: the same 1 on all
  /// workers unless given.
  void next_passes(bool last, double weight, bool weighed) { next_ = {last, weight, weighed}; }

  const std::vector<named_leaf>& leaves() const { return leaves_; }
  const std::vector<gradient_bundle>& bundles() const { return bundles_; }

 private:
  struct passes {
    bool last = true;
    double weight = 1;
    bool weighed = false;
  };
  /// The gradient of a leaf while a window is open.
  struct leaf_state {
    at::Tensor waiting;  ///< its gradient between two passes: without memory
    at::Tensor before;   ///< what it had when the window opened
    at::Tensor terms;    ///< of this worker, between two passes
    bool came = false;
  };

  at::Tensor comes(std::size_t leaf, const at::Tensor& gradient);
  void came(std::size_t leaf);
  void open_window();
  void set_aside();
  void take_up();
  void begin_pass();
  void begin_complete();
  void begin_next();
  void end_pass();
  double factor();

  team_handle team_;
  std::vector<named_leaf> leaves_;
  rule how_;
  call_site at_;
  std::vector<gradient_bundle> bundles_;           ///< in the order in which they travel
  std::vector<std::vector<std::size_t>> members_;  ///< of each bundle
  std::vector<std::size_t> bundle_of_;             ///< of each leaf
  std::vector<leaf_state> states_;                 ///< of each leaf
  std::vector<unsigned> hooks_;

  passes next_;
  bool open_ = false;                 ///< a window has gradients that wait
  int pass_ = -1;                     ///< the backward that runs, as LibTorch numbers it
  std::vector<std::size_t> missing_;  ///< of each bundle in this pass
  std::size_t begun_ = 0;             ///< bundles that travel
  double weight_ = 0;                 ///< of this worker's passes in the window
  bool weighed_ = false;

  class arrival;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/bundled_gradients_impl.hpp>
#endif
