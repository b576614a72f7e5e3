#pragma once

#include <tessera/nn/gradient/gradient_bundle.hpp>
#include <tessera/nn/parameter/gathered_parameter.hpp>
#include <tessera/operation/plan/bundles.hpp>

#include <memory>
#include <unordered_map>
#include <vector>

namespace tessera::nn::engine {

/// The gradients of parameters that are held, which workers sum when that is asked, or inside the last backward of a
/// window.
///
/// Gradients whose adjoint is a sum over copies travel in bundles, a kind for each element and each list of axes. Each
/// other one has its own change of layout. Inside a backward, a bundle begins to travel when it and all before it are
/// complete. Bundles follow the reverse of the order in which forward takes parameters. This is one order on all
/// workers, whatever each graph did. A gradient that never came is zero.
class held_gradients final : public gradient_listener, public std::enable_shared_from_this<held_gradients> {
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
  /// The bytes of each exchange, in the order in which they begin.
  std::vector<index_t> bundle_bytes() const;

 private:
  void listen(bool reduces, bool last, call_site at);
  void comes() override;
  void came(const held_member& where) override;
  void begin_next();
  void begin_complete();
  void end_pass();
  void finish();

  struct travelling {
    gradient_bundle bundle;
    std::vector<std::size_t> members;
    bool here = true;  ///< this worker is one of those that sum it
  };

  team_handle team_;
  std::vector<held_member> members_;
  std::vector<travelling> bundles_;                                          ///< in the order in which they travel
  std::vector<std::size_t> bundle_of_;                                       ///< of each member
  std::unordered_multimap<const gathered_parameter*, std::size_t> numbers_;  ///< of members
  call_site at_;
  bool always_ = false;
  bool window_open_ = false;
  bool reduces_ = false;              ///< the backwards that come reduce what waits
  bool last_ = true;                  ///< behind them a step may come
  int pass_ = -1;                     ///< the backward that runs, as LibTorch numbers it
  std::vector<std::size_t> missing_;  ///< of each bundle in this pass
  std::size_t begun_ = 0;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/held_gradients_impl.hpp>
#endif
