#include "tests/support/catch.hpp"

#include <tessera/comm/launch/transport_choice.hpp>

using namespace tessera;
using namespace tessera::engine;

TEST_CASE("what connects workers follows from how they were started and what the program asks for",
          "[refusal][runtime]") {
  const auto says = [](launcher by, int world, const std::string& asked, connections has,
                       const char* address = "here") {
    launch_environment e;
    e.by = by;
    e.world = world;
    e.address = address;
    try {
      const auto named = [&](const auto& one) { return one.first == asked; };
      const auto found = std::find_if(transport_names.begin(), transport_names.end(), named);
      for (const auto& [name, choice] : transport_names)
        if (choice == transport_of(e, found->second, has)) return std::string(name);
    } catch (const error& why) {
      return std::string(why.code());
    }
    return std::string();
  };
  constexpr connections nothing{}, mpi{true, false}, store{false, true}, both{true, true};
  const std::string no_way = "tessera.launch.processes", nowhere = "tessera.launch.meeting";
  for (const connections has : {nothing, mpi, store, both}) {
    CHECK(says(launcher::none, 1, "auto", has) == "in-process");
    CHECK(says(launcher::torchrun, 1, "auto", has) == "in-process");
    CHECK(says(launcher::torchrun, 4, "in-process", has) == "in-process");
    CHECK(says(launcher::none, 1, "mpi", has) == "mpi");
    CHECK(says(launcher::torchrun, 4, "auto", has) == (has.rendezvous ? "tcp" : no_way));
    CHECK(says(launcher::slurm, 4, "auto", has) == (has.mpi ? "mpi" : has.rendezvous ? "tcp" : no_way));
    CHECK(says(launcher::mpi, 1, "auto", has) == (has.mpi ? "mpi" : "in-process"));
    CHECK(says(launcher::mpi, 4, "tcp", has) == (has.rendezvous ? "tcp" : no_way));
    CHECK(says(launcher::mpi, 4, "tcp", has, "") == (has.rendezvous ? nowhere : no_way));
    CHECK(says(launcher::none, 1, "tcp", has) == (has.rendezvous ? nowhere : no_way));
  }
}
