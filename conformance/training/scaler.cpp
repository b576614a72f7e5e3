#include "optimizers.hpp"
#include "parameter_set.hpp"
#include "subjects.hpp"

#include <tessera/nn/training/loss_scaler.hpp>

#include <cmath>

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

/// A number for each worker of a mesh, on that worker.
layout number_a_worker(const mesh_value& m) {
  layout x;
  x.mesh = m;
  x.placements.resize(m.axes.count);
  x.dims.resize(1);
  x.dims[0].extent = m.size();
  for (int a = 0; a < m.axes.count; ++a) x.cut_by(0, a);
  return x;
}

}  // namespace

/// Loss scaling by `nn::loss_scaler`. What a worker sees lies in the gradient of a parameter of which each worker has a
/// number; its optimizer leaves that as it is.
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
      parameter_set net(a.team);
      const tensor<dyn>& p = net.add("parameter", lies, a.element).stored();
      p.local().detach().copy_(a.given(parameter, lies).local());
      const layout mine = number_a_worker(a.team->mesh());
      const tensor<dyn>& seen = net.add("seen", mine, a.element).stored();
      const auto optimizer = optimizer_of("sgd", {{"lr", lr}}, {p.local()});
      nn::loss_scaler scaler(
          {.scale = begins.scale, .growth = begins.growth, .backoff = begins.backoff, .interval = begins.interval});
      nn::state_dict so_far = scaler.state();
      so_far.at("good_steps").fill_(begins.good_so_far);
      scaler.load_state(so_far);
      for (std::size_t k = 0; k < overflow.size(); ++k) {
        const bool overflows = overflow[k][static_cast<std::size_t>(a.team->mesh().number(a.team->at()))];
        p.local().mutable_grad() = scaler.scaled(a.given(gradient.raised(k), lies).local());
        seen.local().mutable_grad() = at::full_like(seen.local(), overflows ? HUGE_VAL : 0.0).detach();
        const nn::judgement found = scaler.step(*optimizer, net);
        if (found.finite == skipped.at(k).get<bool>())
          a.fail(fmt::format("step {} is {}", k, found.finite ? "taken" : "skipped"));
        a.compare_whole(fmt::format("the scale after step {}", k), at::scalar_tensor(scaler.scale(), at::kDouble),
                        numbers(scales.at(k)));
        a.compare(fmt::format("the parameter after step {}", k), detach(p), numbers(parameters.at(k)));
      }
    };
  });
}

}  // namespace conformance::training
