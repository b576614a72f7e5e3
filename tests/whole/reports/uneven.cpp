#include "beside_serial.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Uneven and empty parts.

namespace {

const std::vector<sizes> matrices{{3, 4}, {1, 4}, {5, 1}, {7, 3}, {1, 1}};

std::string mean_rows(const std::vector<layout>& lie, const team_handle& t, const sizes& n) {
  std::string said;
  for (const layout& x : lie) {
    const std::vector<operand_of> one{{x, values(n)}};
    said += beside(t, one, [](const auto& v) { return mean(v[0]); }, [](const auto& v) { return v[0].mean(); });
    said += beside(
        t, one, [](const auto& v) { return mean<0>(v[0], keep_dims); },
        [](const auto& v) { return v[0].mean(0, true); });
    said += beside(
        t, one, [](const auto& v) { return var<1>(v[0], 0); },
        [](const auto& v) { return v[0].var({1}, std::optional<at::Scalar>(0)); });
    said +=
        beside(t, one, [](const auto& v) { return norm<0>(v[0]); }, [](const auto& v) { return v[0].norm(2, {0}); });
  }
  return said;
}

/// Parts of these lengths along a dimension, in the order of workers.
std::vector<index_t> bounds_of(const std::vector<index_t>& lengths) {
  std::vector<index_t> bounds{0};
  for (const index_t n : lengths) bounds.push_back(bounds.back() + n);
  return bounds;
}

int cut_axes(const layout& x) {
  int n = 0;
  for (const axis_placement& r : x.placements) n += r.kind == placement::cut;
  return n;
}

}  // namespace

// pytorch#162692: a mean of uneven parts was the mean of the parts' means.
TEST_CASE("reports: a mean, a variance and a norm are of all elements, however many each worker has",
          "[regression][runtime]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(5), workers(2, 3)})
    for (const sizes& n : matrices)
      CHECK(wrong_on(on, [&](const team_handle& t) { return mean_rows(ways(on, n), t, n); }) == "");
}

// pytorch#144109: boxes of widths 2, 3, 4, 5 were cut anew as 4, 4, 4, 2 and elements moved. pytorch#150862: 5 over 4
// as 2, 2, 1, 0, whose last part began where another one does.
TEST_CASE(
    "reports: boxes of any lengths stand one behind the other, and a new cut leaves each element where it belongs",
    "[regression][runtime]") {
  for (const std::vector<index_t>& lengths :
       std::vector<std::vector<index_t>>{{2, 3, 4, 5}, {2, 2, 1, 0}, {0, 3, 0, 1}, {0, 2}, {4}, {0, 0, 0}})
    for (const at::ScalarType e : {at::kDouble, at::kBFloat16, at::kLong, at::kBool})
      for (const int dim : {0, 1}) {
        const std::vector<index_t> bounds = bounds_of(lengths);
        sizes n{3, 3};
        n[static_cast<std::size_t>(dim)] = bounds.back();
        const at::Tensor all = at::arange(3 * bounds.back()).reshape(n).to(e);
        const mesh_value on = workers(static_cast<int>(lengths.size()));
        CHECK(wrong_on(on, [&](const team_handle& t) -> std::string {
                layout x = lying(on, n, {{dim, 0}});
                x.dims[dim].bounds = learned;
                const auto r = static_cast<std::size_t>(t->rank());
                const tensor<dyn> given = from_local(t, x, all.narrow(dim, bounds[r], lengths[r]));
                std::string said = at::equal(full_tensor(given), all) ? "" : "put together; ";
                for (const layout& y : ways(on, n)) {
                  const tensor<dyn> moved = to(y, given);
                  if (!at::equal(moved.local(), distribute(t, y, all).local())) said += "to " + shown(y) + "; ";
                  if (!at::equal(to(given.layout(), moved).local(), given.local()))
                    said += "back from " + shown(y) + "; ";
                }
                return said;
              }) == "");
      }
}

// pytorch#103306: 5 x 10 over 4 workers, cut and made whole, had 8 rows.
TEST_CASE("reports: a change from any cut to any other gives what a taken tensor has", "[regression][runtime]") {
  for (const mesh_value& on : {workers(1), workers(4), workers(3, 2)})
    for (const sizes& n : {sizes{5, 10}, sizes{1, 2}, sizes{3, 0}})
      CHECK(wrong_on(on, [&](const team_handle& t) {
              std::string said;
              const at::Tensor all = values(n);
              for (const layout& from : ways(on, n))
                for (const layout& after : ways(on, n)) {
                  if (!at::equal(to(after, distribute(t, from, all)).local(), distribute(t, after, all).local()))
                    said += shown(from) + " to " + shown(after) + "; ";
                }
              return said;
            }) == "");
}

// pytorch#135054: a view of a tensor with fewer rows than workers was silently held by all of them.
TEST_CASE("reports: what only shapes a tensor keeps its cut, or is refused, where some parts are empty",
          "[refusal][regression]") {
  const auto kept = [](const team_handle& t, const layout& x, const at::Tensor& all, const auto& f,
                       const auto& serial) {
    const std::string code = told([&] { f(distribute(t, x, all)); });
    if (code != "none") return code.rfind("tessera.", 0) == 0 ? std::string() : code;
    const std::string said =
        beside(t, {{x, all}}, [&](const auto& v) { return f(v[0]); }, [&](const auto& v) { return serial(v[0]); });
    return cut_axes(f(distribute(t, x, all)).layout()) < cut_axes(x) ? said + "the cut is gone of " + shown(x) : said;
  };
  for (const mesh_value& on : {workers(2), workers(4), workers(2, 2)})
    for (const sizes& n : {sizes{1, 2}, sizes{2, 6}, sizes{3, 2}})
      CHECK(wrong_on(on, [&](const team_handle& t) {
              std::string said;
              const at::Tensor all = values(n);
              for (const layout& x : ways(on, n)) {
                said += kept(
                    t, x, all, [](const auto& v) { return flatten<0, 1>(v); },
                    [](const at::Tensor& v) { return v.flatten(); });
                said += kept(
                    t, x, all, [](const auto& v) { return unsqueeze<0>(v); },
                    [](const at::Tensor& v) { return v.unsqueeze(0); });
                said += kept(
                    t, x, all, [](const auto& v) { return unflatten<1, 2>(v); },
                    [](const at::Tensor& v) { return v.unflatten(1, {-1, 2}); });
                said += kept(
                    t, x, all, [](const auto& v) { return transpose<0, 1>(v); },
                    [](const at::Tensor& v) { return v.transpose(0, 1); });
              }
              return said;
            }) == "");
}

