#include "copied_module.hpp"
#include "small_network.hpp"

#include <tessera/nn/gradient/held_gradients.hpp>
#include <tessera/operation/network/sharded_parameters.hpp>
#include <tessera/tensor/operations.hpp>

#include <bit>

namespace conformance::training {
namespace {

/// A case's network and batch.
struct network_case {
  small_network net;
  recipe x, target;
  batch_loss loss;
  bool sums;  ///< the loss is a sum over samples, no mean
  index_t passes;
  std::optional<numbers> expected;
  std::map<std::string, numbers> gradients;

  index_t batch() const { return x.shape()[0]; }
  double share(index_t pass) const { return loss.share(micro_batch(batch(), pass, passes), batch()); }
};

/// What a world makes of it: how a batch of any size lies, its targets, and the parameters.
struct network_world {
  layout x, target;
  lying_parameters lying;
};

/// The axes along which samples are cut, one bit each.
unsigned sample_axes(const layout& x) {
  unsigned axes = 0;
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::cut && x.placements[a].dimension == 0) axes |= 1U << a;
  return axes;
}

/// Whether samples alone are cut, in one interval a worker.
bool cuts_samples_alone(const layout& x) {
  for (const engine::axis_placement& p : x.placements)
    if (p.kind != placement::invariant && (p.kind != placement::cut || p.dimension != 0)) return false;
  return true;
}

/// The same layout of samples for a tensor of these extents.
layout samples_as(const layout& x, const integers& extents) {
  layout y = x;
  y.dims.resize(static_cast<int>(extents.size()));
  for (int d = 1; d < y.dims.count; ++d) {
    y.dims[d] = {};
    y.dims[d].extent = extents[static_cast<std::size_t>(d)];
  }
  return y;
}

/// Layers that workers have whole by LibTorch, and the others by the library, in turns.
class mixed_network {
 public:
  mixed_network(const attempt& a, const network_case& of, const network_world& in, const reduction& how)
      : a_(a), of_(of), in_(in), how_(how) {
    for (std::size_t i = 0; i < of.net.layers(); ++i) {
      const bool whole = of.net.is_whole(i, in.lying);
      if (i == 0 || whole != parts_.back().whole) parts_.push_back({i, i, whole, nullptr});
      parts_.back().end = i + 1;
    }
    for (const auto& [key, r] : of.net.parameters())
      if (of.net.is_whole(of.net.layer_of(key), in.lying)) module_.add(key, r.whole().to(device_of(*a.team), a.type()));
    for (part& one : parts_) {
      if (one.whole) continue;
      nn::program p;
      p.output(layers_of{of.net, in.lying, one.begin, one.end}(p.input({between(one.begin), a.element})));
      one.net = std::make_shared<nn::dynamic_network>(a.team, seed{1}, p);
      one.net->each_parameter(
          [&](const nn::parameter& q) { q.assign(of.net.parameters().at(q.key()).whole().to(a.type())); });
    }
    by_torch_ = parts_.size() == 1;
    nn::data_parallel_options options = how.options();
    options.averages = by_torch_;
    const unsigned all = (1U << in.x.mesh.axes.count) - 1;
    module_.copy_along(a, by_torch_ ? all : sample_axes(in.x), options);
  }

  /// Runs all micro-batches as one window. Returns the loss of the whole batch.
  double run() {
    double all = 0;
    for (index_t i = 0; i < of_.passes; ++i) all += by_torch_ ? own_pass(i) : pass(i);
    if (!how_.overlapped) module_.end_window(weight(0));
    return all;
  }

  void compare(attempt& a) const {
    for (const auto& [key, of] : module_.parameters())
      if (const auto wanted = of_.gradients.find(key); wanted != of_.gradients.end())
        a.compare("the gradient of " + key, tensor<dyn>(a.team, in_.lying.at(key), module_.gradient(key)),
                  wanted->second);
    for (const part& one : parts_)
      if (one.net)
        one.net->each_parameter([&](const nn::parameter& of) {
          const auto wanted = of_.gradients.find(of.key());
          if (wanted != of_.gradients.end())
            a.compare("the gradient of " + of.key(), attempt::gradient(of.stored()), wanted->second);
          if (!small_network::lies_as(of.stored(), in_.lying.at(of.key())))
            a.fail(of.key() + " is not stored as the world says");
        });
  }

 private:
  struct part {
    std::size_t begin, end;
    bool whole;
    std::shared_ptr<nn::dynamic_network> net;  ///< where it is not
  };

  /// How what goes into a layer lies: as samples do.
  layout between(std::size_t layer) const {
    return samples_as(in_.x, {dynamic, layer == 0 ? of_.x.shape().at(1) : of_.net.features(layer - 1)});
  }
  /// The weight of a pass of so many samples.
  std::optional<double> weight(index_t samples) const {
    return by_torch_ && !of_.sums ? std::optional(static_cast<double>(samples)) : std::nullopt;
  }
  bool ends(index_t pass) const { return how_.overlapped && pass + 1 == of_.passes; }

  tensor<dyn> rows(const recipe& r, at::ScalarType type, const layout& lies, index_t pass) const {
    return rows_of(a_, r, type, lies, micro_batch(of_.batch(), pass, of_.passes));
  }

