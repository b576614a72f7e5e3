#pragma once

#include <tessera/comm/exchange/transport.hpp>
#include <tessera/comm/launch/environment.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace tessera::engine {

/// A transport between devices on top of the one between their hosts, over which workers agree, and who waits for ever
/// is found.
class device_transport : public transport {
 public:
  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  transport& host() override { return *host_; }
  bool ended() const override { return host_->ended(); }
  std::optional<error> failure() const override { return host_->failure(); }
  void listen() override { host_->listen(); }
  std::uint64_t most_exchanges() const override { return host_->most_exchanges(); }
  std::uint64_t free_id(std::uint64_t from) const override { return host_->free_id(from); }

 protected:
  explicit device_transport(std::shared_ptr<transport> host) : host_(std::move(host)) { configure(host_->settings()); }

  /// This worker's device of those that its process sees: the chosen one, else its local rank mod their number. Workers
  /// that are threads see the devices of one process, and there the local rank is the rank.
  int device_among(int devices, std::optional<int> chosen) const {
    if (devices == 0) throw error(refusal{code::no_device, rank()});
    if (host_->traits().shares_memory) return chosen.value_or(rank() % devices);
    return read_environment({.devices = devices, .device = chosen}).device;
  }

  std::shared_ptr<transport> host_;
};

}  // namespace tessera::engine
