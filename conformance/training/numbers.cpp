#include "numbers.hpp"

#include "recipe.hpp"

#include <cmath>

namespace conformance::training {
namespace {

at::Tensor listed(const json& said) { return nested(said).reshape({-1}); }

/// What is off by more than it may, in words.
std::string off(const char* what, const at::Tensor& x, const at::Tensor& y, const at::Tensor& may, double& figure) {
  if (x.numel() == 0) return {};
  const at::Tensor alike = (x == y).logical_or(at::isnan(x).logical_and(at::isnan(y)));
  const at::Tensor apart = at::where(alike, at::zeros({}, at::kDouble), (x - y).abs());
  const at::Tensor wrong = at::logical_not(alike.logical_or(apart <= may));
  const double largest = at::nan_to_num(apart).max().item<double>();
  figure = std::max(figure, largest);
  if (!wrong.any().item<bool>()) return {};
  const auto first = wrong.reshape({-1}).to(at::kInt).argmax().item<std::int64_t>();
  const auto entry = [&](const at::Tensor& of) { return of.reshape({-1})[first].item<double>(); };
  return fmt::format("{} {} is {}, not {}", what, first, entry(x), entry(y));
}

}  // namespace

numbers::numbers(const json& said) {
  const json of = said.is_object() ? said : json{{"shape", json::array()}, {"values", json::array({said})}};
  for (const auto& [name, value] : of.items()) {
    if (name == "shape") shape_ = value.get<integers>();
    else if (name == "values" || name == "entries") entries_ = listed(value);
    else if (name == "at") at_ = at::tensor(value.get<integers>(), at::kLong);
    else if (name == "sum") sum_ = value.get<double>();
    else if (name == "squares") squares_ = value.get<double>();
    else if (name == "weighted") weighted_ = value.get<double>();
    else if (name != "real" && name != "imaginary")
      throw unbuilt(fmt::format("the expected number '{}' is unknown here", name));
  }
  if (of.contains("real")) entries_ = at::complex(listed(of.at("real")), listed(of.at("imaginary")));
  if (!entries_.defined())
    throw unbuilt(fmt::format("the expected tensor {} has no entries", of.dump().substr(0, 100)));
}

std::string numbers::fault_of(const at::Tensor& given, const tolerance& t, double& figure) const {
  if (given.sizes() != at::IntArrayRef(shape_))
    return fmt::format("is of the shape {}", json(given.sizes().vec()).dump());
  if (given.is_complex() != entries_.is_complex()) return "is not of the element expected";
  if (given.is_complex()) {
    const auto part = [&](const at::Tensor& of) {
      return at::view_as_real(of.resolve_conj().to(at::kComplexDouble)).reshape({-1});
    };
    const at::Tensor y = part(entries_);
    return off("entry", part(given), y, t.atol + t.rtol * y.abs(), figure);
  }
  const at::Tensor x = given.detach().to(at::kCPU, at::kDouble).reshape({-1});
  if (!at_.defined()) return off("entry", x, entries_, t.atol + t.rtol * entries_.abs(), figure);
  const std::string wrong =
      off("sampled entry", x.index_select(0, at_), entries_, t.atol + t.rtol * entries_.abs(), figure);
  if (!wrong.empty()) return wrong;
  const auto n = static_cast<double>(x.numel());
  const double all = x.abs().sum().item<double>();
  const double largest = x.numel() == 0 ? 0 : x.abs().max().item<double>();
  const double may = n * t.atol + t.rtol * all;
  const at::Tensor sums = at::tensor(
      {x.sum().item<double>(), (x * sixteenths(0, {x.numel()})).sum().item<double>(), x.square().sum().item<double>()},
      at::kDouble);
  const at::Tensor bounds =
      at::tensor({may, may, 2 * (t.atol + t.rtol * largest) * all + n * t.atol * t.atol}, at::kDouble);
  double of_sums = 0;
  return off("of (sum, weighted, squares) number", sums, at::tensor({sum_, weighted_, squares_}, at::kDouble), bounds,
             of_sums);
}

}  // namespace conformance::training
