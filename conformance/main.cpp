#include "evaluate.hpp"
#include "readers.hpp"

#include <CLI/CLI.hpp>

#include <cmath>
#include <iostream>

namespace {

using namespace conformance;

struct options {
  std::vector<std::string> files;
  std::string only;
  bool mpi = false;
};

/// A case with its trial, or with the reason why it has none.
struct entry {
  test_case of;
  trial run;
  std::string unbuilt;
};

std::vector<entry> entries_of(const options& o) {
  std::vector<entry> all;
  for (const std::string& file : o.files)
    for (test_case& c : read_file(file)) {
      if (c.id.find(o.only) == std::string::npos && c.subject.find(o.only) == std::string::npos) continue;
      entry e{c, {}, {}};
      try {
        e.run = read_trial(c);
      } catch (const unbuilt& why) {
        e.unbuilt = why.what();
      }
      all.push_back(std::move(e));
    }
  return all;
}

/// Counts verdicts and prints a line for each.
class tally {
 public:
  void say(const test_case& c, const verdict& v) {
    constexpr const char* names[]{"pass", "fail", "unbuilt"};
    ++counts_[static_cast<std::size_t>(v.result)];
    json line = json::object();
    line["id"] = c.id;
    line["subject"] = c.subject;
    line["kind"] = c.kind;
    line["result"] = names[static_cast<std::size_t>(v.result)];
    line["figure"] = std::isfinite(v.figure) ? json(v.figure) : json(fmt::format("{}", v.figure));
    line["why"] = v.why;
    std::cout << line.dump() << std::endl;
  }
  int finish() const {
    std::cout << json{{"total", counts_[0] + counts_[1] + counts_[2]}, {"pass", counts_[0]}, {"fail", counts_[1]}, {"unbuilt", counts_[2]}}.dump()
              << std::endl;
    return counts_[1] == 0 ? 0 : 1;
  }

 private:
  std::array<int, 3> counts_{};
};

verdict in_process(const entry& e) {
  verdict v;
  const std::string failed = on_workers(e.run.workers, false, [&](const team_handle& team) {
    const verdict mine = evaluate(team, e.run);
    if (rank_of(team) == 0) v = mine;
  });
  return failed.empty() ? v : verdict{result::fail, 0, failed};
}

int run(const options& o) {
  tally counted;
  for (const entry& e : entries_of(o)) counted.say(e.of, e.unbuilt.empty() ? in_process(e) : verdict{result::unbuilt, 0, e.unbuilt});
  return counted.finish();
}

}  // namespace

int main(int argc, char** argv) {
  options o;
  CLI::App app{"Runs the cases of files in the format of distdl_cases.json"};
  app.add_option("FILE", o.files, "files of cases")->required();
  app.add_option("--only", o.only, "only cases whose id or subject contains this");
  app.add_flag("--mpi", o.mpi, "runs the cases of up to 8 workers under mpirun");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const malformed& e) {
    std::cerr << "conformance: " << e.what() << '\n';
    return 2;
  }
}
