#include "optimizers.hpp"
#include "parameter_set.hpp"
#include "small_network.hpp"
#include "subjects.hpp"

#include <tessera/nn/gradient/bundle_shards.hpp>
#include <tessera/nn/gradient/held_gradients.hpp>
#include <tessera/nn/parameter/grad_norm.hpp>
#include <tessera/operation/network/sharded_parameters.hpp>
#include <tessera/tensor/operations.hpp>

#include <bit>
#include <cmath>

namespace conformance::training {
namespace {

/// What is cut over copies: the optimizer's state (1), gradients too (2), parameters too (3).
enum class sharded { state = 1, gradients = 2, parameters = 3 };

/// Parameters with options of their own; one group of all where the case has none.
struct stepped_group {
  std::set<std::string> keys;
  json options;
};

/// A training run of a case.
struct training_run {
  recipe x;
  recipe target;
  batch_loss loss;
  std::string optimizer;
  std::vector<stepped_group> groups;
  index_t steps = 1;
  index_t passes = 1;
  std::optional<double> most;  ///< norm of the gradients
  double order = 2;
  std::vector<sharded> stages;
  engine::bundle_limits limits;         ///< of gradients that travel together
  std::vector<bool> overlapped{false};  ///< inside the last backward, or behind it
};

training_run run_of(reading& c, const small_network& net) {
  training_run r{c.tensor("x"),
                 c.tensor("target"),
                 batch_loss(c.word("loss", {"sum_product", "mean_square", "cross_entropy"})),
                 c.word("optimizer", {"sgd", "adam", "adamw"}),
                 {},
                 1,
                 1,
                 {},
                 2,
                 {},
                 {}};
  if (c.has("capacity")) r.limits.capacity = c.given().integer("capacity");
  if (c.has("modes")) {
    r.overlapped.clear();
    for (const json& mode : c.given().at("modes")) {
      if (mode != "at_the_end" && mode != "overlapped") throw unbuilt(fmt::format("the mode {}", mode.dump()));
      r.overlapped.push_back(mode == "overlapped");
    }
  }
  const json& options = c.given().at("options");
  if (c.has("groups")) {
    for (const json& said : c.given().at("groups")) {
      json own = options;
      own.update(said.value("options", json::object()));
      r.groups.push_back({said.at("parameters").get<std::set<std::string>>(), own});
    }
  } else {
    r.groups.push_back({{}, options});
    for (const auto& [key, value] : net.parameters()) r.groups[0].keys.insert(key);
  }
  r.steps = c.given().integer("steps");
  if (c.has("micro_batches")) r.passes = c.given().integer("micro_batches");
  if (r.passes < 1 || r.passes > r.x.shape().at(0)) throw unbuilt("as many micro-batches as there are samples at most");
  if (c.has("clip")) {
    const json& clip = c.given().at("clip");
    r.most = clip.at("most").get<double>();
    r.order = clip.at("order") == "inf" ? HUGE_VAL : clip.at("order").get<double>();
  }
  for (const json& stage : c.given().at("stages")) {
    if (stage != 1 && stage != 2 && stage != 3) throw unbuilt(fmt::format("the stage {}", stage.dump()));
    r.stages.push_back(static_cast<sharded>(stage.get<int>()));
  }
  return r;
}

/// The axes over which there are copies to cut: those said, or those that cut the batch.
axis_names shard_axes(const layout& x, const std::optional<std::vector<std::string>>& said) {
  static_vector<text, engine::max_axes> axes;
  for (int level = 0; !said && level < x.levels(0); ++level) axes.push(x.mesh.axes[x.cutter(0, level)].name);
  for (const std::string& name : said.value_or(std::vector<std::string>{})) axes.push(kept_name(name));
  return axis_names(axes);
}

/// A parameter as an optimizer steps it: as it is stored, or a tile of that.
struct stepped {
  const nn::parameter* of;
  tensor<dyn> part;

