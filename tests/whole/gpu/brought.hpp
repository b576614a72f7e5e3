#pragma once
// Exchanges of tensors of the host, which are brought to a device and back: what is tried of all transports may so be
// tried between devices.

#include <tessera/comm/nccl/exchange.hpp>

#include <optional>

namespace tessera::testing {

using namespace engine;

/// A call, and its tensors on the device.
struct brought_call final : exchange_call {
  std::optional<device_memory> in_there;
  std::optional<device_memory> out_there;
  std::optional<in_flight> there;
};

/// An exchange of tensors of the host by one between devices. What lies between the elements is brought along, so that
/// a device which writes there is seen.
class brought_exchange final : public bound_exchange {
 public:
  brought_exchange(exchange_plan plan, nccl_transport& carrier, std::shared_ptr<bound_exchange> between,
                   cudaStream_t on, std::shared_ptr<const void> keeper)
      : bound_exchange(std::move(plan), std::move(keeper)), carrier_(carrier), between_(std::move(between)), on_(on) {}

 private:
  static brought_call& mine(exchange_call& call) { return static_cast<brought_call&>(call); }

  std::unique_ptr<exchange_call> make_call() override { return std::make_unique<brought_call>(); }

  void begin(exchange_call& call) override {
    brought_call& c = mine(call);
    const region in = bring(c.in, c.in_there);
    const region out = bring(c.out, c.out_there);
    c.there.emplace(between_->start(in, out, c.does, c.has_own));
  }
  bool arrived(exchange_call& call) override {
    brought_call& c = mine(call);
    if (c.there && !c.there->arrived()) return false;
    complete(call);
    return true;
  }
  void complete(exchange_call& call) override {
    brought_call& c = mine(call);
    if (!c.there) return;
    c.there->finish();
    carrier_.synchronise();
    copy(c.out_there->data(), c.out.data, spanned(c.out), cudaMemcpyDeviceToHost);
    carrier_.synchronise();
    c.there.reset();
    c.in_there.reset();
    c.out_there.reset();
  }
  void withdraw(std::unique_ptr<exchange_call> call) noexcept override { mine(*call).there.reset(); }

  /// The bytes from the first element to the last one.
  static index_t spanned(const region& r) {
    index_t last = 0;
    for (int d = 0; d < r.extents.count; ++d) last += (r.extents[d] - 1) * r.strides[d];
    return r.count() == 0 ? 0 : (last + 1) * bytes_of(r.element);
  }
  region bring(const region& from, std::optional<device_memory>& memory) const {
    memory.emplace(spanned(from), on_);
    copy(from.data, memory->data(), spanned(from), cudaMemcpyHostToDevice);
    region there = from;
    there.data = memory->data();
    return there;
  }
  void copy(const void* from, void* to, index_t bytes, cudaMemcpyKind how) const {
    if (bytes > 0)
      detail::throw_if_failed(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), how, on_), "copying");
  }

  nccl_transport& carrier_;
  std::shared_ptr<bound_exchange> between_;
  cudaStream_t on_;
};

/// Carries tensors of the host over NCCL, on their way on devices.
class brought_transport final : public device_transport {
 public:
  brought_transport(std::shared_ptr<nccl_transport> between, cudaStream_t on)
      : device_transport(between), between_(std::move(between)), on_(on) {}

  transport_traits traits() const override { return {"brought to devices", false}; }
  transport& host() override { return between_->host(); }
  void synchronise() override { between_->synchronise(); }

  std::shared_ptr<bound_exchange> bind(exchange_plan plan) override {
    if (plan.agrees()) return between_->bind(std::move(plan));
    auto keeper = keep_alive(plan);
    auto exchange = between_->bind(plan);
    return std::make_shared<brought_exchange>(std::move(plan), *between_, std::move(exchange), on_, std::move(keeper));
  }

 private:
  std::shared_ptr<nccl_transport> between_;
  cudaStream_t on_;
};

}  // namespace tessera::testing
