#pragma once

#include <tessera/comm/team.hpp>
#include <tessera/nn/network/executor.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera::nn {

/// Looks for the first result, gradient or parameter of networks that is not finite: `net.observe(watch)`.
///
/// Results count in the order in which layers run, gradients in the order in which backward visits them. While a
/// network runs a worker only notes what it sees; `first` and `check` tell all of them, by one exchange of a number a
/// worker. A tensor costs one pass over its elements, and on a device a wait for that, until something is found. All
/// workers of the team observe the same networks.
class finite_watch final : public layer_observer {
 public:
  /// The first tensor of a run with elements that are no finite numbers, the same on every worker.
  struct finding {
    std::string path{};    ///< of the layer, "encoder.2"; in a look at a network of the parameter or buffer
    std::string name{};    ///< of the layer, "conv"
    std::string tensor{};  ///< "result 0", "gradient of operand 1", "gradient of 0.weight"; "parameter", "buffer"
    bool backward = false;
    std::string because{};         ///< what of that the layer took was so before: "operand 0", "0.weight"; else nothing
    std::int64_t count = 0;        ///< of such elements, on the lowest worker that sees them
    std::vector<index_t> first{};  ///< global index of the first of them
    std::vector<int> workers{};    ///< world ranks that see some of them, in order of the mesh

    /// All of it as messages say it.
    std::string words() const;
  };

  /// The numbers that count as not finite: scores of a mask may be infinite.
  enum class counted : signed char { all, nan };

  explicit finite_watch(const team_handle& team, counted which = counted::all);
  template <Mesh M>
  explicit finite_watch(const team<M>& team, counted which = counted::all) : finite_watch(team.state(), which) {}

  /// Looks at the parameters and buffers of a network and at the gradients that parameters have, as at what runs;
  /// nothing moves.
  void look_at(const engine::executor& net);

  /// The first finding since the beginning or the last `clear`, on all workers, which call it together.
  std::optional<finding> first(call_site at = call_site::here()) const;
  /// Throws it on all of them, if there is any.
  void check(call_site at = call_site::here()) const;
  /// Forgets what was found.
  void clear();

  void entered(const layer_visit&) override { ++visits_; }
  void left(const layer_visit&) override {}
  bool sees_tensors() const override { return !found_; }
  TESSERA_INLINE void computed(const layer_visit& visit, std::span<const layer_tensor> all) override;
  TESSERA_INLINE void gradient(const layer_visit& visit, const layer_tensor& of) override;

 private:
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  bool fits(const at::Tensor& x) const;
  void note(finding what, int order, const layout& lies, const at::Tensor& x);

  team_handle team_;
  counted which_;
  std::uint64_t visits_ = 0;
  std::uint64_t when_ = never;    // four moments a visit
  std::optional<finding> found_;  // on this worker
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/watch/finite_watch_impl.hpp>
#endif
