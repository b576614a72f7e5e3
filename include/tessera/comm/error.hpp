#pragma once

#include <tessera/comm/refusals.hpp>
#include <tessera/primitive/verb.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What the library throws: a refusal at run time, with the code, numbers and sentence that the compiler would print.
///
/// It owns its words and says them as a text, since it outlives what was refused, and in another process constants lie elsewhere.
class error : public std::runtime_error {
 public:
  explicit error(const refusal& why, std::string_view where = {})
      : error(worded(why), std::vector<index_t>(why.numbers, why.numbers + why.count), where) {}

  const char* code() const { return code_.c_str(); }
  bool is(const reason& why) const { return code_ == why.code; }
  const std::vector<index_t>& numbers() const { return numbers_; }
  const std::string& where() const { return where_; }  ///< the place, the worker or the file that the text ends with

  /// The same error, met elsewhere.
  error at(std::string_view where) const { return {says(), numbers_, where}; }

  /// The error as a text, from which another process makes it again; of one that was cut short only `where` is.
  std::string packed() const {
    std::string numbers;
    for (const index_t n : numbers_) numbers += fmt::format(" {}", n);
    return fmt::format("{}\n{}\n{}", numbers, says(), where_);
  }
  static error unpacked(std::string_view text) {
    std::vector<index_t> numbers;
    const char* at = text.data();
    const char* const end = at + text.find('\n');
    for (index_t n = 0; at < end; numbers.push_back(n)) at = std::from_chars(at + 1, end, n).ptr;
    text.remove_prefix(text.find('\n') + 1);
    const auto says = text.find('\n');
    return {text.substr(0, says), std::move(numbers), text.substr(says + 1)};
  }

 private:
  error(std::string_view says, std::vector<index_t> numbers, std::string_view where)
      : std::runtime_error(where.empty() ? std::string(says) : fmt::format("{} [{}]", says, where)),
        code_(says.substr(1, says.find(']') - 1)), numbers_(std::move(numbers)), where_(where) {}

  // What it says, less the place.
  std::string_view says() const {
    const std::string_view all = what();
    return where_.empty() ? all : all.substr(0, all.size() - where_.size() - 3);
  }

  // What is numbered has a name; -1 is none, or an element that the library does not have.
  static std::string worded(std::string_view name, index_t n) {
    if (name.ends_with("verb")) return name_of(static_cast<verb>(n));
    if (name.ends_with("element")) return n < 0 ? "another" : name_of(static_cast<element>(n));
    return n < 0 && name.ends_with("or none") ? "none" : fmt::format("{}", n);
  }
  static std::string worded(const refusal& why) {
    std::string told;
    int i = 0;
    for (std::string_view left = why.because->names; !left.empty();) {
      const std::string_view name = left.substr(0, left.find(", "));
      left.remove_prefix(std::min(left.size(), name.size() + 2));
      const std::string_view axis = why.axis.size == 0 ? "none" : std::string_view(why.axis.data, static_cast<std::size_t>(why.axis.size));
      if (name == "axis") told += fmt::format(", axis {}", axis);
      else if (i < why.count) told += fmt::format(", {} {}", name.substr(0, name.find(" or none")), worded(name, why.numbers[i++]));
    }
    const std::string all = fmt::format("[{}] {}", why.because->code, why.because->sentence);
    return told.empty() ? all : fmt::format("{} ({})", all, std::string_view(told).substr(2));
  }

  std::string code_;
  std::vector<index_t> numbers_;
  std::string where_;
};

/// Throws unless the refusal accepts.
inline void check(const refusal& why, std::string_view where = {}) {
  if (!why.ok()) throw error(why, where);
}

}  // namespace tessera
