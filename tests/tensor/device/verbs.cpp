#include "tests/support/device/ship.hpp"

#include <tessera/comm/nccl/over_nccl.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Verbs on tensors of a device, over the calls of CUDA and NCCL: what they are on the host, where their operand lies.

namespace {

template <class P>
using cargo = tensor<P, shape_of<7, 6>, double>;
using in_rows = partition<ship, blocks<deck, lane>, whole>;
using in_columns = partition<ship, whole, blocks<deck, lane>>;
using in_tiles = partition<ship, blocks<deck>, blocks<lane>>;
using in_copies = partition<ship, whole, whole, invariant<deck, lane>>;

at::Tensor cargo_numbers() { return at::arange(42, at::kDouble).reshape({7, 6}) / 10; }

/// What a change brings, the gradient of its cube and the gradient of that one's square: from whole to its halves.
template <class P, class Go>
std::string is_there(team<ship>& t, c10::Device device, const char* name, Go&& go) {
  auto x = distribute<cargo<P>>(t, cargo_numbers().to(device));
  x.requires_grad();
  const auto y = go(x);
  const auto wanted = distribute<typename std::decay_t<decltype(y)>>(t, cargo_numbers().to(device));
  std::string wrong;
  if (y.local().device() != device) wrong += "elsewhere; ";
  if (!at::equal(y.local().cpu(), wanted.local().cpu())) wrong += "other values; ";
  const at::Tensor s = y.local().pow(3).sum();
  const at::Tensor g = torch::autograd::grad({s}, {x.local()}, {at::ones_like(s)}, true, true)[0];
  const at::Tensor along = (g * g).sum();
  const at::Tensor h = torch::autograd::grad({along}, {x.local()}, {at::ones_like(along)})[0];
  const at::Tensor at_x = x.local().detach().cpu();
  if (g.device() != device || h.device() != device) wrong += "a gradient elsewhere; ";
  if (!at::allclose(g.detach().cpu(), 3 * at_x.pow(2)) || !at::allclose(h.cpu(), 36 * at_x.pow(3)))
    wrong += "other gradients; ";
  if (std::abs(pairing(y, y) - cargo_numbers().square().sum().item<double>()) > 1e-9) wrong += "another product; ";
  return wrong.empty() ? wrong : name + (": " + wrong);
}

}  // namespace

TEST_CASE("a verb brings to a device what it brings to the host, with its gradients", "[runtime][gradient]") {
  on_ship([](team<ship>& t, c10::Device device) {
    std::string wrong;
    for (const bool checked : {false, true}) {
      t.state()->checks = checked ? checks::always : checks::sampled;
      wrong += is_there<in_rows>(t, device, "to", [](const auto& x) { return to<in_columns>(x); });
      wrong += is_there<in_rows>(t, device, "in two halves", [](const auto& x) { return finish(start<in_tiles>(x)); });
      wrong += is_there<in_tiles>(t, device, "at run time", [](const auto& x) {
        return cargo<in_rows>(to(value_of<cargo<in_rows>>.layout, x.dynamic()));
      });
    }
    return wrong;
  });
}

TEST_CASE("backward stands in the order of the stream of its forward, whichever is current", "[runtime][gradient]") {
  on_ship([](team<ship>& t, c10::Device device) -> std::string {
    const device_stream own;
    const c10::Stream beside(c10::Stream::UNSAFE, device, reinterpret_cast<c10::StreamId>(own.get()));
    const auto go = [&](auto&& change) {
      auto x = distribute<cargo<in_rows>>(t, cargo_numbers().to(device));
      x.requires_grad();
      device_event before, behind;
      before.record(nullptr);
      before.delay(own.get());
      const auto y = [&] {
        const c10::StreamGuard here(beside);
        return change(from_local<cargo<in_rows>>(t, x.local() * 2));
      }();
      behind.record(own.get());
      behind.delay(nullptr);
      const at::Tensor s = y.local().pow(3).sum();
      s.backward();
      return at::allclose(x.local().grad().cpu(), 24 * x.local().detach().cpu().pow(2));
    };
    std::string wrong;
    if (!go([](const auto& x) { return to<in_columns>(x); })) wrong += "to; ";
    if (!go([](const auto& x) { return finish(start<in_tiles>(x)); })) wrong += "in two halves; ";
    return wrong;
  });
}

