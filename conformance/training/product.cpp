#include "subjects.hpp"

#include "../partitions.hpp"

#include <tessera/tensor/einsum.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

#include <torch/csrc/autograd/autograd.h>

namespace conformance::training {
namespace {

enum class op { nt, all, tn, block };

op op_named(const std::string& word) {
  static const std::map<std::string, op> known{{"nt", op::nt}, {"all", op::all}, {"tn", op::tn}, {"block", op::block}};
  const auto found = known.find(word);
  if (found == known.end()) throw unbuilt(fmt::format("the product '{}'", word));
  return found->second;
}

/// The product of a and b; that of the time axis comes, or goes, `chunk` rows of each part at a time.
signature signature_of(op what, int dims, bool transposed, index_t chunk) {
  static const std::map<op, const char*> matrices{
      {op::nt, "TD,SD->TS"}, {op::all, "TS,SD->TD"}, {op::tn, "TS,TD->SD"}, {op::block, "TS,SD->TD"}};
  const std::string text = what == op::block && transposed ? "TS,DS->TD" : matrices.at(what);
  std::string before;
  for (int d = 0; d + 2 < dims; ++d) before.push_back(static_cast<char>('a' + d));
  const std::string whole =
      before + text.substr(0, 2) + "," + before + text.substr(3, 2) + "->" + before + text.substr(7);
  const signature s = operation(whole.c_str()).multilinear();
  return what == op::block ? s : s.streamed('S', chunk);
}
tensor<dyn> product_of(op what, const tensor<dyn>& a, const tensor<dyn>& b, bool transposed, index_t chunk) {
  return einsum(signature_of(what, a.layout().dims.count, transposed, chunk), a, b);
}

/// What a worker takes of memory at most beyond its operands.
task memory_of(reading& c) {
  const std::vector<std::string> ops = c.given().at("ops").get<std::vector<std::string>>();
  const index_t rows = c.given().integer("rows");
  const index_t features = c.given().integer("features");
  const index_t chunk = c.given().integer("chunk");
  const auto most = c.expected("bytes_at_most").get<std::vector<std::vector<std::int64_t>>>();
  if (most.size() != ops.size()) throw unbuilt("bytes of other products");
  return c.in_each_world([=, &c](world& w) -> body {
    struct trial {
      op what;
      recipe a, b;
      layout lies_a, lies_b;
      std::int64_t may;
    };
    std::vector<trial> all;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const op what = op_named(ops[i]);
      const recipe a(json{{"gen", {1, {rows, what == op::nt ? features : rows}}}});
      const recipe b(json{{"gen", {2, {rows, features}}}});
      layout x = whole(w.mesh(), {rows, what == op::nt ? features : rows}), y = whole(w.mesh(), {rows, features});
      for (int d = 0; d < w.mesh().axes.count; ++d) {
        x.cut_by(0, d);
        y.cut_by(0, d);
      }
      all.push_back({what, a, b, x, y, most[i].at(c.number_of(w).value())});
    }
    return [=](attempt& run) {
      for (const trial& one : all) {
        const tensor<dyn> x = run.leaf(one.a, one.lies_a);
        const tensor<dyn> y = run.leaf(one.b, one.lies_b);
        const memory_count taken;
        const tensor<dyn> z = product_of(one.what, x, y, false, chunk);
        if (taken.peak() > one.may) run.fail(fmt::format("{} bytes are held, not {} at most", taken.peak(), one.may));
      }
    };
  });
}

/// What each worker receives of a product's forward, in elements.
json received_of(op what, const mesh_value& m, index_t leading, index_t rows, index_t features) {
  layout x = whole(m, {leading, rows, features});
  layout tiles = x;
  for (int a = 0; a < m.axes.count; ++a) tiles.cut_by(1, a);
  layout from = tiles;
  layout target = x;
  if (what == op::tn) {
    for (engine::axis_placement& r : from.placements) r = {placement::partial};
    from.dims = x.dims;
    target = tiles;
  }
  std::map<int, index_t> by_worker;
  each_message(from, target, [&](const message& one) {
    index_t n = 1;
    for (const engine::interval& i : one.where) n *= i.size();
    by_worker[one.to] += one.from == one.to ? 0 : n;
  });
  json all = json::array();
  for (int r = 0; r < m.size(); ++r) all.push_back(by_worker[r]);
  return all;
}

}  // namespace

/// Products over a cut time axis.
task product(reading& c) {
  if (c.kind() == "memory") return memory_of(c);
  if (c.has("ops")) {
    const index_t leading = c.given().integer("leading");
    const index_t rows = c.given().integer("rows");
    const index_t features = c.given().integer("features");
    json received = json::array();
    for (const auto& word : c.given().at("ops").get<std::vector<std::string>>()) {
      json by_world = json::array();
      for (world& w : c.worlds()) by_world.push_back(received_of(op_named(word), w.mesh(), leading, rows, features));
      received.push_back(by_world);
    }
    c.compare("received", received);
    return c.planned();
  }
  const op what = op_named(c.given().text("op"));
  const recipe a = c.tensor("a");
  const recipe b = c.tensor("b");
  const std::optional<recipe> cotangent = c.maybe("cotangent");
  const std::optional<recipe> u = c.maybe("second");
  const bool transposed = c.given().flag("transposed");
  const std::optional<numbers> expected = c.result("c");
  const std::map<std::string, numbers> gradients = c.gradients({"a", "b"});
  std::map<std::string, numbers> second = c.gradients({"b", "cotangent"}, "second");
  const int n = static_cast<int>(a.shape().size());
  if (n < 2 || b.shape().size() != a.shape().size())
    throw unbuilt("operands that are no matrices of as many dimensions");
  const auto of = [](const std::map<std::string, numbers>& all, const char* name) {
    return all.count(name) == 0 ? std::nullopt : std::optional(all.at(name));
  };
  return c.in_each_world([=](world& w) -> body {
    const layout lies_a = w.lying("a", a.shape());
    const layout lies_b = w.lying("b", b.shape());
    integers extents = a.shape();
    const auto last = static_cast<std::size_t>(n - 1);
    extents[last - 1] = a.shape()[what == op::tn ? last : last - 1];
    extents[last] = b.shape()[what == op::nt || transposed ? last - 1 : last];
    const layout lies_c = w.lying("c", extents);
    return [=](attempt& run) {
      const tensor<dyn> x = run.leaf(a, lies_a);
      const tensor<dyn> y = run.leaf(b, lies_b);
      const auto made = [&] { return to(lies_c, product_of(what, x, y, transposed, run.chunk)); };
      const tensor<dyn> z = made();
      run.compare("c", z, expected);
      if (!cotangent) return;
      run.backward(z, *cotangent);
      run.compare("the gradient of a", attempt::gradient(x), of(gradients, "a"));
      run.compare("the gradient of b", attempt::gradient(y), of(gradients, "b"));
      if (!u) return;
      const tensor<dyn> again = made();
      const tensor<dyn> dz = run.leaf(*cotangent, tessera::cotangent(lies_c));
      const at::Tensor da = torch::autograd::grad({again.local()}, {x.local()}, {dz.local()}, true, true)[0];
      const std::vector<at::Tensor> both =
          torch::autograd::grad({da}, {y.local(), dz.local()}, {run.given(*u, lies_a).local()});
      run.compare("the second gradient of b", {run.team, tessera::cotangent(lies_b), both[0]}, of(second, "b"));
      run.compare("the second gradient of the cotangent", {run.team, lies_c, both[1]}, of(second, "cotangent"));
    };
  });
}

}  // namespace conformance::training
