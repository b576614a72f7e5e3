#pragma once

#include <tessera/operation/layer_plan.hpp>
#include <tessera/tensor/random.hpp>
#include <tessera/tensor/take.hpp>

#include <cmath>

namespace tessera::nn {

/// A learnable tensor: the stored form that the optimizer steps, and how layers see it. A copy is a handle to the same values, as
/// of LibTorch's tensors.
///
/// use : stored → used is a primitive, so its backward adds into the stored form's gradient: from replicate to invariant it is
/// the sum over the copies.
class parameter {
 public:
  /// Draws the initial values, uniform in ±1/√fan_in (Kaiming et al. 2015 with a = √5, LibTorch's default), by path and global
  /// index.
  parameter(const team_handle& team, std::string_view name, const parameter_value& of, element e, const seed& s)
      : path_(s.key(name)), used_(team->place(of.used)) {
    check(first_of(check_known(of.stored), has_cotangent(e) ? refusal{} : refusal{code::element_has_no_cotangent}), path_);
    const double bound = of.fan_in > 0 ? 1 / std::sqrt(static_cast<double>(of.fan_in)) : 0;
    at::Tensor values = uniform(of.stored, e, team->rank(), s, name, bound);
    values.set_requires_grad(true);
    stored_ = tessera::detail::tensor_of(team, of.stored, values);
  }

  /// Another parameter of the same values.
  parameter clone() const {
    const at::Tensor& local = stored_.local();
    return {path_, tessera::detail::tensor_of(stored_.team(), stored_.layout(), local.detach().clone().set_requires_grad(local.requires_grad())), used_};
  }

  const std::string& path() const { return path_; }  ///< the serial key: "0.weight", behind the seed's path
  const tensor<dyn>& stored() const { return stored_; }
  const layout& used() const { return used_->layout(); }

  /// What the layer's local operation takes. Checked mode compares the copies first: a step by hand may have made them differ.
  at::Tensor use() const {
    team_state& team = *stored_.team();
    if (team.checked && team.inside()) team.agree_on_copies(stored_.layout(), detail::hash_of(stored_.local()), {.what = path_.c_str()});
    return change_layout(stored_.team(), stored_.where(), used_, stored_.local());
  }

  /// Assigns this worker's box of a global tensor that everybody has.
  void assign(const at::Tensor& global) const {
    const at::NoGradGuard no_record;
    stored_.local().copy_(detail::take_value(stored_.team(), stored_.layout(), stored_.type(), global).local());
  }

 private:
  parameter(std::string path, tensor<dyn> stored, placement_handle used) : path_(std::move(path)), stored_(std::move(stored)), used_(std::move(used)) {}

  std::string path_;
  tensor<dyn> stored_;
  placement_handle used_;
};

}  // namespace tessera::nn