TEST_CASE("what is started on one stream and finished on another is ready in the order of the other", "[runtime]") {
  on_ship([](team<ship>& t, c10::Device device) -> std::string {
    const device_stream own;
    const c10::Stream beside(c10::Stream::UNSAFE, device, reinterpret_cast<c10::StreamId>(own.get()));
    for (int i = 0; i < 20; ++i) {
      const auto x = distribute<cargo<in_rows>>(t, (cargo_numbers() + i).to(device));
      device_event before;
      before.record(nullptr);
      before.delay(own.get());
      auto started = [&] {
        const c10::StreamGuard here(beside);
        return start<in_tiles>(x);
      }();
      const auto y = finish(std::move(started));
      if (!at::equal(y.local().cpu(), distribute<cargo<in_tiles>>(t, (cargo_numbers() + i).to(device)).local().cpu()))
        return "read before it was there";
    }
    return "";
  });
}

TEST_CASE("a frame is filled around a box on a device as it is on the host", "[runtime]") {
  on_ship([](team<ship>& t, c10::Device device) -> std::string {
    const layout& rows = value_of<cargo<in_rows>>.layout;
    const layout& tiles = value_of<cargo<in_tiles>>.layout;
    padded_box around;
    for (const index_t n : {1, 2}) around.before.push(n), around.behind.push(3 - n);
    around.value = -5;
    const at::Tensor x = distribute<cargo<in_rows>>(t, cargo_numbers().to(device)).local();
    const at::Tensor framed = change_layout(t.state(), t.state()->intern(rows), t.state()->intern(tiles), x, around);
    const at::Tensor wanted = around.around(distribute<cargo<in_tiles>>(t, cargo_numbers().to(device)).local().cpu());
    return framed.device() == device && at::equal(framed.cpu(), wanted) ? "" : "another frame";
  });
}

TEST_CASE("what is drawn on a device is what the host draws", "[runtime]") {
  on_ship([](team<ship>& t, c10::Device device) -> std::string {
    const layout x = value_of<cargo<in_tiles>>.layout;
    const tensor<dyn> here = initial(t.state(), x, element::float64, init::normal(), seed{7}, "weight");
    const at::Tensor there =
        tessera::detail::initial_box(init::normal(), x, element::float64, t.rank(), seed{7}, "weight");
    return here.local().device() == device && at::equal(here.local().cpu(), there) ? "" : "drawn otherwise";
  });
}

TEST_CASE("a tensor that does not lie on its worker's device is refused, both named", "[refusal]") {
  on_ship([](team<ship>& t, c10::Device device) -> std::string {
    const auto says = [&](const at::Tensor& x) -> std::string {
      try {
        distribute<cargo<in_copies>>(t, x);
      } catch (const error& why) {
        return std::string(why.what()).find(x.device().str() + " instead of " + device.str()) != std::string::npos
                   ? why.code()
                   : why.what();
      }
      return "nothing";
    };
    const std::string host = says(cargo_numbers());
    const std::string other = says(cargo_numbers().to(torch_device((device.index() + 1) % 4)));
    return (host == "tessera.tensor.device" ? "" : host) + (other == "tessera.tensor.device" ? "" : other);
  });
}

TEST_CASE("a launch over devices gives each of its workers one, which is current while the program runs", "[runtime]") {
  const std::pair<const char*, transport_layer> layers[]{{"over NCCL", over_nccl(std::make_shared<late_boxes>())},
                                                         {"through the hosts", through_host(torch_device(0).type())}};
  for (const auto& [way, over] : layers) {
    INFO(way);
    const device_machine machine;
    launch_options options = threads_only();
    options.over = over;
    const auto all = in_team<ship>(
        [&](team<ship>& t) {
          const c10::Device device = torch_device(t.rank());
          const bool current = c10::impl::VirtualGuardImpl(device.type()).getDevice() == device;
          const auto y = to<in_columns>(distribute<cargo<in_rows>>(t, cargo_numbers().to(device)));
          const at::Tensor wanted = distribute<cargo<in_columns>>(t, cargo_numbers().to(device)).local();
          return current && device_of(t) == device && y.local().device() == device &&
                 at::equal(y.local().cpu(), wanted.cpu());
        },
        options);
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < 4; ++r) CHECK(all.of(r));
  }
}

namespace {

/// How a LibTorch older than the one here asks a device for its stream: what it gives does not say what CUDA calls it.
struct guard_of_old {
  static c10::Device getDevice() { return at::kCPU; }
  static c10::Stream getStream(c10::Device d) { return c10::Stream(c10::Stream::DEFAULT, d); }
};

}  // namespace

TEST_CASE("a LibTorch that does not say what CUDA calls its streams is refused", "[refusal][regression]") {
  CHECK(told([] { tessera::detail::current_stream_of(guard_of_old{}); }) == "tessera.device.stream");
}
