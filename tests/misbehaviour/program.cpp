// Workers that misbehave as the first argument says; check.py sees how it ends under mpirun.
#include <tessera/comm/workers.hpp>

#include <cstring>

namespace ts = tessera;

struct line : ts::axis<3> {};
using grid = ts::mesh<line>;

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "well";
  const auto program = [&](ts::team<grid>& team) {
    ts::team_state& state = *team.state();
    state.agree(1);
    if (how == "well") return;
    if (team.rank() == 1) {
      if (how == "throws") throw std::runtime_error("out of paper");
      if (how == "leaves") return;
      if (how == "disagrees") return state.agree(2);
      if (how == "other") {  // another operation than the rest: a broadcast from the last worker
        ts::layout from;
        from.mesh = grid::value;
        from.roles.push({ts::role::on, 0, 0, ts::combine::sum, 2});
        ts::dimension d;
        d.extent = 1;
        from.dims.push(d);
        ts::layout to = from;
        to.roles[0] = {};
        ts::exchange& e = state.bound({ts::map::move, from, to, ts::combine::sum}, ts::element::float64);
        double in = 0;
        double out = 0;
        ts::region here{reinterpret_cast<std::byte*>(&in), ts::element::float64, {}, {}};
        here.extents.push(0);
        here.strides.push(1);
        ts::region there{reinterpret_cast<std::byte*>(&out), ts::element::float64, {}, {}};
        there.extents.push(1);
        there.strides.push(1);
        e.finish(state.carrier(), e.start(state.carrier(), here, there));
        return;
      }
    }
    state.agree(1);
  };
  ts::launch_options options;
  options.time_limit = std::chrono::seconds(20);
  return ts::run_workers<grid>(argc, argv, options, [](const ts::transport&) {}, program);
}
