#pragma once

#include <tessera/comm/base/error.hpp>
#include <tessera/primitive/verb.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace tessera {

namespace detail {

// What is numbered has a name; -1 is none, or an element that the library does not have.
inline std::string worded(std::string_view name, index_t n) {
  if (name.ends_with("verb")) return name_of(static_cast<verb>(n));
  if (name.ends_with("element")) return n < 0 ? "another" : name_of(static_cast<element>(n));
  return n < 0 && name.ends_with("or none") ? "none" : fmt::format("{}", n);
}

inline std::string worded(const refusal& why) {
  std::string told;
  int i = 0;
  for (std::string_view left = why.because->names; !left.empty();) {
    const std::string_view name = left.substr(0, left.find(", "));
    left.remove_prefix(std::min(left.size(), name.size() + 2));
    const std::string_view axis =
        why.axis.size == 0 ? "none" : std::string_view(why.axis.data, static_cast<std::size_t>(why.axis.size));
    if (name == "axis") told += fmt::format(", axis {}", axis);
    else if (i < why.count)
      told += fmt::format(", {} {}", name.substr(0, name.find(" or none")), worded(name, why.numbers[i++]));
  }
  const std::string all = fmt::format("[{}] {}", why.because->code, why.because->sentence);
  return told.empty() ? all : fmt::format("{} ({})", all, std::string_view(told).substr(2));
}

}  // namespace detail

TESSERA_INLINE error::error(const refusal& why, std::string_view where)
    : error(detail::worded(why), std::vector<index_t>(why.numbers, why.numbers + why.count), where) {}

TESSERA_INLINE error::error(std::string_view says, std::vector<index_t> numbers, std::string_view where)
    : std::runtime_error(where.empty() ? std::string(says) : fmt::format("{} [{}]", says, where)),
      code_(says.substr(1, says.find(']') - 1)),
      numbers_(std::move(numbers)),
      where_(where) {}

TESSERA_INLINE std::string error::packed() const {
  std::string numbers;
  for (const index_t n : numbers_) numbers += fmt::format(" {}", n);
  return fmt::format("{}\n{}\n{}", numbers, says(), where_);
}

TESSERA_INLINE error error::unpacked(std::string_view text) {
  std::vector<index_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.find('\n');
  for (index_t n = 0; at < end; numbers.push_back(n)) at = std::from_chars(at + 1, end, n).ptr;
  text.remove_prefix(text.find('\n') + 1);
  const auto says = text.find('\n');
  return {text.substr(0, says), std::move(numbers), text.substr(says + 1)};
}

TESSERA_INLINE std::string_view error::says() const {
  const std::string_view all = what();
  return where_.empty() ? all : all.substr(0, all.size() - where_.size() - 3);
}

}  // namespace tessera
