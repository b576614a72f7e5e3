#include "readers.hpp"

#include "buffers.hpp"
#include "selector.hpp"

#include <functional>

namespace conformance {
namespace {

/// The reader of a subject.
trial read_subject(test_case& c) {
  using reader = std::function<trial(test_case&)>;
  static const std::map<std::string, reader> readers{
      {"Broadcast", [](test_case& t) { return broadcast_like(t, true); }},
      {"SumReduce", [](test_case& t) { return broadcast_like(t, false); }},
      {"AllSumReduce", all_sum_reduce},
      {"AllGather", [](test_case& t) { return along_axes(t, true); }},
      {"ReduceScatter", [](test_case& t) { return along_axes(t, false); }},
      {"Repartition", repartition},
      {"HaloExchange", halo_exchange},
      {"halo_sizes", halo_exchange},
      {"decomposition", decomposition},
      {"DistributedLinear", linear_on_three},
      {"DistributedLinearAllGather / ...Zero (use_zero)", [](test_case& t) { return linear_along(t, true); }},
      {"DistributedLinearReduceScatter / ...Zero (use_zero)", [](test_case& t) { return linear_along(t, false); }},
      {"DistributedPool", pool},
      {"DistributedConvNd selector", selector},
      {"BufferManager", buffers},
      {"ExpandableBuffer", buffers},
  };
  if (const auto found = readers.find(c.subject); found != readers.end()) return found->second(c);
  const auto family = [&](const char* name) {  // "DistributedFeatureConv2d", "DistributedFeatureConvNd"
    const std::size_t n = std::string_view(name).size();
    return c.subject.compare(0, n, name) == 0 && c.subject.size() == n + 2 && c.subject.back() == 'd';
  };
  if (family("DistributedFeatureConv")) return feature_convolution(c);
  if (family("DistributedChannelConv") || family("DistributedGeneralConv")) return convolution_on_three(c);
  if (family("DistributedChannelAllGatherConv")) return convolution_along(c, true);
  if (family("DistributedChannelReduceScatterConv")) return convolution_along(c, false);
  throw unbuilt(fmt::format("the subject '{}'", c.subject));
}

/// What the case asks of its trial.
void read_question(test_case& c, trial& t) {
  static const std::set<std::string> adjoints{"adjoint",       "adjoint+value",  "adjoint+identity", "adjoint+buffer_count",
                                              "adjoint_input", "adjoint_weight", "adjoint_bias",     "construct_no_deadlock",
                                              "alias",         "legal_pair",     "must_reject",      "docs_example",
                                              "semantics",     "value",          "behaviour"};
  static const std::set<std::string> equivalences{"equivalence", "known_upstream_defect", "output_shape", "dispatch"};
  static const std::set<std::string> types{"adjoint_tight",
                                           "allclose_vs_sequential",
                                           "compile_time_accept",
                                           "compile_time_reject",
                                           "dtype_preserved",
                                           "exact",
                                           "raises",
                                           "same_type",
                                           "terminates"};
  static const std::set<std::string> whats{"constructed type", "groups", "y local shape equals y_local_shape on every worker"};
  if (types.count(c.check.text("type")) == 0) throw unbuilt(fmt::format("the check '{}'", c.check.text("type")));
  if (c.check.has("what") && whats.count(c.check.text("what")) == 0)
    throw unbuilt(fmt::format("the check of '{}'", c.check.text("what")));
  if (c.kind == "dtype") {
    t.asked = question::element_kept;
    t.backward = c.given.flag("test_backward", true);
  } else if (equivalences.count(c.kind) != 0) {
    t.asked = question::equivalence;
    if (t.compares.empty()) {
      t.compares = {"y", "dx"};
      t.rtol = t.atol = 1e-5;
    }
    if (c.check.has("compares")) t.compares = c.check.at("compares").get<std::vector<std::string>>();
    if (t.compares.empty()) throw unbuilt("nothing to compare");
    for (const std::string& name : t.compares) {
      const int needs = name == "dw" ? 1 : name == "db" ? 2 : 0;  // parameters
      const bool there = std::any_of(t.links.begin(), t.links.end(), [&](const link& l) { return l.plan.parameters() >= needs; });
      if ((needs == 0 && name != "y" && name != "dx") || !there) throw unbuilt(fmt::format("comparing '{}'", name));
    }
  } else if (adjoints.count(c.kind) == 0) {
    throw unbuilt(fmt::format("cases of the kind '{}'", c.kind));
  }
  if (c.check.has("rtol")) t.rtol = c.check.at("rtol").get<double>();
  if (c.check.has("atol")) t.atol = c.check.at("atol").get<double>();
  for (values* of : {&c.given, &c.check})
    if (of->has("dtype")) t.element = element_named(of->text("dtype"));
  t.x = filling_of(c.given, "x");
  t.dy = filling_of(c.given, "dy");
  t.weights = filling_of(c.given, "weights", filling_of(c.given, "weight", filling::scaled_by_fan));
}

}  // namespace

trial read_trial(test_case c) {
  try {
    trial t = read_subject(c);
    read_question(c, t);
    accept_remarks(c);
    all_read(c);
    t.workers = std::max(t.workers, c.ranks);
    return t;
  } catch (const error& e) {
    throw unbuilt(fmt::format("its layouts are refused: {}", e.what()));
  } catch (const json::exception& e) {
    throw unbuilt(fmt::format("it cannot be read: {}", e.what()));
  } catch (const std::out_of_range&) {
    throw unbuilt("it cannot be read: a number is too large");
  }
}

}  // namespace conformance
