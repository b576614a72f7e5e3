#pragma once
// One case of the fuzz of layers: a layer under options on tensors that lie anyhow, and a line of text that means it.

#include "shrink.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/in_workers.hpp"

#include <tessera/file/layout.hpp>
#include <tessera/topology/tensor_type.hpp>

#include <cmath>

namespace tessera::testing::fuzz {

using namespace engine;

/// A layer of a program, its options as files say them, and the tensors that go through it.
struct layer_case {
  std::string layer;
  file::json options = file::json::object();
  bool training = true;
  int memory = 0;          ///< how the operands' boxes lie in memory
  std::uint64_t salt = 1;  ///< of all values
  std::vector<tensor_value> operands;
};

/// The line that means a case: `conv {"out_channels":2,"kernel_size":[3]} train memory 0 salt 1 of double @0 a=2*1:V2.0
/// on 1 3 9 and int64 …`.
std::string text_of(const layer_case& c);
std::optional<layer_case> parse_layer(const std::string& line);

inline std::vector<const layout*> layouts_of(const layer_case& c) {
  std::vector<const layout*> all;
  for (const tensor_value& x : c.operands) all.push_back(&x.layout);
  return all;
}
inline std::vector<layout*> layouts_of(layer_case& c) {
  std::vector<layout*> all;
  for (tensor_value& x : c.operands) all.push_back(&x.layout);
  return all;
}

/// Whether the operands of a case are tensors.
bool legal(const layer_case& c);

/// Every layer that is tried, by name.
std::vector<std::string> layer_names();

/// A case of a layer.
layer_case roll_layer(const std::string& layer, dice& d);

/// What is wrong with a layer on a case, against the serial one: outputs, gradients, a step of the parameters, buffers;
/// or nothing. Counts what the layer refuses, which must be for a reason that its family lists, by one code on all
/// workers and with nothing changed.
std::string judge_layer(const layer_case& c, long& refused, const carried& over = by_itself);

/// The same of tensors on devices, over NCCL, with a machine of no devices behind them.
std::string judge_layer_on_devices(const layer_case& c, long& refused);

/// Whether a layer asks LibTorch for more than `peak_memory` counts, on any worker: its operands, what it gives, and
/// the gradients of both. Counts what is no case: layers that refuse, functions of tensors alone, and half types.
bool is_weighed(const std::string& layer);
std::string judge_memory(const layer_case& c, long& refused);

/// The case with numbers of another element; nothing where it has none.
std::optional<layer_case> of_element(layer_case c, element e);

/// What is wrong with a layer whose plan takes the elements of a case: that it then runs, forward and for derivatives
/// of every order, gives the elements that it planned, and in double and complex128 LibTorch's numbers, as far as
/// LibTorch goes.
std::string judge_orders(const layer_case& c);

/// Simpler options, for the shrinker: fewer, smaller, one dimension of a kernel less.
template <class With>
void each_simpler_option(const layer_case& c, const With& with) {
  using json = file::json;
  std::vector<std::string> names;
  std::size_t longest = 0;
  for (const auto& [name, value] : c.options.items()) {
    names.push_back(name);
    if (value.is_array()) longest = std::max(longest, value.size());
  }
  // A kernel slides over the last dimensions: each list loses one number, each operand that dimension.
  for (std::size_t i = 0; i < longest && longest > 1; ++i)
    with([&](layer_case& s) {
      for (json& value : s.options)
        if (value.is_array() && value.size() == longest) value.erase(i);
      for (tensor_value& x : s.operands)
        if (const int d = x.layout.dims.count - static_cast<int>(longest - i); d >= 0)
          detail::drop_dimension(x.layout, d);
    });
  for (const std::string& name : names) with([&](layer_case& s) { s.options.erase(name); });
  const auto smaller = [&](const json& value, auto&& put) {
    if (value.is_number_integer())
      for (index_t n : detail::nearer_to(value.get<index_t>(), value.get<index_t>() > 0 ? 1 : 0)) put(json(n));
    if (value.is_number_integer() && value.get<index_t>() == 1) put(json(0));
    if (value.is_number_float())
      for (double r : {1.0, 0.5, std::round(value.get<double>())}) put(json(r));
  };
  for (const std::string& name : names) {
    const json& value = c.options[name];
    smaller(value, [&](const json& less) { with([&](layer_case& s) { s.options[name] = less; }); });
    for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
      smaller(value[i], [&](const json& less) { with([&](layer_case& s) { s.options[name][i] = less; }); });
      if (value[i].is_string()) with([&](layer_case& s) { s.options[name].erase(i); });
    }
  }
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    if (const element e = c.operands[i].element;
        e == element::float16 || e == element::bfloat16 || e == element::float32)
      with([&](layer_case& s) { s.operands[i].element = element::float64; });
  with([](layer_case& s) { s.training = true; });
  with([](layer_case& s) { s.memory = 0; });
  with([](layer_case& s) { s.salt = 1; });
}

}  // namespace tessera::testing::fuzz
