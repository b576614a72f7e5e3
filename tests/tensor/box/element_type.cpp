#include "tests/support/elements.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/tensor/device/torch_boxes.hpp>

#include <complex>

// Every element type in LibTorch tensors, against LibTorch alone.

namespace tessera::testing {

using namespace engine;

namespace {

struct left : axis<2> {};
struct right : axis<2> {};
using pairs = mesh<left, right>;
template <class E>
using scalar_of = tensor<partition<pairs, invariant<left, right>>, shape<>, E>;
template <class E>
using cut_of = tensor<partition<pairs, blocks<left, right>, whole>, shape_of<5, 3>, E>;
template <class E>
using terms_of = tensor<partition<pairs, whole, whole, partial<left, right>>, shape_of<5, 3>, E>;

at::Tensor numbers_of(at::ScalarType t, const std::vector<index_t>& extents, std::uint64_t salt) {
  at::Tensor x = global_of(extents, numbers{salt}) * 60;
  if (c10::isComplexType(t)) return at::complex(x, global_of(extents, numbers{salt + 1})).to(t);
  return t == at::kBool ? x > 0 : (c10::isIntegralType(t, false) ? x.abs() : x).to(t);
}

at::Tensor box_in(const layout& x, int rank, const at::Tensor& global) {
  at::Tensor t = global;
  index_t d = 0;
  for (const intervals& held : held_by(x, rank)) {
    std::vector<at::Tensor> parts;
    for (const interval& i : held) parts.push_back(t.narrow(d, i.lo, i.size()));
    t = parts.size() == 1 ? parts[0] : at::cat(parts, d);
    ++d;
  }
  return t;
}

int world_of(const layout_pair& p) {
  int last = 0;
  for (const layout* x : {&p.from, &p.to})
    for (int i = 0; i < x->mesh.size(); ++i) last = std::max(last, x->mesh.rank(x->mesh.at(i)));
  return last + 1;
}

template <class Visit>
void each_scalar_type(Visit&& visit) {
  for (int e = 0; e < number_of_elements; ++e) visit(tessera::detail::scalar_type_of(static_cast<tessera::element>(e)));
}

layout line_of(int size, index_t n, axis_placement how) {
  layout x;
  x.mesh.axes.push({text{"a"}, size, 1});
  x.placements.push(how);
  x.dims.resize(1);
  x.dims[0].extent = n;
  return x;
}

}  // namespace

TEST_CASE("tensors of every element type move, however they are stored", "[law][runtime]") {
  dice d{23};
  for (int round = 0; round < trials(12); ++round) {
    const layout_pair p = roll_tilings(d, true, 3, 5);
    const int world = world_of(p);
    each_scalar_type([&](at::ScalarType t) {
      const at::Tensor global = numbers_of(t, extents_of(p.from), d.next());
      const auto all = on_workers(world, [&](const std::shared_ptr<transport>& c) {
        const auto team = std::make_shared<team_state>(c, p.from.mesh);
        const at::Tensor mine = box_in(p.from, c->rank(), global);
        const at::Tensor y =
            change_layout(team, p.from, p.to, round % 2 == 0 ? mine : mine.clone(at::MemoryFormat::Contiguous));
        return oracle::held(p.to, c->rank()).empty() || same_bits(y, box_in(p.to, c->rank(), global));
      });
      INFO("round " << round << " " << at::toString(t) << " " << shown(p.from) << " to " << shown(p.to)
                    << all.errors());
      REQUIRE(all.well());
      for (int r = 0; r < world; ++r) REQUIRE(all.of(r));
    });
  }
}

TEST_CASE("terms of every element type are summed as LibTorch sums them, the next wider type and rounded once",
          "[runtime]") {
  constexpr index_t n = 203;
  for (const int size : {2, 5}) {
    each_scalar_type([&](at::ScalarType t) {
      std::vector<at::Tensor> terms;
      for (int r = 0; r < size; ++r) terms.push_back(numbers_of(t, {n}, 100 + static_cast<std::uint64_t>(r)));
      const bool half = t == at::kHalf || t == at::kBFloat16;
      const bool rounds = half || t == at::kFloat || t == at::kComplexFloat;
      const bool small = t == at::kUInt16 || t == at::kUInt32 || t == at::kUInt64;  // LibTorch does not add these
      const at::ScalarType wide = half     ? at::kFloat
                                  : rounds ? (t == at::kFloat ? at::kDouble : at::kComplexDouble)
                                  : small  ? at::kLong
                                           : t;
      at::Tensor sum = at::zeros({n}, wide);
      at::Tensor each_time = at::zeros({n}, rounds ? t : wide);
      for (const at::Tensor& x : terms) {
        sum = t == at::kBool ? at::logical_or(sum, x) : sum + x.to(wide);
        if (rounds) each_time = each_time + x;
      }
      sum = sum.to(t);
      if (rounds && size > 2) CHECK_FALSE(same_bits(sum, each_time));
      const auto all = on_workers(size, [&](const std::shared_ptr<transport>& c) {
        const layout from = line_of(size, n, {placement::partial});
        const auto team = std::make_shared<team_state>(c, from.mesh);
        return change_layout(team, from, line_of(size, n, {placement::invariant}),
                             terms[static_cast<std::size_t>(c->rank())]);
      });
      INFO(at::toString(t) << all.errors());
      REQUIRE(all.well());
      for (int r = 0; r < size; ++r) CHECK(same_bits(all.of(r), sum));
    });
  }
}

TEST_CASE("the adjoint of a change of complex tensors pairs as it must, by the real part of x times conjugate y",
          "[law][gradient]") {
  dice d{29};
  for (int round = 0; round < trials(60); ++round) {
    const auto extents = roll_extents(d, 3, 5);
    const mesh_value mesh = roll_mesh(d);
    const layout_pair p{roll_layout(d, mesh, extents, {true, true, true, false}),
                        roll_layout(d, mesh, extents, {true, true, true, false})};
    const int world = world_of(p);
    const auto dealt = [&](const layout& x) {
      const shards re = deal(x, world, numbers{d.next(), true});
      const shards im = deal(x, world, numbers{d.next(), true});
      std::vector<at::Tensor> local;
      for (std::size_t r = 0; r < re.local.size(); ++r) local.push_back(at::complex(re.local[r], im.local[r]));
      return local;
    };
    const std::vector<at::Tensor> x = dealt(p.from);
    const std::vector<at::Tensor> z = dealt(cotangent(p.to));
    const auto all = on_workers(world, [&](const std::shared_ptr<transport>& c) {
      const auto r = static_cast<std::size_t>(c->rank());
      const auto team = std::make_shared<team_state>(c, mesh);
      const at::Tensor leaf = x[r].clone().set_requires_grad(true);
      const at::Tensor y = change_layout(team, p.from, p.to, leaf);
      const at::Tensor g = torch::autograd::grad({y}, {leaf}, {z[r]})[0];
      const at::Tensor conjugate = y.detach().conj();  // lazily; and the pairing reads what it means
      const double left = pairing({team, p.to, y.detach()}, {team, cotangent(p.to), z[r]});
      const double mixed = pairing({team, p.to, conjugate}, {team, cotangent(p.to), z[r].conj().resolve_conj()});
      return std::array{left, pairing({team, p.from, x[r]}, {team, cotangent(p.from), g}), mixed};
    });
    INFO("round " << round << " " << shown(p.from) << " to " << shown(p.to) << all.errors());
    REQUIRE(all.well());
    for (int i = 0; i < mesh.size(); ++i) {
      const auto [left, adjoint, mixed] = all.of(mesh.rank(mesh.at(i)));
      REQUIRE(left == adjoint);
      REQUIRE(left == mixed);
    }
  }
}

TEST_CASE("the pairing of complex tensors is the real part of the sum of x times conjugate y", "[runtime]") {
  const at::Tensor x = numbers_of(at::kComplexFloat, {5, 3}, 1);
  const at::Tensor y = numbers_of(at::kComplexFloat, {5, 3}, 2);
  const double wanted = at::real((x.to(at::kComplexDouble) * y.to(at::kComplexDouble).conj()).sum()).item<double>();
  const auto all = in_team<pairs>([&](team<pairs>& t) {
    return pairing(distribute<cut_of<complex64>>(t, x), distribute<cut_of<complex64>>(t, y));
  });
  for (int r = 0; r < 4; ++r) CHECK(all.of(r) == Approx(wanted).epsilon(1e-12));
}

TEST_CASE("what LibTorch only marks as conjugate or negative arrives as it is meant", "[runtime]") {
  const layout from = line_of(3, 7, held_on(1));
  const layout to = line_of(3, 7, {});
  const at::Tensor x = numbers_of(at::kComplexDouble, {7}, 3);
  const auto all = on_workers(3, [&](const std::shared_ptr<transport>& c) {
    const auto team = std::make_shared<team_state>(c, from.mesh);
    const at::Tensor none = x.narrow(0, 0, 0);
    const at::Tensor marked = at::imag(x.conj());  // a negative view of real numbers
    const at::Tensor a = change_layout(team, from, to, c->rank() == 1 ? x.conj() : none);
    const at::Tensor b = change_layout(team, from, to, c->rank() == 1 ? marked : at::empty({0}, at::kDouble));
    return at::equal(a, x.conj().resolve_conj()) && at::equal(b, -at::imag(x)) && marked.is_neg();
  });
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 0; r < 3; ++r) CHECK(all.of(r));
}

