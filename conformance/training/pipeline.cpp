#include "small_network.hpp"
#include "subjects.hpp"

#include <range/v3/view/zip.hpp>

namespace conformance::training {
namespace {

/// An input of a stage besides what arrives there.
struct extra_input {
  std::size_t stage;
  recipe value;
  std::string name() const { return fmt::format("extra.{}", stage); }
};

/// A pipeline of a case: which layers each stage has, and how its batch goes through.
struct pipeline_form {
  integers layers;  ///< of each stage, or chunk of one
  index_t micro_batches = 1;
  bool in_shares = false;
  std::vector<extra_input> extra;
};

pipeline_form form_of(reading& c, const small_network& net, index_t batch) {
  pipeline_form f;
  f.layers = c.given().list("stages");
  f.micro_batches = c.given().integer("micro_batches");
  f.in_shares = c.given().flag("scatter_gather");
  const bool uneven = c.given().flag("uneven");
  if (std::accumulate(f.layers.begin(), f.layers.end(), index_t{0}) != static_cast<index_t>(net.layers()))
    throw unbuilt("stages of other layers");
  if (f.micro_batches < 1 || f.micro_batches > batch || (batch % f.micro_batches != 0 && !uneven))
    throw unbuilt("a batch that its micro-batches do not share out");
  if (!c.has("extra")) return f;
  for (const json& said : c.given().at("extra")) {
    for (const auto& [name, value] : said.items())
      if (name != "stage" && name != "tensor") throw unbuilt(fmt::format("'{}' of an extra input", name));
    f.extra.push_back({said.at("stage").get<std::size_t>(), recipe(said.at("tensor"))});
  }
  if (f.extra.size() > 1) throw unbuilt("several extra inputs");
  return f;
}

/// Stages of a world: chunk k is on coordinate k mod stages of the axis pipe.
class stage_axis {
 public:
  stage_axis(const mesh_value& m, const pipeline_form& f, index_t chunks)
      : pipe_(m.find(kept_name("pipe"))), shares_(f.in_shares ? m.find(kept_name("tensor")) : -1) {
    if (pipe_ < 0) throw unbuilt("a pipeline in a world without the axis pipe");
    stages_ = m.axes[pipe_].extent;
    if (static_cast<index_t>(f.layers.size()) != stages_ * chunks)
      throw unbuilt("another number of stages than the world's");
  }

  layout on(std::size_t chunk, layout x) const {
    x.set_placement(pipe_, held_on(static_cast<int>(chunk) % stages_));
    return x;
  }
  /// A flow that goes on to a chunk. In shares each worker along an axis sends its own, put together on arrival.
  nn::dynamic_flow sent(const nn::dynamic_flow& x, std::size_t chunk) const {
    const layout lies = x.in->value_of(x).layout;
    if (shares_ < 0 || lies.placements[shares_].kind == placement::cut)
      return x | nn::repartition_layer{on(chunk, lies)};
    layout share = lies;
    share.cut_by(lies.dims.count - 1, shares_);
    return x | nn::repartition_layer{share} | nn::repartition_layer{on(chunk, share)} |
           nn::repartition_layer{on(chunk, lies)};
  }
  /// How parameters lie: those that the world does not name are on their stage alone.
  void place(world& w, lying_parameters& lying, const std::string& layer, std::size_t chunk) const {
    for (auto& [key, lies] : lying)
      if (key.substr(0, key.find('.')) == layer && !w.names(key)) lies = on(chunk, lies);
  }

