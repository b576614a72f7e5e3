#include <tessera/comm/workers.hpp>

namespace ts = tessera;

struct line : ts::axis<3> {};

int main(int argc, char** argv) {
  ts::launch_options options;
  options.transport = ts::transport_choice::in_process;
  return ts::run_workers<ts::mesh<line>>(argc, argv, options, [](ts::team<ts::mesh<line>>& team) {
    const auto numbers = team.state()->collect(static_cast<std::uint64_t>(team.rank()) + 1);
    if (team.first()) fmt::print("{}\n", numbers[0] + numbers[1] + numbers[2]);
  });
}
