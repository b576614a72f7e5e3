#pragma once
// A transport that counts how many exchanges this worker begins, agreements among them, whatever carries them.

#include <tessera/comm/exchange/transport.hpp>

#include <memory>
#include <optional>

namespace tessera::testing {

class counting_transport final : public engine::transport {
 public:
  explicit counting_transport(std::shared_ptr<engine::transport> on) : on_(std::move(on)) {
    configure(on_->settings());
  }

  int begun = 0;

  engine::transport_traits traits() const override { return on_->traits(); }
  int rank() const override { return on_->rank(); }
  int size() const override { return on_->size(); }
  bool ended() const override { return on_->ended(); }
  std::optional<error> failure() const override { return on_->failure(); }
  void listen() override { on_->listen(); }
  std::shared_ptr<engine::bound_exchange> bind(engine::exchange_plan plan) override {
    return std::make_shared<counted_exchange>(*this, plan, on_->bind(plan));
  }

 private:
  struct counted_call : engine::exchange_call {
    std::optional<engine::in_flight> inner;
  };
  class counted_exchange final : public engine::bound_exchange {
   public:
    counted_exchange(counting_transport& by, const engine::exchange_plan& plan, std::shared_ptr<bound_exchange> inner)
        : bound_exchange(plan, by.keep_alive(plan)), by_(by), inner_(std::move(inner)) {}

   private:
    static std::optional<engine::in_flight>& of(engine::exchange_call& call) {
      return static_cast<counted_call&>(call).inner;
    }
    std::unique_ptr<engine::exchange_call> make_call() override { return std::make_unique<counted_call>(); }
    void begin(engine::exchange_call& call) override {
      ++by_.begun;
      of(call).emplace(inner_->start(call.in, call.out, call.does, call.has_own));
    }
    bool arrived(engine::exchange_call& call) override { return of(call)->arrived(); }
    void complete(engine::exchange_call& call) override {
      of(call)->finish();
      of(call).reset();
    }
    void withdraw(std::unique_ptr<engine::exchange_call> call) noexcept override { call.reset(); }

    counting_transport& by_;
    std::shared_ptr<bound_exchange> inner_;
  };

  std::shared_ptr<engine::transport> on_;
};

}  // namespace tessera::testing
