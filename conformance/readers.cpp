#include "readers.hpp"

#include "buffers.hpp"
#include "expert_layers.hpp"
#include "lookups.hpp"
#include "losses.hpp"
#include "norms.hpp"
#include "selector.hpp"
#include "upsamplings.hpp"

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
      {"DistributedBatchNorm", batch_norm},
      {"DistributedLayerNorm", [](test_case& t) { return layer_norm(t, false); }},
      {"DistributedLayerNormZero", [](test_case& t) { return layer_norm(t, true); }},
      {"DistributedEmbedding(Zero)", embedding},
      {"DistributedExpertAllGather", [](test_case& t) { return expert_linear(t, true); }},
      {"DistributedExpertReduceScatter", [](test_case& t) { return expert_linear(t, false); }},
      {"DistributedUpsample", upsample},
      {"Interpolate (sequential, windowed)", window_of_interpolation},
      {"DistributedLoss", distributed_loss},
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

/// What a case compares, and how many parameters a layer must have for it.
compared compared_named(const std::string& words, const trial& t) {
  struct named {
    compared what;
    int parameters;
  };
  static const std::map<std::string, named> known{
      {"y", {compared::y, 0}},
      {"out", {compared::y, 0}},
      {"loss on rank 0", {compared::y, 0}},
      {"dx", {compared::dx, 0}},
      {"dx for reductions other than none", {compared::dx, 0}},
      {"dw", {compared::dw, 1}},
      {"db", {compared::db, 2}},
      {"loss", {compared::loss, 0}},
      {"parameter grads (gathered, reshaped to [num_features])", {compared::gradients, 1}},
      {"running_var after one step", {compared::statistics, 0}},
      {"eval out", {compared::eval_y, 0}},
      {"out after one manual step", {compared::stepped_y, 1}},
      {"eval out after one manual step", {compared::stepped_y, 1}},
  };
  const auto found = known.find(words);
  const auto has = [&](const link& l) { return l.plan.parameters() >= found->second.parameters; };
  if (found == known.end() || !std::any_of(t.links.begin(), t.links.end(), has) ||
      (found->second.what == compared::loss && !t.squares))
    throw unbuilt(fmt::format("comparing '{}'", words));
  return found->second.what;
}

/// Whether the loss is Σ (y − target)², of a random target.
bool squares_named(values& given) {
  if (!given.has("loss")) return false;
  const std::string words = given.text("loss");
  if (words != "sum of squares against rand target" && words != "sum of squares against rand target after gather")
    throw unbuilt(fmt::format("the loss '{}'", words));
  if (filling_of(given, "target", filling::uniform) != filling::uniform) throw unbuilt("another target");
  return true;
}

/// What the case asks of its trial.
void read_question(test_case& c, trial& t) {
  static const std::set<std::string> adjoints{
      "adjoint",       "adjoint+value",  "adjoint+identity", "adjoint+buffer_count",
      "adjoint_input", "adjoint_weight", "adjoint_bias",     "construct_no_deadlock",
      "alias",         "legal_pair",     "must_reject",      "docs_example",
      "semantics",     "value",          "behaviour"};
  static const std::set<std::string> equivalences{"equivalence",           "equivalence_train", "equivalence_eval",
                                                  "known_upstream_defect", "output_shape",      "dispatch"};
  static const std::set<std::string> types{"adjoint_tight",
                                           "allclose_vs_sequential",
                                           "compile_time_accept",
                                           "compile_time_reject",
                                           "dtype_preserved",
                                           "exact",
                                           "raises",
                                           "same_type",
                                           "terminates"};
  static const std::set<std::string> whats{"constructed type", "groups",
                                           "y local shape equals y_local_shape on every worker"};
  if (types.count(c.check.text("type")) == 0) throw unbuilt(fmt::format("the check '{}'", c.check.text("type")));
  if (c.check.has("what") && whats.count(c.check.text("what")) == 0)
    throw unbuilt(fmt::format("the check of '{}'", c.check.text("what")));
  if (c.kind == "dtype") {
    t.asked = question::element_kept;
    t.backward = c.given.flag("test_backward", true);
  } else if (equivalences.count(c.kind) != 0) {
    t.asked = question::equivalence;
    t.trains = c.kind != "equivalence_eval";
    t.squares = squares_named(c.given);
    if (t.compares.empty()) {
      t.compares = {compared::y, compared::dx};
      t.rtol = t.atol = 1e-5;
    }
    if (c.check.has("compares")) {
      t.compares.clear();
      for (const json& words : c.check.at("compares"))
        t.compares.push_back(compared_named(words.get<std::string>(), t));
    }
    if (t.compares.empty()) throw unbuilt("nothing to compare");
    std::sort(t.compares.begin(), t.compares.end());  // a step comes last
  } else if (adjoints.count(c.kind) == 0) {
    throw unbuilt(fmt::format("cases of the kind '{}'", c.kind));
  }
  if (c.check.has("rtol")) t.rtol = c.check.at("rtol").get<double>();
  if (c.check.has("atol")) t.atol = c.check.at("atol").get<double>();
  for (values* of : {&c.given, &c.check})
    if (of->has("dtype")) t.element = element_named(of->text("dtype"));
  t.x = filling_of(c.given, c.given.has("input") ? "input" : "x");
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
    trial other = t;
    for (const chain& links : t.alike) {
      other.links = links;
      t.others.push_back(other);
    }
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
