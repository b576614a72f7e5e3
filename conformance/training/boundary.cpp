#include "subjects.hpp"

#include <tessera/plan/schedule/stages.hpp>

#include <range/v3/view/enumerate.hpp>

namespace conformance::training {
namespace {

/// The extents of so many parts, as the library cuts a dimension.
integers parts_of(index_t n, index_t parts) {
  layout x = whole(mesh_of({{"part", parts}}), {n});
  x.cut_by(0, 0);
  check(check(x));
  integers all;
  for (int r = 0; r < x.mesh.size(); ++r) all.push_back(box_of(x, r)[0].size());
  return all;
}

/// A tensor that stage 0 sends to the last stage, and what comes back.
struct passed {
  tessera::element element;
  recipe tensor;
  std::optional<recipe> cotangent;
  std::optional<numbers> arrives;
  std::optional<numbers> returns;
};

/// How a tensor lies on a stage: whole, the same on all of its workers.
layout on_stage(const mesh_value& m, const integers& extents, int pipe, int stage) {
  layout x = whole(m, extents);
  for (engine::axis_placement& r : x.placements) r = {placement::invariant};
  x.placements[pipe] = held_on(stage);
  return x;
}

tensor<dyn> reshaped(const tensor<dyn>& x, const integers& extents) {
  layout lies = x.layout();
  lies.dims = whole(lies.mesh, extents).dims;
  return {x.team(), lies, x.local().reshape(tessera::detail::sizes_of(held_by(lies, x.team()->rank())))};
}

/// From one stage to the next; in shares along an axis each worker sends its part, put together on arrival.
tensor<dyn> sent(const tensor<dyn>& x, int pipe, int stage, int shares) {
  const integers extents = extents_of(x.layout());
  if (shares < 0) return to(on_stage(x.layout().mesh, extents, pipe, stage), x);
  const tensor<dyn> flat = reshaped(x, {volume_of(extents)});
  layout share = flat.layout();
  share.cut_by(0, shares);
  layout there = share;
  there.placements[pipe] = held_on(stage);
  const tensor<dyn> arrived = to(there, to(share, flat));
  return reshaped(to(on_stage(x.layout().mesh, {volume_of(extents)}, pipe, stage), arrived), extents);
}

json entry_of(const json& all, std::size_t i, std::size_t k) { return all.is_null() ? json() : all.at(i).at(k); }

}  // namespace

/// Micro-batches, and tensors that pass from stage to stage.
task boundary(reading& c) {
  if (c.has("batch")) {
    const index_t batch = c.given().integer("batch");
    const index_t count = c.given().integer("micro_batches");
    const auto how =
        c.given().flag("uneven") ? pipeline::micro_batch_sizes::uneven : pipeline::micro_batch_sizes::equal;
    const pipeline::shares all = pipeline::micro_batches_of(batch, static_cast<int>(count), how);
    engine::check(all.why);
    c.compare("sizes", integers(all.sizes.begin(), all.sizes.end()));
    return c.planned();
  }
  if (c.has("numbers")) {
    json parts = json::array();
    for (const index_t n : c.given().list("numbers")) parts.push_back(parts_of(n, c.given().integer("ways")));
    c.compare("parts", parts);
    return c.planned();
  }
  const json arrives = c.expected("arrives");
  const json returns = c.expected("returns");
  std::vector<std::vector<passed>> passes;
  for (const json& one : c.given().at("passes")) {
    std::vector<passed> tensors;
    for (const json& said : one) {
      for (const auto& [name, value] : said.items())
        if (name != "element" && name != "tensor" && name != "cotangent")
          throw unbuilt(fmt::format("'{}' of a tensor", name));
      tensors.push_back({element_named(said.at("element").get<std::string>()), recipe(said.at("tensor")),
                         said.contains("cotangent") && !said.at("cotangent").is_null()
                             ? std::optional(recipe(said.at("cotangent")))
                             : std::nullopt,
                         reading::numbers_of(entry_of(arrives, passes.size(), tensors.size())),
                         reading::numbers_of(entry_of(returns, passes.size(), tensors.size()))});
    }
    passes.push_back(tensors);
  }
  const bool in_shares = c.given().flag("scatter_gather");
  return c.in_each_world([=](world& w) -> body {
    const int pipe = w.mesh().find(kept_name("pipe"));
    const int shares = in_shares ? w.mesh().find(kept_name("tensor")) : -1;
    if (pipe < 0 || (in_shares && shares < 0)) throw unbuilt("stages of a world without the axis");
    return [=](attempt& a) {
      const mesh_value& m = a.team->mesh();
      const int last = m.axes[pipe].extent - 1;
      for (const auto& [i, tensors] : ranges::views::enumerate(passes))
        for (const auto& [k, one] : ranges::views::enumerate(tensors)) {
          const auto type = tessera::detail::scalar_type_of(one.element);
          const layout begins = on_stage(m, one.tensor.shape(), pipe, 0);
          const tensor<dyn> x = a.given(one.tensor, begins, type);
          if (one.cotangent) x.local().set_requires_grad(true);
          tensor<dyn> y = x;
          for (int stage = 1; stage <= last; ++stage) y = sent(y, pipe, stage, shares);
          a.compare(fmt::format("what arrives in pass {} as tensor {}", i, k), y, one.arrives, one.element);
          if (!one.cotangent) continue;
          a.backward(y, *one.cotangent);
          a.compare(fmt::format("what returns in pass {} as tensor {}", i, k), attempt::gradient(x), one.returns,
                    one.element);
        }
    };
  });
}

}  // namespace conformance::training
