#include "tests/support/device/ship.hpp"

#include <tessera/nn/weights_file.hpp>
#include <torch/optim/adam.h>
#include <unistd.h>

#include <filesystem>

using namespace tessera;
using namespace tessera::testing;

// A network on devices: what it comes to on the host, where its workers' tensors lie.

namespace {

struct sample : dyn {};
using images = tensor<partition<ship, blocks<deck>, whole, whole, blocks<lane>>, shape<sample, dim<2>, dim<7>, dim<6>>, double>;
using in_channels = partition<ship, blocks<deck>, blocks<lane>, whole, whole>;
using classes = tensor<partition<ship, blocks<deck>, invariant<lane>>, shape<sample>, std::int64_t>;
using image_net = nn::sequential<images, nn::conv<4, kernel<3, 3>, padding<1, 1>, no_bias>, nn::batch_norm<>, nn::relu, nn::max_pool<kernel<3, 3>, stride<2, 2>>, nn::repartition<in_channels>,
                               nn::group_norm<2>, nn::dropout<>, nn::flatten, nn::linear<6>, nn::layer_norm<>, nn::relu, nn::linear<4>>;

at::Tensor some_images() { return at::sin(at::arange(5 * 2 * 7 * 6, at::kDouble)).reshape({5, 2, 7, 6}); }
at::Tensor their_classes() { return at::arange(5, at::kLong).remainder(4); }

/// Three steps of a network, what is saved behind the second taken up again before the third; its state on the host.
nn::state_dict trained(team<ship>& t, c10::Device device, const std::filesystem::path& file) {
  image_net net(t, seed{11});
  const auto x = take<images>(t, some_images().to(device));
  const auto labels = take<classes>(t, their_classes().to(device));
  torch::optim::Adam steps(net.parameters(), torch::optim::AdamOptions(0.01));
  const auto step = [&] {
    steps.zero_grad();
    nn::cross_entropy(net(x), labels).backward();
    nn::clip_grad_norm(net, 0.5);
    steps.step();
  };
  step();
  step();
  nn::save(net, file);
  const nn::state_dict kept = nn::state_of(net);
  image_net other(t, seed{12});
  nn::load(other, file);
  nn::assign(net, nn::state_of(other));
  step();
  nn::state_dict all = nn::state_of(net);
  for (auto& [key, one] : all) {
    if (one.device() != device || kept.at(key).device() != device) throw std::runtime_error(key + " lies elsewhere");
    one = one.cpu();
  }
  return all;
}

/// The same on workers of the host.
nn::state_dict trained_on_host(const std::filesystem::path& file) {
  const auto all = in_team<ship>([&](team<ship>& t) { return trained(t, at::kCPU, file); });
  INFO(all.errors());
  REQUIRE(all.well());
  return all.of(0);
}

}  // namespace

TEST_CASE("a network that is trained, saved, loaded and assigned on devices comes to what it comes to on the host") {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / fmt::format("tessera_on_devices_{}", ::getpid());
  const nn::state_dict host = trained_on_host(file);
  REQUIRE(host.size() == 13 + 2);
  for (const bool checked : {false, true})
    for (const double edges_apart : {0.0, 8.0})
      on_ship([&](team<ship>& t, c10::Device device) -> std::string {
        t.state()->checked = checked;
        t.state()->carrier().edges_apart = edges_apart;
        std::string wrong;
        for (const auto& [key, one] : trained(t, device, file))
          if (!at::allclose(one, host.at(key), 1e-12, 1e-12)) wrong += key + " differs; ";
        return wrong;
      });
  std::filesystem::remove(file);
}

TEST_CASE("a file that devices wrote is the host's") {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / fmt::format("tessera_of_devices_{}", ::getpid());
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
