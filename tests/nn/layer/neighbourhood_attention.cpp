// Neighbourhood attention, wherever space, samples and heads are cut, beside dense attention with a mask in double.

#include "tests/support/serial_leaves.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>
#include <tessera/nn/network/program_parts.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace neighbourhoods {

/// What query i of n does not see of key j: all but the window around it, moved inside.
at::Tensor hidden(index_t n, index_t seen) {
  at::Tensor all = at::ones({n, n}, at::kBool);
  for (index_t i = 0; i < n; ++i) all[i].narrow(0, std::clamp<index_t>(i - seen / 2, 0, n - seen), seen).fill_(false);
  return all;
}

/// softmax(q kᵀ / √d) v of [n, s…, g, r, d], [n, s…, g, d], [n, s…, g, e] over all keys, with a mask.
at::Tensor serial(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::vector<index_t>& seen) {
  const auto space = static_cast<index_t>(seen.size());
  at::Tensor mask = at::zeros({1, 1}, at::kBool);
  for (index_t d = 0; d < space; ++d) {
    const at::Tensor one = hidden(q.size(1 + d), seen[static_cast<std::size_t>(d)]);
    mask = mask.unsqueeze(1).unsqueeze(3).logical_or(one.unsqueeze(0).unsqueeze(2)).flatten(0, 1).flatten(1, 2);
  }
  const at::Tensor a = q.flatten(1, space), b = k.flatten(1, space), c = v.flatten(1, space);
  const at::Tensor scores = at::einsum("btgrd,bsgd->btgrs", {a, b}) / std::sqrt(static_cast<double>(q.size(-1)));
  const at::Tensor p =
      at::softmax(scores.masked_fill(mask.view({1, mask.size(0), 1, 1, mask.size(1)}), -1e300), -1);
  std::vector<index_t> sizes = q.sizes().slice(0, static_cast<std::size_t>(1 + space)).vec();
  sizes.push_back(-1);
  return at::einsum("btgrs,bsge->btgre", {p, c}).reshape(sizes);
}

struct attention_case {
  std::vector<index_t> space, seen;
  std::vector<int> cut = {};  ///< the dimension that each axis cuts
  index_t heads = 2, each = 2;
  bool split = false;    ///< features are to be split into heads
};

layout lying(const mesh_value& m, const std::vector<index_t>& extents, const attention_case& c) {
  layout x;
  x.mesh = m;
  x.placements.resize(m.axes.count);
  x.dims.resize(static_cast<int>(extents.size()));
  for (int d = 0; d < x.dims.count; ++d) x.dims[d].extent = extents[static_cast<std::size_t>(d)];
  for (int a = 0; a < m.axes.count; ++a) {
    const int d = c.cut[static_cast<std::size_t>(a)];
    if (c.split && d == x.dims.count - 1 && x.levels(d) == 0) x.dims[d].set_grain(extents.back() / c.heads);
    x.cut_by(d, a, false);
  }
  return x;
}

