#pragma once

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace tessera::nn::engine {

/// A field of an optimizer's state or options, by the name that LibTorch gives it.
struct optimizer_field {
  std::string name;
  std::variant<double*, bool*, std::int64_t*, at::Tensor*> at;
};

/// The fields of LibTorch's own optimizers, those that a class has.
template <class T>
std::vector<optimizer_field> optimizer_fields(T& of) {
  std::vector<optimizer_field> all;
  const auto add = [&](const char* name, auto& field) { all.push_back({name, &field}); };
  if constexpr (requires { of.betas(); }) {
    add("beta1", std::get<0>(of.betas()));
    add("beta2", std::get<1>(of.betas()));
  }
  if constexpr (requires { of.lr(); }) add("lr", of.lr());
  if constexpr (requires { of.lr_decay(); }) add("lr_decay", of.lr_decay());
  if constexpr (requires { of.initial_accumulator_value(); })
    add("initial_accumulator_value", of.initial_accumulator_value());
  if constexpr (requires { of.alpha(); }) add("alpha", of.alpha());
  if constexpr (requires { of.eps(); }) add("eps", of.eps());
  if constexpr (requires { of.weight_decay(); }) add("weight_decay", of.weight_decay());
  if constexpr (requires { of.momentum(); }) add("momentum", of.momentum());
  if constexpr (requires { of.dampening(); }) add("dampening", of.dampening());
  if constexpr (requires { of.nesterov(); }) add("nesterov", of.nesterov());
  if constexpr (requires { of.amsgrad(); }) add("amsgrad", of.amsgrad());
  if constexpr (requires { of.centered(); }) add("centered", of.centered());

  if constexpr (requires { of.step(); }) add("step", of.step());
  if constexpr (requires { of.exp_avg(); }) add("exp_avg", of.exp_avg());
  if constexpr (requires { of.exp_avg_sq(); }) add("exp_avg_sq", of.exp_avg_sq());
  if constexpr (requires { of.max_exp_avg_sq(); }) add("max_exp_avg_sq", of.max_exp_avg_sq());
  if constexpr (requires { of.square_avg(); }) add("square_avg", of.square_avg());
  if constexpr (requires { of.momentum_buffer(); }) add("momentum_buffer", of.momentum_buffer());
  if constexpr (requires { of.grad_avg(); }) add("grad_avg", of.grad_avg());
  if constexpr (requires { of.sum(); }) add("sum", of.sum());
  return all;
}

/// What an optimizer keeps of a leaf, and how a group of leaves is stepped.
struct optimizer_rule {
  const char* kind;
  bool (*is)(const torch::optim::Optimizer&);
  std::vector<optimizer_field> (*state)(torch::optim::OptimizerParamState&);
  std::vector<optimizer_field> (*options)(torch::optim::OptimizerOptions&);
  std::unique_ptr<torch::optim::OptimizerParamState> (*make)();
};

template <class Optimizer, class State, class Options>
optimizer_rule rule_of(const char* kind) {
  namespace to = torch::optim;
  return {kind, [](const to::Optimizer& o) { return dynamic_cast<const Optimizer*>(&o) != nullptr; },
          [](to::OptimizerParamState& s) { return optimizer_fields(dynamic_cast<State&>(s)); },
          [](to::OptimizerOptions& o) { return optimizer_fields(dynamic_cast<Options&>(o)); },
          []() -> std::unique_ptr<to::OptimizerParamState> { return std::make_unique<State>(); }};
}

/// The rules of those that step each element by itself; null for another one.
inline const optimizer_rule* rule_for(const torch::optim::Optimizer& of) {
  using namespace torch::optim;
  static const optimizer_rule rules[]{rule_of<SGD, SGDParamState, SGDOptions>("sgd"),
                                      rule_of<Adam, AdamParamState, AdamOptions>("adam"),
                                      rule_of<AdamW, AdamWParamState, AdamWOptions>("adamw"),
                                      rule_of<RMSprop, RMSpropParamState, RMSpropOptions>("rmsprop"),
                                      rule_of<Adagrad, AdagradParamState, AdagradOptions>("adagrad")};
  for (const optimizer_rule& r : rules)
    if (r.is(of)) return &r;
  return nullptr;
}

}  // namespace tessera::nn::engine
