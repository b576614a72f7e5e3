#pragma once

namespace tessera::engine {

/// What an option says, where it is not left to the layer.
template <class T>
class chosen {
 public:
  constexpr chosen() = default;
  constexpr chosen(const T& as) : said_(true), as_(as) {}

  constexpr bool said() const { return said_; }
  constexpr const T& as() const { return as_; }

 private:
  bool said_ = false;
  T as_{};
};

}  // namespace tessera::engine
