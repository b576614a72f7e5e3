// Sums of products whose parts come, or go, one after another, beside LibTorch's einsum of whole tensors.

#include "tests/support/tensors.hpp"

#include <tessera/tensor/einsum.hpp>

using namespace tessera;
using namespace tessera::testing;

namespace {

/// A product with one dimension streamed: its signature, the extents of its letters, and the letter by which each
/// operand is cut (0: none), the result as it must lie.
struct product_case {
  const char* text;
  char streamed;
  std::vector<std::pair<char, index_t>> extents;
  std::vector<char> cuts;
  char result_cut;
};

index_t extent_of(const product_case& c, char letter) {
  for (const auto& [name, n] : c.extents)
    if (name == letter) return n;
  return 1;
}

// nt, all and tn, with samples before them; parts that are shorter than others, or empty; three operands; an operand
// that is summed alone; both operands cut.
const std::vector<product_case> all_products{
    {"td,sd->ts", 's', {{'t', 8}, {'s', 8}, {'d', 3}}, {'t', 's'}, 't'},
    {"td,sd->ts", 's', {{'t', 7}, {'s', 11}, {'d', 3}}, {'t', 's'}, 't'},
    {"td,sd->ts", 's', {{'t', 2}, {'s', 2}, {'d', 3}}, {'t', 's'}, 't'},
    {"bhtd,bhsd->bhts", 's', {{'b', 2}, {'h', 3}, {'t', 5}, {'s', 9}, {'d', 4}}, {'t', 's'}, 't'},
    {"ts,sd->td", 's', {{'t', 7}, {'s', 11}, {'d', 3}}, {'t', 's'}, 't'},
    {"bts,bsd->btd", 's', {{'b', 2}, {'t', 3}, {'s', 6}, {'d', 2}}, {'t', 's'}, 't'},
    {"ts,td->sd", 's', {{'t', 7}, {'s', 11}, {'d', 3}}, {'t', 't'}, 's'},
    {"bts,btd->bsd", 's', {{'b', 2}, {'t', 5}, {'s', 3}, {'d', 2}}, {'t', 't'}, 's'},
    {"td,sd,s->ts", 's', {{'t', 4}, {'s', 6}, {'d', 3}}, {'t', 's', 's'}, 't'},
    {"td,sd->t", 's', {{'t', 4}, {'s', 6}, {'d', 3}}, {'t', 's'}, 't'},
    {"td,se->td", 's', {{'t', 4}, {'s', 6}, {'d', 3}, {'e', 2}}, {'t', 's'}, 't'},
    {"td,sd->ts", 's', {{'t', 4}, {'s', 0}, {'d', 3}}, {'t', 's'}, 't'},
};

struct cutting_axis {
  int of;
};

layout lying_by(const mesh_value& m, const letters& named, const product_case& c, char cut) {
  layout x;
  x.mesh = m;
  x.placements.resize(m.axes.count);
  for (char letter : named) {
    dimension d;
    d.extent = extent_of(c, letter);
    x.dims.push(d);
  }
  if (cut != 0 && index_of(named, cut) >= 0)
    for (int a = 0; a < m.axes.count; ++a) x.cut_by(index_of(named, cut), a);
  return x;
}

/// What differs from LibTorch: the result, the gradients of each operand, and those of a gradient.
template <class M>
std::string differs(const team<M>& t, const product_case& c, index_t rows, at::ScalarType type) {
  const signature op = operation(c.text).multilinear().streamed(c.streamed, rows);
  const std::string text = c.text;
  const double near = type == at::kDouble ? 1e-12 : 1e-5;
  std::vector<at::Tensor> whole;
  std::vector<tensor<dyn>> x;
  for (int o = 0; o < op.operands.count; ++o) {
    std::vector<index_t> sizes;
    for (char letter : op.operands[o]) sizes.push_back(extent_of(c, letter));
    whole.push_back(global_of(sizes, numbers{static_cast<std::uint64_t>(o) + 3}).to(type).requires_grad_());
    x.push_back(distribute(t, lying_by(M::value, op.operands[o], c, c.cuts[static_cast<std::size_t>(o)]),
                           whole.back().detach().clone()));
    x.back().requires_grad();
  }
  const auto product = [&] {
    return x.size() == 1 ? einsum(op, x[0]) : x.size() == 2 ? einsum(op, x[0], x[1]) : einsum(op, x[0], x[1], x[2]);
  };
  const tensor<dyn> y = product();
  const at::Tensor wanted = at::einsum(text, whole);
  layout lies = lying_by(M::value, op.result, c, c.result_cut);
  if (!same(y.layout(), lies)) return "the layout of the result";
  const auto close = [&](const at::Tensor& a, const tensor<dyn>& b) {
    const at::Tensor other = full_tensor(b);
    return a.numel() == 0 || (a.detach() - other.detach()).abs().max().template item<double>() <= near * 100;
  };
  if (!close(wanted, y)) return "the result";
  // A gradient of the result, of itself tracked, and a gradient of the gradients.
  std::vector<index_t> sizes;
  for (char letter : op.result) sizes.push_back(extent_of(c, letter));
  const at::Tensor g = global_of(sizes, numbers{17}).to(type).requires_grad_();
  tensor<dyn> own_g = distribute(t, lies, g.detach().clone());
  own_g.requires_grad();
  std::vector<at::Tensor> leaves, whole_leaves = whole;
  for (const tensor<dyn>& one : x) leaves.push_back(one.local());
  const auto first = torch::autograd::grad({y.local()}, leaves, {own_g.local()}, true, true);
  const auto first_wanted = torch::autograd::grad({wanted}, whole, {g}, true, true);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const tensor<dyn> mine{x[0].team(), cotangent(x[i].layout()), first[i]};
    if (!close(first_wanted[i], mine)) return "the gradient of operand " + std::to_string(i);
  }
  std::vector<at::Tensor> seeds, seeds_wanted;
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<index_t> n(whole[i].sizes().begin(), whole[i].sizes().end());
    seeds_wanted.push_back(global_of(n, numbers{23 + i}).to(type));
    seeds.push_back(distribute(t, x[i].layout(), seeds_wanted.back()).local());
  }
  leaves.push_back(own_g.local());
  whole_leaves.push_back(g);
  const auto second = torch::autograd::grad(first, leaves, seeds, false, false, true);
  const auto second_wanted = torch::autograd::grad(first_wanted, whole_leaves, seeds_wanted, false, false, true);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (second[i].defined() != second_wanted[i].defined() && second_wanted[i].defined() &&
        second_wanted[i].abs().sum().template item<double>() > 0)
      return "whether there is a second gradient of " + std::to_string(i);
    if (!second[i].defined() || !second_wanted[i].defined()) continue;
    const layout of = i < x.size() ? cotangent(x[i].layout()) : lies;
    if (!close(second_wanted[i], tensor<dyn>{x[0].team(), of, second[i]}))
      return "the second gradient of " + std::to_string(i);
  }
  return "";
}

