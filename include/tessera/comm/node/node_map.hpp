#pragma once

#include <tessera/comm/memory/shared_heap.hpp>

#include <boost/mpi/communicator.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace tessera::detail {

/// The processes that run on one node, and the heaps that they read of one another: all of a node's, or none.
class node_map {
 public:
  /// A process that has no heap to share, or whose system refuses that others see it, has its node share none.
  /// `per_node` processes count as a node of their own where it is not 0. All of the world call it.
  node_map(const boost::mpi::communicator& world, shared_heap* mine, int per_node) : mine_(mine) {
    const boost::mpi::communicator machine(split(world, MPI_COMM_TYPE_SHARED), boost::mpi::comm_take_ownership);
    on_machine_ = machine.size();
    const boost::mpi::communicator here = per_node == 0 ? machine : machine.split(machine.rank() / per_node);
    std::vector<int> ranks(static_cast<std::size_t>(here.size()));
    const int me = world.rank();
    MPI_Allgather(&me, 1, MPI_INT, ranks.data(), 1, MPI_INT, here);
    heaps_.resize(static_cast<std::size_t>(world.size()));
    nodes_.resize(heaps_.size());
    const bool shares = here.size() > 1 && map_all(here, ranks);
    const int node = shares ? ranks[0] : -1;
    MPI_Allgather(&node, 1, MPI_INT, nodes_.data(), 1, MPI_INT, world);
    if (!shares) forget();
  }
  node_map(const node_map&) = delete;
  node_map& operator=(const node_map&) = delete;
  ~node_map() { forget(); }

  int on_machine() const { return on_machine_; }
  /// The reason why processes of this node do not share memory though one wanted to; the first of them knows it.
  const std::string& why() const { return why_; }

  /// Whether two workers read one another's heaps.
  bool same_node(int a, int b) const {
    return std::max(at(a), at(b)) < nodes_.size() && nodes_[at(a)] >= 0 && nodes_[at(a)] == nodes_[at(b)];
  }

  shared_heap& heap() const { return *mine_; }
  /// Where this worker sees the heap of one that is near, and may read it.
  std::byte* heap_of(int worker) const { return heaps_[at(worker)].begin; }

 private:
  struct view {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
  };
  using words = std::array<char, 120>;

  static std::size_t at(int worker) { return static_cast<std::size_t>(worker); }
  static MPI_Comm split(MPI_Comm world, int type) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split_type(world, type, 0, MPI_INFO_NULL, &part);
    return part;
  }

  // Maps the heaps of all here; whether all could.
  bool map_all(const boost::mpi::communicator& here, const std::vector<int>& ranks) {
    const shared_heap::card mine = mine_ == nullptr ? shared_heap::card{} : mine_->address();
    std::vector<shared_heap::card> cards(ranks.size());
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, cards.data(), sizeof mine, MPI_BYTE, here);
    std::string why = mine_ == nullptr ? "" : mine_->why();
    bool all = mine_ != nullptr;
    for (std::size_t i = 0; i < cards.size() && all; ++i) {
      if (cards[i].bytes == 0) all = false;
      else if (static_cast<int>(i) != here.rank()) all = map(cards[i], heaps_[at(ranks[i])], why);
    }
    words given{};
    std::copy_n(why.begin(), std::min(why.size(), given.size() - 1), given.begin());
    std::vector<words> each(ranks.size());
    MPI_Allgather(given.data(), static_cast<int>(given.size()), MPI_CHAR, each.data(), static_cast<int>(given.size()),
                  MPI_CHAR, here);
    for (const words& w : each)
      if (why_.empty() && here.rank() == 0) why_ = w.data();
    int everybody = 0;
    const int i_do = all ? 1 : 0;
    MPI_Allreduce(&i_do, &everybody, 1, MPI_INT, MPI_MIN, here);
    return everybody != 0;
  }
  // Whoever may look at a process's files may open them; another one with its number, as other containers have, is not
  // taken for it.
  static bool map(const shared_heap::card& of, view& where, std::string& why) {
    const std::string path = "/proc/" + std::to_string(of.process) + "/fd/" + std::to_string(of.file);
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat is{};
    void* pages = MAP_FAILED;
    if (file >= 0 && fstat(file, &is) == 0) {
      errno = EINVAL;
      if (static_cast<std::uint64_t>(is.st_size) == of.bytes)
        pages = mmap(nullptr, of.bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, file, 0);
    }
    if (pages == MAP_FAILED) why = path + ": " + std::strerror(errno);
    if (file >= 0) close(file);
    if (pages == MAP_FAILED) return false;
    madvise(pages, of.bytes, MADV_DONTDUMP);
    where = {static_cast<std::byte*>(pages), of.bytes};
    if (*static_cast<const std::uint64_t*>(pages) == of.mark) return true;
    why = path + " is another process's";
    return false;
  }
  void forget() {
    for (view& v : heaps_)
      if (v.begin != nullptr) munmap(std::exchange(v.begin, nullptr), v.bytes);
  }

  shared_heap* mine_;
  int on_machine_ = 1;
  std::vector<view> heaps_;  // by worker
  std::vector<int> nodes_;   // the first worker of each one's, −1 where nothing is shared
  std::string why_;
};

}  // namespace tessera::detail