// NVIDIA/physicsnemo#1943: rows of two tensors that are cut otherwise were paired as they lay in memory.
TEST_CASE("reports: tensors that are cut otherwise are refused by a rule, never paired as they lie",
          "[refusal][regression]") {
  for (const mesh_value& on : {workers(2), workers(3), workers(2, 2)})
    for (const sizes& n : {sizes{2, 3}, sizes{5, 2}})
      CHECK(wrong_on(on, [&](const team_handle& t) {
              std::string said;
              std::vector<layout> all = ways(on, n);
              // all of it on the last worker
              std::vector<index_t> late(static_cast<std::size_t>(on.axes[0].extent) + 1, 0);
              late.back() = n[0];
              layout uneven = lying(on, n, {{0, 0}}, placement::invariant);
              uneven.dims[0].bounds = late.data();
              all.push_back(uneven);
              for (const layout& x : all)
                for (const layout& y : all) {
                  const std::string code = told([&] { distribute(t, x, values(n)) + distribute(t, y, values(n, 2)); });
                  if (code != "none") {
                    if (code.rfind("tessera.rule.", 0) != 0) said += code + "; ";
                    continue;
                  }
                  said += beside(
                      t, {{x, values(n)}, {y, values(n, 2)}}, [](const auto& v) { return v[0] + v[1]; },
                      [](const auto& v) { return v[0] + v[1]; });
                }
              return said;
            }) == "");
}

// pytorch#22192, NVIDIA/apex#387: running variances were unbiased by one worker's count. pytorch#36865: one value a
// channel on each worker was refused.
TEST_CASE("reports: a batch norm counts the values of all workers", "[regression][runtime]") {
  for (const std::vector<index_t>& lengths :
       std::vector<std::vector<index_t>>{{2, 4}, {1, 1, 1, 1}, {0, 1, 1}, {5}, {3, 0, 0, 2}})
    for (const sizes& beyond : {sizes{3}, sizes{2, 3}}) {
      const std::vector<index_t> bounds = bounds_of(lengths);
      sizes n{bounds.back()};
      n.insert(n.end(), beyond.begin(), beyond.end());
      const mesh_value on = workers(static_cast<int>(lengths.size()));
      CHECK(wrong_on(on, [&](const team_handle& t) -> std::string {
              layout x = lying(on, n, {{0, 0}});
              x.dims[0].bounds = bounds.data();
              at::Tensor mean, variance;
              const auto norm_of = [&](const whole_tensors& v, const auto& w) {
                mean = at::zeros({n[1]}, at::kDouble);
                variance = at::ones({n[1]}, at::kDouble);
                return at::batch_norm(v[0], w.at("0.weight"), w.at("0.bias"), mean, variance, true, 0.1, 1e-5, false);
              };
              std::string said = network_beside(
                  t, {{x, values(n)}}, [](const auto& v) { return v[0] | nn::batch_norm_layer{}; }, norm_of);
              const trained_net again(t, {{x, element::float64}},
                                      [](const auto& v) { return v[0] | nn::batch_norm_layer{}; });
              again.net(distribute(t, x, values(n)));
              const auto state = nn::state_of(again.net);
              return close(state.at("0.running_mean"), mean) && close(state.at("0.running_var"), variance)
                         ? said
                         : said + "running statistics";
            }) == "");
    }
  const mesh_value two = workers(2);
  CHECK(wrong_on(two, [&](const team_handle& t) {  // one value in all
          const layout x = lying(two, {1, 3}, {{0, 0}});
          const trained_net one(t, {{x, element::float64}},
                                [](const auto& v) { return v[0] | nn::batch_norm_layer{}; });
          const std::string code = told([&] { one.net(distribute(t, x, values({1, 3}))); });
          return code == "tessera.layer.one_value" ? std::string() : code;
        }) == "");
}

// horovod#1407, horovod#402: 858 samples in batches of 8 over 4 workers are 27, 27, 27 and 26 batches, and the last
// step hung.
TEST_CASE("reports: a worker with fewer batches than the others is told by each of them", "[refusal][regression]") {
  for (const int size : {2, 4})
    for (const int early : {0, size - 1}) {
      const auto all = on_workers(size, [&](const std::shared_ptr<transport>& carrier) {
        const mesh_value on = workers(size);
        const team_handle t = std::make_shared<team_state>(carrier, on);
        layout terms = lying(on, {3}, {}, placement::partial);
        const int batches = t->rank() == early ? 2 : 3;
        for (int i = 0; i < batches; ++i) to(lying(on, {3}), tensor<dyn>(t, terms, at::ones({3})));
        return true;
      });
      for (int r = 0; r < size; ++r) {
        INFO(all.texts[static_cast<std::size_t>(r)]);
        CHECK(all.codes[static_cast<std::size_t>(r)] == (r == early ? "" : "tessera.agree.lost"));
      }
    }
}
