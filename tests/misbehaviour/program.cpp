// Workers that misbehave as the first argument says; check.py sees how it ends under mpirun.
#include <tessera/comm/workers.hpp>

namespace ts = tessera;

struct line : ts::axis<3> {};
using grid = ts::mesh<line>;

namespace {

ts::layout three_numbers(ts::axis_role role) {
  ts::layout x;
  x.mesh = grid::value;
  x.roles.push(role);
  ts::dimension d;
  d.extent = 3;
  x.dims.push(d);
  return x;
}
ts::layout held_by(int worker) { return three_numbers({ts::role::on, 0, 0, ts::combine::sum, worker}); }
ts::layout copied() { return three_numbers({}); }
ts::layout shared_out() { return three_numbers({ts::role::cut}); }

/// Carries three numbers from one layout to another.
void move_one(ts::team_state& state, const ts::layout& from, const ts::layout& to) {
  ts::exchange& e = state.bound({ts::map::move, from, to, ts::combine::sum}, ts::element::float64);
  double in[3]{};
  double out[3]{};
  const auto memory = [](double* at, const auto& extents) {
    ts::region r{reinterpret_cast<std::byte*>(at), ts::element::float64, extents, {}};
    r.strides.push(1);
    return r;
  };
  e.finish(state.carrier(), e.start(state.carrier(), memory(in, e.input_extents()), memory(out, e.output_extents())));
}

}  // namespace

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
      if (how == "other") return move_one(state, held_by(2), copied());
    }
    if (team.rank() == 2 && how == "last leaves") return;
    if (how == "slow") {  // the first worker waits for the last one, long after the middle one sent its part and ended
      if (team.rank() == 2) std::this_thread::sleep_for(std::chrono::seconds(2));
      return move_one(state, shared_out(), held_by(0));
    }
    state.agree(1);
  };
  ts::launch_options options;
  options.time_limit = std::chrono::seconds(20);
  return ts::run_workers<grid>(argc, argv, options, [](const ts::transport&) {}, program);
}
