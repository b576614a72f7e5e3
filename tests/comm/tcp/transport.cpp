#include "tests/support/by_sockets.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/flights.hpp"

#include <sstream>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// What workers with connections do that others cannot: strangers call them, and their other ends go. What must hold on
// every transport is asked of them in the other files.

namespace {

using tessera::detail::tcp_address;
using tessera::detail::tcp_connection;
using tessera::detail::tcp_frame;
using tessera::detail::tcp_meeting;
using tessera::detail::tcp_socket;

/// Somebody who found the port of a worker.
class stranger {
 public:
  explicit stranger(const std::string& text) {
    std::istringstream words(text);
    std::string host;
    int port = 0;
    words >> host >> port;
    const tcp_address there(host, port);
    const int own = ::socket(there.family(), SOCK_STREAM, 0);
    REQUIRE(::connect(own, there.get(), there.size) == 0);
    line_ = tcp_socket(own);
  }
  void say(const std::vector<char>& words) {
    iovec all{const_cast<char*>(words.data()), words.size()};
    static_cast<void>(line_.send({&all, 1}));
  }

 private:
  tcp_socket line_;
};

std::vector<char> noise(std::size_t n) {
  std::vector<char> bytes(n);
  dice d{n};
  for (char& b : bytes) b = static_cast<char>(d.roll(0, 255));
  return bytes;
}

/// What is wrong on workers that meet so, with exchanges of every kind.
std::string meets(int size, const rendezvous& meet) {
  std::vector<std::string> wrong(static_cast<std::size_t>(size));
  in_new_threads(size, [&](int r) {
    const auto carrier = std::make_shared<tcp_transport>(started_as(r, size), meet, std::chrono::seconds{20});
    wrong[static_cast<std::size_t>(r)] = every_beginning(*carrier);
    carrier->leave();
  });
  std::string all;
  for (const std::string& w : wrong) all += w;
  return all;
}

/// The code of what a worker with another one meets, whose end of the connection is in the hands of `other`.
template <class Other>
std::string beside(Other&& other) {
  in_memory_store store(2);
  const auto meet = [&](const launch_environment& started, const std::string& mine, std::chrono::seconds) {
    return store.gather(started.rank, mine);
  };
  std::string met;
  in_new_threads(2, [&](int r) {
    if (r == 1) {
      std::vector<tcp_socket> lines = tcp_meeting(started_as(1, 2), meet, std::chrono::seconds{20}).connections();
      return other(std::move(lines[0]));
    }
    const auto carrier = std::make_shared<tcp_transport>(started_as(0, 2), meet, std::chrono::seconds{20});
    exchange_plan plan(gathered(2, 8), 0, element::float64, {});
    plan.id = 7;
    const auto e = carrier->bind(std::move(plan));
    std::vector<double> in(4);
    std::vector<double> out(8);
    const auto memory = [](std::vector<double>& data) {
      region m{reinterpret_cast<std::byte*>(data.data()), element::float64, {}, {}};
      m.extents.push(static_cast<index_t>(data.size()));
      m.strides.push(1);
      return m;
    };
    try {
      e->start(memory(in), memory(out)).finish();
    } catch (const error& why) {
      met = why.what();
      carrier->abandon(why);
      carrier->hang_up();
    }
  });
  return met;
}

/// Everything that a connection has to say, and no end.
void write_all(const tcp_socket& line, const void* data, std::size_t bytes) {
  iovec all{const_cast<void*>(data), bytes};
  REQUIRE(line.send({&all, 1}) == static_cast<std::ptrdiff_t>(bytes));
}

}  // namespace

TEST_CASE(
    "strangers that say nothing, little, anything or the wrong word neither stop workers that meet nor hold them up",
    "[runtime]") {
  for (const int size : {2, 4}) {
    std::vector<std::unique_ptr<stranger>> all;
    in_memory_store store(size, [&](const std::vector<std::string>& texts) {
      for (const std::string& t : texts) {
        for (const std::size_t n : {0, 1, 23, 24, 25, 1000}) {
          all.push_back(std::make_unique<stranger>(t));
          all.back()->say(noise(n));
        }
        stranger(t).say(noise(7));                          // and goes
        for (std::int64_t rank = 0; rank < size; ++rank) {  // as a worker does, but for the word
          const std::array<std::uint64_t, 3> greeting{0x31617265'73736574, 1, static_cast<std::uint64_t>(rank)};
          std::vector<char> bytes(sizeof(greeting));
          std::memcpy(bytes.data(), greeting.data(), bytes.size());
          all.push_back(std::make_unique<stranger>(t));
          all.back()->say(bytes);
        }
      }
    });
    const auto began = std::chrono::steady_clock::now();
    CHECK(meets(size, [&](const launch_environment& started, const std::string& mine, std::chrono::seconds) {
            return store.gather(started.rank, mine);
          }) == "");
    CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds{10});
  }
}

TEST_CASE("a worker that never comes, and one that cannot be reached, is named within the time limit", "[refusal]") {
  const auto code_of = [](int port, std::chrono::seconds limit, int rank) {
    const auto meet = [&](const launch_environment&, const std::string& mine, std::chrono::seconds) {
      std::vector<std::string> texts(2, fmt::format("127.0.0.1 {} 1", port));
      texts[static_cast<std::size_t>(rank)] = mine;
      return texts;
    };
    try {
      tcp_transport carrier(started_as(rank, 2), meet, limit);
    } catch (const error& e) {
      return std::string(e.code()) + fmt::format(" {} {}", e.numbers()[0], e.numbers()[1]);
    }
    return std::string();
  };
  CHECK(code_of(1, std::chrono::seconds{1}, 0) == "tessera.agree.time 0 1");
  CHECK(code_of(1, std::chrono::seconds{20}, 1) == "tessera.agree.lost 1 0");  // nobody listens there
}

