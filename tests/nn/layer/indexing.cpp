// Functions of indices, sums along a dimension and orders of it, beside LibTorch on whole tensors.

#include "tests/support/tensors.hpp"

#include <tessera/functions.hpp>
#include <tessera/nn/network/program_parts.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

#include <algorithm>

namespace tessera::testing::of_indices {

using namespace engine;

namespace {

struct left : axis<2> {};
struct right : axis<3> {};
template <int P>
struct line : axis<P> {};
using grid = mesh<left, right>;

/// A function of x and of indices by its letters: one in upper case is not cut.
struct function_case {
  std::string name, x, i, y;
  bool takes_terms;
  tensor<dyn> (*run)(const tensor<dyn>& x, const tensor<dyn>& i, index_t n);
  at::Tensor (*serial)(const at::Tensor& x, const at::Tensor& i, index_t n);
};
using T = tensor<dyn>;
using S = at::Tensor;
const std::vector<function_case> all_cases{
    {"index_select<0>", "Nac", "k", "kac", true,
     [](const T& x, const T& i, index_t) -> T { return index_select<0>(x, i); },
     [](const S& x, const S& i, index_t) { return at::index_select(x, 0, i); }},
    {"index_select<1>", "aNc", "kl", "aklc", true,
     [](const T& x, const T& i, index_t) -> T { return index_select<1>(x, i); },
     [](const S& x, const S& i, index_t) {
       return at::index_select(x, 1, i.flatten()).reshape({x.size(0), i.size(0), i.size(1), x.size(2)});
     }},
    {"take_along<1>", "aNc", "akc", "akc", true,
     [](const T& x, const T& i, index_t) -> T { return take_along<1>(x, i); },
     [](const S& x, const S& i, index_t) { return at::gather(x, 1, i); }},
    {"scatter_add<1>", "akc", "akc", "aMc", true,
     [](const T& x, const T& i, index_t n) -> T { return scatter_add<1>(x, i, n); },
     [](const S& x, const S& i, index_t n) {
       return at::zeros({x.size(0), n, x.size(2)}, x.options()).scatter_add(1, i, x);
     }},
    {"scatter_add<2> of rows", "ack", "k", "acM", true,
     [](const T& x, const T& i, index_t n) -> T { return scatter_add<2>(x, i, n); },
     [](const S& x, const S& i, index_t n) {
       return at::zeros({x.size(0), x.size(1), n}, x.options()).index_add(2, i, x);
     }},
    {"cumsum<1>", "aNc", "k", "aNc", true, [](const T& x, const T&, index_t) -> T { return cumsum<1>(x); },
     [](const S& x, const S&, index_t) { return at::cumsum(x, 1); }},
    {"sort<2>", "acN", "k", "acN", false, [](const T& x, const T&, index_t) -> T { return sort<2>(x).values; },
     [](const S& x, const S&, index_t) { return std::get<0>(at::sort(x, std::optional<bool>(true), 2, false)); }},
    {"topk<1>", "aNc", "k", "aKc", false, [](const T& x, const T&, index_t n) -> T { return topk<1>(x, n).values; },
     [](const S& x, const S&, index_t n) {
       return std::get<0>(at::sort(x, std::optional<bool>(true), 1, true)).narrow(1, 0, n);
     }},
    {"topk<1> of the smallest", "aNc", "k", "aKc", false,
     [](const T& x, const T&, index_t n) -> T { return topk<1, false>(x, n).values; },
     [](const S& x, const S&, index_t n) {
       return std::get<0>(at::sort(x, std::optional<bool>(true), 1, false)).narrow(1, 0, n);
     }}};

/// How operands lie: each axis cuts a letter of them, or all copies of x are alike, the same cotangent, or terms.
struct lying {
  const function_case* f = nullptr;
  layout x, i;
  std::string axes;    ///< of each a letter, or R, I, P
  index_t result = 1;  ///< the extent that the result has where x is looked into
  S indices;
  std::uint64_t salt = 0;

