#include "tests/support/tensors.hpp"

#include "tests/support/elements.hpp"
#include "tests/support/everywhere.hpp"

using namespace tessera;
using namespace tessera::testing;

TEST_CASE("every element moves and combines over MPI as it does between threads, to the bit") {
  const boost::mpi::communicator ranks;
  const auto carrier = std::make_shared<mpi_transport>(ranks);
  std::string wrong = every_fold(*carrier) + every_move(*carrier);
  each_element([&]<class T>(T) {
    for (const combine with : combines) {
      if (!check_combine(with, tessera::element_of<T>).ok()) continue;
      const std::vector<T> mine = folded<T>(*carrier, with);
      const auto threads = in_world(ranks.size(), [&](const std::shared_ptr<transport>& c) {
        return folded<T>(*c, with);
      });
      for (std::size_t i = 0; i < mine.size(); ++i)
        if (!threads.well() || !same_bytes<T>(mine[i], threads.of(ranks.rank())[i]))
          wrong += fmt::format("{} combine {} differs from threads; ", name_of(tessera::element_of<T>), static_cast<int>(with));
    }
  });
  const bool right = everywhere(ranks, wrong.empty());
  INFO(wrong);
  CHECK(right);
}
