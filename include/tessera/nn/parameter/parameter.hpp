#pragma once

#include <tessera/nn/parameter/gathered_parameter.hpp>
#include <tessera/nn/parameter/state_tensor.hpp>
#include <tessera/plan/narrowing.hpp>
#include <tessera/tensor/change/cached_view.hpp>

namespace tessera::nn {

/// A learnable tensor: the stored form that the optimizer steps, and how layers see it.
///
/// use : stored → used is a primitive; its backward adds into the stored form's gradient. From replicate to invariant
/// it is the sum over the copies.
class parameter : public engine::state_tensor {
 public:
  /// Begins with its initial values, by path and global index.
  parameter(const team_handle& team, std::string_view name, const parameter_value& of, element e, const seed& s);

  /// Another parameter of the same values.
  parameter clone() const { return {copy(), used_, comes_as_, times_, frozen_}; }

  /// The same parameter as another layer takes it, rounded to an element, which lets it go behind forward, keeps it or
  /// holds it.
  parameter used_as(const layout& used, element as, gathering times) const {
    return {*this, stored().team()->intern(used), as, times, frozen_, gathered_};
  }

  /// The same parameter as a layer takes it, held by who asks: he sees to its gradient.
  parameter held_apart() const { return {*this, used_, comes_as_, gathering::held, frozen_, gathered_->apart()}; }

  /// The same parameter seen through an alias, whose gradient a part that is recomputed finds by itself.
  parameter alias() const;
  /// Where the gradients of its uses come to: the stored form, or where it is held what was gathered of that.
  at::Tensor leaf() const { return engine::holds(times_) ? gathered_->kept(used_, comes_as_) : stored().local(); }

  const layout& used() const { return used_->layout(); }
  element comes_as() const { return comes_as_; }  ///< what is sent of it is rounded to this
  gathering times() const { return times_; }
  bool frozen() const { return frozen_; }  ///< it has no gradient

  /// The parameter as the layer's local operation takes it, converted twice: rounded to its operand's element, then
  /// widened to that of its sums. Checked mode compares the copies first: a step by hand may have made them differ.
  at::Tensor use(std::initializer_list<at::ScalarType> to = {}) const;

  /// The layer has given its results. A released parameter's gathered memory is freed until the first gradient of the
  /// results comes back. A step of the parameter meanwhile is one error in backward.
  void let_go(const std::vector<at::Tensor>& results) const;
  /// The layer threw: nobody reads what it took.
  void drop() const noexcept { taken_ = {}; }

  /// Where it is held: a norm of the stored form's gradient is refused before it is reduced.
  void check_reduced() const { gathered_->check_reduced(); }
  /// A call begins of a network that takes it.
  void doubt() const { gathered_->doubt(); }
  /// Where gradients wait if it is held, and in which layout and element the layer takes it.
  engine::held_member waiting() const { return {gathered_, used_, comes_as_}; }
  /// A layer changed the stored form and what it took alike, in place: who saved either is told, and what is held
  /// stays.
  void changed_in_place() const;

 private:
  parameter(engine::state_tensor values, engine::shared_layout_handle used, element as, gathering times, bool frozen,
            std::shared_ptr<engine::gathered_parameter> gathered = {})
      : engine::state_tensor(std::move(values)),
        used_(std::move(used)),
        comes_as_(engine::stays(change_between(stored().layout(), used_->layout())) ? stored().type() : as),
        times_(times),
        frozen_(frozen),
        gathered_(gathered ? std::move(gathered) : std::make_shared<engine::gathered_parameter>(stored(), path())) {
    if (engine::holds(times_)) gathered_->add_form(used_, comes_as_);
  }

  // What the layer that runs now took, and the elements that it was converted to.
  struct used_tensor {
    at::Tensor x;
    std::vector<at::ScalarType> to;
  };

  engine::shared_layout_handle used_;
  element comes_as_;
  gathering times_ = gathering::once;
  bool frozen_ = false;
  std::shared_ptr<engine::gathered_parameter> gathered_;
  mutable used_tensor taken_;
  mutable tessera::detail::cached_view view_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/parameter/parameter_impl.hpp>
#endif
