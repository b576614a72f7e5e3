#pragma once

#include <tessera/comm/exchange/bound_exchange.hpp>
#include <tessera/tensor/box/neutral.hpp>
#include <tessera/tensor/box/view_of.hpp>

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace tessera::engine {

/// A call between devices and the memory of their hosts that its boxes travel through.
struct staged_call final : exchange_call {
  at::Tensor in_host;
  at::Tensor out_host;
  std::optional<in_flight> on_host;
  std::optional<c10::Event> begun;  // what the device has to do before the call is under way
  bool brought = false;             // to the device
};

/// An exchange between tensors on devices, carried by the workers' hosts. Boxes of other workers travel through the
/// memory of both hosts; a worker's own box stays on its device.
///
/// Terms of a Fold are combined by the host, in its order and its precision.
class staged_exchange final : public bound_exchange {
 public:
  staged_exchange(exchange_plan bound, std::shared_ptr<bound_exchange> between_hosts, int rank, c10::Device device,
                  std::shared_ptr<const void> keeper)
      : bound_exchange(std::move(bound), std::move(keeper)),
        between_hosts_(std::move(between_hosts)),
        rank_(rank),
        device_(device) {
    for (const box_transfer& l : plan().sends)
      if (l.peer != rank_) leave({l.here, l.extents});
    if (!plan().fold) {
      for (const box_transfer& l : plan().receives)
        if (l.peer == rank_) stay_.push_back(l);
        else come_.push_back({l.here, l.extents});
    }
    for (const term_cell& c : plan().cells) {
      const auto own = std::find_if(c.terms.begin(), c.terms.end(), [&](int t) { return term(t).peer == rank_; });
      const bool alone = own != c.terms.end() && c.terms.size() == 1;
      if (!alone) come_.push_back({c.here, c.extents});
      if (own == c.terms.end()) continue;
      box_vector from = term(*own).there;
      for (int d = 0; d < from.count; ++d) from[d] += c.here[d] - term(*own).here[d];
      if (alone) stay_.push_back({rank_, c.here, from, c.extents});
      else leave({from, c.extents});
    }
  }

 private:
  struct part {
    box_vector begin;
    box_vector extents;
    bool operator==(const part&) const = default;
  };

  // What goes to several, or is a term here too, is copied once.
  void leave(const part& p) {
    if (std::find(leave_.begin(), leave_.end(), p) == leave_.end()) leave_.push_back(p);
  }

  static staged_call& mine(exchange_call& call) { return static_cast<staged_call&>(call); }
  const box_transfer& term(int i) const { return plan().receives[static_cast<std::size_t>(i)]; }

  std::unique_ptr<exchange_call> make_call() override { return std::make_unique<staged_call>(); }

  void begin(exchange_call& call) override {
    staged_call& c = mine(call);
    c.brought = false;
    const c10::DeviceGuard here(device_);
    if (!plan().covered && !c.has_own) engine::fill_neutral(on_device(c.out), c.out.element, plan().with);
    if (!c.has_own)
      for (const box_transfer& l : stay_)
        on_device(c.out.part(l.here, l.extents)).copy_(on_device(c.in.part(l.there, l.extents)));
    c.begun.emplace(device_.type());
    c.begun->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    const region in = beside(c.in, leave_, c.in_host);
    const region out = beside(c.out, come_, c.out_host);
    for (const part& p : leave_) on_host(in.part(p.begin, p.extents)).copy_(on_device(c.in.part(p.begin, p.extents)));
    c.on_host.emplace(between_hosts_->start(in, out, c.does, true));
  }

  bool arrived(exchange_call& call) override {
    staged_call& c = mine(call);
    if (!c.brought && c.on_host->arrived()) bring(c);
    return c.brought;
  }

  void complete(exchange_call& call) override {
    staged_call& c = mine(call);
    c.on_host->finish();
    c.on_host.reset();
    if (!c.brought) bring(c);
    c.in_host.reset();
    c.out_host.reset();
  }

  void bring(staged_call& c) {
    const c10::DeviceGuard here(device_);
    c.begun->block(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    const region out = beside(c.out, come_, c.out_host);
    for (const part& p : come_) on_device(c.out.part(p.begin, p.extents)).copy_(on_host(out.part(p.begin, p.extents)));
    c.brought = true;
  }

  void withdraw(std::unique_ptr<exchange_call> call) noexcept override { mine(*call).on_host.reset(); }

  at::Tensor on_device(const region& r) const { return detail::view_of(r, device_); }
  static at::Tensor on_host(const region& r) { return detail::view_of(r, at::kCPU); }

  // A tensor of the host with the extents of one on the device; of one that has no part in the call, no memory.
  static region beside(const region& tensor, const std::vector<part>& parts, at::Tensor& memory) {
    if (!memory.defined()) memory = at::empty({parts.empty() ? 0 : tensor.bytes()}, at::kByte);
    return tensor.packed_at(static_cast<std::byte*>(memory.data_ptr()));
  }

  std::shared_ptr<bound_exchange> between_hosts_;
  int rank_;
  c10::Device device_;
  std::vector<part> leave_;         // of the input, for the host
  std::vector<part> come_;          // of the output, from it
  std::vector<box_transfer> stay_;  // on the device
};

}  // namespace tessera::engine
