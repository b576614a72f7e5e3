// Exchanges between the devices of this machine, a thread each; without two of them it says so and is skipped.

#include "tests/support/in_workers.hpp"
#include "tests/support/flights.hpp"

#include <tessera/comm/nccl/over_nccl.hpp>

#include <cstdio>

using namespace tessera;
using namespace tessera::testing;

namespace {

/// Copies alone, a row at a time.
class copied_boxes final : public device_boxes {
 public:
  int kind() const override { return 1; }
  cudaStream_t current() const override { return nullptr; }
  void copy(const region& from, const region& to, cudaStream_t on) override {
    const common_rows rows(from.extents, {from.strides.begin(), to.strides.begin()});
    const auto size = static_cast<std::size_t>(bytes_of(from.element));
    const auto n = static_cast<std::size_t>(rows.length());
    std::byte* at[]{from.data, to.data};
    rows.each(at, bytes_of(from.element), [&] {
      detail::insist(cudaMemcpy2DAsync(at[1], static_cast<std::size_t>(rows.step(1)) * size, at[0], static_cast<std::size_t>(rows.step(0)) * size, size, n,
                                       cudaMemcpyDeviceToDevice, on),
                     "copying");
    });
  }
  void combine_terms(std::span<const region>, const region&, combine, cudaStream_t) override { throw error(refusal{code::device_failed, 0}, "no kernels"); }
  void fill_neutral(const region&, combine, cudaStream_t) override { throw error(refusal{code::device_failed, 0}, "no kernels"); }
};

/// Doubles on the current device.
class device_numbers {
 public:
  explicit device_numbers(index_t n) : n_(n) { detail::insist(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()), "memory"); }
  device_numbers(const device_numbers&) = delete;
  device_numbers& operator=(const device_numbers&) = delete;
  ~device_numbers() { static_cast<void>(cudaFree(data_)); }

  void set(const std::vector<double>& x) { detail::insist(cudaMemcpy(data_, x.data(), bytes(), cudaMemcpyHostToDevice), "copying"); }
  std::vector<double> get() const {
    std::vector<double> x(static_cast<std::size_t>(n_));
    detail::insist(cudaMemcpy(x.data(), data_, bytes(), cudaMemcpyDeviceToHost), "copying");
    return x;
  }
  region memory() const {
    region r{data_, element::float64, {}, {}};
    r.extents.push(n_);
    r.strides.push(1);
    return r;
  }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(n_) * sizeof(double); }

  index_t n_;
  std::byte* data_ = nullptr;
};

// What is wrong with a Move of numbers that say where they come from, by messages or, where parts are equal, by a collective.
std::string moved(transport& c, index_t n) {
  const auto e = bind_exchange(c, gathered(c.size(), n), element::float64);
  const box mine = cutting{on_line(c.size(), n, {role::cut})}.box_of(c.rank());
  std::vector<double> x;
  for (index_t i = mine[0].lo; i < mine[0].hi; ++i) x.push_back(static_cast<double>(i) * 17);
  device_numbers in(mine[0].size());
  device_numbers out(n);
  in.set(x);
  e->start(in.memory(), out.memory()).finish();
  c.synchronise();
  const std::vector<double> y = out.get();
  for (index_t i = 0; i < n; ++i)
    if (y[static_cast<std::size_t>(i)] != static_cast<double>(i) * 17) return fmt::format("element {} of {}; ", i, n);
  return "";
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) {
    std::printf("skipped: this machine has not two devices\n");
    return 77;
  }
  int wrong = 0;
  const auto all = in_world(devices, [&](const std::shared_ptr<transport>& host) {
    const auto carrier = std::make_shared<nccl_transport>(host, std::make_shared<copied_boxes>(), nccl_options{});
    const current_device here(carrier->device());
    return moved(*carrier, 1000 * devices) + moved(*carrier, 1000 * devices + 1);
  });
  std::fputs(all.errors().c_str(), stdout);
  for (const auto& said : all.results) {
    if (said && said->empty()) continue;
    ++wrong;
    if (said) std::puts(said->c_str());
  }
  return wrong == 0 ? 0 : 1;
}
