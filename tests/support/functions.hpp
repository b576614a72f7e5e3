#pragma once
// What tests of functions share: the lists of the library's functions as calls, LibTorch's functions by name, and a
// comparison of the two.

#include "tests/support/tensors.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

namespace tessera::testing::of_functions {

using namespace engine;

struct ox : axis<2> {};
struct oy : axis<3> {};
using world = mesh<ox, oy>;
struct tall : dyn {};

template <class E, class Shape, class... Entries>
using on_world = tensor<partition<world, Entries...>, Shape, E>;
/// The layout of a partition over these extents.
template <class... Entries>
layout lying(const std::vector<index_t>& extents) {
  layout x = tessera::detail::partition_draft<partition<world, Entries...>>::value.value;
  for (int d = 0; d < x.dims.count; ++d) x.dims[d].extent = extents[static_cast<std::size_t>(d)];
  return x;
}

/// Boxes even, uneven and empty, on one axis and on two.
inline std::vector<layout> ways() {
  return {lying<blocks<ox>, blocks<oy>>({7, 5}), lying<blocks<ox>, blocks<oy>>({1, 2}),
          lying<whole, blocks<oy, ox>>({3, 4}), lying<whole, whole, invariant<ox, oy>>({2, 3}),
          lying<whole, blocks<oy>, on<ox, 1>>({2, 4})};
}

inline at::Tensor numbers_for(const layout& x, at::ScalarType e, std::uint64_t salt) {
  const at::Tensor n = global_of(extents_of(x), numbers{salt}) * 2;
  return e == at::kBool ? n > 0 : at::isIntegralType(e, true) ? at::mul(n, 4).to(e) : n.to(e);
}

/// What LibTorch makes of whole tensors, its function found by name.
inline at::Tensor serial(const std::string& name, const std::vector<at::Tensor>& x) {
  if (name == "gelu_tanh") return at::gelu(x[0], "tanh");
  if (name == "threshold") return at::threshold(x[0], 0, 0);
  // the first derivative of its own has a sixth in float, and no derivative
  if (name == "hardsigmoid") return at::hardtanh(x[0] + 3, 0, 6) / 6;
  if (name == "softsign") return x[0] / (x[0].abs() + 1);
  std::optional<c10::OperatorHandle> found;
  for (const char* overload : {"", "Tensor", "Tensor_Tensor"})
    if (!found || found->schema().arguments().size() < x.size())
      found = c10::Dispatcher::singleton().findSchema({"aten::" + name, overload});
  if (!found) throw std::runtime_error("LibTorch has no " + name);
  std::vector<c10::IValue> stack(x.begin(), x.end());
  const auto& arguments = found->schema().arguments();
  for (std::size_t i = x.size(); i < arguments.size(); ++i) stack.push_back(arguments[i].default_value().value());
  found->callBoxed(stack);
  return stack[0].toTensor();
}

inline bool alike(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const double tolerance = a.scalar_type() == at::kDouble ? 1e-12 : a.scalar_type() == at::kFloat ? 1e-5 : 1e-2;
  return at::allclose(a.to(at::kDouble), b.to(at::kDouble), tolerance, tolerance, true);
}

struct case_of_one {
  std::string name;
  functions::engine::takes elements;
  functions::engine::gives result;
  functions::engine::saved saves;
  index_t more;  ///< boxes that its backward has at once besides
  tensor<dyn> (*call)(const tensor<dyn>&);
};
inline const std::vector<case_of_one> all_of_one {
#define TESSERA_CASE(function, kind, elements, result, saves, more, computed) \
  {#function,                                                                 \
   functions::engine::takes::elements,                                        \
   functions::engine::gives::result,                                          \
   functions::engine::saved::saves,                                           \
   more,                                                                      \
   [](const tensor<dyn>& x) { return tessera::function(x); }},
  TESSERA_FUNCTIONS_OF_ONE(TESSERA_CASE)
#undef TESSERA_CASE
};

struct case_of_two {
  std::string name;
  functions::engine::takes elements;
  functions::engine::gives result;
  functions::engine::saved saves;
  index_t more;  ///< boxes that its backward has at once besides
  tensor<dyn> (*call)(const tensor<dyn>&, const tensor<dyn>&);
};
inline const std::vector<case_of_two> all_of_two {
#define TESSERA_CASE(function, kind, elements, result, saves, more, computed) \
  {#function,                                                                 \
   functions::engine::takes::elements,                                        \
   functions::engine::gives::result,                                          \
   functions::engine::saved::saves,                                           \
   more,                                                                      \
   [](const tensor<dyn>& x, const tensor<dyn>& y) { return tessera::function(x, y); }},
  TESSERA_FUNCTIONS_OF_TWO(TESSERA_CASE)
#undef TESSERA_CASE
};

inline const std::vector<case_of_one> all_of_a_number {
#define TESSERA_CASE(function, called, kind, elements, result, saves, more, computed)           \
  {#function,                                                                                   \
   functions::engine::takes::elements,                                                          \
   functions::engine::gives::result,                                                            \
   functions::engine::saved::saves,                                                             \
   more,                                                                                        \
   [](const tensor<dyn>& x) {                                                                   \
     return functions::call(functions::function<functions::engine::number_kind::real>(0.5), x); \
   }},
  TESSERA_FUNCTIONS_OF_A_NUMBER(TESSERA_CASE)
#undef TESSERA_CASE
};

inline const std::vector<case_of_one> all_activations {
#define TESSERA_CASE(function, saves, more, ...) \
  {#function,                                    \
   functions::engine::takes::reals,              \
   functions::engine::gives::same,               \
   functions::engine::saved::saves,              \
   more,                                         \
   [](const tensor<dyn>& x) { return tessera::function(x); }},
  TESSERA_ACTIVATIONS_OF_A_NUMBER(TESSERA_CASE)
  TESSERA_ACTIVATIONS_OF_TWO_NUMBERS(TESSERA_CASE)
#undef TESSERA_CASE
};

inline constexpr at::ScalarType some_elements[]{at::kDouble, at::kFloat, at::kBFloat16, at::kLong, at::kBool};

/// The gradients of a scalar, in the layouts of cotangents.
inline std::vector<tensor<dyn>> gradients(const tensor<dyn>& of, const std::vector<tensor<dyn>>& x, bool twice) {
  std::vector<at::Tensor> leaves;
  for (const tensor<dyn>& one : x) leaves.push_back(one.local());
  const auto found = torch::autograd::grad({of.local()}, leaves, {tessera::detail::seed_of(of)}, true, twice, true);
  std::vector<tensor<dyn>> all;
  for (std::size_t i = 0; i < x.size(); ++i)
    all.push_back(tessera::detail::tensor_of(x[i].team(), cotangent(x[i].layout()),
                                             found[i].defined() ? found[i] : at::zeros_like(leaves[i])));
  return all;
}

/// The tensor with whole values where it had terms.
inline tensor<dyn> settled(const tensor<dyn>& y) {
  layout whole = y.layout();
  for (axis_placement& r : whole.placements)
    if (r.kind == placement::partial) r = {placement::invariant};
  return to(whole, y);
}

/// Holds f(x…) against whole tensors, on this worker: the values, and gradients of the first and second order of
/// tensors in double.
template <class Call, class Serial>
std::string differs(const team<world>& t, const std::string& name, const Call& call, const Serial& of_whole,
                    const std::vector<layout>& lie, const std::vector<at::Tensor>& whole_x, int orders = 2) {
  std::vector<tensor<dyn>> x;
  std::vector<at::Tensor> own;
  const bool floats = whole_x[0].scalar_type() == at::kDouble && orders > 0;
  for (std::size_t i = 0; i < lie.size(); ++i) {
    x.push_back(distribute(t, lie[i], whole_x[i]));
    own.push_back(whole_x[i].clone());
    if (!floats) continue;
    x.back().requires_grad();
    own.back().set_requires_grad(true);
  }
  const tensor<dyn> y = call(x);
  const at::Tensor wanted = of_whole(own);
  const std::string where = fmt::format("{} of {} {}: ", name, at::toString(whole_x[0].scalar_type()), shown(lie[0]));
  if (!alike(full_tensor(y), wanted.detach())) return where + "values";
  if (!floats || !wanted.requires_grad()) return "";
  const tensor<dyn> all_y = settled(y);
  const std::vector<tensor<dyn>> first = gradients(sum(all_y * all_y), x, true);
  std::vector<at::Tensor> first_wanted = torch::autograd::grad({at::square(wanted).sum()}, own, {}, true, true, true);
  at::Tensor bend = at::zeros({}, at::kDouble);
  std::vector<tensor<dyn>> bends;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!first_wanted[i].defined()) first_wanted[i] = at::zeros_like(own[i]);
    if (!alike(full_tensor(first[i]), first_wanted[i].detach())) return where + fmt::format("gradient {}", i);
    const tensor<dyn> g = to(x[i].layout(), first[i]);
    bend = bend + at::square(first_wanted[i]).sum();
    bends.push_back(sum(g * g));
  }
  if (orders < 2 || !bend.requires_grad()) return "";
  const std::vector<at::Tensor> second_wanted = torch::autograd::grad({bend}, own, {}, true, false, true);
  for (std::size_t i = 0; i < x.size(); ++i) {
    at::Tensor all = at::zeros_like(whole_x[i]);
    for (const tensor<dyn>& one : bends) all = all + full_tensor(gradients(one, x, false)[i]);
    if (second_wanted[i].defined() && !alike(all, second_wanted[i]))
      return where + fmt::format("second gradient {}", i);
  }
  return "";
}

inline std::string worst(const outcome<std::string>& all) {
  if (!all.well()) return all.errors();
  for (const auto& said : all.results)
    if (!said->empty()) return *said;
  return "";
}

}  // namespace tessera::testing::of_functions
