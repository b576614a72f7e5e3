#pragma once

#include <tessera/tensor/tensor.hpp>

#include <memory>
#include <string>
#include <vector>

namespace tessera::nn::engine {

/// What is gathered of a parameter that is held: leaves of autograd's graph, one for each layout in which layers take
/// it and each element to which what is sent is rounded. Where nothing is sent a leaf lies in the stored form's memory.
///
/// Their gradients add up where they lie, terms of the stored form's, which they become when that is asked: Σ over
/// calls first, then over workers. Until then the stored form has a gradient without memory, which refuses whoever
/// reads it: no optimizer steps past what waits.
class gathered_parameter : public std::enable_shared_from_this<gathered_parameter> {
 public:
  gathered_parameter(tensor<dyn> stored, std::string path) : stored_(std::move(stored)), path_(std::move(path)) {}

  /// What a layer takes in this layout: gathered by the first call since the last reduction, or since the stored form
  /// was assigned.
  at::Tensor use(const shared_layout_handle& used, element as);
  /// The same for who runs again between a forward and its backward; refused where it has gone.
  at::Tensor kept(const shared_layout_handle& used, element as) const;
  /// Has a form that others gathered: an alias of it, whose gradient somebody else sees to.
  void keep(const shared_layout_handle& used, element as, const at::Tensor& alias);
  /// The stored form and what was gathered of it were changed alike, in place.
  void follow() {
    if (!leaves_.empty()) version_ = stored_.local()._version();
  }

  /// Adds what waits to the stored form's gradient, and lets go what was gathered. All workers call it.
  void reduce();
  /// Whether gradients wait: zero_grad() lets them go.
  bool waits() const;
  /// Refuses while gradients wait.
  void check_reduced() const;

 private:
  struct leaf {
    shared_layout_handle used;
    element as;
    at::Tensor gathered;
    bool has_gradient = false;
  };
  void arrives(const c10::TensorImpl* gathered);

  tensor<dyn> stored_;
  std::string path_;
  std::vector<leaf> leaves_;
  std::int64_t version_ = -1;  // of what they were gathered of
  at::Tensor refusing_;        // the stored form's gradient while others wait
  at::Tensor before_;          // what it was before them
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/parameter/gathered_parameter_impl.hpp>
#endif
