#include "readers.hpp"

#include "subjects.hpp"

namespace conformance::training {
namespace {

using reader = task (*)(reading&);

const std::map<std::string, reader>& readers() {
  static const std::map<std::string, reader> all{
      {"attention", attention},
      {"attention_block", attention_block},
      {"bandwidth", bandwidth},
      {"boundary", boundary},
      {"bundle", bundle},
      {"change", change},
      {"conversion", conversion},
      {"cross_entropy", cross_entropy},
      {"data_parallel", data_parallel},
      {"ema", ema},
      {"embedding", embedding},
      {"experts", experts},
      {"initial_values", initial_values},
      {"launch", launch},
      {"linear", linear},
      {"loader", loader},
      {"margin", margin},
      {"mesh", mesh},
      {"mlp", mlp},
      {"norm", norm},
      {"pipeline", pipeline},
      {"product", product},
      {"profile", profile},
      {"scaler", scaler},
      {"schedule", schedule},
      {"sharded_optimizer", sharded_optimizer},
      {"shards", shards},
      {"stack", stack},
      {"stages", stages},
      {"state", state},
      {"transformer_block", transformer_block},
      {"watch", watch},
  };
  return all;
}

task read_by_subject(test_case c) {
  reading r(c);
  return readers().at(c.subject)(r);
}

/// What must be refused, and what must be accepted in its place: the case with the parameters of its control.
task read_refused(const test_case& c) {
  test_case own = c;
  own.check = values(json{{"type", "refused"}});
  test_case control = c;
  control.check = values(json{{"type", "exact"}});
  control.given = values(c.given.all(), c.check.all().at("control"));
  const task accepted = read_by_subject(control);
  task refused;
  std::string at_once;
  try {
    refused = read_by_subject(own);
  } catch (const error& e) {
    at_once = e.code();
  }
  return {std::max(accepted.workers, refused.workers), [accepted, refused, at_once](const team_handle& all) {
            const verdict first =
                refused.run ? refused.run(all) : verdict{result::pass, 0, fmt::format("refused with {}", at_once)};
            if (first.result != result::pass) return first;
            const verdict other = accepted.run(all);
            return other.result == result::pass ? first
                                                : verdict{other.result, other.figure, "the control: " + other.why};
          }};
}

}  // namespace

bool has_subject(const std::string& name) { return readers().count(name) != 0; }

task read(const test_case& c) {
  try {
    return c.check.all().contains("control") ? read_refused(c) : read_by_subject(c);
  } catch (const error& e) {
    throw unbuilt(fmt::format("it is refused: {}", e.what()));
  } catch (const c10::Error& e) {
    throw unbuilt(fmt::format("it cannot be read: {}", e.what_without_backtrace()));
  } catch (const json::exception& e) {
    throw unbuilt(fmt::format("it cannot be read: {}", e.what()));
  } catch (const std::out_of_range&) {
    throw unbuilt("it cannot be read: a number is too large");
  }
}

}  // namespace conformance::training
