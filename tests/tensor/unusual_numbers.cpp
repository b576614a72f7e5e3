// Every function of the library's lists beside LibTorch's: which element it gives of each, and its gradient at zeros,
// ties, infinities and NaN.
#include "tests/support/functions.hpp"

#include <tessera/tensor/autograd/scaled_gradient.hpp>

#include <set>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;
using namespace tessera::testing::of_functions;

namespace {

/// Operands of all cases: two alike, [4, 6], one [6, 4] whose columns are cut as their rows, and a mask like the first.
struct given {
  layout lies;
  std::vector<at::Tensor> whole;

  given(const layout& like, const at::Tensor& x, const at::Tensor& y)
      : lies(like), whole{x, y, x.t().contiguous(), at::isfinite(y)} {
    whole[3].select(0, 1).fill_(false);
  }
  layout of(std::size_t i) const {
    if (i != 2) return lies;
    layout turned = lies;
    turned.dims[0] = {};
    turned.dims[0].extent = 6;
    turned.dims[1] = lies.dims[0];
    for (axis_placement& r : turned.placements)
      if (r.kind == placement::cut)
        r = r.dimension == 0 ? axis_placement{placement::cut, 1, r.level, r.joined} : axis_placement{};
    return turned;
  }
};

using tensors = std::vector<tensor<dyn>>;
using boxes = std::vector<at::Tensor>;

struct function_case {
  std::string name;
  std::function<tensor<dyn>(const tensors&)> call;
  std::function<at::Tensor(const boxes&)> serial;
  bool of_terms = false;     ///< over a cut dimension it has no gradient
  bool of_elements = false;  ///< it acts on each by itself
};

/// Over one dimension, as LibTorch calls it.
const std::map<std::string, at::Tensor (*)(const at::Tensor&)> over_rows{
    {"sum", [](const at::Tensor& w) { return w.sum(0); }},
    {"mean", [](const at::Tensor& w) { return w.mean(0); }},
    {"amax", [](const at::Tensor& w) { return w.amax(0); }},
    {"amin", [](const at::Tensor& w) { return w.amin(0); }},
    {"prod_over", [](const at::Tensor& w) { return w.prod(0); }},
    {"any_over", [](const at::Tensor& w) { return w.any(0); }},
    {"all_over", [](const at::Tensor& w) { return w.all(0); }}};

/// LibTorch's, which in narrow integers mixes elements where it sums one operand alone.
at::Tensor wide_einsum(const char* text, const at::Tensor& x, const at::Tensor& y) {
  if (!at::isIntegralType(x.scalar_type(), false)) return at::einsum(text, {x, y});
  return at::einsum(text, {x.to(at::kLong), y.to(at::kLong)}).to(x.scalar_type());
}

constexpr auto rows_of_products = operation("ij,jk->i");
constexpr auto products = operation("ij,jk->ik");

std::vector<function_case> all_functions() {
  std::vector<function_case> all;
  const auto add = [&](const std::string& name, auto call, auto of_whole, bool of_terms = false) {
    all.push_back({name, call, of_whole, of_terms, false});
  };
  for (const auto* list : {&all_of_one, &all_activations})
    for (const case_of_one& f : *list)
      add(
          f.name, [f](const tensors& x) { return f.call(x[0]); },
          [f](const boxes& w) { return f.name == "hardsigmoid" ? at::hardsigmoid(w[0]) : serial(f.name, {w[0]}); });
  for (const case_of_two& f : all_of_two)
    add(
        f.name, [f](const tensors& x) { return f.call(x[0], x[1]); },
        [f](const boxes& w) { return serial(f.name, {w[0], w[1]}); });
#define TESSERA_CASE(function, called, kind, elements, result, saves, more, computed)                  \
  add(                                                                                                 \
      #called " by 2",                                                                                 \
      [](const tensors& t) {                                                                           \
        return functions::call(functions::function<functions::engine::number_kind::integer>(2), t[0]); \
      },                                                                                               \
      [](const boxes& w) {                                                                             \
        const at::Tensor x = w[0];                                                                     \
        const at::Scalar n = 2;                                                                        \
        return computed;                                                                               \
      });                                                                                              \
  add(                                                                                                 \
      #called " by 0",                                                                                 \
      [](const tensors& t) {                                                                           \
        return functions::call(functions::function<functions::engine::number_kind::integer>(0), t[0]); \
      },                                                                                               \
      [](const boxes& w) {                                                                             \
        const at::Tensor x = w[0];                                                                     \
        const at::Scalar n = 0;                                                                        \
        return computed;                                                                               \
      });
  TESSERA_FUNCTIONS_OF_A_NUMBER(TESSERA_CASE)
#undef TESSERA_CASE
  for (function_case& f : all) f.of_elements = true;
#define TESSERA_CASE(function, kind, elements, result, reads, with)                                    \
  {                                                                                                    \
    const std::string name = #function;                                                                \
    const std::string own = name.substr(0, name.find("_over"));                                        \
    const bool of_terms = combine::with != combine::sum;                                               \
    add(                                                                                               \
        name, [](const tensors& x) { return tessera::function(x[0]); },                                \
        [own](const boxes& w) { return serial(own, {w[0]}); }, of_terms);                              \
    add(                                                                                               \
        name + "<0>", [](const tensors& x) { return tessera::function<0>(x[0]); },                     \
        [name](const boxes& w) { return over_rows.at(name)(w[0]); }, of_terms);                        \
    add(                                                                                               \
        name + " of a number", [](const tensors& x) { return tessera::function(settled(sum(x[0]))); }, \
        [own](const boxes& w) { return serial(own, {w[0].sum()}); }, of_terms);                        \
  }
  TESSERA_REDUCTIONS(TESSERA_CASE)
#undef TESSERA_CASE
#define TESSERA_CASE(called, wanted)                                   \
  add(                                                                 \
      #called, [](const tensors& x) -> tensor<dyn> { return called; }, \
      [](const boxes& w) -> at::Tensor { return wanted; })
  TESSERA_CASE(argmax<0>(x[0]), w[0].argmax(0));
  TESSERA_CASE(argmin<0>(x[0]), w[0].argmin(0));
  TESSERA_CASE(var(x[0]), w[0].var());
  TESSERA_CASE(var<1>(x[0]), w[0].var(at::IntArrayRef{1}));
  TESSERA_CASE(norm(x[0], 0.5), at::norm(w[0], 0.5));
  TESSERA_CASE(norm<1>(x[0], 0.5), at::norm(w[0], 0.5, at::IntArrayRef{1}, false));
  TESSERA_CASE(norm(x[0], 1), at::norm(w[0], 1));
  TESSERA_CASE(norm<0>(x[0], 1.5), at::norm(w[0], 1.5, at::IntArrayRef{0}, false));
  TESSERA_CASE(norm<0>(x[0]), at::norm(w[0], 2, at::IntArrayRef{0}, false));
  TESSERA_CASE(norm(x[0], 3), at::norm(w[0], 3));
  TESSERA_CASE(norm(x[0], INFINITY), at::norm(w[0], INFINITY));
  TESSERA_CASE(norm<0>(x[0], INFINITY), at::norm(w[0], INFINITY, at::IntArrayRef{0}, false));
  TESSERA_CASE(norm<1>(x[0], INFINITY), at::norm(w[0], INFINITY, at::IntArrayRef{1}, false));
  TESSERA_CASE(softmax<0>(x[0]), w[0].softmax(0));
  TESSERA_CASE(softmax<1>(x[0]), w[0].softmax(1));
  TESSERA_CASE(softmin<1>(x[0]), (-w[0]).softmax(1));
  TESSERA_CASE(log_softmax<0>(x[0]), w[0].log_softmax(0));
  TESSERA_CASE(log_softmax<1>(x[0]), w[0].log_softmax(1));
  TESSERA_CASE(tanhshrink(x[0]), w[0] - w[0].tanh());
  TESSERA_CASE(clamp(x[0], 0, 1), w[0].clamp(0, 1));
  TESSERA_CASE(where(x[3], x[0], x[1]), at::where(w[3], w[0], w[1]));
  TESSERA_CASE((permute<1, 0>(x[0])), w[0].t());
  TESSERA_CASE((transpose<0, 1>(x[0])), w[0].t());
  TESSERA_CASE((squeeze<1>(unsqueeze<1>(x[0]))), w[0]);
  TESSERA_CASE((expand<0, 3>(unsqueeze<0>(x[0]))), w[0].expand({3, 4, 6}));
  TESSERA_CASE((flatten<0, 1>(unflatten<0, 1>(x[0]))), w[0]);
  TESSERA_CASE((slice<0, 1, -1>(x[0])), w[0].slice(0, 1, -1));
  TESSERA_CASE((concat<0>(x[0], x[1])), at::cat({w[0], w[1]}));
  TESSERA_CASE((stack<0>(x[0], x[1])), at::stack({w[0], w[1]}));
  TESSERA_CASE((pad<0, 2, 1>(x[0], 1)), at::constant_pad_nd(w[0], {0, 0, 2, 1}, 1));
  TESSERA_CASE((pad<1, -1, 2>(x[0])), at::constant_pad_nd(w[0], {-1, 2}));
  TESSERA_CASE(cast<double>(x[0]), w[0].to(at::kDouble));
  TESSERA_CASE(cast(x[0], element::int64), w[0].to(at::kLong));
  TESSERA_CASE(matmul(x[2], x[0]), at::matmul(w[2], w[0]));
  TESSERA_CASE(matmul(unsqueeze<0>(x[2]), x[0]), at::matmul(w[2].unsqueeze(0), w[0]));
  TESSERA_CASE((matmul(x[2], expand<0, 3>(unsqueeze<0>(x[0])))), at::matmul(w[2], w[0].expand({3, 4, 6})));
  TESSERA_CASE(einsum<products>(x[2], x[0]), at::einsum("ij,jk->ik", {w[2], w[0]}));
  TESSERA_CASE(einsum<rows_of_products>(x[2], x[0]), wide_einsum("ij,jk->i", w[2], w[0]));
#undef TESSERA_CASE
  return all;
}

/// What a call comes to on this worker: a tensor, or the code of a refusal, or LibTorch's own words.
struct came_to {
  std::optional<tensor<dyn>> y;
  std::string code, words;
};
came_to called(const function_case& f, const tensors& x) {
  try {
    return {f.call(x), {}, {}};
  } catch (const error& e) {
    return {{}, e.code(), {}};
  } catch (const std::exception& e) {
    return {{}, {}, e.what()};
  }
}
std::optional<at::Tensor> of_libtorch(const function_case& f, const boxes& w) {
  try {
    return f.serial(w);
  } catch (const c10::Error&) {
    return {};
  }
}

bool same_numbers(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_complex())
    return at::allclose(at::view_as_real(a).to(at::kDouble), at::view_as_real(b).to(at::kDouble), 1e-5, 1e-5, true);
  return of_functions::alike(a, b);
}

