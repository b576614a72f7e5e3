#include "small_network.hpp"

#include "../serial.hpp"

#include <tessera/nn/layer/cross_entropy.hpp>
#include <tessera/nn/layer/losses.hpp>
#include <tessera/operation/layer/layer_values.hpp>
#include <tessera/tensor/functions.hpp>

namespace conformance::training {
namespace {

/// The axes that cut a dimension, outermost first.
axis_names axes_that_cut(const layout& x, int dim) {
  static_vector<text, engine::max_axes> axes;
  for (int level = 0; level < x.levels(dim); ++level) axes.push(x.mesh.axes[x.cutter(dim, level)].name);
  return axis_names(axes);
}

/// What goes into a layer whose weight lies so: its features cut as those of the weight alone, its samples by no axis
/// that cuts outputs.
layout taken_by(layout x, const layout& weight) {
  const int features = x.dims.count - 1;
  for (int a = 0; a < x.placements.count; ++a) {
    if (x.placements[a].kind != placement::cut) continue;
    const bool cuts_features = x.placements[a].dimension == features;
    const engine::axis_placement& w = weight.placements[a];
    const bool stays =
        w.kind == placement::cut && w.dimension == 1 ? cuts_features : w.kind != placement::cut && !cuts_features;
    if (!stays) x.set_placement(a, {placement::invariant});
  }
  return x;
}

/// What labels of samples lie like beside their logits.
layout beside_samples(const layout& logits) {
  layout x = logits;
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::cut && x.placements[a].dimension == x.dims.count - 1)
      x.set_placement(a, {placement::invariant});
  x.dims.resize(x.dims.count - 1);
  return x;
}

nn::dynamic_flow activated(const std::string& name, const nn::dynamic_flow& x) {
  if (name == "tanh") return tanh(x);
  if (name == "relu") return relu(x);
  if (name == "gelu") return gelu(x);
  throw unbuilt(fmt::format("the function '{}'", name));
}

}  // namespace

small_network::small_network(reading& c) {
  for (const json& said : c.given().at("model")) {
    one_layer l;
    l.path = std::to_string(layers_.size());
    l.bias = said.contains("linear");
    for (const auto& [name, value] : said.items()) {
      if (name == "linear") l.outputs = value.at(1).get<index_t>();
      else if (name == "apply") l.function = value.get<std::string>();
      else if (name == "bias") l.bias = value.get<bool>();
      else throw unbuilt(fmt::format("'{}' of a layer", name));
    }
    if ((l.outputs > 0) == !l.function.empty()) throw unbuilt("a layer that is no linear one and no function");
    layers_.push_back(l);
  }
  for (const auto& [name, said] : c.entries("parameters")) parameters_.emplace(name, recipe(said));
  for (const one_layer& l : layers_)
    if (l.outputs > 0 &&
        (parameters_.count(l.path + ".weight") == 0 || (parameters_.count(l.path + ".bias") != 0) != l.bias))
      throw unbuilt(fmt::format("layer {} has other parameters", l.path));
}

lying_parameters small_network::lying(world& w) const {
  lying_parameters all;
  for (const auto& [key, r] : parameters_) all[key] = w.lying(key, r.shape());
  return all;
}

nn::dynamic_flow small_network::linear(const nn::dynamic_flow& x, const one_layer& layer, const layout& weight) const {
  const layout lies = x.in->value_of(x).layout;
  const layout taken = taken_by(lies, weight);
  nn::linear_layer l{.out = layer.outputs,
                     .bias = layer.bias,
                     .cut_out = axes_that_cut(weight, 0),
                     .cut_in = axes_that_cut(weight, 1)};
  if (weight.levels(1) > 0) {
    layout sums = taken;
    for (int a = 0; a < sums.placements.count; ++a)
      if (sums.placements[a].kind == placement::cut && sums.placements[a].dimension == sums.dims.count - 1)
        sums.set_placement(a, {placement::invariant});
    l.output_as = sums;
  }
  return x | nn::under(layer.path, [&](const nn::dynamic_flow& y) {
           const nn::dynamic_flow in = same(lies, taken) ? y : y.in->add(nn::repartition_layer{taken}, false, y);
           return in.in->add(l, false, in);
         });
}

nn::dynamic_flow small_network::write(const nn::dynamic_flow& x, std::size_t begin, std::size_t end,
                                      const lying_parameters& lying) const {
  nn::dynamic_flow y = x;
  for (std::size_t i = begin; i < end; ++i) {
    const one_layer& l = layers_.at(i);
    y = l.outputs > 0 ? linear(y, l, lying.at(l.path + ".weight"))
                      : y | nn::under(l.path, [&](const nn::dynamic_flow& z) { return activated(l.function, z); });
  }
  return y;
}

