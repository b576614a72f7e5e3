#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tessera::nn {

/// The modules inside another one for which `is` holds, with their paths there, in its order. None is looked for inside
/// of one that was found: {m inside of root : is(m) ∧ no module between m and root is}.
///
/// A program that replaces layers of a model of LibTorch's begins with these.
template <class Predicate>
std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>> outermost_modules(const torch::nn::Module& root,
                                                                                          const Predicate& is) {
  std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>> all;
  for (const auto& child : root.named_children()) {
    if (is(*child.value())) {
      all.emplace_back(child.key(), child.value());
      continue;
    }
    for (auto& [path, found] : outermost_modules(*child.value(), is))
      all.emplace_back(child.key() + "." + path, std::move(found));
  }
  return all;
}

}  // namespace tessera::nn
