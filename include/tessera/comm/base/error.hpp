#pragma once

#include <tessera/comm/base/format_text.hpp>
#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/comm/refusals.hpp>
#include <tessera/topology/element.hpp>

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The exception that the library throws: a refusal at run time, with the code, numbers and sentence that the compiler
/// would print.
///
/// It owns its words and says them as a text, since it outlives what was refused, and in another process constants lie
/// elsewhere.
class error : public std::runtime_error {
 public:
  explicit error(const refusal& why, std::string_view where = {});

  const char* code() const { return code_.c_str(); }
  bool is(const reason& why) const { return code_ == why.code; }
  const std::vector<index_t>& numbers() const { return numbers_; }
  const std::string& where() const { return where_; }  ///< the place, the worker or the file that the text ends with

  /// The same error, met elsewhere.
  error at(std::string_view where) const { return {says(), numbers_, where}; }

  /// The error as a text, from which another process makes it again; of one that was cut short only `where` is.
  std::string packed() const;
  static error unpacked(std::string_view text);

 private:
  error(std::string_view says, std::vector<index_t> numbers, std::string_view where);

  // What it says, less the place.
  std::string_view says() const;

  std::string code_;
  std::vector<index_t> numbers_;
  std::string where_;
};

namespace engine {

/// Throws unless the refusal accepts.
inline void check(const refusal& why, std::string_view where = {}) {
  if (!why.ok()) throw error(why, where);
}
/// The same where a worker refuses: it says who it is.
template <class Worker>
  requires requires(const Worker& w) { std::string(w.label()); }
void check(const refusal& why, const Worker& worker) {
  if (!why.ok()) throw error(why, worker.label());
}

}  // namespace engine

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/comm/base/error_impl.hpp>
#endif
