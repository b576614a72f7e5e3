#pragma once

#include <tessera/comm/mpi/exchange.hpp>

namespace tessera {

namespace engine {

/// The workers that have to begin the call: those whose box has not come. Messages of one worker come in the order of
/// its calls.
inline detail::dependencies mpi_exchange::missing(const mpi_call& c) const {
  dependencies all;
  if (peers_) peers_->each_missing(c, [&](int worker) { add(all, worker); });
  add_messages(all, c, plan().receives, 0, false);
  if (!open_.empty() && open_.front()->sequence <= c.sequence)
    add_messages(all, *open_.front(), plan().receives, 0, false);
  return all;
}

/// And who has not taken one, of this call or of one before it. Of a Fold further rounds are received when the first
/// are taken.
inline detail::dependencies mpi_exchange::needed(const mpi_call& c) const {
  dependencies all = missing(c);
  add_messages(all, c, plan().sends, plan().receives.size(), plan().fold);
  if (peers_) peers_->each_behind(c, [&](int worker, std::uint64_t behind) { add(all, worker, true, behind); });
  return all;
}

/// The workers whose terms a begun call still lacks. A Fold is taken when all terms are there, a box of a Move at once.
inline detail::dependencies mpi_exchange::missing(std::uint64_t sequence) const {
  const auto call =
      std::find_if(open_.begin(), open_.end(), [&](const mpi_call* c) { return c->sequence == sequence; });
  return call == open_.end() || !plan().fold ? dependencies() : missing(**call);
}

}  // namespace engine

inline detail::dependencies mpi_transport::missing(std::uint64_t exchange, std::uint64_t sequence) const {
  const auto e = std::find_if(going_on_.begin(), going_on_.end(),
                              [&](const engine::mpi_exchange* x) { return x->plan().id == exchange; });
  return e == going_on_.end() ? detail::dependencies() : (*e)->missing(sequence);
}

namespace engine {

inline void mpi_exchange::add(dependencies& all, int worker, bool reads, std::uint64_t behind) const {
  all.add(worker, [this](int peer) { return offers_else(peer); }, reads, behind);
}
inline void mpi_exchange::add_messages(dependencies& all, const mpi_call& c, const std::vector<box_transfer>& transfers,
                                       std::size_t request, bool reads) const {
  for (const box_transfer& l : transfers)
    if (!c.is_done(request++)) add(all, l.peer, reads);
}

/// Whether a worker offers what no call takes: a box that is here and not received, unless a call takes it later.
inline bool mpi_exchange::offers_else(int peer) const {
  const auto shown = [&](const mpi_exchange* e) { return e->peers_->shows(peer, e->begun_); };
  if (std::any_of(carrier_.with_sources_.begin(), carrier_.with_sources_.end(), shown)) return true;
  int here = 0;
  MPI_Status status;
  MPI_Iprobe(peer, MPI_ANY_TAG, carrier_.world_, &here, &status);
  const auto later = [&](const mpi_exchange* e) { return e->tag_ == status.MPI_TAG; };
  return here != 0 && std::none_of(carrier_.going_on_.begin(), carrier_.going_on_.end(), later);
}

}  // namespace engine

}  // namespace tessera