template <int P>
struct line : axis<P> {};

template <class M>
std::string all_differences() {
  const auto out = in_team<M>([](const team<M>& t) -> std::string {
    std::string all;
    int number = 0;
    for (const product_case& c : all_products)
      for (const index_t rows : {0, 1, 2, 5})
        for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
          if (!tried(number++)) continue;
          const std::string why = differs(t, c, rows, type);
          if (!why.empty()) all += fmt::format("{} by {} in {}: {}\n", c.text, rows, c10::toString(type), why);
        }
    return all;
  });
  std::string all = out.errors();
  for (const auto& one : out.results)
    if (one) all += *one;
  return all;
}

}  // namespace

TEST_CASE("a streamed product is the product, with gradients of two orders, by every chunk",
          "[law][runtime][gradient]") {
  CHECK(all_differences<mesh<line<1>>>() == "");
  CHECK(all_differences<mesh<line<2>>>() == "");
  CHECK(all_differences<mesh<line<3>>>() == "");
  CHECK(all_differences<mesh<line<4>>>() == "");
}

TEST_CASE("terms of half types are added in float and rounded once", "[law][runtime]") {
  const auto out = in_team<mesh<line<4>>>([](const team<mesh<line<4>>>& t) -> std::string {
    const product_case c{"ts,sd->td", 's', {{'t', 4}, {'s', 256}, {'d', 2}}, {'t', 's'}, 't'};
    const signature op = operation(c.text).multilinear().streamed('s', 8);
    const mesh_value& m = mesh<line<4>>::value;
    std::string all;
    for (const at::ScalarType e : {at::kBFloat16, at::kHalf}) {
      // Many terms of one sign, of which a sum in halves would lose the small ones.
      const at::Tensor a = global_of({4, 256}, numbers{1}).abs().to(e), b = global_of({256, 2}, numbers{2}).abs().to(e);
      const auto x = distribute(t, lying_by(m, op.operands[0], c, 't'), a);
      const auto y = distribute(t, lying_by(m, op.operands[1], c, 's'), b);
      const at::Tensor wanted = at::matmul(a.to(at::kDouble), b.to(at::kDouble)).to(e);
      const at::Tensor got = full_tensor(einsum(op, x, y));
      if (got.scalar_type() != e) all += "another element";
      // One unit in the last place: float may round the other way where double lies in the middle.
      const double unit = e == at::kHalf ? 1.0 / 1024 : 1.0 / 128;
      const at::Tensor off = (got.to(at::kDouble) - wanted.to(at::kDouble)).abs() / wanted.to(at::kDouble);
      if (off.max().item<double>() > unit) all += fmt::format("{}: {}\n", c10::toString(e), off.max().item<double>());
      // the terms of owners
      const product_case back{"ts,td->sd", 's', {{'t', 256}, {'s', 8}, {'d', 2}}, {'t', 't'}, 's'};
      const signature send = operation(back.text).multilinear().streamed('s', 1);
      const at::Tensor u = global_of({256, 8}, numbers{3}).abs().to(e);
      const auto v = distribute(t, lying_by(m, send.operands[0], back, 't'), u);
      const auto w = distribute(t, lying_by(m, send.operands[1], back, 't'), b);
      const at::Tensor sums = at::matmul(u.t().to(at::kDouble), b.to(at::kDouble));
      const at::Tensor far = (full_tensor(einsum(send, v, w)).to(at::kDouble) - sums).abs() / sums;
      if (far.max().item<double>() > unit)
        all += fmt::format("sent {}: {}\n", c10::toString(e), far.max().item<double>());
    }
    return all;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

TEST_CASE("a streamed operation of one's own gets pieces, and its gradients are LibTorch's",
          "[law][runtime][gradient]") {
  const auto out = in_team<mesh<line<3>>>([](const team<mesh<line<3>>>& t) -> std::string {
    const product_case c{"td,sd->ts", 's', {{'t', 5}, {'s', 7}, {'d', 2}}, {'t', 's'}, 't'};
    const signature placed = operation(c.text).nonlinear().streamed('s', 2);
    const signature added = operation("td,sd->td").nonlinear().streamed('s', 2);
    const mesh_value& m = mesh<line<3>>::value;
    const at::Tensor a = global_of({5, 2}, numbers{1}).requires_grad_(),
                     b = global_of({7, 2}, numbers{2}).requires_grad_();
    tensor<dyn> x = distribute(t, lying_by(m, placed.operands[0], c, 't'), a.detach().clone());
    tensor<dyn> y = distribute(t, lying_by(m, placed.operands[1], c, 's'), b.detach().clone());
    x.requires_grad();
    y.requires_grad();
    const auto far = [](const at::Tensor& u, const at::Tensor& v) {
      return (u.detach() - v.detach()).abs().max().item<double>() > 1e-12;
    };
    const auto scores = [](const at::Tensor& p, const at::Tensor& q) { return at::tanh(at::matmul(p, q.t())); };
    const tensor<dyn> z = apply(placed, scores, x, y);
    const at::Tensor wanted = scores(a, b);
    if (far(full_tensor(z), wanted)) return "placed";
    // by the place of the keys: those behind a query count nothing
    const auto earlier = [](const local_boxes& where, const at::Tensor& p, const at::Tensor& q) {
      const index_t row = where.operands[0].first(0), key = where.operands[1].first(0);
      const at::Tensor rows = at::arange(row, row + p.size(0)).unsqueeze(1), keys = at::arange(key, key + q.size(0));
      return at::matmul(at::tanh(at::matmul(p, q.t())) * (keys <= rows).to(p.scalar_type()), q);
    };
    const tensor<dyn> s = apply(added, earlier, x, y);
    const at::Tensor summed = at::matmul(at::tanh(at::matmul(a, b.t())) * at::ones({5, 7}, at::kDouble).tril(), b);
    if (far(full_tensor(s), summed)) return "added";
    const at::Tensor g = global_of({5, 7}, numbers{3}), h = global_of({5, 2}, numbers{4});
    const auto local = [&](const tensor<dyn>& like, const at::Tensor& all) {
      return distribute(t, like.layout(), all).local();
    };
    const auto first =
        torch::autograd::grad({z.local(), s.local()}, {x.local(), y.local()}, {local(z, g), local(s, h)}, true, true);
    const auto serial = torch::autograd::grad({wanted, summed}, {a, b}, {g, h}, true, true);
    const std::vector<tensor<dyn>> leaves{x, y};
    for (std::size_t i = 0; i < 2; ++i)
      if (far(full_tensor(tensor<dyn>{x.team(), cotangent(leaves[i].layout()), first[i]}), serial[i]))
        return "a gradient";
    const at::Tensor k = global_of({5, 2}, numbers{5});
    const auto second = torch::autograd::grad({first[0]}, {x.local(), y.local()}, {local(x, k)});
    const auto again = torch::autograd::grad({serial[0]}, {a, b}, {k});
    for (std::size_t i = 0; i < 2; ++i)
      if (far(full_tensor(tensor<dyn>{x.team(), cotangent(leaves[i].layout()), second[i]}), again[i]))
        return "a second";
    return "";
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}
