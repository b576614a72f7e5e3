#pragma once

#include <boost/mpi/communicator.hpp>

#include <memory>
#include <vector>

namespace tessera::detail {

/// Messages of one plain type between the processes of a communicator: sending waits for nobody, and reading takes what
/// is there.
///
/// Unread messages of an earlier mailbox are never taken for this one's: each mailbox has a number, which is the
/// messages' tag.
template <class Message>
class mpi_mailbox {
 public:
  explicit mpi_mailbox(const boost::mpi::communicator& among) : world_(among, boost::mpi::comm_duplicate) {
    static int made = 0;
    number_ = made++ % 30000;
    MPI_Bcast(&number_, 1, MPI_INT, 0, world_);
  }
  mpi_mailbox(const mpi_mailbox&) = delete;
  mpi_mailbox& operator=(const mpi_mailbox&) = delete;
  ~mpi_mailbox() {
    drop_sent();
    for (sent& s : sent_) {  // nobody will take it: its memory stays
      MPI_Request_free(&s.request);
      static_cast<void>(s.message.release());
    }
  }

  void post(int to, const Message& message) {
    drop_sent();
    sent_.push_back({std::make_unique<Message>(message), MPI_REQUEST_NULL});
    MPI_Isend(sent_.back().message.get(), sizeof(Message), MPI_BYTE, to, number_, world_, &sent_.back().request);
  }

  /// Takes the next message, from anybody; false if none is here.
  bool next(Message& message) {
    int here = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, number_, world_, &here, &status);
    if (here != 0) MPI_Recv(&message, sizeof(Message), MPI_BYTE, status.MPI_SOURCE, number_, world_, MPI_STATUS_IGNORE);
    return here != 0;
  }

 private:
  struct sent {
    std::unique_ptr<Message> message;
    MPI_Request request;
  };

  void drop_sent() {
    std::erase_if(sent_, [](sent& s) {
      int done = 0;
      MPI_Test(&s.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
  }

  boost::mpi::communicator world_;
  int number_ = 0;
  std::vector<sent> sent_;
};

}  // namespace tessera::detail
