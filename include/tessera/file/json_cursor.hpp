#pragma once

#include <tessera/comm/base/error.hpp>
#include <tessera/file/refusals.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace tessera::engine::file {

/// JSON whose fields stay in the order in which they were written.
using json = nlohmann::ordered_json;

/// A value in a file and the path that leads to it, "p3.from.dims[0]", so that every fault says where it is.
class json_cursor {
 public:
  json_cursor(const json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const json& value() const { return *value_; }
  std::size_t size() const { return value_->size(); }
  bool has(const char* name) const { return value_->is_object() && value_->contains(name); }

  [[noreturn]] void fault(std::string_view says) const {
    throw error(refusal{code::file_misread}, fmt::format("{}: {}", path_, says));
  }

  /// A field that must be there.
  json_cursor at(const char* name) const {
    if (!value_->is_object()) fault("is no object");
    if (!value_->contains(name)) fault(fmt::format("lacks the field \"{}\"", name));
    return {(*value_)[name], path_ + "." + name};
  }
  json_cursor item(std::size_t i) const { return {(*value_)[i], fmt::format("{}[{}]", path_, i)}; }

  const json_cursor& list() const {
    if (!value_->is_array()) fault("is no list");
    return *this;
  }
  const json_cursor& object() const {
    if (!value_->is_object()) fault("is no object");
    return *this;
  }
  /// An object whose fields are all among `names`: a name that is written wrongly is not passed over.
  const json_cursor& only(std::initializer_list<std::string_view> names) const {
    for (const auto& [name, _] : object().value().items()) {
      bool known = false;
      for (std::string_view n : names) known = known || n == name;
      if (!known) fault(fmt::format("has a field \"{}\" that the format does not know", name));
    }
    return *this;
  }

  bool flag() const {
    if (!value_->is_boolean()) fault("is neither true nor false");
    return value_->get<bool>();
  }
  std::string word() const {
    if (!value_->is_string()) fault("is no string");
    return value_->get<std::string>();
  }
  double real() const {
    if (!value_->is_number()) fault("is no number");
    return value_->get<double>();
  }
  /// A whole number from `least` to `most`; products of two of them fit into 64 bits.
  std::int64_t number(std::int64_t least = std::numeric_limits<std::int32_t>::min(),
                      std::int64_t most = std::numeric_limits<std::int32_t>::max()) const {
    if (!value_->is_number_integer()) fault("is no whole number");
    const bool large = value_->is_number_unsigned() && value_->get<std::uint64_t>() > std::uint64_t{INT64_MAX};
    const std::int64_t n = large ? INT64_MAX : value_->get<std::int64_t>();
    if (large || n < least || n > most) fault(fmt::format("is not between {} and {}", least, most));
    return n;
  }

 private:
  const json* value_;
  std::string path_;
};

}  // namespace tessera::engine::file
