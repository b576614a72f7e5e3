#pragma once

#include <tessera/comm/device/device_boxes.hpp>
#include <tessera/comm/device/device_transport.hpp>
#include <tessera/comm/nccl/communicator.hpp>
#include <tessera/comm/wait/spin_wait.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace tessera {

namespace engine {

class nccl_exchange;

}  // namespace engine

/// How a worker uses its device.
struct nccl_options {
  std::optional<int> device{};  ///< of those that this process sees; else its local rank mod their number
  /// on which tensors are made and read, asked at every call; else what their boxes say
  std::function<cudaStream_t()> stream{};
  bool host_waits = false;  ///< the end of a call waits for the device, so that the host may read what it brought
  /// sums by NCCL, in an order and a precision of its own, where an exchange is a reduce_scatter or an all_reduce
  bool library_sums = false;
};

namespace engine {

/// Carries boxes between tensors on devices over NCCL, one device a worker; workers agree over another transport, their
/// host's.
///
/// A call begins there: who has begun it tells the others how many calls before. When all have, they hand it to their
/// devices, in one order (`launch_order`). So no device ever waits for a worker that has not begun, and who waits for
/// ever is found by the host's transport. The results of a call are ready in the order of the stream on which its
/// worker ends it.
class nccl_transport final : public device_transport {
 public:
  nccl_transport(std::shared_ptr<transport> host, std::shared_ptr<device_boxes> boxes, nccl_options options)
      : device_transport(std::move(host)),
        boxes_(std::move(boxes)),
        options_(std::move(options)),
        device_(device_among(devices(), options_.device)) {
    host_->meanwhile = [this] { go_on(); };
  }
  /// Where a tensor keeps it longer than its worker's thread, nobody is waited for.
  ~nccl_transport() override {
    if (std::this_thread::get_id() != worker_ || std::uncaught_exceptions() > 0) stop();
    close();
    host_->meanwhile = nullptr;
  }

  transport_traits traits() const override {
    return {"nccl", false, {boxes_->kind(), boxes_->kind() == 0 ? -1 : device_}};
  }

  int device() const { return device_; }

  inline std::shared_ptr<bound_exchange> bind(exchange_plan plan) override;

  /// Nothing is under way on the device afterwards, whether it returns or throws.
  void synchronise() override {
    const current_device here(device_);
    try {
      device_event behind;
      behind.record(stream());
      const auto passed = [&] {
        for (const auto& [of, c] : communicators_) static_cast<void>(c->settled());
        return behind.passed();
      };
      wait(passed, "waiting for the device");
    } catch (...) {
      stop();
      drain(stream());
      throw;
    }
  }

  /// All workers of a communicator end it together, so each ends its own in the order of their members.
  void close() override {
    for (const auto& [of, c] : communicators_) c->end();
  }

 private:
  friend class nccl_exchange;

  static int devices() {
    int n = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
  }

  // Where whoever computes on the device hands it its work now.
  cudaStream_t stream() const { return options_.stream ? options_.stream() : boxes_->current(); }

  // The communicator of some workers, and of calls in one order, made by all of them together.
  std::shared_ptr<nccl_communicator> among(const agreement& workers, std::uint64_t order) {
    const std::pair of{workers.workers(), order};
    if (const auto known = communicators_.find(of); known != communicators_.end()) return known->second;
    auto fresh = std::make_shared<nccl_communicator>(workers, rank(),
                                                     [this](const auto& done, const char* does) { wait(done, does); });
    return communicators_.emplace(of, std::move(fresh)).first->second;
  }

  // Hands to the device what may go; whoever waits on the host calls it.
  inline void go_on();

  void wait(const std::function<bool()>& done, const char* does) {
    detail::spin_wait p(false);
    const auto until = detail::deadline_after(settings().time_limit);
    while (!done()) {
      go_on();
      if (!p.pause()) continue;
      listen();
      if (detail::spin_wait::clock::now() > until)
        throw error(refusal{code::time_limit, rank(), rank(), settings().time_limit.count()},
                    worker_text(rank(), does));
    }
  }

  // It begins nothing more, and nothing that its device has waits for others.
  void stop() noexcept {
    stopped_ = true;
    for (const auto& [of, c] : communicators_) c->abort();
  }
  static void drain(cudaStream_t on) noexcept {
    while (cudaStreamQuery(on) == cudaErrorNotReady) std::this_thread::yield();
  }

  std::shared_ptr<device_boxes> boxes_;
  nccl_options options_;
  int device_;
  std::map<std::pair<std::vector<int>, std::uint64_t>, std::shared_ptr<nccl_communicator>> communicators_;
  const std::thread::id worker_ = std::this_thread::get_id();
  bool going_on_ = false;
  bool stopped_ = false;
};

}  // namespace engine

}  // namespace tessera