/// Whether a function gives of an element what LibTorch gives of it, or refuses it.
std::string gives_otherwise(const team<world>& t, const function_case& f, element e, std::set<std::string>& given_of) {
  const layout lies = lying<blocks<ox>, blocks<oy>>({4, 6});
  const at::ScalarType s = tessera::detail::scalar_type_of(e);
  const at::Tensor n = global_of({4, 6}, numbers{7, true}).abs() + 1, m = global_of({4, 6}, numbers{9, true}).abs() + 1;
  const given all(lies, e == element::boolean ? n > 2 : n.to(s), e == element::boolean ? m > 2 : m.to(s));
  tensors x;
  for (std::size_t i = 0; i < all.whole.size(); ++i) x.push_back(distribute(t, all.of(i), all.whole[i]));
  const came_to here = called(f, x);
  const std::string where = fmt::format("{} of {}: ", f.name, name_of(e));
  if (!here.words.empty()) return where + here.words.substr(0, 120);
  if (!here.y)
    return here.code == "tessera.function.element" || here.code == "tessera.tensor.number" ? "" : where + here.code;
  given_of.insert(f.name);
  const auto wanted = of_libtorch(f, all.whole);
  if (!wanted) return where + "LibTorch gives nothing";
  if (here.y->type() != tessera::detail::element_of_scalar(wanted->scalar_type()) ||
      here.y->local().scalar_type() != wanted->scalar_type())
    return where + fmt::format("{} for {}", name_of(here.y->type()), at::toString(wanted->scalar_type()));
  return same_numbers(full_tensor(settled(*here.y)), *wanted) ? "" : where + "values";
}

