#pragma once

#include <tessera/comm/bound_exchange.hpp>

#include <boost/mpi/config.hpp>

#include <algorithm>

namespace tessera {

/// A call among processes and its messages: a box that is contiguous travels in place, others are packed; terms of a Fold are kept
/// beside each other until all are there. Requests last as long as the memory that they are for.
struct mpi_call final : exchange_call {
  static constexpr index_t largest_piece = index_t{1} << 30;         // MPI counts are int
  static constexpr std::size_t largest_kept = std::size_t{1} << 16;  // memory beside the tensors that a call keeps for the next one

  /// A message, in pieces; they last while its box lies at one place.
  struct letter {
    region box;               // in the tensor
    std::byte* at = nullptr;  // there if it is contiguous, else in the call's own memory
    std::size_t first = 0;    // of the call's requests
    std::size_t pieces = 1;
  };

  std::vector<std::byte> staging;
  bool staging_lent = false;  // by the transport, for this call alone
  region staged_in;           // the memory of the call before
  region staged_out;
  std::vector<letter> receives;  // as the plan has them
  std::vector<letter> sends;
  std::vector<MPI_Request> requests;
  std::vector<MPI_Status> statuses;
  bool posted = false;
  bool delivered = false;

  mpi_call(const exchange_plan& plan, int rank) {
    const auto add = [&](const std::vector<leg>& legs, std::vector<letter>& mail) {
      for (const leg& l : legs) {
        letter& x = mail.emplace_back();
        x.first = requests.size();
        x.pieces = l.peer == rank ? 0 : static_cast<std::size_t>(std::max<index_t>(1, (bytes_of_leg(plan, l) + largest_piece - 1) / largest_piece));
        requests.insert(requests.end(), x.pieces, MPI_REQUEST_NULL);
      }
    };
    add(plan.receives, receives);
    add(plan.sends, sends);
    statuses.resize(requests.size());
  }
  ~mpi_call() override {
    for (MPI_Request& r : requests)
      if (r != MPI_REQUEST_NULL) MPI_Request_free(&r);
  }

  static index_t bytes_of_leg(const exchange_plan& plan, const leg& l) { return count_of(l.extents) * bytes_of(plan.element); }

  /// Finds where each message lies, unless all memory is that of the call before.
  void stage(const exchange_plan& plan, std::vector<std::vector<std::byte>>& spare) {
    const auto same_memory = [](const region& a, const region& b) { return a.data == b.data && a.strides == b.strides; };
    if (same_memory(in, staged_in) && same_memory(out, staged_out) && !staging_lent) return;
    staged_in = in;
    staged_out = out;
    index_t bytes = 0;
    const auto place = [&](const std::vector<leg>& legs, std::vector<letter>& mail, const region& whole, bool in_place, auto&& keep) {
      for (std::size_t i = 0; i < legs.size(); ++i) {
        if (mail[i].pieces == 0) continue;
        mail[i].box = whole.part(legs[i].here, legs[i].extents);
        if (in_place && mail[i].box.contiguous()) {
          keep(mail[i], mail[i].box.data);
        } else {
          keep(mail[i], staging.data() + bytes);
          bytes += padded(bytes_of_leg(plan, legs[i]));
        }
      }
    };
    const auto all = [&](auto&& keep) {
      bytes = 0;
      place(plan.receives, receives, out, !plan.fold, keep);
      place(plan.sends, sends, in, true, keep);
    };
    all([](letter&, std::byte*) {});
    staging_lent = static_cast<std::size_t>(bytes) > largest_kept;
    if (staging.size() < static_cast<std::size_t>(bytes)) {
      if (staging_lent && !spare.empty()) {
        staging = std::move(spare.back());
        spare.pop_back();
      }
      if (staging.size() < static_cast<std::size_t>(bytes)) staging.resize(static_cast<std::size_t>(bytes));
    }
    all([&](letter& x, std::byte* at) {
      if (x.at == at) return;
      for (std::size_t p = x.first; p < x.first + x.pieces; ++p)
        if (requests[p] != MPI_REQUEST_NULL) MPI_Request_free(&requests[p]);
      x.at = at;
    });
  }

  /// Whether a request that was started is done, or none was.
  static bool is_done(MPI_Request request) {
    int done = 1;
    if (request != MPI_REQUEST_NULL) MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }
  bool came(const letter& x) const {
    for (std::size_t p = x.first; p < x.first + x.pieces; ++p)
      if (!is_done(requests[p])) return false;
    return true;
  }
  int test(int& done) { return MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses.data()); }

 private:
  static index_t padded(index_t bytes) { return (bytes + 63) / 64 * 64; }
};

}  // namespace tessera
