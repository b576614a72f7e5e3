#pragma once

#include <tessera/comm/team.hpp>
#include <tessera/generated/tensor.hpp>

#include <tessera/tensor/box/aten.hpp>

namespace tessera {
namespace detail {

constexpr at::ScalarType scalar_type_of(element e) {
  constexpr at::ScalarType known[]{at::kDouble,       at::kFloat,         at::kLong,   at::kInt,    at::kShort,
                                   at::kChar,         at::kByte,          at::kBool,   at::kHalf,   at::kBFloat16,
                                   at::kComplexFloat, at::kComplexDouble, at::kUInt16, at::kUInt32, at::kUInt64};
  return known[static_cast<int>(e)];
}

/// The type of a wide unsigned integer's bits.
inline at::ScalarType signed_type(element e) {
  if (e == element::uint16) return at::kShort;
  if (e == element::uint32) return at::kInt;
  return e == element::uint64 ? at::kLong : scalar_type_of(e);
}

/// The number of the element that a LibTorch type is, -1 for a type that no distributed tensor has.
inline int element_number(at::ScalarType t) {
  for (int e = 0; e < number_of_elements; ++e)
    if (scalar_type_of(static_cast<element>(e)) == t) return e;
  return -1;
}

inline element element_of_scalar(at::ScalarType t) {
  const int e = element_number(t);
  if (e < 0) throw error(refusal{code::element_unknown}, at::toString(t));
  return static_cast<element>(e);
}

inline refusal check_element(element expected, at::ScalarType given) {
  return given == scalar_type_of(expected) ? refusal{} : refusal{code::wrong_element, expected, element_number(given)};
}

/// The elements as they are in memory: LibTorch may keep a conjugate or a negative as a mark on the tensor.
inline at::Tensor as_stored(const at::Tensor& t) { return t.resolve_conj().resolve_neg(); }

/// The element in which sums of one are added, to be rounded once.
inline at::ScalarType added_in(at::ScalarType e) { return at::isReducedFloatingType(e) ? at::kFloat : e; }

/// f of boxes, whose elements are float while f adds them where they are of a half type, and rounded once behind it.
template <class F, class... Boxes>
at::Tensor in_float(const F& f, const at::Tensor& first, const Boxes&... rest) {
  const at::ScalarType e = first.scalar_type();
  if (!at::isReducedFloatingType(e)) return f(first, rest...);
  return f(first.to(at::kFloat), rest.to(at::kFloat)...).to(e);
}

inline std::vector<index_t> sizes_of(const static_vector<index_t, max_dimensions>& extents) {
  return {extents.begin(), extents.end()};
}

inline std::vector<index_t> sizes_of(const holding& held) {
  std::vector<index_t> n;
  for (const intervals& i : held) n.push_back(size_of(i));
  return n;
}

/// Refuses a tensor that is not there, or whose elements do not lie in plain memory.
inline refusal check_plain(const at::Tensor& t) {
  if (!t.defined()) return refusal{code::undefined_tensor};
  return t.layout() == at::kStrided ? refusal{} : refusal{code::not_strided};
}

}  // namespace detail

namespace engine {

/// The memory of a LibTorch tensor as exchanges take it, with its own strides. It is only read, where another tensor
/// may share it, or `written`.
inline region region_of(const at::Tensor& t, element e, bool written = false) {
  region r;
  if (t.numel() > 0)
    r.data = static_cast<std::byte*>(written ? t.mutable_data_ptr() : const_cast<void*>(t.const_data_ptr()));
  r.element = e;
  for (index_t n : t.sizes()) r.extents.push(n);
  for (index_t s : t.strides()) r.strides.push(s);
  return r;
}
/// The same of the element that its LibTorch type is.
inline region region_of(const at::Tensor& t, bool written = false) {
  return region_of(t, detail::element_of_scalar(t.scalar_type()), written);
}

}  // namespace engine

/// The LibTorch type of an element: `scalar_type<ts::bfloat16>` is at::kBFloat16.
template <class Element>
  requires(engine::kind_of<Element> == kind::element)
inline constexpr at::ScalarType scalar_type = detail::scalar_type_of(engine::element_of<Element>);

/// Where the tensors of a team's worker lie: on the host, or on its device.
inline c10::Device device_of(const team_state& team) {
  return {static_cast<c10::DeviceType>(team.tensors().kind), static_cast<c10::DeviceIndex>(team.tensors().index)};
}

template <Mesh M>
c10::Device device_of(const team<M>& workers) {
  return device_of(*workers.state());
}

namespace detail {

/// How the boxes of a team are made: where they lie, of which element.
inline at::TensorOptions options_of(const team_state& team, at::ScalarType type) {
  return at::TensorOptions(type).device(device_of(team));
}

/// Refuses a local tensor that is not this worker's box of the element type, on the team's device; says what the worker
/// does with it.
inline void check_local(const at::Tensor& local, const shared_layout& where, element e, const team_state& team) {
  const auto refuse = [&](const refusal& why, const std::string& more = {}) {
    const std::string does = text_of(team.doing());
    throw error(why, team.label() + (does.empty() ? "" : ": " + does) + more);
  };
  if (const refusal why = check_plain(local); !why.ok()) refuse(why);
  if (local._fw_grad(0).defined()) refuse(refusal{code::forward_mode});
  if (const c10::Device device = device_of(team); local.device() != device)
    refuse(refusal{code::wrong_device, static_cast<int>(local.device().type())},
           ": " + local.device().str() + " instead of " + device.str());
  if (const refusal why =
          first_of(check_element(e, local.scalar_type()), where.why(), check_combines(where.layout(), e));
      !why.ok())
    refuse(why);
  const box_vector& sizes = where.extents();
  if (local.dim() != sizes.count) refuse(refusal{code::ranks_differ, sizes.count, local.dim()});
  for (int d = 0; d < sizes.count; ++d)
    if (local.size(d) != sizes[d]) refuse(refusal{code::wrong_local_shape, d, sizes[d], local.size(d)});
}

}  // namespace detail
}  // namespace tessera
