#include "torch_device.hpp"

#include <tessera/comm/nccl/device.hpp>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

namespace {

using tessera::testing::behind;
using tessera::testing::most_devices;
using tessera::testing::torch_device;
constexpr auto kind = c10::DeviceType::PrivateUse1;

thread_local std::array<c10::StreamId, most_devices> streams{};  // of each device the one that this thread computes on

int index_now() {
  int index = 0;
  static_cast<void>(cudaGetDevice(&index));
  return index;
}
cudaStream_t stream_of(int index) { return reinterpret_cast<cudaStream_t>(streams[static_cast<std::size_t>(index)]); }

/// Memory of a tensor, and the streams beside the current one that were said to read it.
struct lent {
  void* memory;
  int index;
  std::vector<cudaStream_t> read_on{};
};

struct guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kind; }
  c10::Device exchangeDevice(c10::Device to) const override {
    const c10::Device before = getDevice();
    uncheckedSetDevice(to);
    return before;
  }
  c10::Device getDevice() const override { return torch_device(index_now()); }
  void setDevice(c10::Device to) const override { uncheckedSetDevice(to); }
  void uncheckedSetDevice(c10::Device to) const noexcept override {
    if (to.has_index()) static_cast<void>(cudaSetDevice(to.index()));
  }
  c10::Stream getStream(c10::Device of) const override {
    return c10::Stream(c10::Stream::UNSAFE, of,
                       streams[static_cast<std::size_t>(of.has_index() ? of.index() : index_now())]);
  }
  c10::Stream getDefaultStream(c10::Device of) const override { return c10::Stream(c10::Stream::UNSAFE, of, 0); }
  c10::Stream exchangeStream(c10::Stream to) const override {
    const c10::Stream before = getStream(to.device());
    streams[static_cast<std::size_t>(to.device_index())] = to.id();
    return before;
  }
  void record(void** event, const c10::Stream& on, c10::DeviceIndex, c10::EventFlag) const override {
    const tessera::engine::current_device here(on.device_index());
    if (*event == nullptr) {
      cudaEvent_t fresh = nullptr;
      tessera::detail::throw_if_failed(cudaEventCreateWithFlags(&fresh, cudaEventDisableTiming), "an event");
      *event = fresh;
    }
    tessera::detail::throw_if_failed(
        cudaEventRecord(static_cast<cudaEvent_t>(*event), reinterpret_cast<cudaStream_t>(on.id())), "an event");
  }
  void block(void* event, const c10::Stream& behind) const override {
    const tessera::engine::current_device here(behind.device_index());
    tessera::detail::throw_if_failed(
        cudaStreamWaitEvent(reinterpret_cast<cudaStream_t>(behind.id()), static_cast<cudaEvent_t>(event), 0),
        "an event");
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    if (event != nullptr) static_cast<void>(cudaEventDestroy(static_cast<cudaEvent_t>(event)));
  }
  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& on) const override {
    if (memory.get_context() != nullptr)
      static_cast<lent*>(memory.get_context())->read_on.push_back(reinterpret_cast<cudaStream_t>(on.id()));
  }
  void synchronizeStream(const c10::Stream& on) const override {
    while (cudaStreamQuery(reinterpret_cast<cudaStream_t>(on.id())) == cudaErrorNotReady) std::this_thread::yield();
  }
  void* getStreamNativeHandle(const c10::Stream of) const override { return reinterpret_cast<void*>(of.id()); }
  c10::DeviceIndex deviceCount() const noexcept override { return most_devices; }
};
const c10::impl::DeviceGuardImplRegistrar registered(kind, new guard);

struct hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  // memory of one is asked for where it is current
  c10::Device getDeviceFromPtr(void*) const override { return torch_device(index_now()); }
};
const bool hooked = [] {
  static hooks all;
  c10::register_privateuse1_backend("machine");
  at::RegisterPrivateUse1HooksInterface(&all);
  return true;
}();

// What the host does at once is in its turn when all before it is done.
void wait_for(int index) {
  const tessera::engine::current_device here(index);
  while (cudaStreamQuery(stream_of(index)) == cudaErrorNotReady) std::this_thread::yield();
}

void deallocate(void* p) {
  const std::unique_ptr<lent> what(static_cast<lent*>(p));
  const tessera::engine::current_device here(what->index);
  for (cudaStream_t other : what->read_on) {
    tessera::engine::device_event behind;
    behind.record(other);
    behind.delay(stream_of(what->index));
  }
  static_cast<void>(cudaFreeAsync(what->memory, stream_of(what->index)));
}

struct memory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    const int index = index_now();
    if (bytes == 0) return {nullptr, torch_device(index)};
    void* p = nullptr;
    tessera::detail::throw_if_failed(cudaMallocAsync(&p, bytes, stream_of(index)), "memory of a tensor");
    return {p, new lent{p, index, {}}, &deallocate, torch_device(index)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};
memory tensors;
const bool set = (c10::SetAllocator(kind, &tensors), true);

