#pragma once

#include <tessera/comm/exchange/owed_exchanges.hpp>
#include <tessera/tensor/change/bound_change.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace tessera::engine {

/// A run of a bound change that exchanges something, between its start and its end. Each of its exchanges begins when
/// the one before has arrived and the worker asks what has, or waits for anything.
class running_change final : private owing {
 public:
  running_change(bound_change& of, const at::Tensor& x, const call_context& context);
  /// Of one exchange, into a tensor that holds already what this worker takes from itself alone.
  running_change(bound_change& of, const at::Tensor& y, const at::Tensor& x, const call_context& context);
  running_change(const running_change&) = delete;
  running_change& operator=(const running_change&) = delete;
  ~running_change();

  /// Whether the result is there; waits for nobody.
  bool arrived();
  at::Tensor finish();

 private:
  struct part {
    std::shared_ptr<bound_exchange> exchange;
    at::Tensor y;
    std::optional<in_flight> call;  // last: withdrawn before its memory goes
  };

  void start(bool has_own);
  void begin(bool has_own = false);
  void end(std::size_t i);

  TESSERA_INLINE bool owes() const override;
  TESSERA_INLINE bool owes(const bound_exchange& one) const override;
  TESSERA_INLINE void go_on(const std::vector<owing*>& before) override;
  TESSERA_INLINE void begin_all() override;

  bound_change& of_;
  call_context context_;
  at::Tensor x_;
  std::vector<part> parts_;
  std::size_t begun_ = 0;
};

}  // namespace tessera::engine

#ifndef TESSERA_COMPILED
#include <tessera/tensor/change/running_change_impl.hpp>
#endif
