#include "processes.hpp"
#include "readers.hpp"
#include "training/readers.hpp"

#include <tessera/comm/launch/environment.hpp>

#include <CLI/CLI.hpp>

namespace {

using namespace conformance;

struct options {
  std::vector<std::string> files;
  std::string only;
  bool mpi = false;
  std::string devices;  // what connects them
  std::size_t from = 0;
};

/// The task of a case, by the readers that know its subject.
task task_of(const test_case& c) {
  if (training::has_subject(c.subject)) return training::read(c);
  const trial t = read_trial(c);
  return {t.workers, [t](const team_handle& team) { return evaluate(team, t); }};
}

std::vector<entry> entries_of(const options& o) {
  std::vector<entry> all;
  for (const std::string& file : o.files)
    for (test_case& c : read_file(file)) {
      if (c.id.find(o.only) == std::string::npos && c.subject.find(o.only) == std::string::npos) continue;
      entry e{c, {}, {}};
      try {
        e.does = task_of(c);
      } catch (const unbuilt& why) {
        e.unbuilt = why.what();
        e.does.workers = c.ranks;
      }
      if (!o.mpi || e.does.workers <= processes) all.push_back(std::move(e));
    }
  return all;
}

lying where_of(const options& o) {
  return o.devices.empty() ? lying::on_host : o.devices == "nccl" ? lying::over_nccl : lying::through_host;
}

verdict in_process(const entry& e, lying where) {
  if (e.does.workers == 0) return e.does.run(nullptr);
  verdict v;
  const auto one = [&](const team_handle& team) {
    const verdict mine = e.does.run(team);
    if (rank_of(team) == 0) v = mine;
  };
  const std::string failed = launched(where, [&](const tessera::engine::transport_layer& over) {
    return on_workers(e.does.workers, false, over, one);
  });
  return failed.empty() ? v : verdict{result::fail, 0, failed};
}

/// The same call once more, by mpirun.
std::string under_mpirun(const char* program, const options& o) {
  std::string command =
      fmt::format("{} {} {} --mpi --only {}", CONFORMANCE_MPIRUN, processes, quoted(program), quoted(o.only));
  if (!o.devices.empty()) command += " --on-devices " + o.devices;
  for (const std::string& file : o.files) command += " " + quoted(file);
  return command;
}

int run_cases(const char* program, const options& o) {
  const std::vector<entry> cases = entries_of(o);
  if (o.mpi && tessera::read_environment().by == tessera::engine::launcher::mpi)
    return serve(cases, o.from, where_of(o));
  tally counted;
  std::vector<verdict> found;
  if (o.mpi) found = in_processes(cases, under_mpirun(program, o));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const entry& e = cases[i];
    counted.say(e.of, !e.unbuilt.empty() ? verdict{result::unbuilt, 0, e.unbuilt}
                      : o.mpi            ? found[i]
                                         : in_process(e, where_of(o)));
  }
  return counted.finish();
}

}  // namespace

int main(int argc, char** argv) {
  options o;
  CLI::App app{
      "Runs the cases of files in the format of distdl_cases.json or training_cases.json, and prints a JSON line for "
      "each and one of totals"};
  app.add_option("FILE", o.files, "files of cases")->required();
  app.add_option("--only", o.only, "only cases whose id or subject contains this");
  app.add_flag("--mpi", o.mpi, "runs the cases of up to 8 workers under mpirun, and no others");
  app.add_option("--on-devices", o.devices,
                 "tensors lie on devices, of a machine of none, connected by NCCL or through their hosts")
      ->check(CLI::IsMember({"nccl", "host"}));
  app.add_option("--from", o.from, "number of the first case to run, under mpirun")->group("");
  try {
    app.parse(argc, argv);
    return run_cases(argv[0], o);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const malformed& e) {
    fmt::print(stderr, "conformance: {}\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "conformance: {}\n", e.what());
    return 1;
  }
}
