#pragma once

#include <cstddef>
#include <type_traits>

namespace tessera::detail {

/// The count of a table whose length only run time knows.
inline constexpr int at_run_time = -1;

/// Something of each node or value, and of one more: in place where a type says how many, for constants. At run time
/// it is a `std::vector`, which `nn/network/program_memory.hpp` says.
template <class T, int Count>
struct numbered_as {
  using type = T[Count + 1];
};
template <class T, int Count>
using numbered = typename numbered_as<T, Count>::type;

/// Makes room for so many in tables.
template <class... Table>
constexpr void make_room(int count, Table&... tables) {
  const auto each = [count](auto& table) {
    if constexpr (!std::is_array_v<std::remove_reference_t<decltype(table)>>)
      table.resize(static_cast<std::size_t>(count) + 1);
  };
  (each(tables), ...);
}

}  // namespace tessera::detail
