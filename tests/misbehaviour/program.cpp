// Workers that misbehave as the first argument says; check.py sees how it ends under mpirun.
#include <tessera/comm/workers.hpp>

namespace ts = tessera;

struct line : ts::axis<3> {};
using grid = ts::mesh<line>;

namespace {

ts::layout numbers(ts::axis_role role, ts::index_t n = 3) {
  ts::layout x;
  x.mesh = grid::value;
  x.roles.push(role);
  ts::dimension d;
  d.extent = n;
  x.dims.push(d);
  return x;
}
ts::layout held_by(int worker) { return numbers(ts::held_on(worker)); }
ts::layout copied() { return numbers({}); }
ts::layout shared_out() { return numbers({ts::role::cut}); }

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

/// Starts an exchange of many numbers and throws before its end.
void give_up(ts::team_state& state) {
  ts::exchange e({ts::map::move, numbers({ts::role::cut}, 300'000), numbers({}, 300'000), ts::combine::sum}, state.rank(), ts::element::float64);
  std::vector<double> in(100'000);
  std::vector<double> out(300'000);
  const auto memory = [](std::vector<double>& at) {
    ts::region r{reinterpret_cast<std::byte*>(at.data()), ts::element::float64, {}, {}};
    r.extents.push(static_cast<ts::index_t>(at.size()));
    r.strides.push(1);
    return r;
  };
  const ts::in_flight call = e.start(state.carrier(), memory(in), memory(out));
  throw std::runtime_error("out of paper");
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
      if (how == "gives up") give_up(state);
      if (how == "goes on") try { give_up(state); } catch (const std::exception&) {}
      if (how == "leaves") return;
      if (how == "exits") std::exit(0);
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
