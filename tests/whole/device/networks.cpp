#include "tests/support/device/ship.hpp"
#include "tests/support/pipelines.hpp"

#include <unistd.h>

#include <filesystem>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// A network on devices: what it comes to on the host, where its workers' tensors lie.

namespace {

/// The same on workers of the host.
nn::state_dict trained_on_host(const std::filesystem::path& file) {
  const auto all = in_team<ship>([&](team<ship>& t) { return trained(t, at::kCPU, file); });
  INFO(all.errors());
  REQUIRE(all.well());
  return all.of(0);
}

}  // namespace

TEST_CASE("a network that is trained, saved, loaded and assigned on devices comes to what it comes to on the host",
          "[runtime][gradient]") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("tessera_on_devices_{}", ::getpid());
  const nn::state_dict host = trained_on_host(file);
  REQUIRE(host.size() == 11 + 5);  // parameters and buffers
  for (const bool checked : {false, true})
    for (const double edges_apart : {0.0, 8.0})
      on_ship([&](team<ship>& t, c10::Device device) -> std::string {
        t.state()->checks = checked ? checks::always : checks::sampled;
        set_edges_apart(t.state()->carrier(), edges_apart);
        std::string wrong;
        for (const auto& [key, one] : trained(t, device, file))
          if (!at::allclose(one, host.at(key), 1e-12, 1e-12)) wrong += key + " differs; ";
        return wrong;
      });
  std::filesystem::remove(file);
}

TEST_CASE("a pipeline's losses and gradients on devices are those of the network", "[runtime][gradient]") {
  using pipeline::order;
  mesh_value grid;
  grid.axes.push({text("data"), 2, 2});
  grid.axes.push({text("stage"), 2, 1});
  for (const checks how : {checks::sampled, checks::always})
    on_ship([&](team<ship>& t, c10::Device) -> std::string {
      const auto stages = t.state()->over(grid);
      stages->checks = how;
      return pipelined::differs(stages, pipeline::schedule{order::one_f_one_b, {2, 4}}, 10, true) +
             pipelined::differs(stages, pipeline::schedule{order::interleaved, {2, 3, 2}}, 6) +
             pipelined::differs(stages, pipeline::schedule{order::zb_h1, {2, 4}}, 8);
    });
}

TEST_CASE("a file that devices wrote is the host's", "[runtime]") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("tessera_of_devices_{}", ::getpid());
  on_ship([&](team<ship>& t, c10::Device) -> std::string {
    image_net net(t, seed{3});
    nn::save(net, file);
    return "";
  });
  const auto all = in_team<ship>([&](team<ship>& t) {
    const image_net net(t, seed{3});
    const nn::state_dict own = nn::state_of(net);
    const nn::state_dict read = nn::read_state(file);
    bool same = own.size() == read.size();
    for (const auto& [key, one] : own) same = same && at::equal(read.at(key), one);
    return same;
  });
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 0; r < 4; ++r) CHECK(all.of(r));
  std::filesystem::remove(file);
}

TEST_CASE("what layers draw on a device is what they draw on the host", "[runtime]") {
  using deal = tensor<partition<ship, blocks<deck>, whole, blocks<lane>>, shape<dim<5>, dim<4>, dim<7>>, double>;
  using drawing = nn::sequential<deal, nn::dropout<>, nn::rrelu<>, nn::dropout<channelwise>>;
  const auto numbers = [] { return at::sin(at::arange(5 * 4 * 7, at::kDouble)).reshape({5, 4, 7}); };
  const auto host = in_team<ship>([&](team<ship>& t) {
    const drawing net(t, seed{9});
    const auto x = distribute<deal>(t, numbers());
    net(x);
    return net(x).local();
  });
  REQUIRE(host.well());
  on_ship([&](team<ship>& t, c10::Device device) -> std::string {
    const drawing net(t, seed{9});
    const auto x = distribute<deal>(t, numbers().to(device));
    net(x);
    const at::Tensor y = net(x).local();
    return y.device() == device && at::equal(y.cpu(), host.of(t.rank())) ? "" : "drawn otherwise";
  });
}
