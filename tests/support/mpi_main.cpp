// Runs the Catch2 session on every rank and ends all of them with the worst code.
//
// What a rank prints is kept back and shown in rank order: rank 0's always, another's when it failed. A rank that
// crashes, is ended by the launcher, or runs for more than TESSERA_TEST_SECONDS shows its own on the way out.

#define CATCH_CONFIG_RUNNER
#include <signal.h>
#include <unistd.h>

#include <boost/mpi/collectives/all_reduce.hpp>
#include <boost/mpi/collectives/gather.hpp>
#include <boost/mpi/communicator.hpp>
#include <boost/mpi/environment.hpp>
#include <boost/serialization/string.hpp>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace {

std::ostringstream transcript;
int this_rank = 0;

std::string headed(int rank, const std::string& text) { return "==== rank " + std::to_string(rank) + " ====\n" + text; }

// Catch2 puts handlers of its own in front of this one while tests run: they write the test's name and line first.
void show_and_end(int signal) {
  const std::string text = headed(this_rank, transcript.str());
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(128 + signal);
}

void too_late(int) { ::raise(SIGTERM); }

}  // namespace

int main(int argc, char** argv) {
  const boost::mpi::environment mpi(argc, argv, boost::mpi::threading::funneled);
  const boost::mpi::communicator world;
  this_rank = world.rank();
  for (const int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTERM}) ::signal(signal, show_and_end);
  ::signal(SIGALRM, too_late);
  if (const char* seconds = std::getenv("TESSERA_TEST_SECONDS"))
    ::alarm(static_cast<unsigned>(std::strtoul(seconds, nullptr, 10)));

  const std::vector<std::ostream*> streams{&std::cout, &std::cerr, &std::clog};
  std::vector<std::streambuf*> terminal;
  for (std::ostream* stream : streams) terminal.push_back(stream->rdbuf(transcript.rdbuf()));
  const int failed = Catch::Session().run(argc, argv);
  for (std::size_t i = 0; i < streams.size(); ++i) streams[i]->rdbuf(terminal[i]);

  std::vector<std::string> said;
  gather(world, world.rank() == 0 || failed != 0 ? transcript.str() : std::string(), said, 0);
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    if (!said[rank].empty()) std::cout << headed(static_cast<int>(rank), said[rank]);
  }
  return all_reduce(world, failed, boost::mpi::maximum<int>());
}