/// Numbers at which functions have corners, each more unusual than the one before.
std::vector<at::Tensor> unusual() {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor usual = at::tensor({0., -0., 1., 1., -1., -1., 0.5, 0.5, 2.,  -2., 3.,   -3.,
                                       0., 0.,  0., 0., 0.,  0.,  6.,  6.,  -6., 1.,  0.25, 0.},
                                      at::kDouble)
                               .view({4, 6});
  std::vector<at::Tensor> all{usual};
  for (const double odd : {inf, -inf, nan}) {
    all.push_back(usual.clone());
    all.back()[1][2] = odd;
    all.back()[3][0] = odd;
  }
  return all;
}

}  // namespace

TEST_CASE("every function gives of every element what LibTorch gives of it, or refuses it", "[law][refusal][runtime]") {
  CHECK(worst(in_team<world>([](const team<world>& t) -> std::string {
          std::string all;
          std::set<std::string> given_of;
          const std::vector<function_case> cases = all_functions();
          int i = 0;  // each function is tried with some element, and each element with some function
          for (const function_case& f : cases)
            for (int e = 0; e < number_of_elements; ++e)
              if (!tried(i++ + e / 3) && given_of.count(f.name) != 0) continue;
              else if (const std::string why = gives_otherwise(t, f, static_cast<element>(e), given_of); !why.empty())
                all += why + "\n";
          for (const function_case& f : cases)
            if (given_of.count(f.name) == 0) all += f.name + " takes nothing\n";
          return all;
        })) == "");
}

