#pragma once

#include <tessera/file/layout.hpp>
#include <tessera/inspect/text.hpp>
#include <tessera/plan/check_transfer.hpp>

namespace planning {

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::engine::file;

/// One case of a plan file; where it is refused, `why` says so in words and the layouts are not to be used.
struct plan_case {
  json id;
  map what = map::move;
  int world = 0;
  index_t element_bytes = 0;
  layout from, to;
  std::string refused;  ///< the code, or empty
  std::string why;

  transfer plan() const { return {what, from, to}; }
};

/// A line of the answer names every worker.
inline constexpr std::int64_t most_workers = 10'000'000;

inline plan_case read_case(const json_cursor& here, lists& keep) {
  plan_case c;
  c.id = here.at("id").value();
  if (!c.id.is_string() && !c.id.is_number()) here.at("id").fault("is no string");
  const std::string what = here.at("map").word();
  if (what != "move" && what != "fold") here.at("map").fault("is neither move nor fold");
  c.what = what == "move" ? map::move : map::fold;
  c.world = static_cast<int>(here.at("world").number(0, most_workers));
  c.element_bytes = here.at("element_bytes").number(1);
  const json_cursor from = here.at("from"), to = here.at("to"), shape = here.at("shape").list();
  try {
    if (shape.size() > max_dimensions) refuse(shape, code::too_many, shape.size());
    std::vector<index_t> extents;
    index_t bytes = c.element_bytes * std::max(c.world, 1);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const index_t n = shape.item(d).number(INT64_MIN, INT64_MAX);
      if (n < 0) refuse(shape, code::extent_negative, d, n);
      if (n > 0 && !tessera::detail::product_fits(bytes, n)) refuse(shape, code::count_overflows, d, n);
      bytes *= std::max<index_t>(n, 1);
      extents.push_back(n);
    }
    const auto side = [&](const json_cursor& one, bool terms) {
      one.only({"mesh", "dims", "meaning"});
      return layout_reader(one, read_mesh(one.at("mesh"), c.world, keep), extents, terms, keep).value();
    };
    c.from = side(from, c.what == map::fold);
    c.to = side(to, false);
    hold(here, check_transfer(c.what, c.from, c.to));
  } catch (const error& refused) {
    if (refused.is(code::file_misread)) throw;
    c.refused = refused.code();
    c.why = refused.what();
  }
  return c;
}

/// All cases of a file: {"cases": [...]}, a list, or one case alone. Throws file_misread where it is none.
inline std::vector<plan_case> read_cases(const json& file, lists& keep) {
  const auto named = [](const json& one, const std::string& otherwise) {
    if (!one.is_object() || !one.contains("id")) return otherwise;
    return one["id"].is_string() ? one["id"].get<std::string>() : one["id"].dump();
  };
  if (file.is_object() && !file.contains("cases")) return {read_case(json_cursor(file, named(file, "case")), keep)};
  const json_cursor cases = file.is_object() ? json_cursor(file, "file").at("cases") : json_cursor(file, "file");
  std::vector<plan_case> all;
  for (std::size_t i = 0; i < cases.list().size(); ++i)
    all.push_back(
        read_case(json_cursor(cases.item(i).value(), named(cases.item(i).value(), fmt::format("cases[{}]", i))), keep));
  return all;
}

}  // namespace planning
