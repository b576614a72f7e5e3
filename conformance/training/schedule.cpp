#include "subjects.hpp"

#include <tessera/plan/schedule/schedule_run.hpp>
#include <tessera/plan/schedule/stages.hpp>

namespace conformance::training {
namespace {

/// A list of names and lists, whose lists are opened down to a level; all of them without one.
json opened(const json& nested, const json& level) {
  json all = json::array();
  for (const json& one : nested) {
    if (!one.is_array() || level == 0) all.push_back(one);
    else
      for (const json& inside : opened(one, level.is_null() ? level : json(level.get<int>() - 1)))
        all.push_back(inside);
  }
  return all;
}

std::string text_of(const pipeline::operation& x, int chunks) {
  const std::string name = fmt::format("{}{}", x.does == pipeline::work::forward ? 'F' : 'B', x.micro_batch);
  return chunks > 1 ? fmt::format("{}.{}", name, x.chunk) : name;
}

}  // namespace

/// In which order the stages of a pipeline work, by the library's formulas and its run of them.
task schedule(reading& c) {
  const std::string name = c.word("schedule", {"gpipe", "one_f_one_b", "interleaved"});
  const bool forward_only = c.given().flag("forward_only");
  pipeline::schedule s;
  s.by = forward_only            ? pipeline::order::forward_only
         : name == "gpipe"       ? pipeline::order::gpipe
         : name == "one_f_one_b" ? pipeline::order::one_f_one_b
                                 : pipeline::order::interleaved;
  s.of.stages = static_cast<int>(c.given().integer("stages"));
  if (c.has("chunks")) s.of.chunks = static_cast<int>(c.given().integer("chunks"));
  const json expected = c.expected("runs");
  json runs = json::array();
  for (const index_t count : c.given().list("micro_batches")) {
    s.of.micro_batches = static_cast<int>(count);
    const pipeline::run r = pipeline::run_of(s);
    engine::check(r.why);
    json one{{"warm_up", json::array()}, {"operations", json::array()}, {"span", r.span}};
    for (int stage = 0; stage < s.of.stages; ++stage) {
      one["warm_up"].push_back(s.warm_up(stage));
      json operations = json::array();
      for (int i = 0; i < s.count(); ++i) operations.push_back(text_of(s.at(stage, i), s.of.chunks));
      one["operations"].push_back(operations);
    }
    if (!forward_only) one["live"] = integers(r.live.begin(), r.live.end());
    runs.push_back(one);
  }
  c.compare("runs", runs);
  return c.planned();
}

/// How many layers each stage has.
task stages(reading& c) {
  const std::string policy = c.given().text("policy");
  const auto size = [](const pipeline::shares& all) {
    engine::check(all.why);
    return integers(all.sizes.begin(), all.sizes.end());
  };
  if (policy == "uniform") {
    const integers layers = c.given().list("layers"), counts = c.given().list("stages");
    if (layers.size() != counts.size()) throw unbuilt("a number of stages for each number of layers");
    json sizes = json::array();
    for (std::size_t i = 0; i < layers.size(); ++i)
      sizes.push_back(size(pipeline::by_count(layers[i], static_cast<int>(counts[i]))));
    c.compare("sizes", sizes);
  } else if (policy == "balanced") {
    const auto weights = c.given().at("weights").get<std::vector<integers>>();
    const integers counts = c.given().list("stages");
    if (weights.size() != counts.size()) throw unbuilt("a number of stages for each list of weights");
    json largest = json::array();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto sizes = size(pipeline::by_weight(weights[i], static_cast<int>(counts[i])));
      const auto each = pipeline::weights_of(weights[i], sizes);
      largest.push_back(*std::max_element(each.begin(), each.end()));
    }
    c.compare("largest", largest);
  } else if (policy == "given") {
    const auto each = pipeline::weights_of(c.given().list("weights"), c.given().list("sizes"));
    c.compare("weights", integers(each.begin(), each.end()));
  } else if (policy == "flatten") {
    json names = json::array();
    for (const json& level : c.given().at("levels")) names.push_back(opened(c.given().at("nested"), level));
    c.compare("names", names);
  } else {
    throw unbuilt(fmt::format("the policy '{}'", policy));
  }
  return c.planned();
}

}  // namespace conformance::training
