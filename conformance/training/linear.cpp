#include "linear_parts.hpp"
#include "subjects.hpp"

namespace conformance::training {
namespace {

/// What is given and expected of layers whatever they are.
linear_question question_of(reading& c) {
  return {c.tensor("x"), c.maybe("cotangent"), c.result("y"), c.gradients(),
          c.word("activation", {"none", "tanh", "gelu", "gelu_tanh"}, "none")};
}

bool stored_in_out(reading& c) { return c.word("storage", {"out_in", "in_out"}) == "in_out"; }

/// The case of layers that `parts_in(world)` gives: what they move, or what they compute.
template <class Parts>
task of_parts(reading& c, const Parts& parts_in) {
  const linear_question asked = question_of(c);
  if (c.kind() == "plan") {
    json received = json::array();
    for (world& w : c.worlds()) {
      std::vector<link> links;
      for (const linear_part& p : parts_in(w, asked)) links.push_back(p.of);
      received.push_back(received_by_all(links));
    }
    c.compare("received", received);
    return c.planned();
  }
  return c.in_each_world([&](world& w) -> body {
    const std::vector<linear_part> parts = parts_in(w, asked);
    check_names(asked, parts);
    return [parts, asked](attempt& a) { run_linear(a, parts, asked); };
  });
}

integers with_features(integers extents, index_t features) {
  extents.back() = features;
  return extents;
}

}  // namespace

/// y = x wᵀ + b, with every tensor as the world says.
task linear(reading& c) {
  const bool in_out = stored_in_out(c);
  const recipe weight = c.tensor("weight");
  const std::optional<recipe> bias = c.maybe("bias");
  return of_parts(c, [=](world& w, const linear_question& asked) {
    linear_tensors lie = lying_in(w, {"weight", "bias"}, weight, bias, in_out);
    lie.x = w.lying("x", asked.x.shape());
    if (w.names("y")) lie.y = w.lying("y", with_features(asked.x.shape(), lie.weight.dims[0].extent));
    return std::vector{linear_part{linear_link(lie), weight, bias, in_out, {"weight", "bias"}}};
  });
}

/// Two linear maps with an activation between them: what is between lies as the first one's outputs are cut.
task mlp(reading& c) {
  const bool in_out = stored_in_out(c);
  const recipe w1 = c.tensor("w1");
  const recipe w2 = c.tensor("w2");
  const std::optional<recipe> b1 = c.maybe("b1");
  const std::optional<recipe> b2 = c.maybe("b2");
  return of_parts(c, [=](world& w, const linear_question& asked) {
    const linear_names first{"w1", "b1"};
    const linear_names second{"w2", "b2"};
    linear_tensors lie = lying_in(w, first, w1, b1, in_out);
    lie.x = w.lying("x", asked.x.shape());
    lie.y = between(lie.x, lie.weight);
    linear_tensors next = lying_in(w, second, w2, b2, in_out);
    next.x = *lie.y;
    if (w.names("y")) next.y = w.lying("y", with_features(asked.x.shape(), next.weight.dims[0].extent));
    return std::vector{linear_part{linear_link(lie), w1, b1, in_out, first},
                       linear_part{linear_link(next), w2, b2, in_out, second}};
  });
}

namespace {

/// A layer of a stack cut over the axis model as a word says; of the last one the world may say how its result lies.
linear_part part_of_stack(const layout& x, const std::string& cut, const std::map<std::string, recipe>& parameters,
                          std::size_t layer, world* last) {
  const linear_names named{fmt::format("{}.weight", layer), fmt::format("{}.bias", layer)};
  const auto weight = parameters.find(named.weight);
  if (weight == parameters.end()) throw unbuilt(fmt::format("a stack without the parameter '{}'", named.weight));
  const auto bias = parameters.find(named.bias);
  const int model = x.mesh.find(kept_name("model"));
  const auto lying = [&](const recipe& r) {
    layout one = whole(x.mesh, r.shape());
    for (engine::axis_placement& how : one.placements) how = {tessera::placement::invariant};
    return one;
  };
  linear_tensors lie{x, lying(weight->second), {}, {}};
  if (bias != parameters.end()) lie.bias = lying(bias->second);
  if (cut != "out" && cut != "in" && cut != "none") throw unbuilt(fmt::format("a layer cut '{}'", cut));
  if (cut != "none") {
    if (model < 0) throw unbuilt("layers cut over an axis that the world lacks");
    lie.weight.cut_by(cut == "out" ? 0 : 1, model);
    if (cut == "out" && lie.bias) lie.bias->cut_by(0, model);
  }
  if (last != nullptr && last->names("y"))
    lie.y = last->lying("y", with_features(extents_of(x), weight->second.shape()[0]));
  return {linear_link(lie), weight->second, bias == parameters.end() ? std::nullopt : std::optional(bias->second),
          false, named};
}

}  // namespace

/// Linear layers one after the other, cut in several ways with one result.
task stack(reading& c) {
  const auto ways = c.given().at("layer_cuts").get<std::vector<std::vector<std::string>>>();
  std::map<std::string, recipe> parameters;
  for (const auto& [name, said] : c.entries("parameters")) parameters.emplace(name, said);
  if (ways.empty()) throw unbuilt("a stack without a way to cut it");
  const auto parts_of = [parameters](world& w, const linear_question& asked, const std::vector<std::string>& cuts) {
    std::vector<linear_part> parts;
    layout x = w.lying("x", asked.x.shape());
    for (std::size_t layer = 0; layer < cuts.size(); ++layer) {
      parts.push_back(part_of_stack(x, cuts[layer], parameters, layer, layer + 1 == cuts.size() ? &w : nullptr));
      x = parts.back().of.plan.output();
    }
    if (parts.empty()) throw unbuilt("a stack without layers");
    return parts;
  };
  if (c.kind() == "plan" && ways.size() == 1)
    return of_parts(c, [&](world& w, const linear_question& asked) { return parts_of(w, asked, ways[0]); });
  const linear_question asked = question_of(c);
  return c.in_each_world([&](world& w) -> body {
    std::vector<std::vector<linear_part>> all;
    for (const auto& cuts : ways) {
      all.push_back(parts_of(w, asked, cuts));
      check_names(asked, all.back());
    }
    return [all, asked](attempt& a) {
      for (const std::vector<linear_part>& parts : all) run_linear(a, parts, asked);
    };
  });
}

}  // namespace conformance::training