  /// Takes the gradient that has been reduced.
  void take_gradient() const {
    if (!apart()) return;
    part.local().mutable_grad() = to(part.layout(), attempt::gradient(of->stored())).local();
  }
  /// Gives what was stepped to all who have a copy.
  void give_back() const {
    if (!apart()) return;
    const at::NoGradGuard no_record;
    of->stored().local().copy_(to(of->stored().layout(), detach(part)).local());
  }

 private:
  bool apart() const { return part.local().unsafeGetTensorImpl() != of->stored().local().unsafeGetTensorImpl(); }
};

std::vector<stepped> all_stepped(const nn::dynamic_network& net, sharded what, const axis_names& over) {
  std::vector<stepped> all;
  net.each_parameter([&](const nn::parameter& p) {
    if (what != sharded::state) {
      all.push_back({&p, p.stored()});
      return;
    }
    layout tile = p.stored().layout();
    for (const text& name : over.list())
      if (const int a = tile.mesh.find(name);
          tile.placements[a].kind == placement::invariant && tile.mesh.axes[a].extent > 1)
        tessera::detail::spread(tile, a);
    const tensor<dyn> part = to(tile, detach(p.stored()));
    all.push_back({&p, tensor<dyn>(p.stored().team(), tile, part.local().clone().set_requires_grad(true))});
  });
  return all;
}

/// What a case expects of a run.
struct expected_of_run {
  std::vector<numbers> losses;
  std::map<std::string, numbers> parameters;
  std::map<std::string, numbers> gradients;
  std::map<std::string, numbers> state;
};

/// A network that trains, its copies cut as one stage says.
class sharded_training {
 public:
  sharded_training(attempt& a, const small_network& net, const training_run& run, const layout& x, const layout& target,
                   const lying_parameters& lying, sharded what, const axis_names& over, bool overlapped)
      : a_(a),
        run_(run),
        x_(x),
        target_(target),
        overlapped_(overlapped),
        net_(made(a, net, x, lying, what, over)),
        waiting_(std::make_shared<nn::engine::held_gradients>(a.team, net_.held_gradients()->members(), run.limits)) {
    net.start(net_, a.type());
    parts_ = all_stepped(net_, what, over);
    for (const stepped_group& g : run.groups) {
      std::vector<at::Tensor> steps;
      for (const stepped& s : parts_)
        if (g.keys.count(s.of->key()) != 0) steps.push_back(s.part.local());
      optimizers_.push_back(optimizer_of(run.optimizer, g.options, steps));
    }
  }

  /// The loss before a step, and the step.
  double step(std::uint64_t k) {
    net_.each_parameter([](const nn::parameter& p) { p.stored().local().mutable_grad() = at::Tensor(); });
    const recipe x = run_.x.raised(k);
    const recipe target = run_.target.raised(k);
    const index_t batch = x.shape()[0];
    double all = 0;
    for (index_t i = 0; i < run_.passes; ++i) {
      const engine::interval rows = micro_batch(batch, i, run_.passes);
      const double share = run_.loss.share(rows, batch);
      if (overlapped_) waiting_->open_window(i + 1 == run_.passes, false, {});
      const tensor<dyn> one = run_.loss(net_(rows_of(a_, x, a_.type(), x_, rows)),
                                        rows_of(a_, target, run_.loss.target_type(a_.type()), target_, rows));
      all += share * item(one);
      (one * share).backward();
      if (overlapped_) waiting_->close_window();
    }
    if (!overlapped_) waiting_->reduce({});
    if (run_.most) nn::clip_grad_norm(net_, *run_.most, run_.order);
    for (const stepped& s : parts_) s.take_gradient();
    for (const auto& o : optimizers_) o->step();
    for (const stepped& s : parts_) s.give_back();
    return all;
  }