namespace {

template <class E>
bool trains(team<pairs>& t, at::ScalarType s) {
  const at::Tensor global = numbers_of(s, {5, 3}, 5);
  auto x = distribute<cut_of<E>>(t, global);
  x.requires_grad();
  auto y = all_gather<partition<pairs, blocks<left>, whole>>(x);
  auto loss = to<partition<pairs, invariant<left, right>>>(sum(to<partition<pairs, whole, whole>>(y * y)));
  loss.backward();
  const at::Tensor leaf = global.clone().set_requires_grad(true);
  (leaf * leaf).sum().backward(at::ones({}, s));
  return x.grad().local().scalar_type() == s && same_bits(x.grad().local(), box_in(x.layout(), t.rank(), leaf.grad()));
}

}  // namespace

TEST_CASE("half and complex tensors have gradients, of their own type", "[gradient]") {
  const auto all = in_team<pairs>([](team<pairs>& t) {
    return trains<half>(t, at::kHalf) && trains<bfloat16>(t, at::kBFloat16) &&
           trains<complex64>(t, at::kComplexFloat) && trains<complex128>(t, at::kComplexDouble);
  });
  INFO(all.errors());
  for (int r = 0; r < 4; ++r) CHECK(all.of(r));
}

namespace {

template <class P, index_t N, index_t M>
using half_matrix = tensor<P, shape_of<N, M>, half>;

/// How far boxes of a half type are from a number, in units of its last place.
double ulps(const at::Tensor& x, const at::Tensor& wanted, double last_place) {
  const at::Tensor w = wanted.to(at::kDouble);
  return ((x.to(at::kDouble) - w).abs() / (w.abs() * last_place + 1e-300)).max().item<double>();
}

/// Loss and gradient of float16 logits [4, 70000] against a computation in double.
template <class P, class Labels>
bool loses_like_double(team<pairs>& t, double scale) {
  const at::Tensor logits = (global_of({4, 70000}, numbers{31}) * scale).to(at::kHalf);
  const at::Tensor labels = at::tensor({0, 69999, 35000, 7}, at::kLong);
  auto x = distribute<half_matrix<P, 4, 70000>>(t, logits);
  x.requires_grad();
  const auto loss = nn::cross_entropy(x, distribute<tensor<Labels, shape_of<4>, std::int64_t>>(t, labels));
  loss.backward();
  const at::Tensor leaf = logits.to(at::kDouble).set_requires_grad(true);
  const at::Tensor wanted = at::cross_entropy_loss(leaf, labels);
  wanted.backward();
  const at::Tensor gradient = full_tensor(x.grad()).to(at::kDouble);
  return ulps(loss.local().detach(), wanted.detach(), 0x1p-11) <= 1.01 &&
         ((gradient - leaf.grad()).abs() <= leaf.grad().abs() * 0x1p-10 + 0x1p-24).all().item<bool>();
}

}  // namespace

