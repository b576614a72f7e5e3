#pragma once

#include <tessera/meta/namespaces.hpp>

#include <cstdint>

namespace tessera {

/// A piece of text that lives as long as the program (a literal or a compiler's name of a type), with its hash.
///
/// Two texts are equal when their hashes are: names are compared often while compiling, and 64 bits (FNV-1a) tell them
/// apart.
struct text {
  const char* data = nullptr;
  int size = 0;
  std::uint64_t hash = 0;

  constexpr text() = default;
  constexpr text(const char* from, int length) : data(from), size(length), hash(14695981039346656037u) {
    for (int i = 0; i < length; ++i) hash = (hash ^ static_cast<unsigned char>(from[i])) * 1099511628211u;
  }
  constexpr explicit text(const char* from) : text(from, length_of(from)) {}

  friend constexpr bool operator==(const text& a, const text& b) { return a.hash == b.hash; }

 private:
  static constexpr int length_of(const char* from) {
    int n = 0;
    while (from[n] != '\0') ++n;
    return n;
  }
};

namespace detail {

/// The name that compilers print for `T`, with its namespaces.
template <class T>
constexpr text full_name_of() {
  const text all{__PRETTY_FUNCTION__};  // "... [with T = data]" (g++) or "... [T = data]" (clang)
  int from = 0;
  while (!(all.data[from] == 'T' && all.data[from + 1] == ' ' && all.data[from + 2] == '=')) ++from;
  from += 4;
  int to = from;
  for (int depth = 0; to < all.size; ++to) {
    const char c = all.data[to];
    if (c == '<' || c == '(') ++depth;
    if (c == '>' || c == ')') --depth;
    if (depth == 0 && (c == ']' || c == ';')) break;
  }
  return {all.data + from, to - from};
}

}  // namespace detail

namespace engine {

/// The last part of the name of `T`: `batch` for `app::batch`.
template <class T>
constexpr text short_name_of() {
  const text all = detail::full_name_of<T>();
  int from = 0;
  for (int i = 0, depth = 0; i < all.size; ++i) {
    if (all.data[i] == '<' || all.data[i] == '(') ++depth;
    if (all.data[i] == '>' || all.data[i] == ')') --depth;
    if (depth == 0 && all.data[i] == ':') from = i + 1;
  }
  return {all.data + from, all.size - from};
}

}  // namespace engine

}  // namespace tessera
