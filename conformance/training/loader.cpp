#include "subjects.hpp"

namespace conformance::training {

/// Which samples a worker reads: its part of each step's batch, as the library cuts a dimension.
task loader(reading& c) {
  const index_t samples = c.given().integer("samples");
  const index_t batch = c.given().integer("batch");
  const auto axes = c.given().at("cut_by").get<std::vector<std::string>>();
  const bool drop_last = c.given().flag("drop_last");
  if (batch < 1 || samples < 0 || c.worlds().size() != 1) throw unbuilt("a batch of nothing, or several worlds");
  const mesh_value& m = c.worlds().front().mesh();
  const index_t steps = drop_last ? samples / batch : (samples + batch - 1) / batch;
  json intervals = json::array();
  for (index_t step = 0; step < steps; ++step) {
    const index_t begin = step * batch;
    layout x = whole(m, {std::min(batch, samples - begin)});
    for (const std::string& name : axes) {
      const int a = m.find(kept_name(name));
      if (a < 0) throw unbuilt(fmt::format("the axis '{}' is none of the world", name));
      x.cut_by(0, a);
    }
    check(check(x));
    json each = json::array();
    for (int i = 0; i < m.size(); ++i) {
      const engine::interval mine = box_of(x, m.rank(m.at(i)))[0];
      each.push_back({begin + mine.lo, begin + mine.hi});
    }
    intervals.push_back(each);
  }
  c.compare("steps", steps);
  c.compare("intervals", intervals);
  return c.planned();
}

}  // namespace conformance::training
