#pragma once

#include <tessera/operation/program/program.hpp>

#include <string>

namespace tessera::detail {

/// The path of a place in a program: "encoder.2.0"; of one without a number, that of its scope.
inline std::string path_of(const program_scope* scopes, int scope, int number) {
  std::string path = number < 0 ? "" : std::to_string(number);
  for (; scope >= 0; scope = scopes[scope].parent) {
    const program_scope& s = scopes[scope];
    const std::string part =
        s.name.size > 0 ? std::string(s.name.data, static_cast<std::size_t>(s.name.size)) : std::to_string(s.number);
    path = path.empty() ? part : part + '.' + path;
  }
  return path;
}

/// The path of a node in the keys of the serial model.
template <class Record>
std::string path_of(const program_view<Record>& program, const program_node<Record>& node) {
  return path_of(program.scopes, node.scope, node.number);
}

/// The name of a layer at its path in messages.
inline std::string layer_at(const std::string& path, const char* name) {
  return path.empty() ? std::string(name) : "layer " + path + " (" + name + ")";
}

}  // namespace tessera::detail
