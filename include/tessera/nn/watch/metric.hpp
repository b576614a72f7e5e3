#pragma once

#include <tessera/tensor/operations.hpp>

#include <string_view>
#include <type_traits>

namespace tessera::nn {

/// A number of a run under a name: `{"loss", loss}`. A tensor is a scalar that all workers hold alike, as `item` reads
/// it; nothing moves.
struct metric {
  std::string_view name;
  double value = 0;

  template <class Number>
    requires std::is_arithmetic_v<Number>
  metric(std::string_view called, Number of) : name(called), value(static_cast<double>(of)) {}
  template <class Tensor>
    requires(!std::is_arithmetic_v<Tensor>)
  metric(std::string_view called, const Tensor& of) : name(called), value(static_cast<double>(item(of))) {}
};

}  // namespace tessera::nn
