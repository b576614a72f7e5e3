#pragma once

#include <tessera/nn/parameter/state_tensor.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/tensor/change/change.hpp>
#include <tessera/tensor/distribute.hpp>

#include <algorithm>

namespace tessera::nn::engine {

TESSERA_INLINE state_tensor::state_tensor(const team_handle& team, std::string_view name, const layout& stored,
                                          const initial_value& initial, element e, const seed& s, std::string_view key,
                                          const serial_view& serial, bool only_here)
    : path_(s.key(name)), key_(s.key(key)), element_(e), serial_(serial), only_here_(only_here) {
  check(check_known(stored), path_);
  const bool inside = serial.dimension >= 0 && serial.factors >= 0 &&
                      serial.dimension + std::max(serial.factors, 1) <= stored.dims.count;
  check(inside || serial == serial_view{} ? refusal{} : refusal{code::serial_view_wrong}, path_);
  stored_ = tessera::detail::tensor_of(
      team, stored, tessera::detail::initial_box(initial, stored, e, team->rank(), s, name).to(device_of(*team)));
}

TESSERA_INLINE std::vector<index_t> state_tensor::sizes() const {
  std::vector<index_t> own;
  for (const dimension& d : stored_.layout().dims) own.push_back(d.extent);
  return own;
}

TESSERA_INLINE std::vector<index_t> state_tensor::factors() const {
  const std::vector<index_t> own = sizes();
  const auto first = own.begin() + serial_.dimension;
  return {first, own.empty() ? first : first + std::max(serial_.factors, 1)};
}

TESSERA_INLINE index_t state_tensor::serial_end() const {
  index_t extent = 1;
  for (const index_t n : factors()) extent *= n;
  return serial_.begin + extent;
}

TESSERA_INLINE std::vector<index_t> state_tensor::serial_sizes() const {
  std::vector<index_t> n = sizes();
  if (serial_ == serial_view{}) return n;
  const auto d = n.begin() + serial_.dimension;
  n.erase(d + 1, d + std::max(serial_.factors, 1));
  *d = serial_.whole > 0 ? serial_.whole : serial_end();
  return n;
}

TESSERA_INLINE at::Tensor state_tensor::part_of(const at::Tensor& serial) const {
  if (serial_ == serial_view{}) return serial;
  return serial.narrow(serial_.dimension, serial_.begin, serial_end() - serial_.begin)
      .unflatten(serial_.dimension, factors());
}

TESSERA_INLINE state_tensor state_tensor::with(const at::Tensor& local) const {
  state_tensor other = *this;
  other.stored_ = tessera::detail::tensor_of(stored_.team(), stored_.layout(), local);
  return other;
}

TESSERA_INLINE void state_tensor::compare_copies() const {
  team_state& team = *stored_.team();
  if (team.checks == checks::never || !has_copies(stored_.layout())) return;
  team.agree_on_copies(stored_.layout(), tessera::detail::content_hash(stored_.local()), {.name = path_.c_str()});
}

TESSERA_INLINE void state_tensor::assign(const at::Tensor& global) const {
  const at::NoGradGuard no_record;
  stored_.local().copy_(
      detail::distribute_value(stored_.team(), stored_.layout(), stored_.type(), global, true).local());
}

}  // namespace tessera::nn::engine