  /// A micro-batch as any program of LibTorch has it: a worker's own samples, its own loss, and their number as weight.
  double own_pass(index_t pass) {
    const at::Tensor x = rows(of_.x, a_.type(), in_.x, pass).local();
    const at::Tensor beside =
        rows(of_.target, of_.loss.target_type(a_.type()), samples_as(in_.x, of_.target.shape()), pass).local();
    const at::Tensor mine = of_.loss.serial(of_.net.serial(x, module_.parameters()), beside);
    const mesh_value& m = a_.team->mesh();
    double copies = m.size();
    for (int axis = 0; axis < m.axes.count; ++axis)
      if ((sample_axes(in_.x) >> axis & 1U) != 0) copies /= m.axes[axis].extent;
    // a sum over workers, of which copies count once, is their mean times so many
    module_.backward(of_.sums ? mine * (m.size() / copies) : mine, ends(pass), weight(x.size(0)));
    const double counted = of_.sums ? 1 : static_cast<double>(x.size(0)) / static_cast<double>(of_.batch());
    const double term = x.size(0) == 0 ? 0 : mine.item<double>() * counted / copies;
    double all = 0;
    for (const std::uint64_t one : a_.team->collect(std::bit_cast<std::uint64_t>(term), "adding losses"))
      all += std::bit_cast<double>(one);
    return all;
  }

  /// A micro-batch through layers of both kinds, with the loss of all its samples.
  double pass(index_t pass) {
    tensor<dyn> y = rows(of_.x, a_.type(), in_.x, pass);
    for (const part& one : parts_) {
      layout as_samples = between(one.begin);
      as_samples.dims[0] = y.layout().dims[0];
      if (!same(y.layout(), as_samples)) y = to(as_samples, y);
      if (one.net) {
        y = (*one.net)(y);
      } else {
        layout out = between(one.end);
        out.dims[0] = as_samples.dims[0];
        y = tensor<dyn>(a_.team, out, of_.net.serial(y.local(), module_.parameters(), one.begin, one.end));
      }
    }
    const tensor<dyn> loss = of_.loss(y, rows(of_.target, of_.loss.target_type(a_.type()), in_.target, pass));
    const double share = of_.share(pass);
    module_.backward((loss * share).local(), ends(pass));
    return share * item(loss);
  }

  const attempt& a_;
  const network_case& of_;
  const network_world& in_;
  reduction how_;
  std::vector<part> parts_;
  copied_module module_;
  bool by_torch_ = false;
};

/// A network of which nobody has a whole layer, by the library alone. All gradients wait for the last micro-batch.
double run_held(attempt& a, const network_case& of, const network_world& in, const reduction& how) {
  nn::program p;
  p.output(
      nn::sharded({}, layers_of{of.net, in.lying, 0, of.net.layers()}, gathering::held)(p.input({in.x, a.element})));
  nn::dynamic_network running{a.team, seed{1}, p};
  of.net.start(running, a.type());
  engine::bundle_limits limits;
  if (how.capacity) limits.capacity = *how.capacity;
  const auto waiting =
      std::make_shared<nn::engine::held_gradients>(a.team, running.held_gradients()->members(), limits);
  double all = 0;
  for (index_t i = 0; i < of.passes; ++i) {
    const engine::interval rows = micro_batch(of.batch(), i, of.passes);
    const double share = of.loss.share(rows, of.batch());
    if (how.overlapped) waiting->open_window(i + 1 == of.passes, false, {});
    const tensor<dyn> one = of.loss(running(rows_of(a, of.x, a.type(), in.x, rows)),
                                    rows_of(a, of.target, of.loss.target_type(a.type()), in.target, rows));
    all += share * item(one);
    (one * share).backward();
    if (how.overlapped) waiting->close_window();
  }
  if (!how.overlapped) waiting->reduce({});
  running.each_parameter([&](const nn::parameter& q) {
    const auto wanted = of.gradients.find(q.key());
    if (wanted != of.gradients.end())
      a.compare("the gradient of " + q.key(), attempt::gradient(q.stored()), wanted->second);
    if (!small_network::lies_as(q.stored(), in.lying.at(q.key()))) a.fail(q.key() + " is not stored as the world says");
  });
  return all;
}

}  // namespace

task data_parallel_network(reading& c) {
  const small_network net(c);
  const std::string word = c.word("loss", {"sum_product", "mean_square", "cross_entropy"});
  const network_case of{.net = net,
                        .x = c.tensor("x"),
                        .target = c.tensor("target"),
                        .loss = batch_loss(word),
                        .sums = word == "sum_product",
                        .passes = c.has("micro_batches") ? c.given().integer("micro_batches") : 1,
                        .expected = c.result("loss"),
                        .gradients = c.gradients()};
  net.check_names(of.gradients);
  const std::vector<reduction> ways = reductions_of(c);
  if (of.passes < 1 || of.passes > of.batch()) throw unbuilt("as many micro-batches as there are samples at most");
  return c.in_each_world([=](world& w) -> body {
    const network_world in{of_any_batch(w.lying("x", of.x.shape())), w.lying("target", of.target.shape()),
                           net.lying(w)};
    bool some_whole = false;
    for (const auto& [key, lies] : in.lying) some_whole = some_whole || net.is_whole(net.layer_of(key), in.lying);
    const bool trains_copies = some_whole && cuts_samples_alone(in.x) && of.x.shape().size() == 2;
    return [=](attempt& a) {
      for (const reduction& how : ways) {
        double all = 0;
        if (trains_copies) {
          mixed_network running(a, of, in, how);
          all = running.run();
          running.compare(a);
        } else {
          all = run_held(a, of, in, how);
        }
        a.compare_whole("the loss", at::scalar_tensor(all, at::kDouble), of.expected);
      }
    };
  });
}

}  // namespace conformance::training
