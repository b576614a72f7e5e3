#pragma once

#include <tessera/nn/running_network.hpp>

namespace tessera::nn {

TESSERA_INLINE running_network::running_network(const team_handle& team, const seed& s, std::span<const running_layer> layers)
    : state_(std::make_unique<state>(team, layers)) {
  fingerprint f;
  int number = 0;
  for (const running_layer& layer : layers) {
    auto& parameters = state_->parameters.emplace_back();
    const layer_plan p = layer.plan(*layer.input);
    for (const parameter_value& w : p.parameters) {
      parameters.emplace_back(team, fmt::format("{}.{}", number, w.name), w, layer.input->element, s);
      f << w.stored << w.used;
    }
    f << p.input << p.output;
    if (!layer.only_here) ++number;
  }
  f << s.value << text(s.path.data(), static_cast<int>(s.path.size())).hash;
  if (team->inside())
    team->agree(f.value(), "making a network", [&] { return fmt::format("making a network of {} layers, seed {} {}", layers.size(), s.value, s.path); });
}

TESSERA_INLINE running_network::running_network(const running_network& other, copying) : state_(std::make_unique<state>(other.team(), other.state_->layers)) {
  state_->training = other.training();
  for (const auto& layer : other.state_->parameters) {
    auto& mine = state_->parameters.emplace_back();
    for (const parameter& p : layer) mine.push_back(p.clone());
  }
}

TESSERA_INLINE tensor<dyn> running_network::forward(const tensor<dyn>& x, call_site at) const {
  if (x.team()->shared_carrier() != team()->shared_carrier()) throw error(refusal{code::other_team}, team()->label());
  tensor<dyn> y = x;
  for (std::size_t i = 0; i < state_->layers.size(); ++i) {
    const running_layer& layer = state_->layers[i];
    const during now(*team(), {.what = layer.name, .at = at});
    const bound_layer& bound = bound_for(i, y);
    for (const parameter& w : state_->parameters[i]) check(tessera::detail::check_element(layer.input->element, w.stored().local().scalar_type()), w.path());
    at::Tensor local = layer.forward(bound, y.local(), state_->parameters[i]);
    tessera::detail::check_local(local, *bound.output, layer.input->element, *team());
    y = tessera::detail::tensor_of(team(), bound.output, std::move(local));
  }
  return y;
}

TESSERA_INLINE const bound_layer& running_network::bound_for(std::size_t i, const tensor<dyn>& x) const {
  const running_layer& layer = state_->layers[i];
  std::list<kept_layer>& known = state_->bound[i];
  auto found = std::find_if(known.begin(), known.end(), [&](const kept_layer& k) { return k.input == x.where() && k.type == x.type(); });
  if (found == known.end()) {
    const layer_plan p = layer.plan(tensor_value{x.layout(), x.type()});
    check(p.why, fmt::format("layer {}, {}", i, layer.name));
    found = known.insert(known.end(), {x.where(), x.type(), {team(), p}});
    if (known.size() > most_kept) known.pop_front();
  }
  return found->bound;
}

}  // namespace tessera::nn