  void compare(const expected_of_run& expected) {
    const auto wanted = [](const std::map<std::string, numbers>& of, const std::string& key) {
      return of.count(key) == 0 ? std::nullopt : std::optional(of.at(key));
    };
    std::set<std::string> found;
    for (const stepped& s : parts_) {
      const std::string key = s.of->key();
      a_.compare(key, detach(s.of->stored()), wanted(expected.parameters, key));
      a_.compare("the gradient of " + key, attempt::gradient(s.of->stored()), wanted(expected.gradients, key));
      for (const auto& o : optimizers_)
        for (const auto& [name, state] : state_of_step(*o, s.part.local())) {
          if (!state.defined()) continue;
          const std::string full = key + "." + name;
          found.insert(full);
          a_.compare(full, tensor<dyn>(s.of->stored().team(), s.part.layout(), state), wanted(expected.state, full));
        }
    }
    for (const auto& [name, said] : expected.state)
      if (found.count(name) == 0) a_.fail("the optimizer has no state " + name);
  }

 private:
  static nn::dynamic_network made(const attempt& a, const small_network& net, const layout& x,
                                  const lying_parameters& lying, sharded what, const axis_names& over) {
    nn::program p;
    const nn::dynamic_flow in = p.input({of_any_batch(x), a.element});
    const layers_of all{net, lying, 0, net.layers()};
    if (what == sharded::state) p.output(nn::sharded({}, all, gathering::held)(in));
    else p.output(nn::sharded(over, all, what == sharded::gradients ? gathering::held : gathering::twice)(in));
    return {a.team, seed{1}, p};
  }

  attempt& a_;
  const training_run& run_;
  layout x_;
  layout target_;
  bool overlapped_;
  nn::dynamic_network net_;
  std::shared_ptr<nn::engine::held_gradients> waiting_;
  std::vector<stepped> parts_;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers_;
};

/// Modules of LibTorch on workers that cut the batch alone, their optimizers' state divided by `nn::bundle_shards`.
class flat_training {
 public:
  flat_training(attempt& a, const small_network& net, const training_run& run, const layout& x, const layout& target,
                sharded what, const axis_names& over)
      : a_(a), net_(net), run_(run), x_(x), target_(target) {
    nn::bundle_shards::named_tensors leaves;
    for (const auto& [key, r] : net.parameters()) {
      parameters_[key] = r.whole().to(a.type()).clone().to(device_of(*a.team)).set_requires_grad(true);
      leaves.emplace_back(key, parameters_[key]);
    }
    nn::bundle_shards_options how{.stage = static_cast<int>(what), .averages = false};  // shares of one loss
    how.bundle_bytes = run.limits.capacity;
    for (const text& axis : over.list()) how.over.emplace_back(axis.data, static_cast<std::size_t>(axis.size));
    how.group = [&](const std::string& key, const at::Tensor&) {
      for (std::size_t g = 0; g < run_.groups.size(); ++g)
        if (run_.groups[g].keys.count(key) != 0) return static_cast<int>(g);
      return static_cast<int>(run_.groups.size());
    };
    shards_ = std::make_unique<nn::bundle_shards>(a.team, leaves, how);
    for (std::size_t g = 0; g < run.groups.size(); ++g)
      optimizers_.push_back(
          optimizer_of(run.optimizer, run.groups[g].options, shards_->parameters(static_cast<int>(g))));
  }

  double step(std::uint64_t k) {
    for (const at::Tensor& block : shards_->parameters()) block.mutable_grad().reset();
    const recipe x = run_.x.raised(k), target = run_.target.raised(k);
    const index_t batch = x.shape()[0];
    double mine = 0;
    for (index_t i = 0; i < run_.passes; ++i) {
      const engine::interval rows = micro_batch(batch, i, run_.passes);
      const auto window = shards_->window(i + 1 == run_.passes);
      const at::Tensor in = rows_of(a_, x, a_.type(), x_, rows).local();
      const at::Tensor beside = rows_of(a_, target, run_.loss.target_type(a_.type()), target_, rows).local();
      const at::Tensor y = net_.serial(in, parameters_);
      const at::Tensor loss =
          in.size(0) > 0 ? run_.loss.serial(y, beside) * run_.loss.share({0, in.size(0)}, batch) : y.sum();
      mine += loss.item<double>();
      loss.backward();
    }
    if (run_.most) clip();
    for (const auto& o : optimizers_) o->step();
    shards_->gather();
    return sum_over_workers(mine);
  }