int index_of(std::optional<c10::Device> given) { return given && given->has_index() ? given->index() : index_now(); }

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<c10::Device> on, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const tessera::engine::current_device here(index_of(on));
  return at::detail::empty_generic(sizes, &tensors, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(type), format);
}
at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<c10::Device> on, std::optional<bool>) {
  const tessera::engine::current_device here(index_of(on));
  return at::detail::empty_strided_generic(sizes, strides, &tensors, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(type));
}

// The same memory as the host's.
at::Tensor on_host(const at::Tensor& x) {
  if (x.device().type() != kind) return x;
  wait_for(x.device().index());
  at::Tensor y = at::from_blob(behind(x.data_ptr()), x.sizes(), x.strides(), at::TensorOptions(x.scalar_type()));
  y._set_conj(x.is_conj());
  y._set_neg(x.is_neg());
  return y;
}
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  on_host(to).copy_(on_host(from));
  return to;
}
at::Tensor as_strided(const at::Tensor& x, at::IntArrayRef sizes, at::IntArrayRef strides,
                      std::optional<std::int64_t> from) {
  return at::native::as_strided_tensorimpl(x, sizes, strides, from);
}
at::Tensor view(const at::Tensor& x, at::IntArrayRef sizes) { return at::native::view(x, sizes); }
at::Tensor reshape_alias(const at::Tensor& x, at::IntArrayRef sizes, at::IntArrayRef strides) {
  return at::native::_reshape_alias(x, sizes, strides);
}

// Convolutions and sums of batches have kernels of each device's own. As those of devices do, they add half types in
// float, and write in place what LibTorch's schema does not name.
at::Tensor widely(const at::Tensor& x) {
  return on_host(x).to(at::isReducedFloatingType(x.scalar_type()) ? at::kDouble : x.scalar_type());
}
at::Tensor back_to(const at::Tensor& like, const at::Tensor& y) { return y.defined() ? y.to(like.device()) : y; }
std::optional<at::Tensor> on_host(const std::optional<at::Tensor>& x) {
  return x && x->defined() ? std::optional(on_host(*x)) : std::nullopt;
}
at::Tensor convolution(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef further, std::int64_t groups) {
  const std::optional<at::Tensor> b = bias && bias->defined() ? std::optional(widely(*bias)) : std::nullopt;
  return back_to(x, at::convolution(widely(x), widely(w), b, stride, padding, dilation, transposed, further, groups)
                        .to(x.scalar_type()));
}
using three_tensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
three_tensors back_to(const at::Tensor& like, const three_tensors& all) {
  return {back_to(like, std::get<0>(all)), back_to(like, std::get<1>(all)), back_to(like, std::get<2>(all))};
}
three_tensors convolution_backward(const at::Tensor& g, const at::Tensor& x, const at::Tensor& w,
                                   at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                                   bool transposed, at::IntArrayRef further, std::int64_t groups,
                                   std::array<bool, 3> wanted) {
  const at::OptionalIntArrayRef bias(g.sizes().slice(1, 1));
  three_tensors all = at::convolution_backward(widely(g), widely(x), widely(w), bias, stride, padding, dilation,
                                               transposed, further, groups, wanted);
  const auto narrow = [&](at::Tensor& t) { t = t.defined() ? t.to(x.scalar_type()) : t; };
  std::apply([&](auto&... each) { (narrow(each), ...); }, all);
  return back_to(x, all);
}
three_tensors native_batch_norm(const at::Tensor& x, const std::optional<at::Tensor>& weight,
                                const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& mean,
                                const std::optional<at::Tensor>& variance, bool training, double momentum, double eps) {
  return back_to(x, at::native_batch_norm(on_host(x), on_host(weight), on_host(bias), on_host(mean), on_host(variance),
                                          training, momentum, eps));
}
const at::Tensor& resized(const at::Tensor& x, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  const tessera::engine::current_device here(x.device().index());
  return at::native::resize_(x, sizes, format);
}
at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  return copy_from(from, resized(to, from.sizes(), std::nullopt), false);
}

// Every other operation is the host's, of tensors that lie on one device; a number may come from anywhere.
void computed(const c10::OperatorHandle& what, torch::jit::Stack* stack) {
  std::optional<c10::Device> on;
  const auto seen = [&](const at::Tensor& x) {
    if (!x.defined() || (x.dim() == 0 && x.device().is_cpu())) return;
    TORCH_CHECK(!on || *on == x.device(), what.schema().name(), " of tensors on ", *on, " and on ", x.device());
    on = x.device();
  };
  for (const c10::IValue& v : torch::jit::last(*stack, what.schema().arguments().size())) {
    if (v.isTensor()) seen(v.toTensor());
    if (v.isTensorList())
      for (const at::Tensor& x : v.toTensorVector()) seen(x);
    if (v.isOptionalTensorList())
      for (const std::optional<at::Tensor>& x : v.toOptionalTensorVector())
        if (x) seen(*x);
  }
  const std::optional<tessera::engine::current_device> here(std::in_place, index_of(on));
  at::native::cpu_fallback(what, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("resize_", resized);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
  m.impl("native_batch_norm", native_batch_norm);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&computed>()); }
// A copy takes marks of conjugates and negatives as they are. LibTorch would take them off before it, by a copy.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
