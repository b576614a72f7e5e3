#include "tests/support/tensors.hpp"

#include <tessera/nn/watch/metrics_writer.hpp>

#include <sys/resource.h>

#include <bit>
#include <csignal>
#include <cstring>
#include <fstream>

// Metrics read back by readers of their own: lines of comma-separated values, and records of TensorBoard's events with
// their checksums and protocol buffers.

namespace tessera::testing::metrics_writing {
namespace {

struct writers : axis<3> {};
using writing_mesh = mesh<writers>;
using writing_number = tensor<partition<writing_mesh, invariant<writers>>, shape<>, float>;

/// A folder that goes with the test.
struct folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("tessera_metrics_{}_{}", ::getpid(), ++made);
  folder() { std::filesystem::remove_all(path); }
  ~folder() { std::filesystem::remove_all(path); }

  static inline int made = 0;
};

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::vector<std::string>> table_of(const std::filesystem::path& in) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text_of_file(in / "metrics.csv"));
  for (std::string line, field; std::getline(lines, line);) {
    std::istringstream fields(line + ",");
    rows.emplace_back();
    while (std::getline(fields, field, ',')) rows.back().push_back(field);
  }
  return rows;
}

/// Castagnoli's remainder, bit by bit: the polynomial division that it is.
std::uint32_t remainder_of(const std::string& bytes) {
  std::uint32_t r = 0xFFFFFFFF;
  for (const char c : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const std::uint32_t in = (static_cast<unsigned char>(c) >> bit) & 1U;
      r = ((r ^ in) & 1U) != 0 ? (r >> 1) ^ 0x82F63B78 : r >> 1;
    }
  return r ^ 0xFFFFFFFF;
}

/// A protocol buffer's fields: numbers, and bytes of what has a length or a fixed one.
struct message_field {
  std::uint64_t number, whole;
  std::string bytes;
};
std::uint64_t take_varint(const std::string& in, std::size_t& at) {
  std::uint64_t n = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(in.at(at++));
    n |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return n;
  }
}
std::vector<message_field> message_of(const std::string& in) {
  std::vector<message_field> all;
  for (std::size_t at = 0; at < in.size();) {
    const std::uint64_t key = take_varint(in, at);
    message_field f{key >> 3, 0, {}};
    if ((key & 7) == 0) f.whole = take_varint(in, at);
    else {
      const std::size_t n = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : take_varint(in, at);
      f.bytes = in.substr(at, n);
      at += n;
    }
    all.push_back(f);
  }
  return all;
}
template <class N>
N number_of(const std::string& bytes) {
  N n{};
  std::memcpy(&n, bytes.data(), sizeof n);
  return n;
}

/// An event: its step and what it says.
struct read_event {
  std::int64_t step = 0;
  std::string version;
  bool starts = false;
  std::map<std::string, float> values;
};
std::vector<read_event> events_of(const std::filesystem::path& file) {
  const std::string all = text_of_file(file);
  std::vector<read_event> events;
  const auto masked = [](const std::string& of) {
    const std::uint32_t crc = remainder_of(of);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
  };
  for (std::size_t at = 0; at < all.size();) {
    const std::string length = all.substr(at, 8);
    const auto n = number_of<std::uint64_t>(length);
    const std::string data = all.substr(at + 12, n);
    CHECK(number_of<std::uint32_t>(all.substr(at + 8, 4)) == masked(length));
    CHECK(number_of<std::uint32_t>(all.substr(at + 12 + n, 4)) == masked(data));
    at += 16 + n;
    read_event e;
    for (const message_field& f : message_of(data)) {
      if (f.number == 1) CHECK(number_of<double>(f.bytes) > 1.6e9);
      if (f.number == 2) e.step = static_cast<std::int64_t>(f.whole);
      if (f.number == 3) e.version = f.bytes;
      if (f.number == 7) e.starts = message_of(f.bytes).at(0).whole == 1;
      if (f.number != 5) continue;
      for (const message_field& value : message_of(f.bytes)) {
        const std::vector<message_field> named = message_of(value.bytes);
        e.values[named.at(0).bytes] = number_of<float>(named.at(1).bytes);
      }
    }
    events.push_back(e);
  }
  return events;
}
std::vector<std::filesystem::path> event_files(const std::filesystem::path& in) {
  std::vector<std::filesystem::path> all;
  for (const auto& one : std::filesystem::directory_iterator(in))
    if (one.path().filename().string().starts_with("events.out.tfevents.")) all.push_back(one.path());
  std::sort(all.begin(), all.end());
  return all;
}