TEST_CASE("what the rendezvous does not give is told with a code", "[refusal]") {
  const auto code_of = [](launch_environment started, const std::vector<std::string>& texts) {
    try {
      tcp_transport carrier(
          started, [&](const launch_environment&, const std::string&, std::chrono::seconds) { return texts; },
          std::chrono::seconds{1});
    } catch (const error& e) {
      return std::string(e.code());
    }
    return std::string();
  };
  CHECK(code_of(started_as(0, 2), {"127.0.0.1 1 1"}) == "tessera.launch.connection");
  CHECK(code_of(started_as(0, 2), {"nonsense", "127.0.0.1 1 1"}) == "tessera.launch.connection");
  CHECK(code_of(started_as(0, 1), {"127.0.0.1 1 1"}).empty());
  launch_environment nowhere = started_as(0, 2);
  nowhere.address = "no.such.host.invalid";
  CHECK(code_of(nowhere, {}) == "tessera.launch.connection");
}

TEST_CASE("a worker whose connection ends without a word is lost at once, within a frame and between two",
          "[refusal]") {
  const tcp_frame head{tcp_frame::box, 0, 7, 0, 32};
  const tcp_frame told{tcp_frame::begun, 0, 7, 0, 0};
  const auto began = std::chrono::steady_clock::now();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, sizeof(head), sizeof(head) + 5}) {
    const std::string met = beside([&](tcp_socket line) {
      std::vector<std::byte> words(sizeof(head) + 32);
      std::memcpy(words.data(), &head, sizeof(head));
      if (bytes > 0) write_all(line, words.data(), bytes);
    });
    CHECK(met.find("[tessera.agree.lost]") == 0);
    CHECK(met.find("(worker 0, lost worker 1)") != std::string::npos);
    CHECK(met.find("; worker 1: its process ended]") != std::string::npos);
  }
  const std::string met = beside([&](tcp_socket line) { write_all(line, &told, sizeof(told)); });
  CHECK(met.find("[tessera.agree.lost]") == 0);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds{5});
}

TEST_CASE("a box of another size or another place is a disagreement, and is written nowhere", "[refusal]") {
  for (const tcp_frame head : {tcp_frame{tcp_frame::box, 0, 7, 0, 40}, tcp_frame{tcp_frame::box, 0, 7, 0, 8},
                               tcp_frame{tcp_frame::box, 1, 7, 0, 32}}) {
    const std::string met = beside([&](tcp_socket line) {
      std::vector<std::byte> words(sizeof(head) + head.bytes);
      std::memcpy(words.data(), &head, sizeof(head));
      write_all(line, words.data(), words.size());
      while (line.receive(words.data(), words.size()) >= 0) std::this_thread::yield();
    });
    CHECK(met.find("[tessera.agree.fingerprint]") == 0);
    CHECK(met.find(fmt::format("worker 1: sends {} bytes", head.bytes)) != std::string::npos);
  }
}

TEST_CASE("a sender is no more than three calls ahead of a reader that begins none, and sends it no large box",
          "[runtime]") {
  for (const index_t n : {index_t{4}, index_t{4096}, index_t{100'000}}) {
    std::atomic<int> ended{0};
    int ahead = 0;
    const auto all = in_world<by_sockets>(2, [&](const std::shared_ptr<transport>& carrier) {
      std::string wrong;
      flight first(*carrier, sent(2, n, 0, 1), 0);
      std::deque<flight> calls;
      for (int i = 0; i < 20; ++i) calls.emplace_back(first, i);
      if (carrier->rank() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        ahead = ended;
      }
      for (flight& f : calls) f.start();
      for (flight& f : calls) {
        f.finish();
        if (carrier->rank() == 0) ++ended;
        wrong += f.right();
      }
      return wrong;
    });
    INFO(all.errors());
    REQUIRE(all.well());
    CHECK(all.of(1) == "");
    CHECK(ahead == (n * 8 > 32768 ? 0 : 3));
  }
}

TEST_CASE("two workers that send each other more than connections hold do not wait for each other's reading",
          "[runtime]") {
  for (const int size : {2, 3}) {
    const auto all = in_world<by_sockets>(size, [](const std::shared_ptr<transport>& carrier) {
      const int n = carrier->size();
      flight a(*carrier, gathered(n, 6'000'000), 1);
      flight b(*carrier, summed(n, 3'000'001), 2);
      a.start();
      b.start();
      for (flight* f : carrier->rank() % 2 == 0 ? std::array{&a, &b} : std::array{&b, &a}) f->finish();
      return a.right() + b.right();
    });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
  }
}

TEST_CASE("an exchange keeps its connections, and nothing keeps either of them longer", "[runtime]") {
  std::array<std::weak_ptr<transport>, 2> seen;
  std::array<std::string, 2> wrong;
  by_sockets both(2);
  in_new_threads(2, [&](int r) {
    const auto at = static_cast<std::size_t>(r);
    std::shared_ptr<tcp_transport> carrier = both.worker(r, std::chrono::seconds{20});
    seen[at] = carrier;
    wrong[at] = without_transport(std::shared_ptr<transport>(carrier));
    carrier->leave();
    carrier.reset();
  });
  for (std::size_t r = 0; r < 2; ++r) {
    CHECK(wrong[r] == "");
    CHECK(seen[r].expired());
  }
}
