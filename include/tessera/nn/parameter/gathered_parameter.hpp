#pragma once

#include <tessera/tensor/tensor.hpp>

#include <memory>
#include <string>
#include <vector>

namespace tessera::nn::engine {

class gathered_parameter;

/// A layer's use of a held parameter: the parameter, the layout and the element.
struct held_member {
  std::shared_ptr<gathered_parameter> of;
  shared_layout_handle used;
  element as{};

  friend bool operator==(const held_member&, const held_member&) = default;
};

/// Hears, in a backward, of the gradients of what was gathered.
class gradient_listener {
 public:
  virtual ~gradient_listener() = default;
  virtual void comes() = 0;                         ///< LibTorch is about to add one
  virtual void came(const held_member& where) = 0;  ///< and has
};

/// The gathered forms of a held parameter: leaves of autograd's graph, one for each layout and each rounded element in
/// which layers take it. Where nothing is sent a leaf lies in the stored form's memory.
///
/// Their gradients add up locally and are terms of the stored form's gradient. A reduction makes them that: Σ over
/// calls first, then over workers. Until then the stored form's gradient has no memory and refuses readers, so no
/// optimizer steps past it.
class gathered_parameter : public std::enable_shared_from_this<gathered_parameter> {
 public:
  gathered_parameter(tensor<dyn> stored, std::string path) : stored_(std::move(stored)), path_(std::move(path)) {}
  /// The same parameter's forms that somebody holds apart, and of which he gives the gradients.
  std::shared_ptr<gathered_parameter> apart() {
    std::erase_if(apart_, [](const auto& one) { return one.expired(); });
    const auto other = std::make_shared<gathered_parameter>(stored_, path_);
    apart_.push_back(other);
    return other;
  }

  const tensor<dyn>& stored() const { return stored_; }
  const std::string& path() const { return path_; }

  /// The leaf in this layout: gathered by the first call since the last reduction, or since the stored form was
  /// assigned or doubted.
  at::Tensor use(const shared_layout_handle& used, element as);
  /// The same for who runs again between a forward and its backward; refused where it has gone.
  at::Tensor kept(const shared_layout_handle& used, element as) const;
  /// Has a form that others gathered: an alias of it, whose gradient somebody else sees to.
  void keep(const shared_layout_handle& used, element as, const at::Tensor& alias);
  /// The stored form and what was gathered of it were changed alike, in place.
  void follow() {
    if (!leaves_.empty()) version_ = stored_.local()._version();
  }

  /// A layer takes the parameter in this layout and element.
  void add_form(const shared_layout_handle& used, element as);
  /// All in which layers take it, also those of other networks that share it.
  std::vector<held_member> forms();
  /// Lets somebody hear of the gradients of a form from now on, if nobody does.
  void tell(const held_member& form, const std::weak_ptr<gradient_listener>& listener);
  bool is_heard(const held_member& form) const;
  /// Lets somebody hear of them in a window, instead of who does else; nobody ends that.
  void tell_in_window(const held_member& form, const std::weak_ptr<gradient_listener>& listener);

  /// Takes the terms that wait in a layout; undefined where there are none.
  at::Tensor take(const shared_layout_handle& used, element as);
  /// Adds what terms became to the stored form's gradient. Others still wait for that unless these were the last, and
  /// while terms of other forms wait, or somebody who holds it apart.
  void give(const at::Tensor& reduced, bool last);
  /// A step may follow: lets go what was gathered, which the next use gathers anew.
  void let_go();
  /// A call begins. Until the next gradient comes a step may have come before it, so the next use of what was gathered
  /// brings its values anew. LibTorch's SGD steps through `data()`, which no version shows.
  void doubt();

  /// Whether gradients wait: zero_grad() lets them go.
  bool waits() const;
  /// Refuses while gradients wait.
  void check_reduced() const;

 private:
  class arrival;
  struct leaf {
    shared_layout_handle used;
    element as;
    at::Tensor gathered;
    bool has_gradient = false;
    bool doubted = false;
  };
  struct form {
    shared_layout_handle used;
    element as;
    std::weak_ptr<gradient_listener> listener{}, in_window{};
  };
  leaf* find(const c10::TensorImpl* gathered);
  const form* form_of(const shared_layout_handle& used, element as) const;
  std::shared_ptr<gradient_listener> listener_of(const leaf& f) const;
  bool lies_in_stored(const leaf& f) const;
  void drop_gathered();
  void comes(const c10::TensorImpl* gathered);
  void came(const c10::TensorImpl* gathered);

  tensor<dyn> stored_;
  std::string path_;
  std::vector<leaf> leaves_;
  std::int64_t version_ = -1;  // of what they were gathered of
  at::Tensor refusing_;        // the stored form's gradient while others wait
  at::Tensor before_;          // what it was before them
  std::vector<form> forms_;
  bool may_step_ = false;  // all was reduced, and no gradient has come since
  std::vector<std::weak_ptr<gathered_parameter>> apart_;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/parameter/gathered_parameter_impl.hpp>
#endif