TEST_CASE("sums inside operations on half types are made in float and rounded once", "[runtime]") {
  const auto loss = in_team<pairs>([](team<pairs>& t) {
    bool good = true;
    int i = 0;
    for (const double scale : {0.0, 1.0, 40.0}) {
      if (tried(i++)) good &= loses_like_double<partition<pairs, whole, whole>, partition<pairs, whole>>(t, scale);
      if (tried(i++))
        good &=
            loses_like_double<partition<pairs, blocks<left>, blocks<right>>, partition<pairs, blocks<left>>>(t, scale);
      if (tried(i++))
        good &= loses_like_double<partition<pairs, whole, blocks<left, right>>, partition<pairs, whole>>(t, scale);
    }
    return good;
  });
  INFO(loss.errors());
  REQUIRE(loss.well());
  for (int r = 0; r < 4; ++r) CHECK(loss.of(r));

  const auto sums = in_team<pairs>([](team<pairs>& t) {
    using columns = partition<pairs, whole, blocks<left>>;
    const at::Tensor a = global_of({7, 6000}, numbers{32}).abs().to(at::kHalf);
    const at::Tensor b = global_of({6000, 5}, numbers{33}).abs().to(at::kHalf);
    const auto x = distribute<half_matrix<columns, 7, 6000>>(t, a);
    const auto y = distribute<half_matrix<partition<pairs, blocks<left>, whole>, 6000, 5>>(t, b);
    // Each of two terms is rounded once, and so is their sum.
    bool good = ulps(full_tensor(sum<1>(x)), a.to(at::kDouble).sum(1), 0x1p-11) <= 2.1;
    good = good && ulps(full_tensor(sum<0>(x)), a.to(at::kDouble).sum(0), 0x1p-11) <= 1.01;
    return good && ulps(full_tensor(matmul(x, y)), a.to(at::kDouble).mm(b.to(at::kDouble)), 0x1p-11) <= 2.1;
  });
  INFO(sums.errors());
  REQUIRE(sums.well());
  for (int r = 0; r < 4; ++r) CHECK(sums.of(r));
}

