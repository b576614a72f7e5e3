#include "tests/support/tensors.hpp"

#include <tessera/comm/mpi/exchange.hpp>

#include "tests/support/elements.hpp"
#include "tests/support/everywhere.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

TEST_CASE("a box with gaps is one message, however few of a kind MPI can count", "[runtime]") {
  constexpr index_t none = -1;
  std::vector<index_t> tensor(600);
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<index_t>(i);
  region box{reinterpret_cast<std::byte*>(tensor.data() + 7), element::int64, {}, {}};
  std::vector<index_t> right{7};  // the elements in turn, whose values are their places
  for (const auto& [n, stride] : {std::pair{4, 120}, {5, 21}, {3, 1}, {2, 3}}) {
    box.extents.push(n);
    box.strides.push(stride);
    std::vector<index_t> finer;
    for (const index_t begin : right)
      for (index_t i = 0; i < n; ++i) finer.push_back(begin + i * stride);
    right = finer;
  }
  bool alike = true;
  for (const index_t most : {2, 3, 7, 1000}) {
    const mpi_box described(7 * 8, box, most);
    const mpi_box packed(0, box.packed_at(nullptr), most);
    std::vector<index_t> came(right.size(), none);
    std::vector<index_t> back(tensor.size(), none);
    MPI_Sendrecv(tensor.data() + described.offset / 8, described.count, described.type(), 0, 0, came.data(),
                 packed.count, packed.type(), 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Sendrecv(came.data(), packed.count, packed.type(), 0, 0, back.data() + described.offset / 8, described.count,
                 described.type(), 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    alike = alike && came == right;
    for (std::size_t i = 0; i < back.size(); ++i)
      alike = alike && back[i] == (std::count(right.begin(), right.end(), tensor[i]) > 0 ? tensor[i] : none);
  }
  CHECK(everywhere(boost::mpi::communicator(), alike));
}

TEST_CASE("every element moves and combines over MPI as it does between threads, to the bit", "[law][runtime]") {
  const boost::mpi::communicator ranks;
  const auto carrier = std::make_shared<mpi_transport>(ranks);
  std::string wrong = every_fold(*carrier) + every_move(*carrier);
  each_element([&]<class T>(T) {
    for (const combine with : combines) {
      if (!check_combine(with, tessera::engine::element_of<T>).ok()) continue;
      const std::vector<T> mine = folded<T>(*carrier, with);
      const auto threads =
          in_world(ranks.size(), [&](const std::shared_ptr<transport>& c) { return folded<T>(*c, with); });
      for (std::size_t i = 0; i < mine.size(); ++i)
        if (!threads.well() || !same_bytes<T>(mine[i], threads.of(ranks.rank())[i]))
          wrong += fmt::format("{} combine {} differs from threads; ", name_of(tessera::engine::element_of<T>),
                               static_cast<int>(with));
    }
  });
  const bool right = everywhere(ranks, wrong.empty());
  INFO(wrong);
  CHECK(right);
}
