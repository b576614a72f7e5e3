#include "copied_module.hpp"
#include "subjects.hpp"

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

/// A parameter of which workers along some axes have copies, and what each worker's passes give of its gradient; an
/// undefined one is of a pass that does not use it.
struct given_gradient {
  integers sizes;  ///< of what each worker has
  unsigned alike;
  std::size_t count;  ///< of passes, on all workers
  std::function<std::vector<at::Tensor>(const attempt&)> passes;
};
using given_gradients = std::map<std::string, given_gradient>;
using found_gradients = std::map<std::string, at::Tensor>;

/// A worker's passes over parameters that workers along the same axes have, in a window of their own.
class given_window {
 public:
  given_window(const attempt& a, const given_gradients& all, unsigned alike, const reduction& how, bool averages)
      : how_(how), exchanges_(a.team) {
    for (const auto& [name, one] : all) {
      if (one.alike != alike) continue;
      module_.add(name, at::zeros(one.sizes, at::TensorOptions(a.type()).device(device_of(*a.team))));
      passes_[name] = one.passes(a);
      count_ = std::max(count_, one.count);
    }
    nn::data_parallel_options options = how.options();
    options.averages = averages;
    module_.copy_along(a, alike, options);
    exchanges_.take();
  }

  /// Runs all passes. Returns how often each bundle was reduced; nothing where nobody has copies.
  std::optional<int> run() {
    module_.end_window();
    const int of_one = exchanges_.take();
    module_.forget_gradients();
    for (std::size_t pass = 0; pass < count_; ++pass) {
      const at::Tensor loss = loss_of(pass);
      if (how_.overlapped && pass + 1 == count_) {
        if (loss.defined()) module_.backward(loss, true);
        else module_.end_window();  // a worker with no gradient takes part
      } else if (loss.defined()) {
        module_.backward(loss, false);
      }
    }
    if (!how_.overlapped) module_.end_window();
    const int times = exchanges_.take();
    if (module_.parallel() == nullptr) return std::nullopt;
    return of_one == 0 ? 1 + times : times / of_one;
  }

  void give(found_gradients& all) const {
    for (const auto& [name, of] : module_.parameters()) all[name] = module_.gradient(name);
  }

 private:
  at::Tensor loss_of(std::size_t pass) const {
    at::Tensor loss;
    for (const auto& [name, x] : module_.parameters()) {
      const std::vector<at::Tensor>& mine = passes_.at(name);
      if (pass >= mine.size() || !mine[pass].defined()) continue;
      const at::Tensor term = (x * mine[pass].to(x.options().requires_grad(false)).reshape(x.sizes())).sum();
      loss = loss.defined() ? loss + term : term;
    }
    return loss;
  }

  reduction how_;
  copied_module module_;
  std::map<std::string, std::vector<at::Tensor>> passes_;
  std::size_t count_ = 0;
  exchange_count exchanges_;
};