at::Tensor small_network::serial(const at::Tensor& x, const std::map<std::string, at::Tensor>& parameters,
                                 std::size_t begin, std::size_t end) const {
  at::Tensor y = x;
  for (std::size_t i = begin; i < end; ++i) {
    const one_layer& l = layers_.at(i);
    if (l.outputs > 0)
      y = at::linear(y, parameters.at(l.path + ".weight"), l.bias ? parameters.at(l.path + ".bias") : at::Tensor());
    else if (l.function == "tanh") y = at::tanh(y);
    else if (l.function == "relu") y = at::relu(y);
    else if (l.function == "gelu") y = at::gelu(y);
    else throw unbuilt(fmt::format("the function '{}'", l.function));
  }
  return y;
}

std::size_t small_network::layer_of(const std::string& key) const {
  const std::string path = key.substr(0, key.find('.'));
  const auto found = std::find_if(layers_.begin(), layers_.end(), [&](const one_layer& l) { return l.path == path; });
  if (found == layers_.end()) throw unbuilt(fmt::format("'{}' of no layer", key));
  return static_cast<std::size_t>(found - layers_.begin());
}

index_t small_network::features(std::size_t layer) const {
  while (layers_.at(layer).outputs == 0 && layer > 0) --layer;
  if (layers_[layer].outputs == 0) throw unbuilt("a network that begins with a function");
  return layers_[layer].outputs;
}

bool small_network::is_whole(std::size_t layer, const lying_parameters& lying) const {
  while (layers_.at(layer).outputs == 0 && layer > 0) --layer;
  for (const char* name : {".weight", ".bias"})
    if (const auto of = lying.find(layers_[layer].path + name); of != lying.end())
      for (const engine::axis_placement& p : of->second.placements)
        if (p.kind != placement::invariant) return false;
  return true;
}

void small_network::start(nn::dynamic_network& net, at::ScalarType type) const {
  nn::state_dict values;
  for (const auto& [key, r] : parameters_) values[key] = r.whole().to(type);
  nn::assign(net, values);
}

bool small_network::lies_as(const tensor<dyn>& stored, const layout& said) {
  const int rank = stored.team()->rank();
  return tessera::detail::sizes_of(held_by(stored.layout(), rank)) == tessera::detail::sizes_of(held_by(said, rank));
}

void small_network::check_names(const std::map<std::string, numbers>& expected,
                                std::initializer_list<const char*> others) const {
  for (const auto& [name, said] : expected)
    if (parameters_.count(name) == 0 &&
        std::none_of(others.begin(), others.end(), [&wanted = name](const char* one) { return wanted == one; }))
      throw unbuilt(fmt::format("the gradient of '{}'", name));
}

tensor<dyn> rows_of(const attempt& a, const recipe& of, at::ScalarType type, layout lies, engine::interval rows) {
  lies.dims[0].extent = rows.size();
  const at::Tensor whole = of.whole().narrow(0, rows.lo, rows.size()).to(type);
  return {a.team, lies,
          part_of(whole, lies, a.team->rank()).clone(at::MemoryFormat::Contiguous).to(device_of(*a.team))};
}

layout of_any_batch(layout x) {
  x.dims[0].extent = dynamic;
  x.dims[0].tag = kept_name("batch");
  return x;
}

engine::interval micro_batch(index_t rows, index_t i, index_t count) {
  const index_t more = rows % count;
  const index_t begin = i * (rows / count) + std::min(i, more);
  return {begin, begin + rows / count + (i < more ? 1 : 0)};
}

tensor<dyn> batch_loss::operator()(const tensor<dyn>& y, const tensor<dyn>& target) const {
  if (name_ == "cross_entropy")
    return nn::cross_entropy<nn::reduction::mean>(y, to(beside_samples(y.layout()), target));
  const tensor<dyn> beside = to(y.layout(), target);
  if (name_ == "mean_square") return nn::mse_loss<nn::reduction::mean>(y, beside);
  if (name_ == "sum_product") return sum(y * beside);
  throw unbuilt(fmt::format("the loss '{}'", name_));
}

at::Tensor batch_loss::serial(const at::Tensor& y, const at::Tensor& target) const {
  if (name_ == "cross_entropy") return at::cross_entropy_loss(y, target);
  if (name_ == "mean_square") return (y - target).square().mean();
  if (name_ == "sum_product") return (y * target).sum();
  throw unbuilt(fmt::format("the loss '{}'", name_));
}

double batch_loss::share(engine::interval rows, index_t batch) const {
  return name_ == "sum_product" ? 1 : static_cast<double>(rows.size()) / static_cast<double>(batch);
}

}  // namespace conformance::training
