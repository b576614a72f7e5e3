#pragma once

#include <tessera/generated/nn.hpp>
#include <tessera/nn/parameter/buffer.hpp>
#include <tessera/nn/parameter/parameter.hpp>

#include <map>

namespace tessera::nn {

/// Global tensors under the serial model's keys.
using state_dict = std::map<std::string, at::Tensor>;

}  // namespace tessera::nn

namespace tessera::detail {

/// Whether something is a network, or a class that shows its parameters as one does.
template <class Network>
using shows_parameters = std::conditional_t<requires(const Network& net, void (*visit)(const nn::parameter&)) {
  net.each_parameter(visit);
}, fits, wrong_argument<kind::call, 1, kind::network, kind_of<Network>>>;

/// The tensors of a state dict under the serial model's keys: parameters and buffers, several where they are parts of
/// one serial tensor.
using keyed_state = std::map<std::string, std::vector<const nn::engine::state_tensor*>>;

/// Refuses parts that do not make up their serial tensor.
void check_parts(const keyed_state& all);

/// Those of a network; two of one key are refused, but parts of a serial tensor.
template <class Network>
keyed_state state_by_key(const Network& net) {
  using verdict = shows_parameters<Network>;
  verdict::template refuse<verdict>();
  keyed_state all;
  const auto add = [&](const nn::engine::state_tensor& t) {
    auto& parts = all[t.key()];
    if (!parts.empty() && t.serial().whole == 0) throw error(refusal{code::parameter_named_twice}, t.key());
    parts.push_back(&t);
  };
  if constexpr (verdict::ok) net.each_parameter(add);
  if constexpr (requires { net.each_buffer(add); }) net.each_buffer(add);
  check_parts(all);
  return all;
}

/// Parameters under their paths.
using keyed_parameters = std::map<std::string, const nn::parameter*>;

/// Those of a network; two of one path are refused.
template <class Network>
keyed_parameters parameters_by_key(const Network& net) {
  using verdict = shows_parameters<Network>;
  verdict::template refuse<verdict>();
  keyed_parameters all;
  const auto add = [&](const nn::parameter& p) {
    if (!all.emplace(p.path(), &p).second) throw error(refusal{code::parameter_named_twice}, p.path());
  };
  if constexpr (verdict::ok) net.each_parameter(add);
  return all;
}

/// The team that speaks for a network: its own, or that of its first parameter.
template <class Network>
team_handle team_of(const Network& net) {
  using verdict = shows_parameters<Network>;
  verdict::template refuse<verdict>();
  if constexpr (requires { net.team(); }) return net.team();
  team_handle first;
  const auto find = [&](const nn::parameter& p) { first = first ? first : p.stored().team(); };
  if constexpr (verdict::ok) net.each_parameter(find);
  if (!first) throw error(refusal{code::undefined_tensor}, "a network without a team and parameters");
  return first;
}

/// A tensor's description in messages: "Float[2, 3]".
std::string described_tensor(const at::Tensor& t);

/// Whether it has elements that the host can read or fetch.
inline bool readable(const at::Tensor& t) { return t.defined() && !t.is_meta() && t.layout() == at::kStrided; }

/// Throws on every worker of the team unless all of them hold the same state dict; names the first key that differs.
void agree_on_state(const team_handle& team, const nn::state_dict& state, const std::string& from);

/// The serial tensors on every worker, where its own lie, or on the host.
nn::state_dict state_of(const keyed_state& state, bool on_host = false);

/// Gives what is kept the values of a state dict that the workers compare first; `from` stands before what an error
/// says of it.
void assign_from(const team_handle& team, const keyed_state& kept, const nn::state_dict& state,
                 const std::string& from);

}  // namespace tessera::detail

namespace tessera::nn {

/// The parameters and buffers of a network as global tensors, on every worker.
template <class Network>
state_dict state_of(const Network& net, call_site at = call_site::here()) {
  const auto kept = tessera::detail::state_by_key(net);
  if (kept.empty()) return {};
  const engine::scoped_context now(*tessera::detail::team_of(net),
                                   {.why = purpose::state, .name = "gathering a state dict", .at = at});
  return tessera::detail::state_of(kept);
}

/// Assigns to a network the parameters and buffers of a state dict that every worker has alike. Keys, shapes and
/// element types must be the network's. Nothing changes when it is refused.
template <class Network>
void assign(Network& net, const state_dict& state, call_site at = call_site::here()) {
  const team_handle team = tessera::detail::team_of(net);
  const engine::scoped_context now(*team, {.why = purpose::state, .name = "assigning a state dict", .at = at});
  tessera::detail::assign_from(team, tessera::detail::state_by_key(net), state, "");
}

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/parameter/state_dict_impl.hpp>
#endif
