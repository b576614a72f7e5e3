#include "subjects.hpp"

#include <ATen/ops/_amp_update_scale.h>

namespace conformance::training {
namespace {

/// What a scaler begins with, and its rule.
struct scaling {
  double scale;
  double growth;
  double backoff;
  index_t interval;
  index_t good_so_far;
};

/// Whether any worker saw an infinity.
bool any_worker(const attempt& a, bool mine) {
  layout terms = whole(a.team->mesh(), {});
  layout all = terms;
  for (int axis = 0; axis < terms.placements.count; ++axis) {
    terms.placements[axis] = {placement::partial};
    terms.placements[axis].with = combine::any;
    all.placements[axis] = {placement::invariant};
  }
  const at::Tensor flag = at::full({}, mine, at::kBool).to(device_of(*a.team));
  return to(all, tensor<dyn>(a.team, terms, flag)).local().item<bool>();
}

}  // namespace

/// Loss scaling: what workers saw is reduced by the library, and LibTorch's own rule moves the scale, which must be the
/// same on every one.
task scaler(reading& c) {
  const auto overflow = c.given().at("overflow").get<std::vector<std::vector<bool>>>();
  const recipe parameter = c.tensor("parameter");
  const recipe gradient = c.tensor("gradient");
  const double lr = c.number("lr", 0);
  const scaling begins{c.number("scale", 65536), c.number("growth", 2), c.number("backoff", 0.5),
                       c.has("interval") ? c.given().integer("interval") : 2000,
                       c.has("good_so_far") ? c.given().integer("good_so_far") : 0};
  const json skipped = c.expected("skipped");
  const json scales = c.expected("scales");
  const json parameters = c.expected("parameters");
  for (const json* of : {&skipped, &scales, &parameters})
    if (of->size() != overflow.size()) throw unbuilt("results of other steps");
  return c.in_each_world([=](world& w) -> body {
    for (const auto& step : overflow)
      if (static_cast<int>(step.size()) != w.mesh().size()) throw unbuilt("flags of other workers");
    const layout lies = w.lying("parameter", parameter.shape());
    return [=](attempt& a) {
      const tensor<dyn> p = a.given(parameter, lies);
      at::Tensor scale = at::full({}, begins.scale, at::kFloat);
      at::Tensor good = at::full({}, begins.good_so_far, at::kInt);
      for (std::size_t k = 0; k < overflow.size(); ++k) {
        const bool found = any_worker(a, overflow[k][static_cast<std::size_t>(a.team->mesh().number(a.team->at()))]);
        if (found != skipped.at(k).get<bool>()) a.fail(fmt::format("step {} is {}", k, found ? "skipped" : "taken"));
        if (!found) p.local().sub_(a.given(gradient.raised(k), lies).local(), lr);
        at::_amp_update_scale_(scale, good, at::full({}, found ? 1.0 : 0.0, at::kFloat), begins.growth, begins.backoff,
                               begins.interval);
        a.compare_whole(fmt::format("the scale after step {}", k), scale, numbers(scales.at(k)));
        a.compare(fmt::format("the parameter after step {}", k), p, numbers(parameters.at(k)));
      }
    };
  });
}

}  // namespace conformance::training
