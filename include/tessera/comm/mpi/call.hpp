#pragma once

#include <tessera/comm/exchange/bound_exchange.hpp>
#include <tessera/comm/mpi/box.hpp>
#include <tessera/comm/node/node_peers.hpp>

#include <array>

namespace tessera::engine {

/// A call among processes, and its messages to workers of other nodes. A box travels from its place in one tensor to
/// its place in the other. Terms of a Fold are kept until all have come. Small boxes are copied, which is quicker than
/// to describe them; their requests serve any tensor.
struct mpi_call final : exchange_call {
  /// A message: one end of it.
  struct letter {
    mpi_box travels{};  // in the tensor, or beside it
    bool beside = false;
    bool keeps = true;    // its request, for further calls from the same memory
    bool read = false;    // where it lies: only the place travels
    box_vector packed{};  // if beside: its strides there,
    common_rows rows{};   // how it is copied between the two, but for a term,
    index_t lies = 0;     // and where it begins in the tensor, in bytes
  };

  std::vector<letter> receives;  // as the plan has them
  std::vector<letter> sends;
  std::vector<MPI_Request> requests;  // of receives, then of sends
  std::vector<MPI_Status> statuses;
  std::vector<std::byte> beside;
  detail::node_peers::shown shows;  // to workers that are near
  bool posted = false;
  std::size_t rounds_begun = 0;  // whose receives are posted
  std::size_t rounds_taken = 0;  // whose boxes are where they belong
  bool all_came = false;         // of the messages, and all were sent
  bool again = false;            // what kept requests name lies where it lay in the call before

  static constexpr std::size_t at_once = 2;  // rounds under way

  mpi_call(const exchange_plan& plan, std::size_t rounds)
      : requests(plan.receives.size() + plan.sends.size(), MPI_REQUEST_NULL),
        statuses(requests.size()),
        rounds_(rounds) {}
  ~mpi_call() override {
    if (!posted) drop_requests();
  }

  /// Finds how each message travels, unless the tensors are strided as those of the call before; travels(worker) says
  /// to and from whom they go.
  template <class Travels>
  void describe(const exchange_plan& plan, Travels&& travels) {
    if (described_ && in.strides == strides_in_ && out.strides == strides_out_) return;
    described_ = true;
    lay_ = {};
    strides_in_ = in.strides;
    strides_out_ = out.strides;
    bytes_beside_ = 0;
    reads_in_place_ = writes_in_place_ = false;
    receives.clear();
    sends.clear();
    for (const box_transfer& l : plan.receives) {
      const std::size_t i = receives.size();
      const index_t before = bytes_beside_;
      receives.push_back(travels(l.peer) ? letter_of(out, l, plan.fold, false) : letter{});
      if (i % rounds_ < at_once) continue;
      receives[i].travels.offset = receives[i - at_once].travels.offset;
      bytes_beside_ = before;
    }
    for (const box_transfer& l : plan.sends)
      sends.push_back(travels(l.peer) ? letter_of(in, l, false, true) : letter{});
  }

  /// The memory beside the tensors: little is kept for the next call, much is lent for this one.
  void borrow(std::vector<std::vector<std::byte>>& spare) {
    const auto bytes = static_cast<std::size_t>(bytes_beside_);
    if (beside.size() >= bytes) return;
    if (bytes > largest_kept && !spare.empty()) {
      beside = std::move(spare.back());
      spare.pop_back();
    }
    if (beside.size() < bytes) beside.resize(bytes);
  }
  /// Looks whether requests that were kept serve again; if not, they go.
  void look_again() {
    const std::array<std::byte*, 3> now{reads_in_place_ ? in.data : nullptr, writes_in_place_ ? out.data : nullptr,
                                        beside.data()};
    again = now == lay_;
    if (again) return;
    lay_ = now;
    drop_requests();
  }
  void give_back(std::vector<std::vector<std::byte>>& spare) {
    if (beside.size() > largest_kept) spare.push_back(std::exchange(beside, {}));
  }

  /// Whether a request that was started is done, or none was.
  bool is_done(std::size_t request) const {
    int done = 1;
    if (requests[request] != MPI_REQUEST_NULL) MPI_Request_get_status(requests[request], &done, MPI_STATUS_IGNORE);
    return done != 0;
  }
  int test(int& done) {
    return MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses.data());
  }

 private:
  static constexpr std::size_t largest_kept = std::size_t{1} << 16;
  static constexpr index_t smallest_described = 4096;
  static constexpr index_t largest_inline = 256;  // so much is sent without a request, unless it is a kept one

  void drop_requests() {
    for (MPI_Request& r : requests)
      if (r != MPI_REQUEST_NULL) MPI_Request_free(&r);
  }

  letter letter_of(const region& tensor, const box_transfer& l, bool term, bool sent) {
    const region part = tensor.part(l.here, l.extents);
    letter x;
    x.lies = part.data - tensor.data;
    x.keeps = !sent || part.bytes() > largest_inline;
    x.beside = term || (part.bytes() < smallest_described && (x.keeps || !part.contiguous()));
    if (!x.beside) {
      if (x.keeps) (sent ? reads_in_place_ : writes_in_place_) = true;
      x.travels = {x.lies, part};
      return x;
    }
    const region packed = part.packed_at(nullptr);
    x.packed = packed.strides;
    x.travels = {bytes_beside_, packed};
    bytes_beside_ += (part.bytes() + 63) / 64 * 64;
    if (term) return x;
    const region& from = sent ? part : packed;
    const region& to = sent ? packed : part;
    x.rows = {l.extents, {from.strides.begin(), to.strides.begin()}};
    return x;
  }

  std::size_t rounds_;
  bool described_ = false;
  bool reads_in_place_ = false;   // a kept request has a place in the input
  bool writes_in_place_ = false;  // or in the output
  std::array<std::byte*, 3> lay_{};
  box_vector strides_in_;
  box_vector strides_out_;
  index_t bytes_beside_ = 0;
};

}  // namespace tessera::engine
