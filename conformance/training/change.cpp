#include "subjects.hpp"

#include <tessera/tensor/from_local.hpp>
#include <tessera/tensor/overlap.hpp>

#include <range/v3/view/zip.hpp>

namespace conformance::training {
namespace {

/// The box of each worker that a case expects, and the global tensor where it expects that.
struct boxes {
  std::optional<numbers> whole;
  std::vector<std::optional<numbers>> each;

  explicit boxes(const json& said) {
    if (!said.is_array()) whole = reading::numbers_of(said);
    else
      for (const json& one : said) each.push_back(reading::numbers_of(one));
  }
  void compare(attempt& a, const std::string& name, const tensor<dyn>& got) const {
    a.compare(name, got, whole);
    if (const auto rank = static_cast<std::size_t>(a.team->rank()); rank < each.size())
      a.compare_box(name, got.local(), each[rank]);
  }
};

/// A dimension cut into parts: a tuple on one worker, which the parts of as many workers are.
task slice(reading& c) {
  const auto shape = c.given().list("shape");
  const auto dim = static_cast<int>(c.given().integer("dim"));
  json sizes = json::array();
  for (const index_t parts : c.given().list("parts")) {
    layout x = whole(mesh_of({{"part", parts}}), shape);
    x.cut_by(dim, 0);
    check(check(x));
    json each = json::array();
    for (int r = 0; r < x.mesh.size(); ++r) each.push_back(box_of(x, r)[dim].size());
    sizes.push_back(each);
  }
  c.compare("sizes", sizes);
  return c.planned();
}

/// Boxes that workers have, put together: they must be parts of one tensor.
task put_together(reading& c) {
  const auto dim = static_cast<int>(c.given().integer("dim"));
  const auto shapes = c.given().at("local_shapes").get<std::vector<integers>>();
  return c.in_each_world([=](world& w) -> body {
    layout x = whole(w.mesh(), integers(shapes.front().size(), dynamic));
    for (int a = 0; a < x.mesh.axes.count; ++a) x.cut_by(dim, a);
    x.dims[dim].bounds = learned;
    for (int d = 0; d < x.dims.count; ++d) x.dims[d].tag = kept_name(fmt::format("n{}", d));
    return [=](attempt& a) {
      const tensor<dyn> parts = from_local(
          a.team, x, at::zeros(shapes.at(static_cast<std::size_t>(a.team->rank())), a.type()).to(device_of(*a.team)));
      layout all = parts.layout();
      for (int axis = 0; axis < all.mesh.axes.count; ++axis) all.set_placement(axis, {});
      if (to(all, parts).local().size(dim) != all.dims[dim].extent) a.fail("parts are not put together");
    };
  });
}

}  // namespace

/// Changes of layout: x and y say how they lie, the verb's name adds nothing.
task change(reading& c) {
  const std::string verb = c.word(
      "verb", {"scatter", "gather", "reduce", "copy", "broadcast", "reduce_scatter", "all_to_all", "none", "slice"});
  if (verb == "slice") return slice(c);
  if (c.has("local_shapes")) return put_together(c);
  const recipe x = c.tensor("x");
  const integers shape = c.has("shape") ? c.given().list("shape") : x.shape();
  const std::optional<recipe> cotangent = c.maybe("cotangent");
  const index_t in_flight = c.has("in_flight") ? c.given().integer("in_flight") : 1;
  const boxes y(c.expected("y"));
  std::optional<boxes> dx;
  const json gradients = c.expected("gradients");
  for (const auto& [name, said] : gradients.items()) {
    if (name != "x") throw unbuilt(fmt::format("the gradient of '{}'", name));
    dx.emplace(said);
  }
  if (dx && !cotangent) throw unbuilt("a gradient without a cotangent");
  return c.in_each_world([=](world& w) -> body {
    const layout from = w.lying("x", shape);
    const layout target = w.lying("y", shape);
    check(check_change(from, target));
    return [=](attempt& a) {
      std::vector<tensor<dyn>> leaves;
      std::vector<tensor<dyn>> results;
      if (in_flight == 1) {
        leaves.push_back(a.leaf(x, from));
        results.push_back(to(target, leaves[0]));
      } else {
        std::vector<awaited<tensor<dyn>>> later;
        for (index_t i = 0; i < in_flight; ++i) {
          leaves.push_back(a.leaf(x, from));
          later.push_back(start(target, leaves.back()));
        }
        for (auto& one : later) results.push_back(finish(std::move(one)));
      }
      for (const auto& [leaf, result] : ranges::views::zip(leaves, results)) {
        y.compare(a, "y", result);
        if (!cotangent) continue;
        a.backward(result, *cotangent);
        if (dx) dx->compare(a, "the gradient of x", attempt::gradient(leaf));
      }
    };
  });
}

}  // namespace conformance::training
