#pragma once

namespace tessera::engine {

/// An option's value, unless it is left to the layer.
template <class T>
class setting {
 public:
  constexpr setting() = default;
  constexpr setting(const T& to) : is_set_(true), value_(to) {}

  constexpr bool is_set() const { return is_set_; }
  constexpr const T& value() const { return value_; }

 private:
  bool is_set_ = false;
  T value_{};
};

}  // namespace tessera::engine
