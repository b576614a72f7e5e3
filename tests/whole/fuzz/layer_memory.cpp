#include "crew.hpp"
#include "one_layer.hpp"
#include "tests/support/in_workers.hpp"

#include <tessera/operation/network/peak_memory.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

#include <torch/csrc/autograd/custom_function.h>

namespace tessera::testing::fuzz {

using namespace engine;

namespace {

/// What one worker asks LibTorch for, in bytes, with its operands.
struct asked_for {
  index_t forward = 0;
  index_t training = 0;
};

/// An operand whose gradient goes where it is told, and is not added to another.
struct kept_gradient : torch::autograd::Function<kept_gradient> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, tensors* into) {
    context->saved_data["into"] = reinterpret_cast<std::int64_t>(into);
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list given) {
    reinterpret_cast<tensors*>(context->saved_data["into"].toInt())->push_back(std::move(given[0]));
    return {at::Tensor(), at::Tensor()};
  }
};

asked_for worker(const layer_case& c, const nn::program& p, const std::vector<tensors>& boxes,
                 const std::shared_ptr<transport>& carrier) {
  const auto r = static_cast<std::size_t>(carrier->rank());
  const auto team = std::make_shared<team_state>(carrier, c.operands[0].layout.mesh);
  nn::dynamic_network net(team, seed{c.salt}, p);
  net.train(c.training);
  net.each_parameter([&](const nn::parameter& w) {
    if (w.stored().local().requires_grad()) w.stored().local().mutable_grad() = at::zeros_like(w.stored().local());
  });
  memory_count count;
  tensors given;
  std::int64_t before = 0;
  for (const tensors& one : boxes) {
    given.push_back(one[r].clone(at::MemoryFormat::Contiguous));
    before -= static_cast<std::int64_t>(given.back().nbytes());
  }
  tensors gradients;
  const auto operands = [&](bool differ) {
    std::vector<tensor<dyn>> x;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const bool differs = differ && has_gradient(given[i]);
      const at::Tensor leaf = given[i].detach().set_requires_grad(differs);
      x.emplace_back(team, c.operands[i].layout, differs ? kept_gradient::apply(leaf, &gradients) : leaf);
    }
    return x;
  };
  const auto peak = [&](const auto& run) {
    run();  // binds
    const std::int64_t now = count.now() + before;
    count.restart_peak();
    run();
    return static_cast<index_t>(count.peak() - now);
  };
  asked_for all;
  {
    const at::NoGradGuard no_record;
    all.forward = peak([&] { called(net, operands(false)); });
  }
  all.training = peak([&] {
    tensors ends, seeds;
    {
      std::vector<tensor<dyn>> x = operands(true);
      for (const tensor<dyn>& y : called(net, x))
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

/// The program of a case, where it takes what it is given.
std::unique_ptr<nn::program> program_of(const layer_case& c) {
  auto p = std::make_unique<nn::program>();
  try {
    for (const nn::dynamic_flow& y : add_to(*p, c)) p->output(y);
  } catch (const error&) {
    return nullptr;
  }
  return p;
}

/// The case with a dimension of all operands so much longer that boxes are large beside what is of one number.
layer_case grown(const layer_case& c) {
  for (int d = 0; d < c.operands[0].layout.dims.count; ++d) {
    layer_case y = c;
    for (tensor_value& x : y.operands) {
      if (d >= x.layout.dims.count) continue;
      dimension& one = x.layout.dims[d];
      if (one.kind == cover::tiled && one.bounds == nullptr) one.extent *= 32;
    }
    if (legal(y) && program_of(y) != nullptr) return y;
  }
  return c;
}

}  // namespace

std::string judge_memory(const layer_case& given, long& refused) {
  const auto no_case = [&] {
    ++refused;
    return std::string();
  };
  const family& f = family_of(given);
  for (const tensor_value& x : given.operands)  // what is wider inside is not counted
    if (bytes_of(x.element) < 4 && has_cotangent(x.element)) return no_case();
  if (f.function) return no_case();
  const layer_case c = grown(given);
  const std::unique_ptr<nn::program> p = program_of(c);
  if (p == nullptr) return no_case();
  int world = 0;
  for (const tensor_value& x : c.operands)
    for (int i = 0; i < x.layout.mesh.size(); ++i) world = std::max(world, x.layout.mesh.rank(x.layout.mesh.at(i)) + 1);
  std::vector<tensors> boxes;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    boxes.push_back(is_complex(c.operands[i].element)
                        ? boxes_of_any(c.operands[i].layout, operand_of(c, i), world, 0, c.salt + 7)
                        : boxes_of(c.operands[i].layout, c.operands[i].element, value_of_operand(c, i), world, 0,
                                   c.salt + 7));
  const auto run = in_world(
      world,
      [&](const std::shared_ptr<transport>& carrier) {
        prepare_thread();
        std::optional<asked_for> all;
        try {
          all = worker(c, *p, boxes, carrier);
        } catch (const error&) {
        }
        carrier->synchronise();
        carrier->close();
        return all;
      },
      std::chrono::seconds{20}, {}, in_kept_threads);
  if (!run.well()) return "throws: " + run.errors().substr(0, 800);
  const memory_value counted = memory_of(p->finish().view, std::span<const tensor_value>(c.operands), 1, true);
  asked_for most;
  for (const auto& one : run.results) {
    if (!*one) return no_case();
    most.forward = std::max(most.forward, (*one)->forward);
    most.training = std::max(most.training, (*one)->training);
  }
  const auto more = [](index_t asked, index_t said) { return asked > said + said / 20 + 1024; };
  if (more(most.forward, counted.forward))
    return fmt::format("forward: {} bytes are asked for, {} counted", most.forward, counted.forward);
  if (more(most.training, counted.training))
    return fmt::format("training: {} bytes are asked for, {} counted", most.training, counted.training);
  return {};
}

}  // namespace tessera::testing::fuzz