  std::string text() const { return fmt::format("{}, axes {}, {}, {} ", f->name, axes, shown(x), shown(i)); }
};

lying rolled(dice& d, const function_case& f, const mesh_value& m) {
  lying c;
  c.f = &f;
  c.salt = d.next();
  std::map<char, index_t> extents;
  for (const char letter : f.x + f.i + f.y) {
    const bool looked_into = letter == 'N' || letter == 'M';
    extents.try_emplace(letter, d.roll(looked_into ? 1 : d.once_in(6) ? 0 : 1, 7));
  }
  if (f.y.find('K') != std::string::npos) extents['K'] = d.roll(0, static_cast<int>(extents['N']));
  c.result = extents[f.y.find('K') != std::string::npos ? 'K' : 'M'];
  const auto made = [&](layout& l, const std::string& letters) {
    l.mesh = m;
    l.placements.resize(m.axes.count);
    l.dims.resize(static_cast<int>(letters.size()));
    for (std::size_t at = 0; at < letters.size(); ++at) l.dims[static_cast<int>(at)].extent = extents[letters[at]];
  };
  made(c.x, f.x);
  made(c.i, f.i);
  std::string choices = f.takes_terms ? "RIP" : "RI";
  for (const char letter : f.x + f.i)
    if (std::islower(letter) != 0 && (f.x.find(letter) != std::string::npos || f.y.find(letter) != std::string::npos))
      choices += letter;
  for (int a = 0; a < m.axes.count; ++a) {
    const char how = choices[static_cast<std::size_t>(d.roll(0, static_cast<int>(choices.size()) - 1))];
    c.axes += how;
    const auto copies = [&](layout& l, placement kind) { l.placements[a] = {kind}; };
    copies(c.i, d.once_in(2) ? placement::replicate : placement::invariant);
    if (how == 'R') copies(c.x, placement::replicate);
    if (how == 'I') copies(c.x, placement::invariant);
    if (how == 'P') copies(c.x, placement::partial);
    if (std::islower(how) == 0) continue;
    const bool once = std::count(c.axes.begin(), c.axes.end(), how) == 1;
    const bool zigzag = once && m.axes.count == 1 && d.once_in(3);
    const auto cut = [&](layout& l, const std::string& letters) {
      const std::size_t at = letters.find(how);
      if (at == std::string::npos) return;
      l.cut_by(static_cast<int>(at), a);
      l.dims[static_cast<int>(at)].zigzag = zigzag;
    };
    cut(c.x, f.x);
    cut(c.i, f.i);
  }
  const index_t end = extents[f.x.find('N') != std::string::npos ? 'N' : 'M'];
  at::Tensor names = at::empty(extents_of(c.i), at::kLong);
  for (index_t k = 0; k < names.numel(); ++k) names.data_ptr<index_t>()[k] = d.roll(0, static_cast<int>(end) - 1);
  c.indices = names;
  return c;
}

/// What one worker comes to: a result, a gradient by x, and the gradient of that by the result's.
struct found {
  layout y;
  S value, first, second;
};

template <Mesh M>
found of_worker(team<M>& t, const lying& c, at::ScalarType type) {
  const auto mine = static_cast<std::size_t>(t.rank());
  const auto dealt = [&](const layout& l, std::uint64_t salt) {
    return deal(l, M::value.size(), numbers{salt, true}).local[mine].to(type);
  };
  T x{t.state(), c.x, dealt(c.x, c.salt)};
  x.requires_grad();
  const T y = c.f->run(x, distribute(t, c.i, c.indices), c.result);
  const S seed = dealt(cotangent(y.layout()), c.salt + 1).set_requires_grad(true);
  const S first = torch::autograd::grad({y.local()}, {x.local()}, {seed}, true, true)[0];
  const S second = torch::autograd::grad({first}, {seed}, {dealt(c.x, c.salt + 2)}, {}, false, true)[0];
  return {y.layout(), y.local().detach(), first.detach(), second.defined() ? second : at::zeros_like(seed)};
}

/// Whether the result lies as its letters say.
std::string lies_otherwise(const lying& c, const layout& y) {
  for (int a = 0; a < y.placements.count; ++a) {
    if (y.mesh.axes[a].extent == 1) continue;
    const char how = c.axes[static_cast<std::size_t>(a)];
    const std::size_t at = c.f->y.find(how);
    const axis_placement& r = y.placements[a];
    const bool terms = how == 'P' || (std::islower(how) != 0 && at == std::string::npos);
    const bool fits = at != std::string::npos ? r.kind == placement::cut && r.dimension == static_cast<int>(at)
                      : terms                 ? r.kind == placement::partial
                                              : r.kind == (how == 'I' ? placement::invariant : placement::replicate);
    if (!fits) return fmt::format("axis {} lies as {}; ", a, static_cast<int>(r.kind));
  }
  return "";
}

template <Mesh M>
std::string differences(int rounds) {
  dice d(static_cast<std::uint64_t>(M::value.size()) * 7919u + static_cast<std::uint64_t>(M::value.axes.count));
  std::vector<lying> cases;
  for (int round = 0; round < rounds; ++round)
    for (const function_case& f : all_cases) cases.push_back(rolled(d, f, M::value));
  const std::vector<at::ScalarType> types{at::kDouble, at::kFloat, at::kBFloat16};
  const auto type_of = [&](std::size_t n) { return types[n % types.size()]; };
  const auto out = in_team<M>([&](team<M>& t) {
    std::vector<found> all;
    for (std::size_t n = 0; n < cases.size(); ++n) all.push_back(of_worker(t, cases[n], type_of(n / all_cases.size())));
    return all;
  });
  if (!out.well()) return out.errors();
  std::string all;
  for (std::size_t n = 0; n < cases.size(); ++n) {
    const lying& c = cases[n];
    const layout& y = out.of(0)[n].y;
    std::string why = lies_otherwise(c, y);
    const auto whole = [&](const layout& l, std::uint64_t salt) {
      return deal(l, M::value.size(), numbers{salt, true}).global;
    };
    const S x = whole(c.x, c.salt).set_requires_grad(true);
    const S seed = whole(cotangent(y), c.salt + 1).set_requires_grad(true);
    const S value = c.f->serial(x, c.indices, c.result);
    const S first = torch::autograd::grad({value}, {x}, {seed}, true, true)[0];
    const S second = torch::autograd::grad({first}, {seed}, {whole(c.x, c.salt + 2)})[0];
    const auto judge = [&](const char* what, const layout& l, const S& wanted, S found::* member) {
      std::vector<S> local;
      for (int r = 0; r < M::value.size(); ++r) local.push_back(out.of(r)[n].*member);
      const double far = distance(l, local, wanted);
      if (far > 0) why += fmt::format("{} by {}; ", what, far);  // small whole numbers: sums are exact
    };
    judge("its value", y, value, &found::value);
    judge("its gradient", cotangent(c.x), first, &found::first);
    judge("its second derivative", y, second, &found::second);
    if (!why.empty()) all += c.text() + why + "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("functions of indices, sums along a dimension and orders of it are LibTorch's, with gradients of both orders",
          "[law][runtime][gradient]") {
  CHECK(differences<mesh<line<1>>>(trials(12)) == "");
  CHECK(differences<mesh<line<3>>>(trials(24)) == "");
  CHECK(differences<mesh<line<4>>>(trials(24)) == "");
  CHECK(differences<mesh<left, line<2>>>(trials(24)) == "");
  CHECK(differences<grid>(trials(24)) == "");
}

namespace {

template <class Rows, class Columns, index_t N = 5, index_t F = 4, class E = double, class... Rest>
using table = tensor<partition<grid, Rows, Columns, Rest...>, shape_of<N, F>, E>;
template <class Rows, index_t K = 7, class... Rest>
using names = tensor<partition<grid, Rows, Rest...>, shape_of<K>, std::int64_t>;

S numbered(std::vector<index_t> of) { return at::tensor(of, at::kLong); }
const S fits = numbered({0, 1, 2, 3, 4, 3, 4});

}  // namespace

TEST_CASE("an index of nothing is told on all workers, which go on", "[refusal][runtime]") {
  const auto told_of = [&](std::vector<index_t> indices) {
    return satisfied<grid>([&](team<grid>& t) {
      const auto x = distribute<table<whole, blocks<left>>>(t, global_of({5, 4}, numbers{3}));
      const auto y = distribute<table<blocks<right>, blocks<left>, 7>>(t, global_of({7, 4}, numbers{3}));
      const auto bad = distribute<names<blocks<right>>>(t, numbered(indices));
      const auto good = distribute<names<blocks<right>>>(t, fits);
      const auto along = [&](const auto& i) { return expand<1, 4>(unsqueeze<1>(i.dynamic())); };
      const auto lies_like_y = [&](const auto& i) { return to(y.dynamic().layout(), along(i)); };
      const std::vector<std::function<void(const names<blocks<right>>&)>> calls{
          [&](const auto& i) { index_select<0>(x, i); },
          [&](const auto& i) { index_select<0>(x.dynamic(), i.dynamic()); },
          [&](const auto& i) { take_along<0>(x.dynamic(), lies_like_y(i)); },
          [&](const auto& i) { scatter_add<0, 5>(y, i); },
          [&](const auto& i) { scatter_add<0>(y.dynamic(), lies_like_y(i), 5); },
          [&](const auto& i) { one_hot<5>(i); },
          [&](const auto& i) { one_hot<float>(i.dynamic(), 5); }};
      bool all = true;
      for (const auto& call : calls) {
        all = told([&] { call(bad); }) == "tessera.function.index" && all;
        all = told([&] { call(good); }) == "none" && all;
      }
      return all;
    });
  };
  CHECK(told_of({0, 1, 2, 3, 4, 0, 5}) == 6);
  CHECK(told_of({-1, 1, 2, 3, 4, 0, 4}) == 6);
  CHECK(told_of({0, 1, 2, -7, 99, 0, 4}) == 6);
  CHECK(refusals<grid>("tessera.function.index", [](auto& t) {  // a dimension of nothing has no index
          index_select<0>(distribute<table<whole, whole, 0>>(t, at::zeros({0, 4}, at::kDouble)),
                          distribute<names<whole>>(t, numbered({0, 0, 0, 0, 0, 0, 0})));
        }) == 6);
  CHECK(satisfied<grid>([](auto& t) {  // and of no index there is none wrong
          const auto none = index_select<0>(distribute<table<whole, whole, 0>>(t, at::zeros({0, 4}, at::kDouble)),
                                            distribute<names<blocks<right>, 0>>(t, at::empty({0}, at::kLong)));
          return none.local().sizes() == at::IntArrayRef({0, 4});
        }) == 6);
}

TEST_CASE("the types of what is looked up, added, sorted and counted follow from those of operands", "[plan]") {
  using x = table<whole, blocks<left>>;
  using i = names<blocks<right>>;
  STATIC_REQUIRE(std::is_same_v<result_type<functions::index_select<0>, x, i>, table<blocks<right>, blocks<left>, 7>>);
  STATIC_REQUIRE(
      std::is_same_v<result_type<functions::index_select<0>, table<whole, whole, 5, 4, float, partial<left>>, i>,
                     table<blocks<right>, whole, 7, 4, float, partial<left>>>);
  STATIC_REQUIRE(std::is_same_v<result_type<functions::scatter_add<0, 5>, table<blocks<right>, blocks<left>, 7>, i>,
                                table<whole, blocks<left>, 5, 4, double, partial<right>>>);
  STATIC_REQUIRE(
      std::is_same_v<result_type<functions::one_hot<4, float>, i>, table<blocks<right>, whole, 7, 4, float>>);
  STATIC_REQUIRE(std::is_same_v<result_type<functions::cumsum<0>, x>, x>);
  STATIC_REQUIRE(std::is_same_v<result_type<functions::cumsum<0>, table<whole, whole, 5, 4, bool>>,
                                table<whole, whole, 5, 4, std::int64_t>>);
  STATIC_REQUIRE(
      std::is_same_v<result_type<functions::argsort<0, true>, x>, table<whole, blocks<left>, 5, 4, std::int64_t>>);
  STATIC_REQUIRE(
      std::is_same_v<result_type<functions::topk<0, 2, true>, x>, table<whole, blocks<left>, 2, 4, std::int64_t>>);
}

TEST_CASE("what has no meaning on parts is refused of indices, sums along a dimension and orders of it", "[refusal]") {
  const auto value = [](const std::vector<index_t>& extents, element e, std::initializer_list<axis_placement> how) {
    tensor_value v{{}, e};
    v.layout.mesh = grid::value;
    v.layout.placements.resize(2);
    v.layout.dims.resize(static_cast<int>(extents.size()));
    for (std::size_t d = 0; d < extents.size(); ++d) v.layout.dims[static_cast<int>(d)].extent = extents[d];
    int a = 0;
    for (const axis_placement& r : how) {
      if (r.kind == placement::cut) v.layout.cut_by(r.dimension, a++);
      else v.layout.placements[a++] = r;
    }
    return v;
  };
  const axis_placement copies{placement::replicate}, terms{placement::partial}, rows{placement::cut, 0, 0, false},
      columns{placement::cut, 1, 0, false};
  const tensor_value x = value({5, 4}, element::float32, {columns, copies});
  const tensor_value i = value({7}, element::int64, {copies, rows});
  const tensor_value whole = value({7}, element::int64, {copies, copies});
  const auto is = [](const engine::function_value& y, const reason& why) { return y.why.is(why); };
  const functions::index_select<0> select;
  CHECK(select.on(x, i).why.ok());
  CHECK(is(select.on(value({5, 4}, element::float32, {rows, copies}), whole), code::dimension_needed_whole));
  CHECK(is(select.on(x, value({7}, element::int64, {rows, copies})), code::cut_unalike));
  CHECK(is(select.on(x, value({7}, element::int64, {copies, terms})), code::nonlinear_on_partial));
  CHECK(is(select.on(x, value({7}, element::int32, {copies, copies})), code::wrong_element));
  CHECK(is(select.on(value({5, 4}, element::float32, {columns, {placement::invariant}}), i), code::invariant_mixed));
  CHECK(is(functions::index_select<2>{}.on(x, i), code::dimension_not_there));
  CHECK(is(functions::index_select<-1>{}.on(x, i), code::dimension_not_there));
  const tensor_value wide = value(std::vector<index_t>(9, 1), element::int64, {copies, copies});
  CHECK(is(functions::index_select<0>{}.on(value(std::vector<index_t>(9, 1), element::float32, {copies, copies}), wide),
           code::signature_too_large));
  const functions::take_along<0> take;
  CHECK(take.on(x, value({7, 4}, element::int64, {columns, rows})).why.ok());
  CHECK(is(take.on(x, whole), code::operand_of_other_dimensions));
  CHECK(is(take.on(x, value({7, 3}, element::int64, {columns, rows})), code::extents_differ));
  CHECK(is(take.on(x, value({7, 4}, element::int64, {copies, rows})), code::cut_unalike));
  CHECK(is(take.on(value({5, 4}, element::float32, {rows, copies}), value({7, 4}, element::int64, {copies, copies})),
           code::dimension_needed_whole));
  functions::scatter_add_to<0> add;
  add.extent = 3;
  CHECK(add.on(value({7, 4}, element::float32, {columns, rows}), i).why.ok());
  CHECK(is(add.on(value({7, 4}, element::float32, {columns, copies}), i), code::cut_unalike));
  CHECK(is(add.on(value({7, 4}, element::boolean, {columns, rows}), i), code::no_function_of_element));
  CHECK(is(add.on(value({7, 4}, element::float32, {columns, partial_by(combine::max)}), whole),
           code::nonlinear_on_partial));
  CHECK(is(add.on(value({7, 4, 2}, element::float32, {columns, rows}), value({7, 4}, element::int64, {columns, rows})),
           code::operand_of_other_dimensions));
  add.extent = -1;
  CHECK(is(add.on(value({7, 4}, element::float32, {columns, rows}), i), code::extent_negative));
  functions::one_hot_of hot;
  hot.extent = -1;
  CHECK(is(hot.on(i), code::extent_negative));
  CHECK(is(functions::one_hot<3, float>{}.on(value({7}, element::int64, {terms, copies})), code::nonlinear_on_partial));
  CHECK(is(functions::one_hot<3, float>{}.on(x), code::wrong_element));
  CHECK(is(functions::cumsum<1>{}.on(x), code::dimension_needed_whole));
  CHECK(is(functions::cumsum<0>{}.on(value({5}, element::int32, {terms, copies})), code::nonlinear_on_partial));
  const functions::argsort<0, false> order;
  CHECK(order.on(x).why.ok());
  CHECK(is(order.on(value({5, 4}, element::float32, {columns, terms})), code::nonlinear_on_partial));
  CHECK(is(order.on(value({5, 4}, element::complex64, {columns, copies})), code::no_function_of_element));
  CHECK(is(functions::argsort<1, false>{}.on(x), code::dimension_needed_whole));
  CHECK(is(functions::topk<1, 2, true>{}.on(x), code::dimension_needed_whole));
  CHECK(is(functions::topk<0, 6, true>{}.on(x), code::range_outside));
  CHECK(functions::topk<0, 5, true>{}.on(x).why.ok());
}

TEST_CASE("indices are LibTorch's, equal elements in their order, and elements of every kind are looked up",
          "[law][runtime]") {
  for (const at::ScalarType type : {at::kDouble, at::kBFloat16, at::kHalf, at::kInt, at::kChar, at::kLong}) {
    const S x = (global_of({400, 9}, numbers{5, true})).to(type);
    CHECK(satisfied<grid>([&](team<grid>& t) {
            layout l = value_of<table<whole, blocks<right, left>, 400, 9>>.layout;
            const T own = distribute(t, l, x);
            const auto wanted = [&](bool down) { return at::sort(x, std::optional<bool>(true), 0, down); };
            const auto up = sort<0>(own), down = sort<0, true>(own);
            const auto most = topk<0, 40>(own), least = topk<0, 20, false>(own);
            const auto is = [](const T& found, const S& y) { return at::equal(full_tensor(found), y); };
            return is(up.values, std::get<0>(wanted(false))) && is(up.indices, std::get<1>(wanted(false))) &&
                   is(down.values, std::get<0>(wanted(true))) && is(down.indices, std::get<1>(wanted(true))) &&
                   is(argsort<0>(own), std::get<1>(wanted(false))) &&
                   is(most.indices, std::get<1>(wanted(true)).narrow(0, 0, 40)) &&
                   is(most.values, std::get<0>(wanted(true)).narrow(0, 0, 40)) &&
                   is(least.indices, std::get<1>(wanted(false)).narrow(0, 0, 20)) &&
                   is(cumsum<0>(own), at::cumsum(x, 0));
          }) == 6);
  }
  for (const at::ScalarType type : {at::kBool, at::kByte, at::kInt, at::kUInt16, at::kUInt32, at::kUInt64, at::kHalf,
                                    at::kComplexFloat, at::kComplexDouble}) {
    const S x = global_of({5, 4}, numbers{5, true}).abs().to(type);
    const bool wide_unsigned = type == at::kUInt16 || type == at::kUInt32 || type == at::kUInt64;
    const S each = fits.unsqueeze(1).expand({7, 4}).contiguous();
    INFO(at::toString(type));
    CHECK(satisfied<grid>([&](team<grid>& t) {
            const T own = distribute(t, value_of<table<whole, blocks<left>>>.layout, x);
            const T i = distribute<names<blocks<right>>>(t, fits).dynamic();
            const auto is = [](const T& found, const S& y) {
              return at::equal(full_tensor(found).to(at::kComplexDouble), y.to(at::kComplexDouble));
            };
            const auto refused = [](const auto& call) { return told(call) == "tessera.function.element"; };
            const T like_rows = index_select<0>(distribute(t, own.layout(), at::zeros({5, 4})), i);
            const auto select = [&] { return index_select<0>(own, i); };
            const auto along = [&] { return take_along<0>(own, distribute(t, like_rows.layout(), each)); };
            if (wide_unsigned) return refused(select) && refused(along);
            const T rows = select();
            const auto sums = [&] { return scatter_add<0>(rows, i, 5); };
            const S wanted = x.to(at::kComplexDouble).index_select(0, fits);
            if (!is(rows, wanted) || !is(along(), wanted)) return false;
            if (type == at::kBool) return refused(sums);
            return is(sums(), at::zeros({5, 4}, at::kComplexDouble).index_add(0, fits, wanted));
          }) == 6);
  }
}

TEST_CASE("sums of half types at equal indices are float inside, in gradients too", "[runtime][gradient]") {
  CHECK(satisfied<grid>([](team<grid>& t) {
          const auto zeros = distribute<names<whole, 300>>(t, at::zeros({300}, at::kLong));
          const auto all_at_first = [](const S& sums) {
            const S f = sums.to(at::kDouble);
            return at::equal(f[0], at::full_like(f[0], 300)) && at::equal(f[1], at::zeros_like(f[1]));
          };
          const auto of = [&](const layout& many, const layout& two) {
            const T x = distribute(t, many, at::ones(extents_of(many), at::kBFloat16));
            T rows = distribute(t, two, at::zeros(extents_of(two), at::kBFloat16));
            rows.requires_grad();
            const S y = index_select<0>(rows, zeros.dynamic()).local();
            const S g = torch::autograd::grad({y}, {rows.local()}, {at::ones_like(y)})[0];
            return all_at_first(full_tensor(scatter_add<0>(x, zeros.dynamic(), 2))) && all_at_first(g);
          };
          return of(value_of<table<whole, blocks<right>, 300>>.layout,
                    value_of<table<whole, blocks<right>, 2>>.layout) &&
                 of(value_of<names<whole, 300>>.layout, value_of<names<whole, 2>>.layout);
        }) == 6);
}

TEST_CASE("what is looked up, added or sorted keeps indices alone for its backward", "[plan][runtime]") {
  using alone = mesh<line<1>>;
  const auto keeps = [](const auto& call) {
    const auto out = in_team<alone>([&](team<alone>& t) -> std::int64_t {
      const auto made = [&](const std::vector<index_t>& extents, const S& x) {
        layout l;
        l.mesh = alone::value;
        l.placements.resize(1);
        l.dims.resize(static_cast<int>(extents.size()));
        for (std::size_t d = 0; d < extents.size(); ++d) l.dims[static_cast<int>(d)].extent = extents[d];
        return distribute(t, l, x);
      };
      T leaf = made({64, 64}, global_of({64, 64}, numbers{1}));
      leaf.requires_grad();
      const T i = made({64}, at::arange(64, at::kLong));
      memory_count count;
      const auto node = [&] { return call(leaf * 1.0, i).local().grad_fn(); }();
      return node == nullptr ? -1 : count.now();
    });
    return out.well() ? out.of(0) : -1;
  };
  constexpr std::int64_t box = 64 * 64 * 8;
  const auto little = [](std::int64_t bytes) { return 0 <= bytes && bytes < box / 8; };
  CHECK(little(keeps([&](const T& x, const T& i) -> T { return index_select<0>(x, i); })));
  CHECK(little(keeps([&](const T& x, const T& i) -> T { return scatter_add<0>(x, i, 64); })));
  CHECK(little(keeps([&](const T& x, const T&) -> T { return cumsum<0>(x); })));
  CHECK(little(keeps([&](const T& x, const T&) -> T { return sort<0>(x).values; }) - box));  // an index for each
  CHECK(little(keeps([&](const T& x, const T&) -> T { return topk<0, 32>(x).values; }) - box / 2));
}

namespace {

/// A number that each function has a part in.
struct picked {
  constexpr auto operator()(auto x, auto i) const {
    const auto rows = index_select<0>(x, i);
    const auto best = topk<1, 2>(rows);
    const auto hot = sum<1>(one_hot<4, double>(best.indices));
    const auto order = sort<1, true>(rows);
    const auto again = take_along<1>(exp(rows), order.indices);
    const auto added = scatter_add<0, 5>(again, i);
    return all_reduce<partition<grid, invariant<left, right>>>(sum(square(best.values)) + sum(hot * rows) +
                                                               sum(square(order.values)) +
                                                               sum(cumsum<1>(again) * rows) + sum(added * x));
  }
};
using looked_up = table<whole, whole, 5, 4, double, invariant<left>>;
using looking = names<blocks<right>, 7, invariant<left>>;

}  // namespace

TEST_CASE("a network may have functions of indices, typed or put together while it runs", "[plan][runtime][gradient]") {
  using net = nn::network<picked, looked_up, looking>;
  const S x = global_of({5, 4}, numbers{9});
  const S leaf = x.clone().set_requires_grad(true);
  const S rows = leaf.index_select(0, fits);
  const auto [values, places] = at::sort(rows, std::optional<bool>(true), 1, true);
  const S again = rows.exp().gather(1, places);
  const S hot = at::one_hot(places.narrow(1, 0, 2), 4).to(at::kDouble).sum(1);
  const S wanted = values.narrow(1, 0, 2).square().sum() + (hot * rows).sum() + values.square().sum() +
                   (again.cumsum(1) * rows).sum() +
                   (at::zeros({5, 4}, at::kDouble).index_add(0, fits, again) * leaf).sum();
  wanted.backward();
  CHECK(satisfied<grid>([&](team<grid>& t) {
          const auto i = distribute<looking>(t, fits);
          const auto near = [](const S& found, const S& y) { return at::allclose(found, y.detach(), 1e-12, 1e-12); };
          const auto agrees = [&](const auto& call) {
            auto a = distribute<looked_up>(t, x);
            a.requires_grad();
            const auto y = call(a);
            y.local().backward();
            return near(y.local().detach(), wanted) && near(full_tensor(a.grad()), leaf.grad());
          };
          nn::program p;
          const auto in = p.input<looked_up>();
          p.output(picked{}(in, p.input<looking>()));
          const net typed{t, seed{1}};
          const nn::dynamic_network built{t, seed{1}, p};
          const bool one = agrees([&](const auto& a) { return typed(a, i); });
          return agrees([&](const auto& a) { return built({a.dynamic(), i.dynamic()})[0]; }) && one;
        }) == 6);
}

namespace {

struct rows_of {
  constexpr auto operator()(auto x, auto i) const { return index_select<0>(x, i); }
};
struct order_of {
  constexpr auto operator()(auto x) const { return flows{sort<1>(x).values, topk<1, 2>(x).values, cumsum<1>(x)}; }
};

}  // namespace

TEST_CASE("the number of wrong indices is all that moves, and only where workers have indices of their own", "[plan]") {
  using x = table<whole, blocks<left>>;
  constexpr traffic_value judged = traffic<network_type<rows_of, x, names<blocks<right>>>>();
  STATIC_REQUIRE(judged.forward.bytes == 2 * 4 * sizeof(double));  // an all_reduce of one number over 3 workers, twice
  STATIC_REQUIRE(judged.backward.bytes == 0);
  STATIC_REQUIRE(traffic<network_type<rows_of, x, names<whole>>>() == traffic_value{});
  STATIC_REQUIRE(traffic<network_type<order_of, table<blocks<right>, whole>>>() == traffic_value{});
}

}  // namespace tessera::testing::of_indices
