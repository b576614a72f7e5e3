#pragma once
// Cases under mpirun: one job of 8 processes runs them one after the other; the program that started it prints.

#include "devices.hpp"
#include "evaluate.hpp"
#include "report.hpp"

#include <fmt/core.h>

#include <cstdio>

namespace conformance {

inline constexpr int processes = 8;
inline constexpr const char* ready = "the workers are there";

/// What every process of the job does: runs the cases from number `from` on; the first process says each verdict.
inline int serve(const std::vector<entry>& cases, std::size_t from, lying where) {
  const auto all = [&](const team_handle& world) {
    if (rank_of(world) == 0) fmt::print("{}\n", ready);
    for (std::size_t i = from; i < cases.size(); ++i) {
      if (!cases[i].unbuilt.empty()) continue;
      const verdict v = cases[i].does.run(fresh_team(world));
      if (rank_of(world) == 0) fmt::print("verdict {} {}\n", i, json_of(v).dump());
      std::fflush(stdout);
    }
  };
  const std::string failed =
      launched(where, [&](const transport_layer& over) { return on_workers(processes, true, over, all); });
  return failed.empty() ? 0 : 1;
}

/// Quotes an argument for the shell.
inline std::string quoted(const std::string& argument) {
  std::string q = "'";
  for (char c : argument) q += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return q + "'";
}

/// One job, from a case on: calls take(number, verdict) for each that it ran. Returns what ended it early, or nothing;
/// throws when it did not even start.
template <class Take>
std::string run_job(const std::string& command, std::size_t from, Take&& take) {
  std::FILE* job = popen(fmt::format("{} --from {} 2>&1", command, from).c_str(), "r");
  if (job == nullptr) throw std::runtime_error("no process can be started");
  bool started = false;
  std::string said;
  std::string text;
  for (int c = std::fgetc(job); c != EOF; c = std::fgetc(job)) {
    if (c != '\n') {
      text.push_back(static_cast<char>(c));
      continue;
    }
    std::size_t number = 0;
    int begins = 0;
    if (text == ready) {
      started = true;
    } else if (std::sscanf(text.c_str(), "verdict %zu %n", &number, &begins) == 1 && begins > 0) {
      take(number, verdict_of(json::parse(text.substr(static_cast<std::size_t>(begins)))));
    } else {
      fmt::print(stderr, "{}\n", text);
      if (said.empty() && text.compare(0, 8, "tessera:") == 0) said = text;
    }
    text.clear();
  }
  const int status = pclose(job);
  if (!started)
    throw std::runtime_error(fmt::format("mpirun started no workers (status {}); see its message above", status));
  return status == 0 ? std::string{} : said.empty() ? fmt::format("the job ended with status {}", status) : said;
}

/// Runs cases in jobs: a case that ends its job has failed, and another job goes on behind it.
inline std::vector<verdict> in_processes(const std::vector<entry>& cases, const std::string& command) {
  std::vector<verdict> all(cases.size());
  std::size_t next = 0;
  const auto skip = [&] {
    while (next < cases.size() && !cases[next].unbuilt.empty()) ++next;
  };
  for (skip(); next < cases.size(); skip()) {
    const std::string ended = run_job(command, next, [&](std::size_t number, const verdict& v) {
      all[number] = v;
      next = number + 1;
    });
    skip();
    if (next < cases.size()) all[next++] = {result::fail, 0, ended.empty() ? "the job ended without a verdict" : ended};
  }
  return all;
}

}  // namespace conformance
