#pragma once

#include <tessera/comm/hub.hpp>

#include <memory>

namespace tessera {

/// The transport of one worker thread.
class in_process final : public transport {
 public:
  in_process(std::shared_ptr<hub> meeting, int rank) : hub_(std::move(meeting)), rank_(rank) {}

  transport_traits traits() const override { return {"in-process", true, false}; }
  int rank() const override { return rank_; }
  int size() const override { return hub_->size(); }

  void start(exchange_call& call) override { hub_->start(rank_, call); }
  void finish(exchange_call& call) override { hub_->finish(rank_, call, time_limit); }
  void withdraw(std::unique_ptr<exchange_call> call) noexcept override { hub_->withdraw(rank_, *call); }
  bool ended() const override { return hub_->ended(rank_); }
  std::optional<error> failure() const override { return hub_->failure(); }

 private:
  std::shared_ptr<hub> hub_;
  int rank_;
};

}  // namespace tessera