namespace {

/// A convolution's result is rounded once, and its gradients are near those in double.
bool convolves_like_double(team<pairs>& t) {
  using images = tensor<partition<pairs, blocks<left>, whole, blocks<right>, whole>, shape_of<40, 8, 6, 6>, half>;
  const nn::sequential<images, nn::conv<4, kernel<3, 3>, padding<1>>> net{t, seed{3}};
  const at::Tensor a = global_of({40, 8, 6, 6}, numbers{34}).to(at::kHalf);
  const auto y = net(distribute<images>(t, a));
  sum(y).backward();
  const nn::state_dict weights = nn::state_of(net);
  const at::Tensor w = weights.at("0.weight").to(at::kDouble).set_requires_grad(true);
  const at::Tensor b = weights.at("0.bias").to(at::kDouble).set_requires_grad(true);
  const at::Tensor wanted = at::conv2d(a.to(at::kDouble), w, b, 1, 1);
  wanted.sum().backward();
  const auto of = [&](std::size_t i) { return net.parameters()[i].grad().to(at::kDouble); };
  const auto near = [](const at::Tensor& g, const at::Tensor& h) {
    return ((g - h).abs() <= h.abs().max() * 0x1p-9).all().item<bool>();
  };
  return ((full_tensor(y).to(at::kDouble) - wanted).abs() <= wanted.abs() * 0x1p-11 + 0x1p-20).all().item<bool>() &&
         near(of(0), w.grad()) && near(of(1), b.grad());
}

}  // namespace

