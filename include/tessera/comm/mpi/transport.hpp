#pragma once

#include <tessera/comm/message/message_transport.hpp>
#include <tessera/comm/mpi/mailbox.hpp>
#include <tessera/comm/node/node_peers.hpp>
#include <tessera/comm/wait/spin_wait.hpp>

#include <boost/mpi/environment.hpp>

#include <limits>
#include <thread>

namespace tessera {

namespace engine {

class mpi_exchange;

}  // namespace engine

/// How boxes travel among processes.
struct mpi_options {
  std::uint64_t most_tags = std::numeric_limits<std::uint64_t>::max();  ///< of messages, whatever more MPI has
  index_t smallest_piece = index_t{1} << 20;  ///< terms of a Fold travel in pieces of so many bytes and more
  engine::shared_heap* heap = nullptr;        ///< that the node's processes read, if it is open
  int per_node = 0;                           ///< so many processes count as a node, instead of all of the machine
};

/// One worker a process, over any MPI that was started by any launcher: raw buffers, never serialisation.
class mpi_transport final : public engine::message_transport {
 public:
  explicit mpi_transport(const boost::mpi::communicator& world, const mpi_options& options = {})
      : engine::message_transport(world.rank(), world.size()),
        world_(world, boost::mpi::comm_duplicate),
        options_(options),
        mailbox_(world),
        node_(world, options.heap, options.per_node) {
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    int known = 0;
    int* highest = nullptr;
    MPI_Comm_get_attr(world_, MPI_TAG_UB, &highest, &known);
    if (known != 0) tags_ = static_cast<std::uint64_t>(*highest) - first_tag + 1;
    tags_ = std::min(tags_, options_.most_tags);
    crowded_ = static_cast<unsigned>(node_.on_machine()) > std::max(1u, std::thread::hardware_concurrency());
    if (crowded_ && !mpi_yields()) rest_ = detail::spin_wait::rest::yield;
  }

  ~mpi_transport() override {
    forget_agreements();
    for (const auto& n : left_behind_)
      if (!n->is_read()) n->stay();
  }

  static constexpr std::uint64_t agreement_tags = 1024;  ///< the first ones

  engine::transport_traits traits() const override { return {"mpi", false}; }

  /// Whether a worker reads this one's memory, and this one reads its.
  bool same_node(int worker) const { return node_.same_node(rank(), worker); }
  /// Why workers of this one's node do not read one another's memory, where they were to; the first one of the node
  /// knows.
  const std::string& shares_nothing() const { return node_.why(); }

  std::uint64_t offer(const engine::exchange_plan& plan) override {
    const bool any =
        std::any_of(plan.workers.begin(), plan.workers.end(), [this](int w) { return w != rank() && same_node(w); });
    return any ? detail::shared_slot::offer(*options_.heap, plan.workers.size()) : 0;
  }
  inline std::shared_ptr<engine::bound_exchange> bind(engine::exchange_plan plan) override;
  std::uint64_t most_exchanges() const override { return tags_ - agreement_tags; }
  std::uint64_t free_id(std::uint64_t from) const override {
    if (used_.size() == most_exchanges()) return 0;
    while (used_.contains(tag_of(from))) ++from;
    return from;
  }

 private:
  friend class engine::mpi_exchange;

  static constexpr int first_tag = 1;
  static constexpr std::chrono::milliseconds for_readers{5000};  // of a call that is given up

  // Whether MPI lets others go first when it finds nothing to do, as Open MPI does where processes are more than cores.
  static bool mpi_yields() {
    int level = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &level) != MPI_SUCCESS) return false;
    int index = 0;
    int numbers = 0;
    int value = 0;
    MPI_T_cvar_handle variable;
    if (MPI_T_cvar_get_index("mpi_yield_when_idle", &index) == MPI_SUCCESS &&
        MPI_T_cvar_handle_alloc(index, nullptr, &variable, &numbers) == MPI_SUCCESS) {
      MPI_T_cvar_read(variable, &value);
      MPI_T_cvar_handle_free(&variable);
    }
    MPI_T_finalize();
    return value != 0;
  }

  // Agreements between two workers are made one after the other, so that two of them may share a tag; other exchanges
  // have one each.
  int tag_of(std::uint64_t id) const {
    if ((id & engine::exchange_plan::agreement) != 0) return first_tag + static_cast<int>(id % agreement_tags);
    return first_tag + static_cast<int>(agreement_tags + id % (tags_ - agreement_tags));
  }

  void tell(int to, const detail::wait_message& m) override { mailbox_.post(to, m); }
  void read() override {
    for (detail::wait_message m; mailbox_.next(m);) detector_.hear(m);
  }
  inline detail::dependencies missing(std::uint64_t exchange, std::uint64_t sequence) const override;

  boost::mpi::communicator world_;
  mpi_options options_;
  // made before the node: what the last one left on its way may come to who has its place in MPI
  detail::mpi_mailbox<detail::wait_message> mailbox_;
  detail::node_map node_;
  std::uint64_t tags_ = 30000;
  bool crowded_ = false;
  detail::spin_wait::rest rest_ = detail::spin_wait::rest::none;  // of who waits
  unsigned posts_ = 0;
  std::set<int> used_;                           // tags
  std::vector<engine::mpi_exchange*> going_on_;  // that have calls which somebody has to go on with
  std::vector<std::vector<std::byte>> spare_;    // memory beside the tensors, from calls that ended
  std::vector<std::unique_ptr<engine::exchange_call>> given_up_;
  std::vector<const engine::mpi_exchange*> with_sources_;  // that are near
  // of exchanges that are gone: what their readers have not read
  std::vector<std::unique_ptr<detail::node_peers>> left_behind_;
};

}  // namespace tessera
