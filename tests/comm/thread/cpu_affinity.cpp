#include "tests/support/catch.hpp"
#include "tests/support/in_workers.hpp"

#include <tessera/comm/thread/cpu_affinity.hpp>
#include <tessera/comm/workers.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

/// The cores that each worker of a launch may use, and a thread that it starts.
std::vector<std::vector<int>> cores_of_each(int workers, bool bound) {
  mesh_value row;
  row.axes.push({text{"worker"}, workers, 1});
  launch_options o = threads_only();
  o.binds_workers = bound;
  std::vector<std::vector<int>> all(static_cast<std::size_t>(workers));
  const int status = run_workers(0, nullptr, o, row, [&](const std::shared_ptr<transport>& carrier) {
    std::thread([&] { all[static_cast<std::size_t>(carrier->rank())] = detail::usable_cores(); }).join();
  });
  CHECK(status == 0);
  return all;
}

}  // namespace

TEST_CASE("workers that are threads share the cores that the process may use, each a part of its own", "[runtime]") {
  const std::vector<int> usable = detail::usable_cores();
  const int count = static_cast<int>(usable.size());
  for (const int workers : {1, 2, 3, 2 * count + 1}) {
    const std::vector<std::vector<int>> all = cores_of_each(workers, true);
    if (workers > count) {
      CHECK(all == std::vector(static_cast<std::size_t>(workers), usable));
      continue;
    }
    std::vector<int> together;
    for (const std::vector<int>& part : all) {
      CHECK(static_cast<int>(part.size()) >= count / workers);
      together.insert(together.end(), part.begin(), part.end());
    }
    CHECK(together == usable);
  }
  CHECK(detail::usable_cores() == usable);  // of the thread that launched them
}

TEST_CASE("workers go where they like when a launch says so", "[runtime]") {
  CHECK(cores_of_each(2, false) == std::vector(2, detail::usable_cores()));
}
