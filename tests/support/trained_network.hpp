#pragma once
// A network that is trained, saved, loaded and assigned on four workers, wherever their tensors lie.

#include <torch/optim/adam.h>

#include <tessera/network.hpp>
#include <tessera/nn/file/weights_file.hpp>
#include <tessera/nn/layer/cross_entropy.hpp>
#include <tessera/nn/network/network.hpp>
#include <tessera/nn/parameter/grad_norm.hpp>
#include <tessera/nn/parameter/state_dict.hpp>
#include <tessera/tensor/distribute.hpp>
#include <tessera/tensor/random.hpp>

#include <cstdint>
#include <filesystem>
#include <stdexcept>

namespace tessera::testing {

using namespace engine;

struct deck : axis<2> {};
struct lane : axis<2> {};
using ship = mesh<deck, lane>;

struct sample : dyn {};
using images =
    tensor<partition<ship, blocks<deck>, whole, whole, blocks<lane>>, shape<sample, dim<2>, dim<7>, dim<6>>, double>;
using in_channels = partition<ship, blocks<deck>, blocks<lane>, whole, whole>;
using classes = tensor<partition<ship, blocks<deck>, invariant<lane>>, shape<sample>, std::int64_t>;
using image_net =
    nn::sequential<images, nn::conv<4, kernel<3, 3>, padding<1, 1>, no_bias>, nn::batch_norm<>, nn::relu,
                   nn::max_pool<kernel<3, 3>, stride<2, 2>>, nn::repartition<in_channels>, nn::group_norm<2>,
                   nn::dropout<>, nn::flatten, nn::linear<6>, nn::layer_norm<>, nn::relu, nn::linear<4>>;

inline at::Tensor some_images() { return at::sin(at::arange(5 * 2 * 7 * 6, at::kDouble)).reshape({5, 2, 7, 6}); }
inline at::Tensor their_classes() { return at::arange(5, at::kLong).remainder(4); }

/// Three steps of a network, what is saved behind the second taken up again before the third; its state on the host.
inline nn::state_dict trained(team<ship>& t, c10::Device device, const std::filesystem::path& file) {
  image_net net(t, seed{11});
  const auto x = distribute<images>(t, some_images().to(device));
  const auto labels = distribute<classes>(t, their_classes().to(device));
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

}  // namespace tessera::testing