 private:
  int pipe_;
  int shares_;
  int stages_ = 1;
};

/// Writes all stages down; the outputs are the result, or where it is asked for that of each stage.
void write_stages(nn::program& p, const nn::dynamic_flow& x, const std::vector<nn::dynamic_flow>& extra,
                  const small_network& net, const pipeline_form& f, const stage_axis& stages,
                  const lying_parameters& lying, bool each_stage) {
  nn::dynamic_flow y = x;
  std::size_t begin = 0;
  for (std::size_t k = 0; k < f.layers.size(); ++k) {
    y = stages.sent(y, k);
    for (const auto& [given, flow] : ranges::views::zip(f.extra, extra))
      if (given.stage == k) y = y + stages.sent(flow, k);
    const std::size_t end = begin + static_cast<std::size_t>(f.layers[k]);
    y = net.write(y, begin, end, lying);
    begin = end;
    if (each_stage) p.output(y);
  }
  if (!each_stage) p.output(y);
}

}  // namespace

/// A network in stages on workers of their own. Micro-batches go through in GPipe's order, all forwards before all
/// backwards, as results do not depend on the order.
task pipeline(reading& c) {
  const small_network net(c);
  const recipe x = c.tensor("x");
  const index_t batch = x.shape().at(0);
  const pipeline_form f = form_of(c, net, batch);
  const std::string run = c.word("run", {"train", "forward", "evaluate"});
  if (c.has("schedules"))
    for (const json& one : c.given().at("schedules"))
      if (one != "one_f_one_b" && one != "gpipe" && one != "interleaved")
        throw unbuilt(fmt::format("the schedule {}", one.dump()));
  const index_t chunks = c.has("chunks") ? c.given().integer("chunks") : 1;
  const bool trains = run == "train";
  const batch_loss loss(trains ? c.word("loss", {"sum_product", "mean_square", "cross_entropy"}) : "");
  const std::optional<recipe> target = c.maybe("target");
  if (trains != target.has_value()) throw unbuilt("a run without its target");
  const double times = c.number("loss_times", 1) * c.number("backward_times", 1);
  const std::optional<numbers> y_last = c.result("y_last");
  const std::map<std::string, numbers> gradients = c.gradients();
  std::vector<numbers> of_stages;
  for (const json& said : c.expected("stage_outputs")) of_stages.emplace_back(said);
  for (const auto& [name, said] : gradients)
    if (name != "x" && net.parameters().count(name) == 0 &&
        std::none_of(f.extra.begin(), f.extra.end(),
                     [&wanted = name](const extra_input& e) { return e.name() == wanted; }))
      throw unbuilt(fmt::format("the gradient of '{}'", name));
  return c.in_each_world([=](world& w) -> body {
    const layout lies = w.lying("x", x.shape());
    const layout beside = target ? w.lying("target", target->shape()) : layout{};
    const stage_axis stages(w.mesh(), f, chunks);
    lying_parameters lying = net.lying(w);
    std::size_t layer = 0;
    for (std::size_t k = 0; k < f.layers.size(); ++k)
      for (index_t i = 0; i < f.layers[k]; ++i) stages.place(w, lying, std::to_string(layer++), k);
    std::vector<layout> besides;
    for (const extra_input& e : f.extra) besides.push_back(w.lying(e.name(), e.value.shape()));
    return [=](attempt& a) {
      const at::AutoGradMode mode(trains);
      nn::program p;
      const nn::dynamic_flow in = p.input({of_any_batch(lies), a.element});
      std::vector<nn::dynamic_flow> extra;
      for (const layout& e : besides) extra.push_back(p.input({of_any_batch(e), a.element}));
      write_stages(p, in, extra, net, f, stages, lying, run == "evaluate");
      nn::dynamic_network running{a.team, seed{1}, p};
      net.start(running, a.type());
      std::vector<std::vector<tensor<dyn>>> inputs;  // of each micro-batch
      std::vector<std::pair<tensor<dyn>, double>> losses;
      for (index_t i = 0; i < f.micro_batches; ++i) {
        const engine::interval rows = micro_batch(batch, i, f.micro_batches);
        std::vector<tensor<dyn>>& of = inputs.emplace_back();
        of.push_back(rows_of(a, x, a.type(), lies, rows));
        for (std::size_t k = 0; k < f.extra.size(); ++k)
          of.push_back(rows_of(a, f.extra[k].value, a.type(), besides[k], rows));
        if (trains)
          for (const tensor<dyn>& one : of) one.local().set_requires_grad(true);
        const std::vector<tensor<dyn>> y = of.size() == 1 ? running({of[0]}) : running({of[0], of[1]});
        if (run == "evaluate")
          for (std::size_t k = 0; k < of_stages.size(); ++k)
            a.compare(fmt::format("the result of stage {}", k), y.at(k), of_stages[k]);
        else if (i + 1 == f.micro_batches) a.compare("the last y", y[0], y_last);
        if (trains)
          losses.emplace_back(loss(y[0], rows_of(a, *target, loss.target_type(a.type()), beside, rows)),
                              loss.share(rows, batch) * times);
      }
      for (const auto& [of, factor] : losses) a.backward(of, recipe(json{{"fill", json::array()}, {"with", factor}}));
      if (!trains) return;
      const auto wanted = [&](const std::string& name) {
        return gradients.count(name) == 0 ? std::nullopt : std::optional(gradients.at(name));
      };
      const auto of_input = [&](const std::string& name, std::size_t k) {
        std::vector<at::Tensor> parts;
        for (const auto& of : inputs) parts.push_back(full_tensor(attempt::gradient(of[k])).to(at::kCPU));
        a.compare_whole("the gradient of " + name, at::cat(parts), wanted(name));
      };
      of_input("x", 0);
      for (std::size_t k = 0; k < f.extra.size(); ++k) of_input(f.extra[k].name(), k + 1);
      running.each_parameter([&](const nn::parameter& of) {
        a.compare("the gradient of " + of.key(), attempt::gradient(of.stored()), wanted(of.key()));
        if (!small_network::lies_as(of.stored(), lying.at(of.key())))
          a.fail(of.key() + " is not stored as the world says");
      });
    };
  });
}

}  // namespace conformance::training
