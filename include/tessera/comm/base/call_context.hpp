#pragma once

#include <tessera/meta/call_site.hpp>
#include <tessera/primitive/verb.hpp>
#include <tessera/topology/element.hpp>

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

/// Why a worker calls an exchange; calls for other reasons never meet.
enum class purpose : signed char { forward, backward, agreement, state };

namespace engine {

/// A change as messages name it: its verb and the global extents.
struct movement {
  verb how = verb::nothing;
  static_vector<index_t, max_dimensions> extents;

  constexpr movement() = default;
  constexpr movement(const layout& from, const layout& to) : how(verb_between(from, to)) {
    for (const dimension& d : from.dims) extents.push(d.extent);
  }
};

/// The work of one worker in a call: compared with that of the others, and put in words when they differ.
struct call_context {
  purpose why = purpose::forward;
  const char* name = nullptr;       ///< a literal: "making a network", or the name of a layer
  const movement* moves = nullptr;  ///< kept by who made the plan
  tessera::element element = tessera::element::float32;
  call_site at{};
  std::uint64_t number = 0;  ///< of the change among its team's; backward has the number of its forward
  /// of calls that begin in one order for themselves, in any among others: a number above 0, alike on all workers
  std::uint64_t order = 0;

  /// What must be alike for two calls to meet, beside the plan.
  constexpr std::uint64_t hash() const {
    return (name == nullptr ? 0 : text(name).hash) + static_cast<std::uint64_t>(why) + 4 * order;
  }
};

}  // namespace engine

/// A context in words: "backward of conv: all_gather of 33x64 float32 at train.cpp:17".
inline std::string text_of(const engine::call_context& a) {
  std::string words = a.why == purpose::backward ? "backward of " : "";
  if (a.name != nullptr) words += a.name;
  if (a.moves != nullptr && a.why != purpose::agreement) {
    const bool named = a.moves->how != verb::several && a.moves->how != verb::nothing;
    words += fmt::format("{}{} of ", a.name == nullptr ? "" : ": ", named ? engine::name_of(a.moves->how) : "change");
    for (const index_t& n : a.moves->extents)
      words += fmt::format("{}{}", &n == a.moves->extents.begin() ? "" : "x", n);
    words += fmt::format("{}{}", a.moves->extents.empty() ? "" : " ", engine::name_of(a.element));
  }
  if (a.at.file == nullptr) return words;
  const std::string_view file = a.at.file;
  return words + fmt::format(" at {}:{}", file.substr(file.rfind('/') + 1), a.at.line);
}

namespace engine {

/// The words for one of two workers, in an error about both.
inline std::string worker_text(int worker, std::string_view does) { return fmt::format("worker {}: {}", worker, does); }

/// The words of messages for what a worker does, or has done.
inline constexpr const char* launch_ended = "the launch that this team belongs to has ended";
inline constexpr const char* in_no_call = "in no call";
inline constexpr const char* has_ended = "its program ended";
inline constexpr const char* has_died = "its process ended";

}  // namespace engine

}  // namespace tessera
