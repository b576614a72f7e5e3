#pragma once
// Cases with their trials, and the lines that are printed of them.

#include "cases.hpp"
#include "task.hpp"

#include <array>
#include <cmath>
#include <iostream>

namespace conformance {

/// A case with its task, or with the reason why it has none.
struct entry {
  test_case of;
  task does;
  std::string unbuilt;
};

inline constexpr const char* result_names[]{"pass", "fail", "unbuilt"};

using line = nlohmann::ordered_json;

inline line json_of(const verdict& v) {
  return {{"result", result_names[static_cast<int>(v.result)]},
          {"figure", std::isfinite(v.figure) ? line(v.figure) : line(fmt::format("{}", v.figure))},
          {"why", v.why}};
}

inline verdict verdict_of(const json& said) {
  verdict v;
  while (result_names[static_cast<int>(v.result)] != said.at("result"))
    v.result = static_cast<result>(static_cast<int>(v.result) + 1);
  v.figure = said.at("figure").is_number() ? said.at("figure").get<double>() : std::numeric_limits<double>::quiet_NaN();
  v.why = said.at("why").get<std::string>();
  return v;
}

/// Counts verdicts and prints a line for each.
class tally {
 public:
  void say(const test_case& c, const verdict& v) {
    ++counts_[static_cast<std::size_t>(v.result)];
    line one{{"id", c.id}, {"subject", c.subject}, {"kind", c.kind}};
    one.update(json_of(v));
    std::cout << one.dump() << std::endl;
  }

  /// Prints the totals; the exit status is 0 when nothing failed.
  int finish() const {
    std::cout << line{{"total", counts_[0] + counts_[1] + counts_[2]},
                      {"pass", counts_[0]},
                      {"fail", counts_[1]},
                      {"unbuilt", counts_[2]}}
                     .dump()
              << std::endl;
    return counts_[1] == 0 ? 0 : 1;
  }

 private:
  std::array<int, 3> counts_{};
};

}  // namespace conformance
