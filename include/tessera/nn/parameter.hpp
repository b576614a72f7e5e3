#pragma once

#include <tessera/operation/layer_plan.hpp>
#include <tessera/tensor/random.hpp>

#include <cmath>

namespace tessera::nn {

/// A learnable tensor: the stored form that the optimizer steps, and how layers see it.
///
/// use : stored → used is a primitive, so its backward adds into the stored form's gradient: from replicate to invariant it is
/// the sum over the copies.
class parameter {
 public:
  /// Draws the initial values, uniform in ±1/√fan_in (Kaiming et al. 2015 with a = √5, LibTorch's default), by path and global
  /// index.
  parameter(const team_handle& team, std::string path, const parameter_value& of, element e, seed s)
      : path_(std::move(path)), used_(of.used) {
    const double bound = of.fan_in > 0 ? 1 / std::sqrt(static_cast<double>(of.fan_in)) : 0;
    at::Tensor values = uniform(of.stored, e, team->rank(), s, path_, bound);
    values.set_requires_grad(true);
    stored_ = {team, of.stored, values};
  }

  const std::string& path() const { return path_; }  ///< the serial key: "0.weight"
  const tensor<dyn>& stored() const { return stored_; }
  const layout& used() const { return used_; }

  /// What the layer's local operation takes.
  at::Tensor use() const { return change_layout(stored_.team(), stored_.layout(), used_, stored_.local()); }

  /// Assigns this worker's box of a global tensor that everybody has.
  void assign(const at::Tensor& global) {
    const at::NoGradGuard no_record;
    stored_.local().copy_(detail::take_value(stored_.team(), stored_.layout(), stored_.type(), global).local());
  }

 private:
  std::string path_;
  tensor<dyn> stored_;
  layout used_;
};

}  // namespace tessera::nn
