#include "attempt.hpp"

#include "../measure.hpp"
#include "../serial.hpp"

namespace conformance::training {

tensor<dyn> attempt::given(const recipe& r, const layout& x, at::ScalarType of) const {
  return {team, x, r.box(x, team->rank(), of).to(device_of(*team))};
}

tensor<dyn> attempt::leaf(const recipe& r, const layout& x) const {
  tensor<dyn> made = given(r, x);
  const at::Tensor& local = made.local();
  if (local.is_floating_point() || local.is_complex()) local.set_requires_grad(true);
  return made;
}

void attempt::backward(const tensor<dyn>& y, const recipe& cotangent) const {
  y.local().backward(
      cotangent.box(tessera::cotangent(y.layout()), team->rank(), y.local().scalar_type()).to(device_of(*team)));
}

tensor<dyn> attempt::gradient(const tensor<dyn>& leaf) {
  const at::Tensor g = leaf.local().grad();
  return {leaf.team(), tessera::cotangent(leaf.layout()), g.defined() ? g : at::zeros_like(leaf.local())};
}

void attempt::compare(const std::string& name, const tensor<dyn>& got, const std::optional<numbers>& expected,
                      tessera::element of) {
  if (!expected && bits_ == nullptr) return;
  if (got.type() != of) fail(name + " is of another element than its operands");
  const layout& lies = got.layout();
  const at::Tensor whole = full_tensor(got).to(at::kCPU);
  bool terms = false;
  for (const engine::axis_placement& r : lies.placements) terms = terms || r.kind == placement::partial;
  if (!terms && lies.mesh.contains(team->rank()) && !got.local().is_complex()) {
    distance d;
    d.add(got.local(), part_of(whole, lies, team->rank()), 0, 0);
    if (!d.within && !at::isnan(whole.to(at::kDouble)).any().item<bool>())
      fail(name + ": a worker's box is another than its copy, or not where it lies");
  }
  compare_whole(name,
                expected && whole.numel() == volume_of(expected->shape()) ? whole.reshape(expected->shape()) : whole,
                expected);
}

void attempt::compare_whole(const std::string& name, const at::Tensor& got, const std::optional<numbers>& expected) {
  if (bits_ != nullptr) compare_bits(name, got.to(at::kCPU));
  compare_box(name, got, expected);
}

void attempt::compare_box(const std::string& name, const at::Tensor& got, const std::optional<numbers>& expected) {
  if (!expected) return;
  const std::string wrong = expected->fault_of(got.detach().to(at::kCPU), within_, figure_);
  if (!wrong.empty()) fail(fmt::format("{} {}", name, wrong));
}

void attempt::compare_bits(const std::string& name, const at::Tensor& whole) {
  const auto [known, first] =
      bits_->try_emplace(fmt::format("{} of {}", name, at::toString(whole.scalar_type())), whole);
  if (first) return;
  const at::Tensor& before = known->second;
  const auto bytes = [](const at::Tensor& x) { return x.contiguous().view(at::kByte); };
  if (before.sizes() != whole.sizes() ||
      (whole.numel() > 0 && !at::equal(bytes(before.reshape({-1})), bytes(whole.reshape({-1})))))
    fail(name + " has other bits than in a world before");
}

void attempt::fail(const std::string& what) {
  if (fault_.empty()) fault_ = what;
}

}  // namespace conformance::training
