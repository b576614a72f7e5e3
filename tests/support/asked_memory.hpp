#pragma once
// What one worker asks LibTorch for while a program runs, for what is held against `peak_memory`.

#include <tessera/nn/network/network.hpp>
#include <tessera/nn/network/program.hpp>
#include <tessera/nn/network/program_memory.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <vector>

namespace tessera::testing {

/// In bytes, with operands, which have gradients.
struct asked_memory {
  index_t forward = 0;
  index_t training = 0;
};

/// An operand whose gradient goes where it is told, and is not added to another.
struct kept_gradient : torch::autograd::Function<kept_gradient> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            std::vector<at::Tensor>* into) {
    context->saved_data["into"] = reinterpret_cast<std::int64_t>(into);
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list given) {
    reinterpret_cast<std::vector<at::Tensor>*>(context->saved_data["into"].toInt())->push_back(std::move(given[0]));
    return {at::Tensor(), at::Tensor()};
  }
};

/// What a worker asks for with these boxes of its operands, which lie like this.
inline asked_memory asked_by(const nn::dynamic_network& net, const std::shared_ptr<team_state>& team,
                             const std::vector<layout>& lies, const std::vector<at::Tensor>& boxes) {
  net.each_parameter([&](const nn::parameter& w) {
    if (w.stored().local().requires_grad()) w.stored().local().mutable_grad() = at::zeros_like(w.stored().local());
  });
  engine::memory_count count;
  std::vector<at::Tensor> given, gradients;
  std::int64_t before = 0;
  for (const at::Tensor& one : boxes) {
    given.push_back(one.clone(at::MemoryFormat::Contiguous));
    before -= static_cast<std::int64_t>(given.back().nbytes());
  }
  const auto operands = [&](bool differ) {
    std::vector<tensor<dyn>> x;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const bool differs = differ && (given[i].is_floating_point() || given[i].is_complex());
      const at::Tensor leaf = given[i].detach().set_requires_grad(differs);
      x.emplace_back(team, lies[i], differs ? kept_gradient::apply(leaf, &gradients) : leaf);
    }
    return x;
  };
  const auto called = [&](const std::vector<tensor<dyn>>& x) {
    switch (x.size()) {
      case 1: return net({x[0]});
      case 2: return net({x[0], x[1]});
      case 3: return net({x[0], x[1], x[2]});
      default: return net({x.at(0), x.at(1), x.at(2), x.at(3)});
    }
  };
  const auto peak = [&](const auto& run) {
    run();  // binds
    const std::int64_t now = count.now() + before;
    count.restart_peak();
    run();
    return static_cast<index_t>(count.peak() - now);
  };
  asked_memory all;
  {
    const at::NoGradGuard no_record;
    all.forward = peak([&] { called(operands(false)); });
  }
  all.training = peak([&] {
    std::vector<at::Tensor> ends, seeds;
    {
      const std::vector<tensor<dyn>> x = operands(true);
      for (const tensor<dyn>& y : called(x))
        if (y.local().requires_grad()) {
          ends.push_back(y.local());
          seeds.push_back(at::ones_like(y.local()));
        }
    }
    if (!ends.empty()) torch::autograd::backward(ends, seeds);
    gradients.clear();
  });
  return all;
}

/// What is asked for beyond what is counted, but for a twentieth and a kibibyte.
inline std::string asked_beyond(const asked_memory& asked, const engine::memory_value& counted) {
  const auto more = [](const char* what, index_t has, index_t said) {
    return has > said + said / 20 + 1024 ? fmt::format("{}: {} bytes are asked for, {} counted", what, has, said)
                                         : std::string();
  };
  const std::string forward = more("forward", asked.forward, counted.forward);
  return forward.empty() ? more("training", asked.training, counted.training) : forward;
}

}  // namespace tessera::testing