namespace {

/// The gradients of Σ f(x, y) in one process.
boxes slopes(const function_case& f, const boxes& x, const given& of) {
  boxes leaves;
  for (const at::Tensor& one : x) leaves.push_back(one.clone().set_requires_grad(true));
  const at::Tensor y = f.serial({leaves[0], leaves[1], of.whole[2], of.whole[3]});
  if (!y.requires_grad()) return {};
  boxes all = torch::autograd::grad({y.sum()}, leaves, {}, false, false, true);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i].defined()) all[i] = at::zeros_like(leaves[i]);
  return all;
}

/// Whether LibTorch gives a single element the gradient that it gives it among others: some of its kernels take NaN
/// otherwise in one than in several.
bool agrees_with_itself(const function_case& f, const boxes& x, const given& of) {
  if (!f.of_elements) return true;
  const boxes whole = slopes(f, x, of);
  for (index_t k = 0; k < x[0].numel(); ++k) {
    const auto alone = [k](const at::Tensor& t) { return t.flatten().narrow(0, k, 1); };
    const boxes one = slopes(f, {alone(x[0]), alone(x[1])}, of);
    for (std::size_t i = 0; i < one.size(); ++i)
      if (!of_functions::alike(one[i], alone(whole[i]))) return false;
  }
  return true;
}

