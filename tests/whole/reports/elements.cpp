#include "beside_serial.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Precision, random numbers, elements, memory.

// pytorch#190626, Megatron-LM#6199: the gradients 1 + 2⁻⁷·r of eight workers were summed in bfloat16, on one of two
// axes alone or with an error that grows with their number.
TEST_CASE("reports: terms of half types are summed in float and rounded once, over one axis and over two",
          "[regression][runtime]") {
  for (const mesh_value& on : {workers(2), workers(3), workers(8), workers(4, 2)})
    for (const at::ScalarType e : {at::kBFloat16, at::kHalf})
      for (const index_t length : {1, 5})
        CHECK(wrong_on(on, [&](const team_handle& t) {
                std::string said;
                const auto term = [&](int r) { return at::full({length}, 1 + r / 128.0, at::kFloat).to(e); };
                at::Tensor all = at::zeros({length});
                for (int r = 0; r < on.size(); ++r) all += term(r).to(at::kFloat);
                const tensor<dyn> x(t, lying(on, {length}, {}, placement::partial), term(t->rank()));
                for (const layout& y : ways(on, {length}))
                  if (!at::equal(full_tensor(to(y, x)), all.to(e))) said += shown(y) + "; ";
                return said;
              }) == "");
}

// pytorch#168058, veScale#52, tt-metal#55947: initial values and masks depended on how a tensor is cut.
TEST_CASE("reports: initial values and masks are the same bits for one worker and for many, however the tensor lies",
          "[regression][runtime]") {
  const sizes n{6, 5};
  const auto drawn = [&](const mesh_value& on, const layout& x) {
    std::vector<at::Tensor> all;
    const auto run = on_workers(on.size(), [&](const std::shared_ptr<transport>& carrier) {
      const team_handle t = std::make_shared<team_state>(carrier, on);
      const trained_net made(t, {{x, element::float64}}, [](const auto& v) {
        return v[0] | nn::linear_layer{.out = 7} | nn::dropout_layer{.probability = 0.4};
      });
      const at::Tensor first = full_tensor(made.net(distribute(t, x, values(n))));
      return std::tuple(nn::state_of(made.net).at("0.weight"), first,
                        full_tensor(made.net(distribute(t, x, values(n)))));
    });
    REQUIRE(run.well());
    return run.results;
  };
  const auto one = drawn(workers(1), lying(workers(1), n));
  CHECK(!at::equal(std::get<1>(*one[0]), std::get<2>(*one[0])));
  for (const mesh_value& on : {workers(4), workers(8), workers(2, 2)})
    for (const layout& x : ways(on, n))
      for (const auto& r : drawn(on, x)) {
        INFO(shown(x));
        CHECK(same_bits(std::get<0>(*r), std::get<0>(*one[0])));
        CHECK(at::equal(std::get<1>(*r) == 0, std::get<1>(*one[0]) == 0));
        CHECK(close(std::get<1>(*r), std::get<1>(*one[0])));
        CHECK(close(std::get<2>(*r), std::get<2>(*one[0])));
      }
}

// pytorch#158753, Lightning#20480: of a complex weight under data parallelism the gradient's imaginary part was none.
TEST_CASE("reports: complex weights have complex gradients", "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(3), workers(2, 2)})
    for (const at::ScalarType e : {at::kComplexFloat, at::kComplexDouble})
      CHECK(wrong_on(on, [&](const team_handle& t) {
              std::string said;
              for (const layout& x : ways(on, {5, 3})) {
                layout w = lying_as(lying(on, {3, 2}), 0, x, 1);
                for (int a = 0; a < x.placements.count; ++a)
                  if (x.placements[a].kind == placement::invariant) w.placements[a] = {placement::invariant};
                said += beside(
                    t, {{x, values({5, 3}, 1, e)}, {w, values({3, 2}, 2, e)}},
                    [](const auto& v) { return matmul(v[0], v[1]); },
                    [](const auto& v) { return at::matmul(v[0], v[1]); });
              }
              return said;
            }) == "");
}

// pytorch#88294, #80080: a view of a conjugate was sent unconjugated. pytorch#192920, #159548: verbs on a column sent
// its neighbours' memory. pytorch#163712: one worker's box was contiguous and another's channels last.
TEST_CASE(
    "reports: every change carries elements, not memory: conjugates, negatives, columns, other strides on each "
    "worker",
    "[regression][runtime]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(3), workers(2, 2)})
    for (const at::ScalarType e : {at::kDouble, at::kComplexDouble, at::kBFloat16, at::kLong})
      CHECK(
          wrong_on(on, [&](const team_handle& t) {
            std::string said;
            const sizes n{4, 3};
            const at::Tensor all = values(n, 1, e);
            std::vector<layout> from = ways(on, n);
            from.push_back(lying(on, n, {}, placement::partial));
            from.push_back(lying(on, n, {{0, 0}}));
            for (axis_placement& r : from.back().placements)
              if (r.kind != placement::cut) r = held_on(0);
            for (const layout& x : from)
              for (const layout& y : ways(on, n)) {
                const tensor<dyn> given = distribute(t, x, all);
                const at::Tensor wanted = to(y, given).local();
                for (int how = 0; how < 4; ++how)
                  if (!at::equal(to(y, tensor<dyn>(t, given.layout(), stored_as(given.local(), (how + t->rank()) % 4)))
                                     .local(),
                                 wanted))
                    said += fmt::format("{} to {} in memory {}; ", shown(x), shown(y), how);
                if (e != at::kComplexDouble) continue;
                const at::Tensor plain = given.local().clone();
                if (!at::equal(to(y, tensor<dyn>(t, given.layout(), plain.conj())).local().resolve_conj(),
                               wanted.conj().resolve_conj()))
                  said += "conjugate; ";
                // a view that is marked as negative
                const tensor<dyn> imaginary = to(y, tensor<dyn>(t, given.layout(), at::imag(plain.conj())));
                if (!at::equal(imaginary.local().resolve_neg(), at::neg(at::imag(wanted)))) said += "negative; ";
              }
            return said;
          }) == "");
}