/// What each worker is told by what f(team) does.
template <class F>
std::vector<std::string> each_told(F&& f) {
  const auto run = in_team<writing_mesh>([&](team<writing_mesh>& t) { return told([&] { f(t); }); });
  std::vector<std::string> all;
  for (const auto& r : run.results) all.push_back(r ? *r : "did not come back");
  return all;
}
const std::vector<std::string> well(3, "none");

TEST_CASE("checksums and records are those that others publish", "[law]") {
  CHECK(nn::engine::crc32c("") == 0);
  CHECK(nn::engine::crc32c("123456789") == 0xE3069283);            // the check value of CRC-32C
  CHECK(nn::engine::crc32c(std::string(32, '\0')) == 0x8A9136AA);  // RFC 3720, B.4
  CHECK(nn::engine::crc32c(std::string(32, '\xFF')) == 0x62A8AB43);
}

TEST_CASE("rows that all workers hand in are read back once from both files", "[runtime]") {
  const folder in;
  CHECK(each_told([&](auto& t) {
          nn::metrics_writer metrics(t, in.path / "a" / "b");
          for (int step = 0; step < 50; ++step) {
            const auto loss = from_local<writing_number>(t, at::full({}, 2.0F / static_cast<float>(step + 1)));
            metrics.write(step, {{"loss", loss}, {"lr, \"first\"", 0.1 * step}});
          }
        }) == well);
  const auto rows = text_of_file(in.path / "a" / "b" / "metrics.csv");
  CHECK(rows.starts_with("step,wall_time,loss,\"lr, \"\"first\"\"\"\n0,"));
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 51);
  CHECK(table_of(in.path / "a" / "b").at(4).at(2) == "0.5");
  CHECK(table_of(in.path / "a" / "b").at(50).at(3) == "4.9");
  const auto files = event_files(in.path / "a" / "b");
  REQUIRE(files.size() == 1);
  const auto events = events_of(files[0]);
  REQUIRE(events.size() == 51);
  CHECK(events[0].version == "brain.Event:2");
  for (int step = 0; step < 50; ++step) {
    const read_event& e = events[static_cast<std::size_t>(step) + 1];
    CHECK(e.step == step);
    CHECK(e.values == std::map<std::string, float>{{"loss", 2.0F / static_cast<float>(step + 1)},
                                                   {"lr, \"first\"", static_cast<float>(0.1 * step)}});
  }
}

TEST_CASE("a name that comes later gets a column, and rows without a name are empty there", "[runtime]") {
  const folder in;
  CHECK(each_told([&](auto& t) {
          nn::metrics_writer metrics(t, in.path, {.tensorboard = false});
          metrics.write(-1, {{"loss", 3}});
          metrics.write(0, {{"loss", 2}, {"accuracy", 0.5}});
          metrics.write(1, {{"accuracy", std::numeric_limits<double>::quiet_NaN()}});
          metrics.write(1, {});
        }) == well);
  const auto rows = table_of(in.path);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0] == std::vector<std::string>{"step", "wall_time", "loss", "accuracy"});
  CHECK(rows[1].at(0) == "-1");
  CHECK(rows[1].at(2) == "3");
  CHECK(rows[1].at(3) == "");
  CHECK(rows[2].at(3) == "0.5");
  CHECK(rows[3].at(2) == "");
  CHECK(rows[3].at(3) == "nan");
  CHECK(event_files(in.path).empty());
}

TEST_CASE("a run that goes on keeps what was before its first step, and drops what is torn or comes again",
          "[runtime]") {
  const folder in;
  const auto write = [&](std::optional<std::int64_t> begins_at, int from, int to, double value) {
    return each_told([&, begins_at](auto& t) {
      nn::metrics_writer metrics(t, in.path, {.begins_at = begins_at});
      for (int step = from; step < to; ++step) metrics.write(step, {{"loss", value}});
    });
  };
  CHECK(write({}, 0, 6, 1) == well);
  std::ofstream(in.path / "metrics.csv", std::ios::app) << "6,17";  // the power went
  CHECK(write(4, 4, 8, 2) == well);
  CHECK(write({}, 8, 9, 3) == well);
  std::vector<std::string> found;
  for (const auto& row : table_of(in.path)) found.push_back(row.at(0) + " " + row.at(2));
  CHECK(found == std::vector<std::string>{"step loss", "0 1", "1 1", "2 1", "3 1", "4 2", "5 2", "6 2", "7 2", "8 3"});
  const auto files = event_files(in.path);
  REQUIRE(files.size() == 3);
  std::vector<std::int64_t> starts, steps;
  for (const auto& file : files)
    for (const read_event& e : events_of(file)) {
      if (e.starts) starts.push_back(e.step);
      if (!e.values.empty()) steps.push_back(e.step);
    }
  CHECK(starts == std::vector<std::int64_t>{4});
  CHECK(steps == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8});
}

