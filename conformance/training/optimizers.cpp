#include "optimizers.hpp"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

namespace conformance::training {
namespace {

using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;
using torch::optim::SGDOptions;

template <class Options>
Options adam_options(const json& said) {
  Options o;
  for (const auto& [name, value] : said.items()) {
    if (name == "lr") o.lr(value);
    else if (name == "betas") o.betas({value.at(0), value.at(1)});
    else if (name == "eps") o.eps(value);
    else if (name == "weight_decay") o.weight_decay(value);
    else if (name == "amsgrad") o.amsgrad(value);
    else throw unbuilt(fmt::format("the option '{}' of an optimizer", name));
  }
  return o;
}

SGDOptions sgd_options(const json& said) {
  SGDOptions o(said.at("lr").get<double>());
  for (const auto& [name, value] : said.items()) {
    if (name == "momentum") o.momentum(value);
    else if (name == "dampening") o.dampening(value);
    else if (name == "weight_decay") o.weight_decay(value);
    else if (name == "nesterov") o.nesterov(value);
    else if (name != "lr") throw unbuilt(fmt::format("the option '{}' of an optimizer", name));
  }
  return o;
}

template <class State>
std::map<std::string, at::Tensor> moments(const torch::optim::OptimizerParamState& of) {
  const auto& s = static_cast<const State&>(of);
  std::map<std::string, at::Tensor> all{{"exp_avg", s.exp_avg()}, {"exp_avg_sq", s.exp_avg_sq()}};
  if (s.max_exp_avg_sq().defined()) all["max_exp_avg_sq"] = s.max_exp_avg_sq();
  return all;
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> optimizer_of(const std::string& name, const json& options,
                                                      const std::vector<at::Tensor>& steps) {
  if (name == "sgd") return std::make_unique<torch::optim::SGD>(steps, sgd_options(options));
  if (name == "adam") return std::make_unique<torch::optim::Adam>(steps, adam_options<AdamOptions>(options));
  if (name == "adamw") return std::make_unique<torch::optim::AdamW>(steps, adam_options<AdamWOptions>(options));
  throw unbuilt(fmt::format("the optimizer '{}'", name));
}

std::map<std::string, at::Tensor> state_of_step(const torch::optim::Optimizer& optimizer, const at::Tensor& stepped) {
  const auto known = optimizer.state().find(stepped.unsafeGetTensorImpl());
  if (known == optimizer.state().end()) return {};
  const torch::optim::OptimizerParamState& of = *known->second;
  if (const auto* sgd = dynamic_cast<const torch::optim::SGDParamState*>(&of))
    return {{"momentum_buffer", sgd->momentum_buffer()}};
  if (dynamic_cast<const torch::optim::AdamParamState*>(&of) != nullptr)
    return moments<torch::optim::AdamParamState>(of);
  return moments<torch::optim::AdamWParamState>(of);
}

}  // namespace conformance::training
