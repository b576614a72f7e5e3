#include "parameter_set.hpp"
#include "small_network.hpp"
#include "subjects.hpp"

#include <tessera/nn/gradient/held_gradients.hpp>
#include <tessera/operation/network/sharded_parameters.hpp>
#include <tessera/tensor/operations.hpp>

#include <functional>

namespace conformance::training {
namespace {

/// Over which axes workers are alike: the same for all names, or by name.
class alike_over {
 public:
  explicit alike_over(const json& said) : said_(said) {}

  /// The axes of a name in a mesh, one bit each.
  unsigned of(const std::string& name, const mesh_value& m) const {
    unsigned axes = 0;
    for (const json& one : said_.is_array() ? said_ : said_.at(name)) {
      const int a = m.find(kept_name(one.get<std::string>()));
      if (a < 0) throw unbuilt(fmt::format("the axis {} is none of the world", one.dump()));
      axes |= 1U << a;
    }
    return axes;
  }

 private:
  json said_;
};

/// Tensors of workers that differ along some axes, as one: in front of the tensor's own dimensions stands one, which
/// these axes cut.
layout apart_along(const mesh_value& m, unsigned alike, const integers& extents, const engine::axis_placement& others) {
  integers all{1};
  for (int a = 0; a < m.axes.count; ++a)
    if ((alike >> a & 1U) == 0) all[0] *= m.axes[a].extent;
  all.insert(all.end(), extents.begin(), extents.end());
  layout x = whole(m, all);
  for (int a = 0; a < m.axes.count; ++a) {
    if ((alike >> a & 1U) == 0) x.cut_by(0, a);
    else x.placements[a] = others;
  }
  check(check(x));
  return x;
}

integers shape_of(const json& of) { return nested(of).sizes().vec(); }

int number_here(const attempt& a) { return a.team->mesh().number(a.team->at()); }

/// Counts a worker's exchanges while it lives.
class exchange_count {
 public:
  explicit exchange_count(const team_handle& team) : team_(team) { team_->watch = {&started, nullptr, this}; }
  ~exchange_count() { team_->watch = {}; }
  exchange_count(const exchange_count&) = delete;
  exchange_count& operator=(const exchange_count&) = delete;

  int take() { return std::exchange(seen_, 0); }

 private:
  static void started(void* self, const phase&, element) { ++static_cast<exchange_count*>(self)->seen_; }