// LibTorch's convolution adds the samples' gradients of its weight in the half type, and without oneDNN takes
// Winograd's short cut.
TEST_CASE("a convolution of half types is rounded once, whoever computes it", "[runtime][gradient]") {
  std::vector<bool> with_onednn{false};
  // in its cache the sanitizer does not see the order of what threads do
  if (!tessera::detail::watches_threads) with_onednn.push_back(true);
  const bool before = at::globalContext().userEnabledMkldnn();
  for (const bool enabled : with_onednn) {
    at::globalContext().setUserEnabledMkldnn(enabled);
    const auto all = in_team<pairs>(convolves_like_double);
    at::globalContext().setUserEnabledMkldnn(before);
    INFO(enabled << all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < 4; ++r) CHECK(all.of(r));
  }
}

TEST_CASE("a scalar is read in a type that C++ computes with", "[runtime]") {
  const auto all = in_team<pairs>([](team<pairs>& t) {
    const auto h = item(distribute<scalar_of<half>>(t, at::full({}, 1.5, at::kHalf)));
    const auto b = item(distribute<scalar_of<bfloat16>>(t, at::full({}, -2.5, at::kBFloat16)));
    const auto c = item(distribute<scalar_of<complex64>>(t, at::complex(at::full({}, 1.f), at::full({}, 2.f))));
    const auto z = item(distribute<scalar_of<complex128>>(
        t, at::complex(at::full({}, 1.0, at::kDouble), at::full({}, -2.0, at::kDouble)).conj()));
    const auto u = item(distribute<scalar_of<std::uint16_t>>(t, at::full({}, 65535, at::kInt).to(at::kUInt16)));
    const auto w = item(distribute<scalar_of<std::uint64_t>>(t, at::full({}, -1, at::kLong).to(at::kUInt64)));
    const auto i = item(distribute<scalar_of<std::int8_t>>(t, at::full({}, -3, at::kChar)));
    static_assert(std::is_same_v<decltype(h), const float> && std::is_same_v<decltype(b), const float>);
    static_assert(std::is_same_v<decltype(c), const std::complex<float>> &&
                  std::is_same_v<decltype(z), const std::complex<double>>);
    static_assert(std::is_same_v<decltype(u), const std::uint16_t> && std::is_same_v<decltype(i), const std::int8_t>);
    return h == 1.5f && b == -2.5f && c == std::complex<float>(1, 2) && z == std::complex<double>(1, 2) && u == 65535 &&
           w == ~std::uint64_t{0} && i == -3;
  });
  INFO(all.errors());
  for (int r = 0; r < 4; ++r) CHECK(all.of(r));
}

