#pragma once

#include <tessera/comm/mpi_mailbox.hpp>
#include <tessera/comm/near_workers.hpp>
#include <tessera/comm/patience.hpp>
#include <tessera/comm/transport.hpp>
#include <tessera/comm/waiting.hpp>

#include <boost/mpi/environment.hpp>

#include <limits>
#include <thread>

namespace tessera {

class mpi_exchange;

/// How boxes travel among processes.
struct mpi_options {
  std::uint64_t most_tags = std::numeric_limits<std::uint64_t>::max();  ///< of messages, whatever more MPI has
  index_t smallest_piece = index_t{1} << 20;  ///< terms of a Fold travel in pieces of so many bytes and more
  node_heap* heap = nullptr;                  ///< that the node's processes read, if it is open
  int per_node = 0;                           ///< so many processes count as a node, instead of all of the machine
};

/// One worker a process, over any MPI that was started by any launcher: raw buffers, never serialisation.
class mpi_transport final : public transport {
 public:
  explicit mpi_transport(const boost::mpi::communicator& world, const mpi_options& options = {})
      : world_(world, boost::mpi::comm_duplicate),
        rank_(world.rank()),
        size_(world.size()),
        options_(options),
        mailbox_(world),
        node_(world, options.heap, options.per_node),
        waiting_(
            rank_, size_, [this](int to, const detail::wait_message& m) { mailbox_.post(to, m); },
            [this] { return needs_(); }) {
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    int known = 0;
    int* highest = nullptr;
    MPI_Comm_get_attr(world_, MPI_TAG_UB, &highest, &known);
    if (known != 0) tags_ = static_cast<std::uint64_t>(*highest) - first_tag + 1;
    tags_ = std::min(tags_, options_.most_tags);
    crowded_ = static_cast<unsigned>(node_.on_machine()) > std::max(1u, std::thread::hardware_concurrency());
    if (crowded_ && !mpi_yields()) rest_ = detail::patience::rest::yield;
  }

  ~mpi_transport() override {
    for (const auto& n : left_behind_) n->stay();
  }

  static constexpr std::uint64_t agreement_tags = 1024;  ///< the first ones

  transport_traits traits() const override { return {"mpi", false}; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  /// Whether a worker reads this one's memory, and this one reads its.
  bool near(int worker) const { return node_.near(rank_, worker); }
  /// Why workers of this one's node do not read one another's memory, where they were to; the first one of the node knows.
  const std::string& shares_nothing() const { return node_.why(); }

  bool ended() const override { return waiting_.ended(); }
  std::optional<error> failure() const override { return waiting_.failure(); }
  void listen() override {
    next_look_ = clock::now() + a_while;
    read();
    if (waiting_.failure()) throw *waiting_.failure();
  }

  std::uint64_t offer(const exchange_plan& plan) override {
    const bool any = std::any_of(plan.workers.begin(), plan.workers.end(), [this](int w) { return w != rank_ && near(w); });
    return any ? detail::board::offer(*options_.heap, plan.workers.size()) : 0;
  }
  inline std::shared_ptr<bound_exchange> bind(exchange_plan plan) override;
  std::uint64_t most_exchanges() const override { return tags_ - agreement_tags; }
  std::uint64_t free_id(std::uint64_t from) const override {
    if (used_.size() == most_exchanges()) return 0;
    while (used_.contains(tag_of(from))) ++from;
    return from;
  }

  /// This worker's program threw: all others stop with the same error. Whether this one is to say it; a lower worker that
  /// computes and hears nothing is not waited for any longer than some seconds.
  bool abandon(const error& why) {
    read();
    if (!waiting_.failure()) waiting_.stop(why);
    for (const auto until = clock::now() + for_answers; !waiting_.settled() && clock::now() < until; read())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return !waiting_.failed_elsewhere();
  }

  /// Tells all others that this worker's program ended, and waits until they have ended too: one that stays silent is stuck.
  void leave() {
    waiting_.end();
    int watched = -1;
    std::uint64_t heard = 0;
    auto until = detail::deadline_after(time_limit);
    auto next_hail = clock::now();
    for (int other; (other = waiting_.still_runs()) >= 0; listen()) {
      if (other != watched || waiting_.heard_of(other) != heard) {
        watched = other;
        heard = waiting_.heard_of(other);
        until = detail::deadline_after(time_limit);
      }
      if (clock::now() > until)
        waiting_.fail(refusal{code::time_limit, rank(), other, time_limit.count()}, told(rank(), has_ended) + "; " + told(other, in_no_call));
      if (clock::now() > next_hail) {
        next_hail = clock::now() + a_while;
        waiting_.hail(other);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

 private:
  friend class mpi_exchange;
  friend class mpi_wait;

  using clock = std::chrono::steady_clock;
  static constexpr int first_tag = 1;
  static constexpr std::chrono::milliseconds a_moment{1};        // between two looks at the mailbox
  static constexpr std::chrono::milliseconds a_while{200};       // after which a worker that waits asks
  static constexpr std::chrono::milliseconds for_readers{5000};  // of a call that is given up
  static constexpr std::chrono::milliseconds for_answers{2000};  // of all that hear: who gives none computes, or is stuck

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

  // Agreements between two workers are made one after the other, so that two of them may share a tag; other exchanges have one each.
  int tag_of(std::uint64_t id) const {
    if ((id & exchange_plan::agreement) != 0) return first_tag + static_cast<int>(id % agreement_tags);
    return first_tag + static_cast<int>(agreement_tags + id % (tags_ - agreement_tags));
  }

  void read() {
    for (detail::wait_message m; mailbox_.next(m);) waiting_.hear(m);
  }

  boost::mpi::communicator world_;
  int rank_;
  int size_;
  mpi_options options_;
  detail::mpi_mailbox<detail::wait_message> mailbox_;  // made before the node: what the last one left on its way may come to who has its place in MPI
  detail::mpi_node node_;
  std::function<std::vector<detail::waiting::need>()> needs_;  // of the call that this worker waits in
  detail::waiting waiting_;
  clock::time_point next_look_;
  std::uint64_t tags_ = 30000;
  bool crowded_ = false;
  detail::patience::rest rest_ = detail::patience::rest::none;  // of who waits
  unsigned posts_ = 0;
  bool stopped_ = false;  // it gave up a call, and begins nothing more
  std::set<int> used_;  // tags
  std::vector<mpi_exchange*> going_on_;  // that have calls which somebody has to go on with
  std::vector<std::vector<std::byte>> spare_;  // memory beside the tensors, from calls that ended
  std::vector<std::unique_ptr<exchange_call>> given_up_;
  std::vector<const mpi_exchange*> with_sources_;                       // that are near
  std::vector<std::unique_ptr<detail::near_workers>> left_behind_;      // of exchanges that are gone: what their readers have not read
};

}  // namespace tessera
