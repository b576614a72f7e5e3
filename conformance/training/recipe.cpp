#include "recipe.hpp"

#include "../grids.hpp"

#include <tessera/plan/cutting.hpp>
#include <tessera/tensor/box/element_type.hpp>

#include <cmath>
#include <functional>

namespace conformance::training {
namespace {

constexpr const char* seeded[]{"gen", "index", "chance"};

[[noreturn]] void unknown(const json& said) {
  throw unbuilt(fmt::format("the recipe {} is unknown", said.dump().substr(0, 200)));
}

void only(const json& said, std::initializer_list<const char*> known) {
  for (const auto& [name, value] : said.items())
    if (std::find_if(known.begin(), known.end(), [&said_name = name](const char* k) { return said_name == k; }) ==
        known.end())
      unknown(said);
}

integers shape_named(const json& said, const char* kind, bool seed) {
  return (seed ? said.at(kind).at(1) : said.at(kind)).get<integers>();
}

std::uint64_t seed_named(const json& said, const char* kind) { return said.at(kind).at(0).get<std::uint64_t>(); }

/// f(u) for each element.
template <class F>
at::Tensor each_drawn(std::uint64_t seed, const integers& shape, at::ScalarType type, const F& f) {
  at::Tensor x = at::empty(shape, type);
  using value = decltype(f(std::uint64_t{}));
  value* const to = x.data_ptr<value>();
  for (std::int64_t i = 0; i < x.numel(); ++i) to[i] = f(drawn(seed, static_cast<std::uint64_t>(i)));
  return x;
}

at::Tensor made(const json& said) {
  if (said.contains("gen")) {
    only(said, {"gen", "times", "plus"});
    return sixteenths(seed_named(said, "gen"), shape_named(said, "gen", true)) * said.value("times", 1.0) +
           said.value("plus", 0.0);
  }
  if (said.contains("index")) {
    only(said, {"index", "below"});
    const std::uint64_t below = said.at("below").get<std::uint64_t>();
    return each_drawn(seed_named(said, "index"), shape_named(said, "index", true), at::kLong,
                      [&](std::uint64_t u) { return static_cast<std::int64_t>(u % below); });
  }
  if (said.contains("chance")) {
    only(said, {"chance", "one_in"});
    const std::uint64_t one_in = said.at("one_in").get<std::uint64_t>();
    return each_drawn(seed_named(said, "chance"), shape_named(said, "chance", true), at::kBool,
                      [&](std::uint64_t u) { return u % one_in == 0; });
  }
  if (said.contains("count")) {
    only(said, {"count", "from", "step"});
    const integers shape = shape_named(said, "count", false);
    return said.value("from", 0.0) + said.value("step", 1.0) * at::arange(volume_of(shape), at::kDouble).reshape(shape);
  }
  if (said.contains("fill")) {
    only(said, {"fill", "with"});
    return at::full(shape_named(said, "fill", false), said.at("with").get<double>(), at::kDouble);
  }
  if (said.contains("complex")) {
    only(said, {"complex"});
    return at::complex(made(said.at("complex").at(0)), made(said.at("complex").at(1)));
  }
  if (!said.contains("values")) unknown(said);
  only(said, {"values", "shape"});
  const at::Tensor x = nested(said.at("values"));
  return said.contains("shape") ? x.reshape(said.at("shape").get<integers>()) : x;
}

/// The seed of a recipe, 0 where it has none; of a complex one that of each part.
std::uint64_t seed_of(const json& said) {
  for (const char* kind : seeded)
    if (said.contains(kind)) return seed_named(said, kind);
  return 0;
}

json raise(json said, std::uint64_t k) {
  for (const char* kind : seeded)
    if (said.contains(kind)) said[kind][0] = seed_named(said, kind) + k;
  if (said.contains("complex"))
    for (json& part : said["complex"]) part = raise(part, k);
  return said;
}

at::Tensor part(at::Tensor x, const layout& lies, int rank) {
  const box b = box_of(lies, rank);
  for (int d = 0; d < b.count; ++d) x = x.narrow(d, b[d].lo, b[d].size());
  return x;
}

/// The same in memory of its own, which the worker may write into.
at::Tensor own(const at::Tensor& x, at::ScalarType type) { return x.to(type, false, true).contiguous(); }

}  // namespace

std::uint64_t drawn(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = ((seed << 32) + i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return (z ^ z >> 31) >> 32;
}

at::Tensor sixteenths(std::uint64_t seed, const integers& shape) {
  return each_drawn(seed, shape, at::kDouble, [](std::uint64_t u) { return (static_cast<double>(u % 33) - 16) / 16; });
}

at::Tensor nested(const json& said) {
  integers shape;
  for (const json* level = &said; level->is_array(); level = &level->front()) {
    shape.push_back(static_cast<index_t>(level->size()));
    if (level->empty()) break;
  }
  std::vector<double> flat;
  const std::function<void(const json&, std::size_t)> visit = [&](const json& level, std::size_t depth) {
    if (level.is_array() != (depth < shape.size()) ||
        (level.is_array() && static_cast<index_t>(level.size()) != shape[depth]))
      unknown(said);
    if (level.is_array())
      for (const json& one : level) visit(one, depth + 1);
    else if (level == "nan") flat.push_back(std::nan(""));
    else if (level.is_boolean()) flat.push_back(level.get<bool>() ? 1 : 0);
    else flat.push_back(level.get<double>());
  };
  visit(said, 0);
  return at::tensor(flat, at::kDouble).reshape(shape);
}

recipe::recipe(const json& said) : said_(said) {
  if (!said.is_object()) unknown(said);
  if (!said.contains("by_worker")) {
    whole_ = made(said);
    shape_ = whole_.sizes().vec();
    return;
  }
  only(said, {"by_worker"});
  for (const json& one : said.at("by_worker")) {
    if (one.is_null()) boxes_.emplace_back();
    else boxes_.emplace_back(nested(one));
  }
  whole_ = at::zeros({0}, at::kDouble);
}

recipe recipe::raised(std::uint64_t k) const { return k == 0 ? *this : recipe(raise(said_, k)); }

at::Tensor recipe::term(const layout& x, int k, bool whole_numbers) const {
  const integers seen = extents_of(x);
  const auto gen = [&](const json& said) {
    return sixteenths(seed_of(said) + 1000 * static_cast<std::uint64_t>(k), seen) * (whole_numbers ? 16.0 : 1.0);
  };
  return is_complex() ? at::complex(gen(said_.at("complex").at(0)), gen(said_.at("complex").at(1))) : gen(said_);
}

at::Tensor recipe::box(const layout& x, int rank, at::ScalarType type) const {
  const integers sizes = tessera::detail::sizes_of(held_by(x, rank));
  coordinates at;
  if (!x.mesh.locate(rank, at)) return at::zeros(sizes, type);
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::on && x.placements[a].coordinate != at[a]) return at::zeros(sizes, type);
  if (by_worker()) {
    if (static_cast<std::size_t>(rank) >= boxes_.size() || !boxes_[static_cast<std::size_t>(rank)])
      throw unbuilt(fmt::format("worker {} has no box", rank));
    return own(boxes_[static_cast<std::size_t>(rank)]->reshape(sizes), type);
  }
  const at::Tensor whole = whole_.reshape(extents_of(x));
  int terms = 1;
  int k = 0;
  for (int a = 0; a < x.placements.count; ++a) {
    if (x.placements[a].kind != placement::partial) continue;
    terms *= x.mesh.axes[a].extent;
    k = k * x.mesh.axes[a].extent + at[a];
  }
  if (terms == 1) return own(part(whole, x, rank), type);
  const bool whole_numbers = at::isIntegralType(type, true);
  if (k > 0) return own(part(term(x, k, whole_numbers), x, rank), type);
  at::Tensor rest = whole.to(is_complex() ? at::kComplexDouble : at::kDouble);
  for (int other = 1; other < terms; ++other) rest = rest - term(x, other, whole_numbers);
  return own(part(rest, x, rank), type);
}

}  // namespace conformance::training