TEST_CASE("rows are in the files when so many calls or so much time have passed", "[runtime]") {
  const folder in;
  const auto run = in_team<writing_mesh>([&](team<writing_mesh>& t) {
    const auto lines = [&] {
      const std::string text = text_of_file(in.path / "metrics.csv");
      return std::count(text.begin(), text.end(), '\n');
    };
    std::vector<std::int64_t> all;
    nn::metrics_writer metrics(t, in.path, {.flush_rows = 3, .flush_after = std::chrono::hours(1)});
    for (int step = 0; step < 7; ++step) {
      metrics.write(step, {{"loss", step}});
      all.push_back(lines());
      t.state()->collect(0, "one at a time");
    }
    metrics.flush();
    all.push_back(lines());
    t.state()->collect(0, "one at a time");
    nn::metrics_writer at_once(t, in.path, {.flush_rows = 1000, .flush_after = std::chrono::seconds(0)});
    at_once.write(7, {{"loss", 7}});
    if (t.first()) all.push_back(lines());
    return all;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  CHECK(run.of(0) == std::vector<std::int64_t>{1, 1, 4, 4, 4, 7, 7, 8, 9});
}

TEST_CASE("what the disk refuses and what is no table is one error on every worker", "[refusal]") {
  const folder in;
  std::filesystem::create_directories(in.path / "taken");
  std::ofstream(in.path / "file") << "text";
  std::ofstream(in.path / "taken" / "metrics.csv") << "a,b\n1,2\n";
  const auto opens = [&](const char* where) {
    return each_told([&](auto& t) { nn::metrics_writer metrics(t, in.path / where); });
  };
  CHECK(opens("file") == std::vector<std::string>(3, "tessera.file.write"));
  CHECK(opens("file/below") == std::vector<std::string>(3, "tessera.file.write"));
  CHECK(opens("taken") == std::vector<std::string>(3, "tessera.watch.file"));
  CHECK(text_of_file(in.path / "taken" / "metrics.csv") == "a,b\n1,2\n");
  for (const char* name : {"", "two\nlines", "step"})
    CHECK(each_told([&](auto& t) {
            nn::metrics_writer metrics(t, in.path);
            metrics.write(0, {{name, 1}});
          }) == std::vector<std::string>(3, "tessera.watch.metric"));
  CHECK(each_told([&](auto& t) {
          nn::metrics_writer metrics(t, in.path);
          metrics.write(0, {{"loss", 1}, {"loss", 2}});
        }) == std::vector<std::string>(3, "tessera.watch.metric"));
}

/// While it lives, a file has 100 bytes at most: the header of a table, and four rows.
struct small_disk {
  small_disk() {
    ::getrlimit(RLIMIT_FSIZE, &before);
    ::rlimit small = before;
    small.rlim_cur = 100;
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~small_disk() {
    grow();
    std::signal(SIGXFSZ, then);
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;
  void grow() const { ::setrlimit(RLIMIT_FSIZE, &before); }

  ::rlimit before{};
  void (*then)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

TEST_CASE("a disk that is full is told at the call whose rows were to be there, on every worker, and then again",
          "[refusal]") {
  const folder in;
  const auto run = [&] {
    const small_disk small;
    return in_team<writing_mesh>([&](team<writing_mesh>& t) {
      std::vector<std::string> all;
      nn::metrics_writer metrics(t, in.path, {.tensorboard = false, .flush_rows = 2});
      for (int step = 0; step < 8; ++step) all.push_back(told([&] { metrics.write(step, {{"loss", step}}); }));
      all.push_back(told([&] { metrics.flush(); }));
      return all;
    });
  }();
  INFO(run.errors());
  REQUIRE(run.well());
  const std::string full = "tessera.file.space";
  for (const auto& r : run.results)
    CHECK(*r == std::vector<std::string>{"none", "none", "none", "none", "none", full, "none", full, full});
}

TEST_CASE("rows that a full disk lost between two flushes are told, though there is room again", "[refusal]") {
  const folder in;
  const auto run = [&] {
    const small_disk small;
    return in_team<writing_mesh>([&](team<writing_mesh>& t) {
      nn::metrics_writer metrics(t, in.path,
                                 {.tensorboard = false, .flush_rows = 10, .flush_after = std::chrono::seconds(0)});
      for (int step = 0; step < 9; ++step) metrics.write(step, {{"loss", step}});
      if (t.first()) small.grow();
      return told([&] { metrics.write(9, {{"loss", 9}}); });
    });
  }();
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == "tessera.file.space");
}

}  // namespace
}  // namespace tessera::testing::metrics_writing