std::string slopes_otherwise(const team<world>& t, const function_case& f, const layout& lies, const at::Tensor& n) {
  const given of(lies, n, n.roll(2));
  // of what has no mean: LibTorch's is infinite, ours no number
  if (f.name.rfind("var", 0) == 0 && at::isinf(n).any().item<bool>()) return "";
  // Copies of a result beside the first have zeros for gradients, and 0 · ∞ is none.
  if (f.name.find("0.5") != std::string::npos && lies.levels(0) > 0 && !at::isfinite(n).all().item<bool>()) return "";
  const boxes whole{n, of.whole[1]}, wanted = slopes(f, whole, of);
  if (wanted.empty() || !agrees_with_itself(f, whole, of)) return "";
  tensors x;
  for (std::size_t i = 0; i < 4; ++i) x.push_back(distribute(t, of.of(i), of.whole[i]));
  for (std::size_t i = 0; i < 2; ++i) x[i].requires_grad();
  const tensor<dyn> y = sum(settled(f.call(x)));
  const std::vector<tensor<dyn>> found = gradients(y, {x[0], x[1]}, false);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (const at::Tensor all = full_tensor(found[i]); !of_functions::alike(all, wanted[i]))
      return fmt::format("{} {} gradient {} at {}", f.name, shown(lies), i, n[1][2].item<double>());
  return "";
}

}  // namespace

TEST_CASE("the gradient of every function at zeros, ties, infinities and NaN is LibTorch's, however the tensor lies",
          "[law][gradient]") {
  CHECK(worst(in_team<world>([](const team<world>& t) -> std::string {
          std::string all;
          int i = 0;
          for (const function_case& f : all_functions())
            for (const layout& lies :
                 {lying<blocks<ox>, blocks<oy>>({4, 6}), lying<blocks<oy>, whole, invariant<ox>>({4, 6}),
                  lying<whole, whole, invariant<ox, oy>>({4, 6})}) {
              if (f.of_terms && lies.levels(0) > 0) continue;
              for (const at::Tensor& n : unusual())
                if (!tried(i++)) continue;
                else if (const std::string why = slopes_otherwise(t, f, lies, n); !why.empty()) all += why + "\n";
            }
          return all;
        })) == "");
}

namespace {

template <class E>
using lines_of = on_world<E, shape_of<4, 6>, blocks<ox>, blocks<oy>>;
/// The element that a function gives of a typed tensor.
template <class F, class E>
constexpr element typed = value_of<result_type<F, lines_of<E>>>.element;

/// Whether types know the elements that tensors have, of what counts and of what asks.
template <class... E>
constexpr bool types_count(tessera::detail::type_list<E...>) {
  const auto counted = [](element given, element of) { return given == (has_cotangent(of) ? of : element::int64); };
  const auto asked = [](element given, element of) { return given == (of == element::uint8 ? of : element::boolean); };
  return ((counted(typed<functions::sum<0>, E>, tessera::engine::element_of<E>) &&
           counted(typed<functions::prod_over<>, E>, tessera::engine::element_of<E>) &&
           asked(typed<functions::any_over<>, E>, tessera::engine::element_of<E>) &&
           asked(typed<functions::all_over<1>, E>, tessera::engine::element_of<E>)) &&
          ...);
}

}  // namespace

TEST_CASE("types know that integers and booleans are counted in int64, and what is asked of bytes is a byte",
          "[plan]") {
  STATIC_REQUIRE(types_count(tessera::detail::element_types{}));
  STATIC_REQUIRE(typed<functions::cast<bfloat16>, bool> == element::bfloat16);
  STATIC_REQUIRE(scalar_type<bfloat16> == at::kBFloat16);
}

TEST_CASE("terms of what is counted in a wider element are refused, and those of int64 are counted", "[refusal]") {
  const auto terms = [](const team<world>& t, at::ScalarType e) {
    return distribute(t, lying<whole, whole, partial<ox>>({2, 3}), at::ones({2, 3}, e));
  };
  for (const at::ScalarType e : {at::kBool, at::kChar, at::kInt, at::kUInt16})
    CHECK(refusals<world>("tessera.rule.nonlinear", [&](const team<world>& t) { sum(terms(t, e)); }) == 6);
  CHECK(satisfied<world>([&](const team<world>& t) {
          return full_tensor(sum(terms(t, at::kLong))).item<std::int64_t>() == 6;
        }) == 6);
}
