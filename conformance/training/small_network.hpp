#pragma once
// Small networks of cases: linear layers and functions between them, put together of the library's layers.

#include "reading.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/parameter/state_dict.hpp>

namespace conformance::training {

/// How parameters lie, by serial key.
using lying_parameters = std::map<std::string, layout>;

/// A network of a case: its layers in order, and its parameters by serial key.
class small_network {
 public:
  /// Reads the model and the parameters of a case.
  explicit small_network(reading& c);

  std::size_t layers() const { return layers_.size(); }
  const std::map<std::string, recipe>& parameters() const { return parameters_; }

  /// How the parameters lie in a world.
  lying_parameters lying(world& w) const;
  /// The layers [begin, end) behind a flow. A linear layer is cut as its weight lies.
  nn::dynamic_flow write(const nn::dynamic_flow& x, std::size_t begin, std::size_t end,
                         const lying_parameters& lying) const;
  /// What LibTorch makes of one worker's rows, by all layers or by those of [begin, end).
  at::Tensor serial(const at::Tensor& x, const std::map<std::string, at::Tensor>& parameters) const {
    return serial(x, parameters, 0, layers());
  }
  at::Tensor serial(const at::Tensor& x, const std::map<std::string, at::Tensor>& parameters, std::size_t begin,
                    std::size_t end) const;
  /// The number of a parameter's layer.
  std::size_t layer_of(const std::string& key) const;
  /// The features that a layer gives.
  index_t features(std::size_t layer) const;
  /// Whether every worker has a layer whole; of a function, the layer before it.
  bool is_whole(std::size_t layer, const lying_parameters& lying) const;
  /// Gives a network of these layers the case's values.
  void start(nn::dynamic_network& net, at::ScalarType type) const;

  /// Whether this worker stores as much of a parameter as it would of one that lies so.
  static bool lies_as(const tensor<dyn>& stored, const layout& said);
  /// Throws `unbuilt` for what is expected of a parameter that is not there, but for those that are named.
  void check_names(const std::map<std::string, numbers>& expected,
                   std::initializer_list<const char*> others = {}) const;

 private:
  struct one_layer {
    std::string path;
    index_t outputs = 0;  ///< of a linear layer
    bool bias = false;
    std::string function;
  };

  nn::dynamic_flow linear(const nn::dynamic_flow& x, const one_layer& layer, const layout& weight) const;

  std::vector<one_layer> layers_;
  std::map<std::string, recipe> parameters_;
};

/// Some layers of a network as a part that wrappers take.
struct layers_of {
  const small_network& net;
  const lying_parameters& lying;
  std::size_t begin;
  std::size_t end;

  nn::dynamic_flow operator()(const nn::dynamic_flow& x) const { return net.write(x, begin, end, lying); }
};

/// The rows of a global tensor that belong to a part of the batch, this worker's box of them.
tensor<dyn> rows_of(const attempt& a, const recipe& of, at::ScalarType type, layout lies, engine::interval rows);

/// How a batch of any size lies where one of this size does.
layout of_any_batch(layout x);

/// The rows of micro-batch i of so many; the first ones have one more where they do not come out even.
engine::interval micro_batch(index_t rows, index_t i, index_t count);

/// Losses of cases, by name.
class batch_loss {
 public:
  explicit batch_loss(std::string name) : name_(std::move(name)) {}

  /// The element of targets.
  at::ScalarType target_type(at::ScalarType type) const { return name_ == "cross_entropy" ? at::kLong : type; }
  /// The loss of a micro-batch by itself.
  tensor<dyn> operator()(const tensor<dyn>& y, const tensor<dyn>& target) const;
  /// The same by LibTorch.
  at::Tensor serial(const at::Tensor& y, const at::Tensor& target) const;
  /// By what that counts in the loss of the whole batch.
  double share(engine::interval rows, index_t batch) const;

 private:
  std::string name_;
};

}  // namespace conformance::training