  void compare(const expected_of_run& expected) {
    for (const auto& [key, p] : parameters_)
      a_.compare_whole(key, p.detach(),
                       expected.parameters.count(key) == 0 ? std::nullopt : std::optional(expected.parameters.at(key)));
    const auto in_whole = [&](const nn::engine::bundle_shard& of, const at::Tensor& block) {
      layout whole = of.lies;
      for (int axis = 0; axis < whole.placements.count; ++axis) whole.set_placement(axis, {placement::invariant});
      return to(whole, tensor<dyn>(a_.team, of.lies, block.detach())).local();
    };
    for (const nn::engine::bundle_shard& of : shards_->shards()) {
      std::map<std::string, at::Tensor> all{{"", of.block.grad()}};
      for (const auto& o : optimizers_)
        for (const auto& [name, state] : state_of_step(*o, of.block))
          if (state.defined()) all["." + name] = state;
      for (const auto& [name, block] : all) {
        const at::Tensor whole = in_whole(of, block);
        for (std::size_t m = 0; m < of.members.size(); ++m) {
          const nn::engine::named_leaf& leaf = shards_->leaves()[of.members[m]];
          const auto& wanted = name.empty() ? expected.gradients : expected.state;
          const auto said = wanted.find(leaf.name + name);
          a_.compare_whole((name.empty() ? "the gradient of " : "") + leaf.name + name,
                           whole.narrow(0, of.begins[m], leaf.leaf.numel()).view(leaf.leaf.sizes()),
                           said == wanted.end() ? std::nullopt : std::optional(said->second));
          found_.insert(leaf.name + name);
        }
      }
    }
    for (const auto& [name, said] : expected.state)
      if (found_.count(name) == 0) a_.fail("the optimizer has no state " + name);
  }

 private:
  double sum_over_workers(double mine) const {
    double sum = 0;
    for (const std::uint64_t one : a_.team->collect(std::bit_cast<std::uint64_t>(mine), "adding losses"))
      sum += std::bit_cast<double>(one);
    return sum;
  }
  // Each copy of a shard counts what it is of all copies.
  void clip() const {
    double mine = 0, copies = 1;
    const layout& lies = shards_->shards().front().lies;
    for (int axis = 0; axis < lies.placements.count; ++axis)
      if (lies.placements[axis].kind == placement::invariant) copies *= lies.mesh.axes[axis].extent;
    if (std::isinf(run_.order)) throw unbuilt("a norm of infinite order of shards");
    for (const at::Tensor& block : shards_->parameters())
      mine += block.grad().abs().pow(run_.order).sum().item<double>() / copies;
    const double norm = std::pow(sum_over_workers(mine), 1 / run_.order);
    if (const double by = *run_.most / (norm + 1e-6); by < 1)
      for (const at::Tensor& block : shards_->parameters()) block.mutable_grad().mul_(by);
  }

