#pragma once

#include <tessera/meta/verdict.hpp>
#include <tessera/primitive/refusals.hpp>

// Made by scripts/make_verdicts from primitive/refusals.hpp; a test holds the two against each other.

namespace tessera {

enum class verb : signed char;

namespace with {

template <index_t> struct map;
template <verb> struct found_verb;
template <verb> struct wanted_verb;

}  // namespace with

namespace verdicts {

template <class... Told> struct partitions_do_not_meet {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.compose.partition] what the first map delivers is not what the second takes; put a "
                  "repartition between them");
  }
};
template <class... Told> struct not_this_verb {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.verb.pair] this verb does not lead from the first partition to the second; name the verb "
                  "that does, or let `to` find it");
  }
};

}  // namespace verdicts

namespace detail {

template <> struct verdict_for<&code::partitions_do_not_meet> {
  template <class Why> using type = verdicts::partitions_do_not_meet<with::map<Why::number(0)>>;
};
template <> struct verdict_for<&code::not_this_verb> {
  template <class Why> using type = verdicts::not_this_verb<
      with::wanted_verb<static_cast<verb>(Why::number(0))>,
      with::found_verb<static_cast<verb>(Why::number(1))>>;
};

}  // namespace detail
}  // namespace tessera
