#pragma once

#include <tessera/meta/refusal.hpp>
#include <tessera/topology/element.hpp>

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace tessera {

/// What the library throws: a refusal at run time, with the code, numbers and sentence that the compiler would print.
class error : public std::runtime_error {
 public:
  explicit error(const refusal& why, std::string_view where = {}) : std::runtime_error(worded(why, where)), why_(why), where_(where) {}

  const refusal& why() const { return why_; }
  const std::string& where() const { return where_; }  ///< the place, the worker or the file that the text ends with
  const char* code() const { return words_of(why_.code).code; }

 private:
  // A number is a number, but an element type has a name; -1 is one that the library does not have.
  static std::string worded(std::string_view what, index_t n) {
    if (!what.ends_with("element")) return fmt::format("{}", n);
    return n < 0 ? "another" : name_of(static_cast<element>(n));
  }
  static std::string worded(const refusal& why, std::string_view where) {
    const refusal_words words = words_of(why.code);
    std::string text = fmt::format("[{}] {}", words.code, words.sentence);
    std::string_view names = words.numbers;
    std::string numbers;
    for (int i = 0; i < why.count; ++i) {
      const auto comma = names.find(", ");
      numbers += fmt::format("{}{} {}", i == 0 ? "" : ", ", names.substr(0, comma), worded(names.substr(0, comma), why.numbers[i]));
      names = comma == std::string_view::npos ? std::string_view{} : names.substr(comma + 2);
    }
    if (!numbers.empty()) text += " (" + numbers + ")";
    if (!where.empty()) text += fmt::format(" [{}]", where);
    return text;
  }

  refusal why_;
  std::string where_;
};

/// Throws unless the refusal accepts.
inline void check(const refusal& why, std::string_view where = {}) {
  if (!why.ok()) throw error(why, where);
}

}  // namespace tessera
