#include "subjects.hpp"

#include <tessera/nn/data/batch_plan.hpp>

namespace conformance::training {

/// Which samples a worker reads of each step, as the library's loader asks for them.
task loader(reading& c) {
  const nn::engine::batch_plan plan{c.given().integer("samples"), c.given().integer("batch"),
                                    c.given().flag("drop_last")};
  const auto axes = c.given().at("cut_by").get<std::vector<std::string>>();
  if (plan.batch < 1 || plan.samples < 0 || c.worlds().size() != 1)
    throw unbuilt("a batch of nothing, or several worlds");
  const mesh_value& m = c.worlds().front().mesh();
  layout x = whole(m, {0});
  for (const std::string& name : axes) {
    const int a = m.find(kept_name(name));
    if (a < 0) throw unbuilt(fmt::format("the axis '{}' is none of the world", name));
    x.cut_by(0, a);
  }
  check(check(x));
  json intervals = json::array();
  for (index_t step = 0; step < plan.steps(); ++step) {
    json each = json::array();
    for (int i = 0; i < m.size(); ++i) {
      const engine::interval mine = nn::engine::positions_of(plan.of_step(step), x, m.rank(m.at(i)))[0];
      each.push_back({mine.lo, mine.hi});
    }
    intervals.push_back(each);
  }
  c.compare("steps", plan.steps());
  c.compare("intervals", intervals);
  return c.planned();
}

}  // namespace conformance::training
