#pragma once

#include <tessera/nn/parameter/state_dict.hpp>
#include <tessera/nn/refusals.hpp>

#include <algorithm>
#include <initializer_list>

namespace tessera::nn::engine {

/// Numbers by name, each a saved tensor without dimensions. A missing, superfluous or wrongly typed one is refused
/// before anything is read.
class small_state {
 public:
  struct named {
    const char* name;
    at::ScalarType element;
  };
  small_state(const state_dict& given, std::initializer_list<named> wanted) : given_(given) {
    for (const named& one : wanted) {
      const auto there = given.find(one.name);
      if (there == given.end()) refuse(fmt::format("{} is missing", one.name));
      const at::Tensor& t = there->second;
      if (!tessera::detail::readable(t) || t.dim() != 0 || t.scalar_type() != one.element)
        refuse(fmt::format("{} is {}", one.name, tessera::detail::described_tensor(t)));
    }
    if (given.size() == wanted.size()) return;
    for (const auto& [name, t] : given)
      if (std::none_of(wanted.begin(), wanted.end(), [&n = name](const named& one) { return n == one.name; }))
        refuse(name + " is unexpected");
  }

  /// One of those that were wanted.
  template <class Number>
  Number at(const char* name) const {
    return given_.at(name).template item<Number>();
  }
  [[noreturn]] static void refuse(const std::string& what) { throw error(refusal{code::other_numbers}, what); }

 private:
  const state_dict& given_;
};

}  // namespace tessera::nn::engine
