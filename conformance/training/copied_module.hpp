#pragma once
// A module of LibTorch of which workers along some axes have copies: what nn::data_parallel trains.

#include "reading.hpp"

#include <tessera/nn/gradient/data_parallel.hpp>

#include <memory>

namespace conformance::training {

/// The names of axes of a mesh, of which each has a bit.
inline std::vector<std::string> axis_names_of(const mesh_value& m, unsigned axes) {
  std::vector<std::string> names;
  for (int a = 0; a < m.axes.count; ++a)
    if ((axes >> a & 1U) != 0) names.emplace_back(m.axes[a].name.data, static_cast<std::size_t>(m.axes[a].name.size));
  return names;
}

/// Parameters, and a data_parallel of them; none along no axis, where nobody has a copy.
class copied_module {
 public:
  /// Adds a parameter. LibTorch's own names have no dots, so it has a number instead.
  void add(const std::string& name, const at::Tensor& value) {
    parameters_[name] = module_.register_parameter(fmt::format("p{}", parameters_.size()), value.clone());
  }
  /// Adds a buffer.
  void add_buffer(const std::string& name, const at::Tensor& value) {
    buffers_[name] = module_.register_buffer(fmt::format("b{}", buffers_.size()), value.clone());
  }

  const std::map<std::string, at::Tensor>& parameters() const { return parameters_; }
  const std::map<std::string, at::Tensor>& buffers() const { return buffers_; }
  nn::data_parallel* parallel() const { return parallel_.get(); }

  /// All workers of the mesh call it, when they have added the same names.
  void copy_along(const attempt& a, unsigned axes, nn::data_parallel_options options = {}) {
    if (axes == 0) return;
    options.over = axis_names_of(a.team->mesh(), axes);
    parallel_ = std::make_unique<nn::data_parallel>(a.team, module_, options);
  }

  /// A backward of a window.
  void backward(const at::Tensor& loss, bool last, std::optional<double> weight = std::nullopt) {
    if (!parallel_) return loss.backward();
    const nn::backward_window window = parallel_->window(last, weight);
    loss.backward();
  }
  /// One that has nothing to add and is the last of its window.
  void end_window(std::optional<double> weight = std::nullopt) {
    const at::Tensor& any = parameters_.begin()->second;
    backward((any * at::zeros_like(any)).sum(), true, weight);
  }

  at::Tensor gradient(const std::string& name) const {
    const at::Tensor& of = parameters_.at(name);
    return of.grad().defined() ? of.grad() : at::zeros_like(of);
  }
  void forget_gradients() {
    for (const auto& [name, of] : parameters_) of.mutable_grad().reset();
  }

 private:
  torch::nn::Module module_;
  std::map<std::string, at::Tensor> parameters_, buffers_;
  std::unique_ptr<nn::data_parallel> parallel_;  // behind the module, which it hears of
};

/// How gradients are averaged in a case.
struct reduction {
  std::optional<index_t> capacity;
  bool overlapped = true;  ///< inside the last backward, else in one behind it

  nn::data_parallel_options options() const {
    nn::data_parallel_options o;
    if (capacity) o.bundle_bytes = *capacity;
    return o;
  }
};

/// The ways that a case asks for: in bundles of a size, at the end or overlapped.
inline std::vector<reduction> reductions_of(reading& c) {
  reduction one;
  if (c.has("capacity")) one.capacity = c.given().integer("capacity");
  std::vector<reduction> all;
  for (const json& mode : c.has("modes") ? c.given().at("modes") : json{"overlapped"}) {
    if (mode != "at_the_end" && mode != "overlapped") throw unbuilt(fmt::format("the mode {}", mode.dump()));
    one.overlapped = mode == "overlapped";
    all.push_back(one);
  }
  return all;
}

/// A network whose batch is cut: the loss of the whole batch, and the gradients that its copies must have.
task data_parallel_network(reading& c);

}  // namespace conformance::training