  team_handle team_;
  int seen_ = 0;
};

/// A parameter of which workers have copies, and what each worker's passes give of its gradient; an undefined one is of
/// a pass that does not use it.
struct given_gradient {
  layout stored;
  unsigned alike;
  std::function<std::vector<at::Tensor>(const attempt&)> passes;
};

/// When and how gradients are reduced.
struct reduction {
  engine::bundle_limits limits;
  bool overlapped = false;  ///< inside the last backward
};

/// The reductions that a case asks for: in bundles of a size, at the end or overlapped.
std::vector<reduction> reductions_of(reading& c) {
  reduction one;
  if (c.has("capacity")) one.limits.capacity = c.given().integer("capacity");
  std::vector<reduction> all;
  for (const json& mode : c.has("modes") ? c.given().at("modes") : json{"at_the_end"}) {
    if (mode != "at_the_end" && mode != "overlapped") throw unbuilt(fmt::format("the mode {}", mode.dump()));
    one.overlapped = mode == "overlapped";
    all.push_back(one);
  }
  return all;
}

/// The gradients of parameters that are held while passes give them theirs, by name, and how often they were reduced.
std::pair<std::map<std::string, tensor<dyn>>, int> reduced(const attempt& a,
                                                           const std::map<std::string, given_gradient>& given,
                                                           const reduction& how) {
  parameter_set net(a.team);
  std::vector<nn::parameter> held;
  std::vector<std::vector<at::Tensor>> passes;
  std::vector<nn::engine::held_member> members;
  std::size_t count = 0;
  for (const auto& [name, one] : given) {
    layout used = one.stored;
    for (int axis = 0; axis < used.placements.count; ++axis)
      if ((one.alike >> axis & 1U) != 0) used.placements[axis] = {};
    const nn::parameter& kept = net.add(name, one.stored, a.element, at::zeros(extents_of(one.stored), a.type()));
    held.push_back(kept.used_as(used, a.element, gathering::held));
    members.push_back(held.back().waiting());
    passes.push_back(one.passes(a));
    count = std::max(count, passes.back().size());
  }
  const auto all = std::make_shared<nn::engine::held_gradients>(a.team, members, how.limits);
  const auto backward = [&](std::size_t pass, bool zeros) {
    at::Tensor loss;
    const auto add = [&](std::size_t i, const at::Tensor& g) {
      const at::Tensor x = held[i].use();
      const at::Tensor term = (x * (g.defined() ? g.to(x.options()).reshape(x.sizes()) : at::zeros_like(x))).sum();
      loss = loss.defined() ? loss + term : term;
    };
    for (std::size_t i = 0; i < held.size(); ++i)
      if (zeros || (pass < passes[i].size() && passes[i][pass].defined()))
        add(i, zeros ? at::Tensor() : passes[i][pass]);
    if (!loss.defined()) add(0, {});  // a worker with no gradient takes part
    loss.backward();
  };
  exchange_count exchanges(a.team);
  backward(0, true);
  all->reduce({});
  const int of_one = exchanges.take();
  for (const nn::parameter& p : held) p.stored().local().mutable_grad().reset();
  for (std::size_t pass = 0; pass < count; ++pass) {
    if (how.overlapped) all->open_window(pass + 1 == count, false, {});
    backward(pass, false);
    if (how.overlapped) all->close_window();
  }
  if (!how.overlapped) all->reduce({});
  const int times = exchanges.take();
  std::map<std::string, tensor<dyn>> sums;
  auto p = held.begin();
  for (const auto& [name, one] : given) sums.emplace(name, attempt::gradient((p++)->stored()));
  return {sums, of_one == 0 ? 1 + times : times / of_one};
}

tensor<dyn> divided(const tensor<dyn>& sums, double by) {
  return tensor<dyn>(sums.team(), sums.layout(), sums.local() / by);
}

/// How many copies of a tensor there are.
double copies_along(const mesh_value& m, unsigned alike) {
  double copies = 1;
  for (int a = 0; a < m.axes.count; ++a)
    if ((alike >> a & 1U) != 0) copies *= m.axes[a].extent;
  return copies;
}

void compare_reductions(attempt& a, int most, const std::optional<numbers>& expected) {
  a.compare_whole("the number of reductions", at::scalar_tensor(static_cast<double>(most), at::kDouble), expected);
}

/// Gradients that a case gives by worker and pass.
task given_by_workers(reading& c, const std::string& combine) {
  const json local = c.given().at("local");
  const alike_over over(c.given().at("over"));
  const json gradients = c.expected("gradients");
  const std::optional<numbers> reductions = c.result("reductions");
  c.has("reductions");
  const std::vector<reduction> ways = reductions_of(c);
  return c.in_each_world([=](world& w) -> body {
    std::map<std::string, given_gradient> all;
    for (const auto& [name, by_worker] : local.items()) {
      if (static_cast<int>(by_worker.size()) != w.mesh().size()) throw unbuilt("gradients of other workers");
      std::optional<integers> shape;
      for (const json& passes : by_worker)
        for (const json& one : passes)
          if (!one.is_null()) shape = shape_of(one);
      if (!shape) throw unbuilt(fmt::format("'{}' that nobody uses", name));
      const unsigned alike = over.of(name, w.mesh());
      const auto passes = [said = by_worker](const attempt& a) {
        std::vector<at::Tensor> mine;
        for (const json& pass : said.at(static_cast<std::size_t>(number_here(a))))
          mine.push_back(pass.is_null() ? at::Tensor() : nested(pass));
        return mine;
      };
      all[name] = {apart_along(w.mesh(), alike, *shape, {placement::invariant}), alike, passes};
    }
    return [=](attempt& a) {
      for (const reduction& how : ways) {
        const auto [sums, times] = reduced(a, all, how);
        for (const auto& [name, given] : all) {
          if (gradients.is_null()) continue;
          const double by = combine == "mean" ? copies_along(a.team->mesh(), given.alike) : 1;
          const numbers expected(gradients.at(name).at(static_cast<std::size_t>(number_here(a))));
          a.compare_box("the gradient of " + name, divided(sums.at(name), by).local().reshape(expected.shape()),
                        expected);
        }
        compare_reductions(a, times, reductions);
      }
    };
  });
}

/// Gradients that a case gives whole: a worker's own is its term, times the number of workers where they are averaged.
task given_whole(reading& c, const std::string& combine) {
  std::map<std::string, recipe> whole_ones;
  for (const auto& [name, said] : c.entries("gradient")) whole_ones.emplace(name, said);
  const alike_over over(c.given().at("over"));
  const index_t passes = c.has("micro_batches") ? c.given().integer("micro_batches") : 1;
  const std::map<std::string, numbers> gradients = c.gradients();
  const std::optional<numbers> reductions = c.result("reductions");
  const std::vector<reduction> ways = reductions_of(c);
  for (const auto& [name, said] : gradients)
    if (whole_ones.count(name) == 0) throw unbuilt(fmt::format("the gradient of '{}'", name));
  return c.in_each_world([=](world& w) -> body {
    std::map<std::string, given_gradient> all;
    for (const auto& [name, r] : whole_ones) {
      const unsigned alike = over.of(name, w.mesh());
      layout stored = w.lying(name, r.shape());
      layout terms = stored;
      for (int a = 0; a < terms.placements.count; ++a)
        if ((alike >> a & 1U) != 0) terms.placements[a] = {placement::partial};
      const double times = combine == "mean" ? copies_along(w.mesh(), alike) : 1;
      const auto shares = [=, value = r](const attempt& a) {
        const at::Tensor each = value.box(terms, a.team->rank(), a.type()) * (times / static_cast<double>(passes));
        return std::vector<at::Tensor>(static_cast<std::size_t>(passes), each);
      };
      all[name] = {stored, alike, shares};
    }
    return [=](attempt& a) {
      std::vector<std::map<std::string, tensor<dyn>>> found;
      for (const reduction& how : ways) {
        const auto [sums, times] = reduced(a, all, how);
        for (const auto& [name, given] : all) {
          const double by = combine == "mean" ? copies_along(a.team->mesh(), given.alike) : 1;
          const auto wanted = gradients.find(name);
          a.compare("the gradient of " + name, divided(sums.at(name), by),
                    wanted == gradients.end() ? std::nullopt : std::optional(wanted->second));
          if (!found.empty() && !at::equal(found.front().at(name).local(), sums.at(name).local()))
            a.fail(fmt::format("the gradient of {} has other bits where reductions overlap", name));
        }
        found.push_back(sums);
        compare_reductions(a, times, reductions);
      }
    };
  });
}

/// What workers begin with: those of a group take what its first one has.
task begun_alike(reading& c) {
  const json start = c.given().at("start");
  const alike_over over(c.given().at("over"));
  const json expected = c.expected("parameters");
  return c.in_each_world([=](world& w) -> body {
    std::map<std::string, layout> lying;
    for (const auto& [name, by_worker] : start.items())
      lying[name] = apart_along(w.mesh(), over.of(name, w.mesh()), shape_of(by_worker.at(0)), held_on(0));
    return [=](attempt& a) {
      const auto mine = static_cast<std::size_t>(number_here(a));
      for (const auto& [name, from] : lying) {
        const at::Tensor has = nested(start.at(name).at(mine)).to(a.type());
        layout alike = from;
        for (engine::axis_placement& r : alike.placements)
          if (r.kind == placement::on) r = {placement::invariant};
        const integers sizes = tessera::detail::sizes_of(held_by(from, a.team->rank()));
        const at::Tensor box = volume_of(sizes) == 0 ? at::zeros(sizes, a.type()) : has.reshape(sizes);
        const tensor<dyn> now = to(alike, tensor<dyn>(a.team, from, box.to(device_of(*a.team))));
        const numbers wanted(expected.at(name).at(mine));
        a.compare_box(name, now.local().reshape(wanted.shape()), wanted);
      }
    };
  });
}

/// A network whose batch is cut: the loss of the whole batch, and the gradients that its copies must have.
task of_network(reading& c) {
  const small_network net(c);
  const recipe x = c.tensor("x");
  const recipe target = c.tensor("target");
  const batch_loss loss(c.word("loss", {"sum_product", "mean_square", "cross_entropy"}));
  const index_t passes = c.has("micro_batches") ? c.given().integer("micro_batches") : 1;
  const std::optional<numbers> expected = c.result("loss");
  const std::map<std::string, numbers> gradients = c.gradients();
  net.check_names(gradients);
  const std::vector<reduction> ways = reductions_of(c);
  if (passes < 1 || passes > x.shape().at(0)) throw unbuilt("as many micro-batches as there are samples at most");
  return c.in_each_world([=](world& w) -> body {
    const layout lies = of_any_batch(w.lying("x", x.shape()));
    const layout beside = w.lying("target", target.shape());
    const lying_parameters lying = net.lying(w);
    return [=](attempt& a) {
      for (const reduction& how : ways) {
        nn::program p;
        // All gradients wait for the last micro-batch; tiles are gathered until then.
        p.output(nn::sharded({}, layers_of{net, lying, 0, net.layers()}, gathering::held)(p.input({lies, a.element})));
        nn::dynamic_network running{a.team, seed{1}, p};
        net.start(running, a.type());
        const auto waiting =
            std::make_shared<nn::engine::held_gradients>(a.team, running.held_gradients()->members(), how.limits);
        double all = 0;
        for (index_t i = 0; i < passes; ++i) {
          const engine::interval rows = micro_batch(x.shape()[0], i, passes);
          const double share = loss.share(rows, x.shape()[0]);
          if (how.overlapped) waiting->open_window(i + 1 == passes, false, {});
          const tensor<dyn> one = loss(running(rows_of(a, x, a.type(), lies, rows)),
                                       rows_of(a, target, loss.target_type(a.type()), beside, rows));
          all += share * item(one);
          (one * share).backward();
          if (how.overlapped) waiting->close_window();
        }
        if (!how.overlapped) waiting->reduce({});
        a.compare_whole("the loss", at::scalar_tensor(all, at::kDouble), expected);
        running.each_parameter([&](const nn::parameter& of) {
          const auto wanted = gradients.find(of.key());
          if (wanted != gradients.end())
            a.compare("the gradient of " + of.key(), attempt::gradient(of.stored()), wanted->second);
          if (!small_network::lies_as(of.stored(), lying.at(of.key())))
            a.fail(of.key() + " is not stored as the world says");
        });
      }
    };
  });
}

}  // namespace

/// Gradients reduced over copies: given ones by held parameters, and those of networks whose batch is cut.
task data_parallel(reading& c) {
  if (c.has("start")) return begun_alike(c);
  if (c.has("model")) return of_network(c);
  const std::string combine = c.word("combine", {"mean", "sum"});
  return c.has("gradient") ? given_whole(c, combine) : given_by_workers(c, combine);
}

}  // namespace conformance::training
