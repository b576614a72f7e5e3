#pragma once

#include <tessera/comm/transport.hpp>

namespace tessera {

/// A call between start and finish. One that is dropped unfinished, because something threw, is withdrawn: nobody reads its
/// input or writes its output afterwards.
class in_flight {
 public:
  in_flight(in_flight&&) noexcept = default;
  in_flight& operator=(in_flight&&) = delete;
  ~in_flight() {
    if (call_) carrier_->withdraw(std::move(call_));
  }

 private:
  friend class exchange;
  in_flight() = default;
  in_flight(transport& carrier, std::unique_ptr<exchange_call> call) : in_flight() {  // so that a start that throws is withdrawn
    carrier_ = &carrier;
    call_ = std::move(call);
    carrier.start(*call_);
  }

  transport* carrier_ = nullptr;
  std::unique_ptr<exchange_call> call_;
};

}  // namespace tessera