/// The gradients by name, and how often they were reduced at most.
std::pair<found_gradients, int> reduced(const attempt& a, const given_gradients& given, const reduction& how,
                                        bool averages) {
  std::set<unsigned> kinds;
  for (const auto& [name, one] : given) kinds.insert(one.alike);
  found_gradients all;
  int most = 0;
  for (const unsigned alike : kinds) {
    given_window window(a, given, alike, how, averages);
    most = std::max(most, window.run().value_or(0));
    window.give(all);
  }
  return {all, most};
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
task given_by_workers(reading& c, bool averages) {
  const json local = c.given().at("local");
  const alike_over over(c.given().at("over"));
  const json gradients = c.expected("gradients");
  const std::optional<numbers> reductions = c.result("reductions");
  c.has("reductions");
  const std::vector<reduction> ways = reductions_of(c);
  return c.in_each_world([=](world& w) -> body {
    given_gradients all;
    for (const auto& [name, by_worker] : local.items()) {
      if (static_cast<int>(by_worker.size()) != w.mesh().size()) throw unbuilt("gradients of other workers");
      std::optional<integers> shape;
      std::size_t count = 0;
      for (const json& passes : by_worker) {
        count = std::max(count, passes.size());
        for (const json& one : passes)
          if (!one.is_null()) shape = shape_of(one);
      }
      if (!shape) throw unbuilt(fmt::format("'{}' that nobody uses", name));
      const auto passes = [said = by_worker](const attempt& a) {
        std::vector<at::Tensor> mine;
        for (const json& pass : said.at(static_cast<std::size_t>(number_here(a))))
          mine.push_back(pass.is_null() ? at::Tensor() : nested(pass));
        return mine;
      };
      all[name] = {*shape, over.of(name, w.mesh()), count, passes};
    }
    return [=](attempt& a) {
      for (const reduction& how : ways) {
        const auto [found, times] = reduced(a, all, how, averages);
        for (const auto& [name, one] : found) {
          if (gradients.is_null()) continue;
          const numbers expected(gradients.at(name).at(static_cast<std::size_t>(number_here(a))));
          a.compare_box("the gradient of " + name, one.reshape(expected.shape()), expected);
        }
        compare_reductions(a, times, reductions);
      }
    };
  });
}

/// Gradients that a case gives whole: a worker's own is its term, times the number of workers where they are averaged.
task given_whole(reading& c, bool averages) {
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
    std::map<std::string, layout> stored;
    for (const auto& [name, r] : whole_ones) stored[name] = w.lying(name, r.shape());
    return [=, mesh = w.mesh()](attempt& a) {
      given_gradients all;
      for (const auto& [name, r] : whole_ones) {
        const unsigned alike = over.of(name, mesh);
        layout terms = stored.at(name);
        for (int axis = 0; axis < terms.placements.count; ++axis)
          if ((alike >> axis & 1U) != 0) terms.placements[axis] = {placement::partial};
        const double times = averages ? copies_along(mesh, alike) : 1;
        const auto shares = [=, value = r](const attempt& at_worker) {
          const at::Tensor each =
              value.box(terms, at_worker.team->rank(), at_worker.type()) * (times / static_cast<double>(passes));
          return std::vector<at::Tensor>(static_cast<std::size_t>(passes), each);
        };
        all[name] = {tessera::detail::sizes_of(held_by(stored.at(name), a.team->rank())), alike,
                     static_cast<std::size_t>(passes), shares};
      }
      std::optional<found_gradients> first;
      for (const reduction& how : ways) {
        const auto [found, times] = reduced(a, all, how, averages);
        for (const auto& [name, one] : found) {
          const auto wanted = gradients.find(name);
          a.compare("the gradient of " + name, tensor<dyn>(a.team, stored.at(name), one),
                    wanted == gradients.end() ? std::nullopt : std::optional(wanted->second));
          if (first && !at::equal(first->at(name), one))
            a.fail(fmt::format("the gradient of {} has other bits where reductions overlap", name));
        }
        if (!first) first = found;
        compare_reductions(a, times, reductions);
      }
    };
  });
}

/// What workers begin with, as parameters and as buffers: those of a line take what its first one has.
task begun_alike(reading& c) {
  const json start = c.given().at("start");
  const alike_over over(c.given().at("over"));
  const json expected = c.expected("parameters");
  return c.in_each_world([=](world& w) -> body {
    std::map<unsigned, std::vector<std::string>> kinds;
    for (const auto& [name, by_worker] : start.items()) {
      if (static_cast<int>(by_worker.size()) < w.mesh().size()) throw unbuilt("values of fewer workers");
      kinds[over.of(name, w.mesh())].push_back(name);
    }
    return [=](attempt& a) {
      const auto mine = static_cast<std::size_t>(number_here(a));
      for (const auto& [alike, names] : kinds) {
        copied_module module;
        for (const std::string& name : names) {
          const at::Tensor has = nested(start.at(name).at(mine)).to(device_of(*a.team), a.type());
          module.add(name, has);
          module.add_buffer(name, has);
        }
        module.copy_along(a, alike);
        for (const auto* all : {&module.parameters(), &module.buffers()})
          for (const auto& [name, now] : *all) {
            const numbers wanted(expected.at(name).at(mine));
            a.compare_box(name, now.detach().reshape(wanted.shape()), wanted);
          }
      }
    };
  });
}

}  // namespace

/// Gradients of copies, by nn::data_parallel: given ones, and those of networks whose batch is cut.
task data_parallel(reading& c) {
  if (c.has("start")) return begun_alike(c);
  if (c.has("model")) return data_parallel_network(c);
  const bool averages = c.word("combine", {"mean", "sum"}) == "mean";
  return c.has("gradient") ? given_whole(c, averages) : given_by_workers(c, averages);
}

}  // namespace conformance::training
