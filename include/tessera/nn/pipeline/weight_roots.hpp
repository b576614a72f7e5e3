#pragma once

#include <tessera/tensor/change/change.hpp>

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tessera::nn::engine {

/// A place in the graph of a step from which a backward goes on to some of its weights, and the gradients there.
struct weight_root {
  torch::autograd::edge_list from;
  torch::autograd::edge_list weights;
  std::vector<at::Tensor> gradients{};
};
using weight_roots = std::vector<weight_root>;

/// Finds where the backward of a step's weights begins, so that it does nothing that the backward of inputs has done.
/// It begins at the step's results, and behind each change of layout that both go through.
class weight_root_search {
 public:
  /// Of a step whose nodes were made since a sequence number was the next.
  weight_root_search(std::uint64_t since, torch::autograd::edge_list weights)
      : since_(since), weights_(std::move(weights)) {}

  weight_roots operator()(const torch::autograd::edge_list& results) {
    weight_roots all{{results, {}}};
    weighs_.assign(weights_.size(), 0);
    for (const torch::autograd::Edge& y : results) look(y, all);
    if (std::any_of(weighs_.begin(), weighs_.end(), [](int roots) { return roots > 1; })) all = {{results, weights_}};
    std::erase_if(all, [](const weight_root& one) { return one.weights.empty(); });
    return all;
  }

 private:
  struct reached {
    std::vector<bool> weights;
    bool others = false;
  };
  using edge = torch::autograd::Edge;

  std::size_t weight_at(const edge& e) const {
    return static_cast<std::size_t>(std::find(weights_.begin(), weights_.end(), e) - weights_.begin());
  }
  bool is_of_step(const edge& e) const { return !is_leaf(e) && e.function->sequence_nr() >= since_; }
  static bool is_leaf(const edge& e) { return e.function->num_outputs() == 0; }

  // What the backward behind an edge reaches, each node asked once.
  const reached& behind(const edge& e) {
    const auto [known, is_new] = known_.try_emplace(e.function.get());
    if (!is_new) return known->second;
    reached all{std::vector<bool>(weights_.size()), false};
    if (const std::size_t w = weight_at(e); w != weights_.size()) all.weights[w] = true;
    else if (!is_of_step(e)) all.others = true;
    else
      for (const edge& next : e.function->next_edges()) {
        if (!next.is_valid()) continue;
        const reached& more = behind(next);
        all.others = all.others || more.others;
        for (std::size_t i = 0; i < weights_.size(); ++i) all.weights[i] = all.weights[i] || more.weights[i];
      }
    return known_[e.function.get()] = std::move(all);
  }
  void look(const edge& e, weight_roots& all) {
    if (const std::size_t w = weight_at(e); w != weights_.size()) return reach(w, all[0]);
    if (!is_of_step(e) || !looked_at_.insert(e.function.get()).second) return;
    const bool changes = dynamic_cast<const tessera::detail::change_backward*>(e.function.get()) != nullptr;
    for (const edge& next : e.function->next_edges()) {
      if (!next.is_valid()) continue;
      const reached found = changes ? behind(next) : reached{};
      if (!found.others || std::find(found.weights.begin(), found.weights.end(), true) == found.weights.end()) {
        look(next, all);
        continue;
      }
      weight_root& own = all.emplace_back(weight_root{{next}, {}});
      for (std::size_t w = 0; w < weights_.size(); ++w)
        if (found.weights[w]) reach(w, own);
    }
  }
  void reach(std::size_t weight, weight_root& from) {
    const edge& w = weights_[weight];
    if (std::find(from.weights.begin(), from.weights.end(), w) != from.weights.end()) return;
    from.weights.push_back(w);
    ++weighs_[weight];
  }

  std::uint64_t since_;
  torch::autograd::edge_list weights_;
  std::vector<int> weighs_;  ///< from how many roots each is reached
  std::unordered_map<const torch::autograd::Node*, reached> known_;
  std::unordered_set<const torch::autograd::Node*> looked_at_;
};

}  // namespace tessera::nn::engine