std::string differs(const auto& t, const attention_case& c, at::ScalarType type) {
  const index_t features = 3, values = c.split ? features : 4;
  std::vector<index_t> sizes[3]{{2}, {2}, {2}};
  for (auto& s : sizes) s.insert(s.end(), c.space.begin(), c.space.end());
  const index_t each = c.split ? 1 : c.each;
  sizes[0].insert(sizes[0].end(), {c.heads, each, features});
  sizes[1].insert(sizes[1].end(), {c.heads, features});
  sizes[2].insert(sizes[2].end(), {c.heads, values});
  std::vector<at::Tensor> whole, ours;
  std::vector<layout> lie;
  for (std::size_t o = 0; o < 3; ++o) {
    whole.push_back((at::rand(sizes[o], at::detail::createCPUGenerator(o + 1), at::kDouble) - 0.5).to(type));
    const at::Tensor given = c.split ? whole[o].flatten(static_cast<index_t>(1 + c.space.size())) : whole[o];
    lie.push_back(lying(t.mesh(), given.sizes().vec(), c));
    ours.push_back(distribute(t, lie[o], given.clone()).local().set_requires_grad(true));
    whole[o] = whole[o].to(at::kDouble).set_requires_grad(true);
  }
  nn::neighbourhood_attention_layer layer{.kernel = {}, .heads = c.split ? c.heads : 0};
  neighbourhood_description described = layer.description();
  for (index_t n : c.seen) described.window.push(n);
  const element e = tessera::detail::element_of_scalar(type);
  const layer_plan p = plan_of(described, {lie[0], e}, {lie[1], e}, {lie[2], e});
  std::string where;
  for (std::size_t i = 0; i < c.space.size(); ++i) where += fmt::format("{} of {}, ", c.seen[i], c.space[i]);
  for (int d : c.cut) where += fmt::format("cut {}, ", d);
  if (!p.why.ok()) return where + p.why.because->code;
  const nn::engine::bound_layer bound(t.state(), p, e);
  const at::Tensor y = nn::forward({bound, ours, {}}, described);
  const at::Tensor wanted = serial(whole[0], whole[1], whole[2], c.seen);
  const double tolerance = type == at::kDouble ? 1e-11 : type == at::kFloat ? 1e-5 : 2e-2;
  std::string all;
  const auto judge = [&](const char* what, const at::Tensor& mine, const at::Tensor& theirs, const layout& x) {
    const at::Tensor own = distribute(t, x, theirs.detach().clone()).local();
    if (mine.sizes() != own.sizes() || !at::allclose(mine.detach().to(at::kDouble), own, tolerance, tolerance))
      all += where + what + "; ";
  };
  judge("values", y, wanted, p.output());
  const at::Tensor weight = at::rand(wanted.sizes(), at::detail::createCPUGenerator(9), at::kDouble);
  const at::Tensor own_weight = distribute(t, p.output(), weight.clone()).local();
  const auto first = torch::autograd::grad({(y.to(at::kDouble).square() * own_weight).sum()}, ours, {}, true, true);
  const auto theirs = torch::autograd::grad({(wanted.square() * weight).sum()}, whole, {}, true, true);
  const auto as_given = [&](const at::Tensor& g) {
    return c.split ? g.flatten(static_cast<index_t>(1 + c.space.size())) : g;
  };
  at::Tensor bent, bent_theirs;
  for (std::size_t o = 0; o < 3; ++o) {
    judge(o == 0 ? "queries' gradient" : o == 1 ? "keys' gradient" : "values' gradient", first[o],
          as_given(theirs[o]), lie[o]);
    const at::Tensor a = first[o].to(at::kDouble).pow(3).sum(), b = theirs[o].pow(3).sum();
    bent = o == 0 ? a : bent + a;
    bent_theirs = o == 0 ? b : bent_theirs + b;
  }
  const auto second = torch::autograd::grad({bent}, ours), second_theirs = torch::autograd::grad({bent_theirs}, whole);
  for (std::size_t o = 0; o < 3 && type == at::kDouble; ++o)
    judge("second order", second[o], as_given(second_theirs[o]), lie[o]);
  return all;
}

template <int P>
struct row : axis<P> {};
template <int P>
struct col : axis<P> {};

template <class M>
std::string differences() {
  const auto out = in_team<M>([](const team<M>& t) -> std::string {
    std::string all;
    const bool two = M::value.axes.count > 1;
    const auto tried = [&](attention_case c, std::vector<int> cut) {
      if (!two) cut.resize(1);
      c.cut = std::move(cut);
      for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) all += differs(t, c, type);
    };
    tried({{11}, {5}}, {1, 0});
    tried({{7}, {7}}, {1, 2});  // all keys, wider than any part
    tried({{5}, {3}}, {1, 1});
    tried({{3}, {1}}, {1, 1});  // workers without queries
    tried({{4}, {3}}, {1, 1});
    tried({{9}, {5}, {}, 2, 1, true}, {1, 2});
    tried({{6, 5}, {3, 5}}, {1, 2});
    tried({{6, 5}, {5, 3}}, {2, 1});
    tried({{7, 4}, {3, 3}}, {2, 3});  // and heads
    tried({{4, 3, 5}, {3, 3, 3}}, {3, 1});
    return all;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

TEST_CASE("a query of neighbourhood attention sees the window around it, wherever space is cut",
          "[law][runtime][gradient]") {
  CHECK(differences<mesh<row<1>>>() == "");
  CHECK(differences<mesh<row<2>>>() == "");
  CHECK(differences<mesh<row<3>>>() == "");
  CHECK(differences<mesh<row<5>>>() == "");
  CHECK(differences<mesh<row<2>, col<2>>>() == "");
  CHECK(differences<mesh<row<3>, col<2>>>() == "");
}

}  // namespace neighbourhoods