TEST_CASE("terms combine otherwise than by a sum where no gradient is asked for", "[runtime]") {
  constexpr int size = 3;
  std::vector<at::Tensor> terms;
  for (std::uint64_t r = 0; r < size; ++r) terms.push_back(numbers_of(at::kDouble, {11}, r).round().remainder(3));
  const at::Tensor all_terms = at::stack(terms);
  const std::map<combine, at::Tensor> wanted{{combine::max, std::get<0>(all_terms.max(0))},
                                             {combine::min, std::get<0>(all_terms.min(0))},
                                             {combine::prod, all_terms.prod(0)},
                                             {combine::any, all_terms.any(0).to(at::kDouble)},
                                             {combine::all, all_terms.all(0).to(at::kDouble)}};
  for (const auto& [with, result] : wanted) {
    const auto all = on_workers(size, [&, with = with](const std::shared_ptr<transport>& c) {
      const layout from = line_of(size, 11, partial_by(with));
      const auto team = std::make_shared<team_state>(c, from.mesh);
      return change_layout(team, from, line_of(size, 11, {placement::invariant}),
                           terms[static_cast<std::size_t>(c->rank())]);
    });
    INFO(static_cast<int>(with) << all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(at::equal(all.of(r), result));
  }
}

TEST_CASE("a maximum of complex terms is refused before anything moves", "[refusal]") {
  const auto all = on_workers(2, [](const std::shared_ptr<transport>& c) {
    const layout from = line_of(2, 3, partial_by(combine::max));
    const auto team = std::make_shared<team_state>(c, from.mesh);
    const at::Tensor x = at::zeros({3}, at::kComplexFloat);
    change_layout(team, from, line_of(2, 3, {}), x);
    return true;
  });
  for (int r = 0; r < 2; ++r) CHECK(all.codes[static_cast<std::size_t>(r)] == "tessera.combine.order");
}

TEST_CASE("integers and booleans cross without a gradient", "[plan]") {
  CHECK(number_of_elements == 15);
  each_scalar_type([](at::ScalarType t) {
    const bool expected = c10::isFloatingType(t) || c10::isComplexType(t);
    CHECK(has_cotangent(tessera::detail::element_of_scalar(t)) == expected);
  });
}

TEST_CASE("LibTorch's kernels copy and combine boxes as the host does, to the bit", "[law][runtime]") {
  torch_boxes boxes(at::kCPU);
  constexpr index_t n = 1301;
  each_element([&]<class T>(T) {
    const tessera::element e = tessera::engine::element_of<T>;
    const auto box = [&](gapped<T>& of) { return of.where(n); };
    for (const combine with : combines) {
      // products of complex numbers round in many ways
      if (!check_combine(with, e).ok() || (is_complex(e) && with == combine::prod)) continue;
      for (const int count : {1, 2, 3, 5}) {
        std::vector<gapped<T>> terms;
        std::vector<region> where;
        std::vector<std::byte*> at;
        std::vector<box_vector> strides;
        gapped<T> ours(n, 3);
        gapped<T> hosts(n, 3);
        for (int t = 0; t < count; ++t) {
          terms.emplace_back(n, t % 2 + 1);
          for (index_t i = 0; i < n; ++i) terms.back().set(i, term<T>(i, t, with));
        }
        for (gapped<T>& t : terms) where.push_back(box(t));
        boxes.combine_terms(where, box(ours), with, nullptr);
        where.push_back(box(hosts));
        std::vector<const index_t*> steps;
        for (const region& r : where) {
          at.push_back(r.data);
          steps.push_back(r.strides.begin());
        }
        combine_rows(common_rows(where[0].extents, steps), e, at, with);
        INFO(name_of(e) << " combine " << static_cast<int>(with) << ", " << count << " terms");
        CHECK(ours.memory == hosts.memory);
      }
      gapped<T> ours(n, 2);
      gapped<T> hosts(n, 2);
      boxes.fill_neutral(box(ours), with, nullptr);
      fill_neutral(box(hosts), with);
      INFO(name_of(e) << " neutral of " << static_cast<int>(with));
      CHECK(ours.memory == hosts.memory);
    }
    gapped<T> from(n, 2);
    gapped<T> to(n, 3);
    gapped<T> wanted(n, 3);
    for (index_t i = 0; i < n; ++i) from.set(i, term<T>(i, 1, combine::sum));
    boxes.copy(box(from), box(to), nullptr);
    for (index_t i = 0; i < n; ++i) wanted.set(i, from.get(i));
    CHECK(to.memory == wanted.memory);
  });
}

}  // namespace tessera::testing