  attempt& a_;
  const small_network& net_;
  const training_run& run_;
  layout x_;
  layout target_;
  std::map<std::string, at::Tensor> parameters_;
  std::unique_ptr<nn::bundle_shards> shards_;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers_;
  std::set<std::string> found_;
};

/// Whether workers cut the batch alone, so that each has all parameters.
bool only_batch_is_cut(const layout& x, const lying_parameters& lying) {
  for (const engine::axis_placement& r : x.placements)
    if (r.kind != placement::cut || r.dimension != 0) return false;
  for (const auto& [key, of] : lying)
    for (const engine::axis_placement& r : of.placements)
      if (r.kind == placement::cut) return false;
  return true;
}

/// Steps of a run, each loss beside what is expected, and what it ends with.
template <class Training>
void trained(attempt& a, Training&& training, const training_run& run, const expected_of_run& expected, sharded what) {
  for (index_t k = 0; k < run.steps; ++k) {
    const double loss = training.step(static_cast<std::uint64_t>(k));
    if (static_cast<std::size_t>(k) < expected.losses.size())
      a.compare_whole(fmt::format("the loss before step {} of stage {}", k, static_cast<int>(what)),
                      at::scalar_tensor(loss, at::kDouble), expected.losses[static_cast<std::size_t>(k)]);
  }
  training.compare(expected);
}

/// Steps of given gradients of a half type, of tiles: of masters in float, which layers take rounded, or of the half
/// type itself.
task stepped_with_masters(reading& c) {
  const bool in_float = c.word("masters", {"float32", "none"}) == "float32";
  const bool averages = c.word("combine", {"mean", "sum"}) == "mean";
  const std::string optimizer = c.word("optimizer", {"sgd", "adam", "adamw"});
  const json options = c.given().at("options");
  const index_t steps = c.given().integer("steps");
  std::map<std::string, std::pair<recipe, recipe>> all;  // values, gradients
  for (const auto& [name, said] : c.entries("gradient"))
    all.emplace(name, std::pair<recipe, recipe>(c.given().at("parameters").at(name), said));
  const auto over = c.given().at("over").get<std::vector<std::string>>();
  const auto stages = c.given().at("stages").get<std::vector<int>>();
  const std::map<std::string, numbers> expected = c.gradients({}, "parameters");
  for (const auto& [name, said] : expected)
    if (all.count(name) == 0) throw unbuilt(fmt::format("the parameter '{}'", name));
  for (const int stage : stages)
    if (stage != 1 && stage != 2) throw unbuilt(fmt::format("the stage {} of given gradients", stage));
  return c.in_each_world([=](world& w) -> body {
    struct lying {
      layout tiles, copies;
    };
    std::map<std::string, lying> where;
    double workers = 1;
    for (const auto& [name, of] : all) {
      lying l{w.lying(name, of.first.shape()), w.lying(name, of.first.shape())};
      workers = 1;
      for (const std::string& axis : over) {
        const int a = w.mesh().find(kept_name(axis));
        if (a < 0) throw unbuilt(fmt::format("the axis '{}' is none of the world", axis));
        if (l.tiles.placements[a].kind != placement::invariant) throw unbuilt("tiles of what is no copy");
        if (w.mesh().axes[a].extent > 1) tessera::detail::spread(l.tiles, a);
        l.copies.placements[a] = {};
        workers *= w.mesh().axes[a].extent;
      }
      where[name] = l;
    }
    return [=](attempt& a) {
      for (const int stage : stages) {
        parameter_set net(a.team);
        std::vector<nn::parameter> held;
        std::vector<nn::engine::held_member> members;
        std::vector<at::Tensor> leaves;
        for (const auto& [name, of] : all) {
          const lying& l = where.at(name);
          const element stored = in_float ? element::float32 : element::bfloat16;
          const at::Tensor value = of.first.whole().to(at::kBFloat16).to(tessera::detail::scalar_type_of(stored));
          const nn::parameter& kept = net.add(name, l.tiles, stored, value);
          held.push_back(kept.used_as(l.copies, element::bfloat16, gathering::held));
          members.push_back(held.back().waiting());
          leaves.push_back(kept.stored().local());
        }
        const auto optimized = optimizer_of(optimizer, options, leaves);
        const auto waiting = std::make_shared<nn::engine::held_gradients>(a.team, members);
        for (index_t k = 0; k < steps; ++k) {
          optimized->zero_grad();
          waiting->open_window(true, stage == 2, {});
          at::Tensor loss;
          auto p = held.begin();
          for (const auto& [name, of] : all) {
            const at::Tensor x = (p++)->use({at::kBFloat16});
            const at::Tensor g = of.second.raised(static_cast<std::uint64_t>(k))
                                     .box(where.at(name).copies, a.team->rank(), at::kBFloat16);
            const at::Tensor term = (x * g.to(x.device())).sum();
            loss = loss.defined() ? loss + term : term;
          }
          loss.backward();
          waiting->close_window();
          for (const at::Tensor& leaf : leaves)
            if (averages) leaf.mutable_grad().div_(workers);
          optimized->step();
        }
        nn::bundle_shards::named_tensors flat;
        for (const auto& [name, of] : all)
          flat.emplace_back(name, of.first.whole().to(at::kBFloat16).to(device_of(*a.team)).set_requires_grad(true));
        nn::bundle_shards shards(a.team, flat, {.stage = stage, .averages = averages, .masters = in_float});
        const auto flat_optimized = optimizer_of(optimizer, options, shards.parameters());
        for (index_t k = 0; k < steps; ++k) {
          flat_optimized->zero_grad();
          at::Tensor loss;
          for (const auto& [name, leaf] : flat) {
            const at::Tensor g = all.at(name)
                                     .second.raised(static_cast<std::uint64_t>(k))
                                     .box(where.at(name).copies, a.team->rank(), at::kBFloat16);
            const at::Tensor term = (leaf * g.to(leaf.device())).sum();
            loss = loss.defined() ? loss + term : term;
          }
          loss.backward();
          flat_optimized->step();
          shards.gather();
        }
        for (const auto& [name, leaf] : flat) {
          const auto wanted = expected.find(name);
          a.compare_whole("flat " + name, leaf.detach(),
                          wanted == expected.end() ? std::nullopt : std::optional(wanted->second));
        }
        for (const nn::parameter& of : held) {
          const tensor<dyn> now(a.team, of.stored().layout(), of.stored().local().detach().to(at::kBFloat16));
          const auto wanted = expected.find(of.key());
          a.compare(of.key(), now, wanted == expected.end() ? std::nullopt : std::optional(wanted->second),
                    element::bfloat16);
        }
      }
    };
  });
}

}  // namespace

/// Optimizers that step parts of what workers have copies of. Tiles of parameters, gathered for each use or held for a
/// step, and intervals of bundles are the library's. The state of networks alone is cut here by changes of layout.
task sharded_optimizer(reading& c) {
  if (c.has("masters")) return stepped_with_masters(c);
  const small_network net(c);
  const training_run run = run_of(c, net);
  std::optional<std::vector<std::string>> over;
  if (c.has("shard_over")) over = c.given().at("shard_over").get<std::vector<std::string>>();
  const bool of_state = c.given().flag("state_kept");
  c.given().flag("gradients_kept");
  expected_of_run expected{{}, c.gradients({}, "parameters"), c.gradients(), {}};
  if (of_state) expected.state = c.gradients({}, "state");
  for (const json& said : c.expected("losses")) expected.losses.emplace_back(said);
  net.check_names(expected.parameters);
  net.check_names(expected.gradients);
  return c.in_each_world([=](world& w) -> body {
    const layout x = w.lying("x", run.x.shape());
    const layout target = w.lying("target", run.target.shape());
    const lying_parameters lying = net.lying(w);
    const axis_names axes = shard_axes(x, over);
    return [=](attempt& a) {
      for (const sharded what : run.stages)
        for (const bool overlapped : run.overlapped)
          trained(a, sharded_training(a, net, run, x, target, lying, what, axes, overlapped), run, expected, what);
      if (!only_batch_is_cut(x, lying)) return;
      for (const sharded what : run.stages)
        if (what != sharded::parameters)
          trained(a, flat_training(a, net, run, x, target, what, axes), run, expected, what);
    };
  });
}

}  // namespace conformance::training
