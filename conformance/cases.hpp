#pragma once
// The file of cases: reads it, and keeps account of what was read of each case.

#include "trial.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <set>
#include <stdexcept>

namespace conformance {

using nlohmann::json;

/// The file is no JSON, or lacks a field.
struct malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The case asks for something that is not there yet.
struct unbuilt : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline const json& field(const json& of, const char* name, const std::string& where) {
  if (!of.is_object() || !of.contains(name)) throw malformed(fmt::format("{} lacks the field '{}'", where, name));
  return of.at(name);
}

/// As many threads as one machine starts.
inline constexpr int most_workers = 1024;

/// Named values of a case. What nobody asked for is known afterwards, so that nothing is passed over in silence.
class values {
 public:
  values() = default;
  explicit values(json all) : all_(std::move(all)) {}
  values(json all, const json& more) : values(std::move(all)) {
    if (more.is_object()) all_.update(more);
  }

  bool has(const std::string& name) {
    const bool there = all_.is_object() && all_.contains(name) && !all_.at(name).is_null();
    if (there || (all_.is_object() && all_.contains(name))) read_.insert(name);
    return there;
  }
  const json& at(const std::string& name) {
    if (!has(name)) throw unbuilt(fmt::format("the parameter '{}' is missing", name));
    return all_.at(name);
  }

  index_t integer(const std::string& name) { return get<index_t>(name); }
  integers list(const std::string& name) { return get<integers>(name); }
  std::string text(const std::string& name) { return get<std::string>(name); }
  bool flag(const std::string& name, bool otherwise = false) { return has(name) ? get<bool>(name) : otherwise; }

  /// One value for each of `count` dimensions; a single one serves them all.
  integers each(const std::string& name, std::size_t count, index_t otherwise) {
    if (!has(name)) return integers(count, otherwise);
    integers all = at(name).is_array() ? list(name) : integers(count, integer(name));
    if (all.size() != count)
      throw unbuilt(fmt::format("the parameter '{}' has {} entries, not {}", name, all.size(), count));
    return all;
  }

  std::vector<std::string> unread() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : all_.items())
      if (read_.count(name) == 0) names.push_back(name);
    return names;
  }
  const json& all() const { return all_; }

 private:
  /// Whether a number, or one of a list, is not whole.
  static bool fraction(const json& value) {
    return value.is_number_float() || (value.is_array() && std::any_of(value.begin(), value.end(), fraction));
  }

  template <class T>
  T get(const std::string& name) {
    const json& value = at(name);
    try {
      if (!fraction(value)) return value.get<T>();
    } catch (const json::exception&) {  // of another type, as a fraction is
    }
    throw unbuilt(fmt::format("the parameter '{}' is {}, which says nothing here", name, value.dump()));
  }

  json all_;
  std::set<std::string> read_;
};

/// One case of the file.
struct test_case {
  std::string id;
  std::string subject;
  std::string kind;
  int ranks = 0;  ///< how many workers it names, 0 where it names none
  values given;   ///< its parameters, and what all cases of its test have in common
  values check;
  json derived;   ///< numbers that follow: groups, halos, messages, local shapes
  json expected;  ///< likewise, from the source
};

/// Numbers of the file for whoever compares them; what nobody took was not compared.
inline json taken(json& numbers) { return std::exchange(numbers, json()); }

/// A field of a case that must be a text.
inline std::string text_field(const json& of, const char* name, const std::string& where) {
  const json& value = field(of, name, where);
  if (!value.is_string()) throw malformed(fmt::format("{}: the field '{}' is no text", where, name));
  return value.get<std::string>();
}

inline test_case read_case(const json& of, const std::string& where) {
  test_case c;
  c.id = text_field(of, "id", where);
  const std::string here = fmt::format("{}, case {}", where, c.id);
  c.subject = text_field(of, "subject", here);
  c.kind = text_field(of, "kind", here);
  const json& ranks = field(of, "ranks", here);
  if (!ranks.is_null() && (!ranks.is_number_integer() || ranks < 0 || ranks > most_workers))
    throw malformed(fmt::format("{}: the field 'ranks' is no number of workers up to {}", here, most_workers));
  c.ranks = ranks.is_null() ? 0 : ranks.get<int>();
  c.given = values(of.value("fixed", json::object()), field(of, "params", here));
  c.check = values(field(of, "check", here));
  c.derived = of.value("derived", json());
  c.expected = of.value("expected", json());
  return c;
}

/// All cases of a file, those of `extra` last.
inline std::vector<test_case> read_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw malformed(fmt::format("{}: cannot be opened", path));
  std::vector<test_case> all;
  try {
    const json file = json::parse(in);
    for (const char* name : {"conventions", "tolerances", "vocabulary"}) field(file, name, path);
    for (const char* name : {"cases", "extra"})
      if (!field(file, name, path).is_array())
        throw malformed(fmt::format("{}: the field '{}' is no list", path, name));
    for (const char* name : {"cases", "extra"})
      for (const json& one : file.at(name)) all.push_back(read_case(one, fmt::format("{}: {}", path, name)));
  } catch (const json::exception& e) {
    throw malformed(fmt::format("{}: {}", path, e.what()));
  }
  return all;
}

}  // namespace conformance
