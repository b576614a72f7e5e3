#pragma once

#include <tessera/nn/parameter.hpp>
#include <tessera/nn/together.hpp>
#include <tessera/nn/verdicts.hpp>
#include <tessera/tensor/verbs.hpp>

#include <map>

namespace tessera::nn {

/// Global tensors under the serial model's keys.
using state_dict = std::map<std::string, at::Tensor>;

}  // namespace tessera::nn

namespace tessera::detail {

/// Whether something is a network, or a class that shows its parameters as one does.
template <class Network>
using shows_parameters = std::conditional_t<requires(const Network& net, void (*visit)(const nn::parameter&)) { net.each_parameter(visit); },
                                            fits, wrong_argument<kind::call, 1, kind::network, kind_of<Network>>>;

/// The parameters of a network under their keys; two of one key are refused.
template <class Network>
std::map<std::string, const nn::parameter*> parameters_by_key(const Network& net) {
  using verdict = shows_parameters<Network>;
  verdict::template refuse<verdict>();
  std::map<std::string, const nn::parameter*> all;
  const auto add = [&](const nn::parameter& p) {
    if (!all.emplace(p.path(), &p).second) throw error(refusal{code::parameter_named_twice}, p.path());
  };
  if constexpr (verdict::ok) net.each_parameter(add);
  return all;
}

/// What a tensor is, for messages: "Float[2, 3]".
inline std::string described_tensor(const at::Tensor& t) {
  if (!t.defined()) return "undefined";
  return c10::str(t.scalar_type(), t.sizes(), t.device().is_cpu() ? "" : " on " + t.device().str(), t.layout() == at::kStrided ? "" : " not strided");
}

/// Whether its elements lie in host memory as they are.
inline bool readable(const at::Tensor& t) { return t.defined() && t.device().is_cpu() && t.layout() == at::kStrided; }

/// A number for a tensor: its element type, shape and bits.
inline std::uint64_t digest_of(const at::Tensor& t) {
  const std::string what = described_tensor(t);
  return text(what.data(), static_cast<int>(what.size())).hash ^ (readable(t) ? hash_of(t) : 0);
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

/// Throws on every worker of the team unless all of them hold the same state dict; names the first key that differs.
inline void agree_on_state(const team_handle& team, const nn::state_dict& state, const std::string& from) {
  std::string lines;
  for (const auto& [key, t] : state) lines += fmt::format("{} {:016x}\n", key, digest_of(t));
  const std::vector<std::uint64_t> all = team->collect(text(lines.data(), static_cast<int>(lines.size())).hash, "comparing state dicts");
  const auto other = static_cast<std::size_t>(std::find_if(all.begin(), all.end(), [&](auto h) { return h != all[0]; }) - all.begin());
  if (other == all.size()) return;
  const std::vector<std::string> texts = team->collect_text(lines);
  const auto differ = std::mismatch(texts[0].begin(), texts[0].end(), texts[other].begin(), texts[other].end()).first - texts[0].begin();
  const std::size_t line = texts[0].substr(0, static_cast<std::size_t>(differ)).rfind('\n') + 1;
  std::string first;  // a key that one of them lacks comes before the other's
  for (const std::string& t : {texts[0], texts[other]})
    if (const std::string key = t.substr(line, t.find('\n', line) - line - 17); line < t.size() && (first.empty() || key < first)) first = key;
  const auto rank = [&](std::size_t i) { return team->mesh().rank(team->mesh().at(static_cast<int>(i))); };
  throw error(refusal{code::copies_differ, rank(0), rank(other)}, from + first);
}

/// Throws unless a state dict has the keys, shapes and element types of a network's parameters; says all that differs.
inline void check_state(const std::map<std::string, const nn::parameter*>& parameters, const nn::state_dict& state, const std::string& from) {
  std::string wrong;
  const auto add = [&](const std::string& what) { wrong += (wrong.empty() ? "" : "; ") + what; };
  for (const auto& [key, p] : parameters) {
    const auto given = state.find(key);
    if (given == state.end()) {
      add(key + " is missing");
      continue;
    }
    const layout& x = p->stored().layout();
    std::vector<index_t> sizes;
    for (const dimension& d : x.dims) sizes.push_back(d.extent);
    const std::string wanted = c10::str(p->stored().local().scalar_type(), at::IntArrayRef(sizes));
    if (const std::string is = described_tensor(given->second); is != wanted) add(key + " is " + is + " and not " + wanted);
  }
  for (const auto& [key, t] : state)
    if (!parameters.count(key)) add(key + " is unexpected");
  if (!wrong.empty()) throw error(refusal{code::other_parameters, parameters.size(), state.size()}, from + wrong);
}

/// Gives a network the parameters of a state dict; `from` stands before what an error says of it.
template <class Network>
void assign_from(Network& net, const nn::state_dict& state, const std::string& from) {
  const auto parameters = parameters_by_key(net);
  const team_handle team = team_of(net);
  if (!team->inside()) return;  // it holds no part of any
  agree_on_state(team, state, from);
  check_state(parameters, state, from);
  for (const auto& [key, p] : parameters) p->assign(state.at(key));
}

}  // namespace tessera::detail

namespace tessera::nn {

/// The parameters of a network as global tensors, on every worker.
template <class Network>
state_dict state_of(const Network& net, call_site at = call_site::here()) {
  state_dict all;
  const auto parameters = tessera::detail::parameters_by_key(net);
  if (parameters.empty()) return all;
  const during now(*tessera::detail::team_of(net), {.why = purpose::state, .what = "gathering a state dict", .at = at});
  for (const auto& [key, p] : parameters) {
    layout everywhere;  // also where the layer lies on another mesh than the network
    everywhere.mesh = p->stored().team()->mesh();
    everywhere.roles.resize(everywhere.mesh.axes.count);
    for (const dimension& d : p->stored().layout().dims) {
      dimension uncut;
      uncut.extent = d.extent;
      everywhere.dims.push(uncut);
    }
    const at::NoGradGuard no_record;
    all[key] = to(everywhere, p->stored()).local().detach().clone();
  }
  return all;
}

/// Gives a network the parameters of a state dict that every worker has, and all have alike; keys, shapes and element types must
/// be its own. Nothing changes when it is refused.
template <class Network>
void assign(Network& net, const state_dict& state, call_site at = call_site::here()) {
  const team_handle team = tessera::detail::team_of(net);
  const during now(*team, {.why = purpose::state, .what = "assigning a state dict", .at = at});
  tessera::detail::assign_from(net, state, "");
}

}  // namespace tessera::nn
