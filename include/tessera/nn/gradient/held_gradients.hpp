#pragma once

#include <tessera/nn/gradient/travelling_bundles.hpp>
#include <tessera/nn/parameter/gathered_parameter.hpp>

#include <unordered_map>
#include <vector>

namespace tessera::nn::engine {

/// The gradients of parameters that are held, which workers sum when that is asked, or inside the last backward of a
/// window.
///
/// Gradients whose adjoint is a sum over copies share bundles, a kind for each element and each list of axes. Each
/// other one has its own change of layout. A gradient that never came is zero.
class held_gradients final : public gradient_listener, public travelling_bundles {
 public:
  /// Members in the order in which forward takes them, each once.
  held_gradients(const team_handle& team, std::vector<held_member> members,
                 const tessera::engine::bundle_limits& limits = {});

  /// Reduces what waits at the end of every backward that no window leaves open.
  void reduce_always(call_site at);
  /// Backwards leave what waits, unless they are the last of their window or each reduces its own; one window at a
  /// time.
  void open_window(bool last, bool each, call_site at);
  void close_window();

  /// Reduces what waits, if anything does. All workers call it.
  void reduce(call_site at);

  const std::vector<held_member>& members() const { return members_; }

 private:
  void listen(bool reduces, bool last, call_site at);
  std::weak_ptr<gradient_listener> self() { return std::static_pointer_cast<held_gradients>(shared_from_this()); }
  TESSERA_INLINE void comes() override;
  TESSERA_INLINE void came(const held_member& where) override;
  TESSERA_INLINE at::Tensor take(std::size_t member) override;
  bool learns(std::size_t member) const override { return members_[member].of->stored().local().requires_grad(); }
  TESSERA_INLINE void give(const std::vector<std::size_t>& members, std::vector<at::Tensor> sums) override;
  TESSERA_INLINE void end_pass() override;
  void let_go();

  std::vector<held_member> members_;
  std::unordered_multimap<const gathered_parameter*, std::size_t> numbers_;  ///< of members
  bool always_ = false;
  bool window_open_ = false;
  bool reduces_ = false;  ///< the backwards that come reduce what waits
  bool last_ = true;      ///< behind them a step may come
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/held_gradients_impl.hpp>
#endif
