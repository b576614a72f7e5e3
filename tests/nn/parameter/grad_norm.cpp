#include <torch/nn/utils/clip_grad.h>

#include "tests/support/tensors.hpp"

#include <bit>

// Norms of gradients against the serial network's, and copies that drifted.

namespace tessera::testing::clipping {

using namespace engine;

namespace {

struct clipped_batch : dyn {};
struct deep : axis<2> {};
struct flat : axis<3> {};
struct around : axis<6> {};
using plane = mesh<deep, flat>;
using ring = mesh<around>;
using input = tensor<partition<plane, blocks<deep>, blocks<flat>>, shape<clipped_batch, dim<5>>, double>;
// Weights cut over either axis and over another mesh, invariant ones, and one on a coordinate.
using network_of_all =
    nn::sequential<input, nn::linear<7>, nn::relu, nn::linear<6, output_as<partition<ring, whole, blocks<around>>>>,
                   nn::relu, nn::linear<4, output_as<partition<fixed<plane, deep, 1>, whole, blocks<flat>>>>>;
constexpr double infinite = std::numeric_limits<double>::infinity();

std::string said_by(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}
bool says(const std::string& text, std::initializer_list<const char*> all) {
  return std::all_of(all.begin(), all.end(), [&](const char* what) { return text.find(what) != std::string::npos; });
}

template <class M, class F>
void judge_team(F&& f, checks how = checks::sampled) {
  launch_options options = threads_only();
  options.checks = how;
  const auto run = in_team<M>(f, options);
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == "");
}

/// The serial network's parameters with the gradients of Σ y², scaled.
std::vector<at::Tensor> serial_leaves(const nn::state_dict& w, const at::Tensor& x, double scale) {
  std::vector<at::Tensor> leaves;
  for (const auto& [key, t] : w) leaves.push_back(t.clone().requires_grad_(true));  // 0.bias 0.weight 2.bias ...
  at::Tensor y = x;
  for (std::size_t i = 0; i < leaves.size(); i += 2) y = at::linear(i == 0 ? y : at::relu(y), leaves[i + 1], leaves[i]);
  (scale * (y * y).sum()).backward();
  return leaves;
}

/// Parameters that a user makes, with any layout.
struct loose {
  std::vector<nn::parameter> all;
  template <class Visit>
  void each_parameter(Visit&& visit) const {
    for (const nn::parameter& p : all) visit(p);
  }
};

}  // namespace

TEST_CASE("the norm of the gradients and what it clips are the serial network's", "[gradient]") {
  judge_team<plane>([](auto& t) -> std::string {
    network_of_all net{t, seed{5}};
    const nn::state_dict w = nn::state_of(net);
    const at::Tensor x = global_of({7, 5}, numbers{3});
    std::string wrong;
    for (const double order : {2.0, 1.0, 3.0, 0.5, infinite})
      for (const double most : {0.1, 1e9, 0.0}) {
        std::vector<at::Tensor> leaves = serial_leaves(w, x, 3);
        for (at::Tensor& p : net.parameters()) p.mutable_grad() = at::Tensor();
        const auto y = net(distribute<input>(t, x));
        sum(3 * (y * y)).local().sum().backward();
        if (most == 0.1) {  // a parameter without a gradient does not count
          leaves[3].mutable_grad() = at::Tensor();
          net.each_parameter([](const nn::parameter& p) {
            if (p.path() == "2.weight") p.stored().local().mutable_grad() = at::Tensor();
          });
        }
        const double alone = nn::grad_norm(net, order);
        const double norm = nn::clip_grad_norm(net, most, order);
        const double expected = torch::nn::utils::clip_grad_norm_(leaves, most, order);
        if (alone != norm || !(std::abs(norm / expected - 1) < 1e-12))
          wrong += fmt::format("norm {} and not {}; ", norm, expected);
        if (t.state()->collect(std::bit_cast<std::uint64_t>(norm), "comparing norms") !=
            std::vector<std::uint64_t>(6, std::bit_cast<std::uint64_t>(norm)))
          wrong += "workers have other norms; ";
        std::size_t i = 0;
        std::map<std::string, at::Tensor> serial;
        for (const auto& [key, v] : w) serial[key] = leaves[i++].grad();
        net.each_parameter([&](const nn::parameter& p) {
          const at::Tensor g = p.stored().local().grad();
          if (g.defined() != serial[p.path()].defined()) wrong += p.path() + " has or lacks a gradient; ";
          if (!g.defined()) return;
          const at::Tensor mine = tessera::detail::distribute_value(p.stored().team(), cotangent(p.stored().layout()),
                                                                    element::float64, serial[p.path()])
                                      .local();
          if (!at::allclose(g, mine, 1e-12, 1e-14)) wrong += fmt::format("{} of order {}; ", p.path(), order);
        });
      }
    return wrong;
  });
}

TEST_CASE("each element of a gradient counts once, whatever its parameter's layout, element and boxes",
          "[law][gradient]") {
  judge_team<plane>([](auto& t) -> std::string {
    layout whole_one;
    whole_one.mesh = plane::value;
    whole_one.placements.resize(2);
    for (const index_t n : {4, 3}) {
      dimension d;
      d.extent = n;
      whole_one.dims.push(d);
    }
    layout invariant_one = tessera::stored_form(whole_one);
    layout held_one = invariant_one;
    held_one.placements[0] = held_on(1);
    layout cut_one = invariant_one;
    cut_one.placements[1] = {};
    cut_one.cut_by(1, 1);
    layout small_one = cut_one;
    small_one.dims[1].extent = 2;  // the third worker has nothing
    loose net;
    double sum = 0;
    double most = 0;
    int number = 0;
    for (const layout& x : {whole_one, invariant_one, held_one, cut_one, small_one})
      for (const element e : {element::float64, element::bfloat16, element::complex128}) {
        net.all.emplace_back(t.state(), fmt::format("p{}", number++), parameter_value{"p", x, x, {}}, e, seed{1});
        const at::Tensor g = (at::arange(1, 1 + 4 * x.dims[1].extent, at::kDouble) / 2)
                                 .reshape({4, -1})
                                 .to(tessera::detail::scalar_type_of(e)) *
                             (e == element::complex128 ? at::Scalar(c10::complex<double>(0, 2)) : at::Scalar(1));
        const nn::parameter& p = net.all.back();
        p.stored().local().mutable_grad() = tessera::detail::distribute_value(t.state(), cotangent(x), e, g).local();
        sum += g.abs().to(at::kDouble).pow(2).sum().item<double>();
        most = std::max(most, g.abs().max().item<double>());
      }
    const double two = nn::grad_norm(net);
    const double highest = nn::grad_norm(net, infinite);
    if (!(std::abs(two / std::sqrt(sum) - 1) < 1e-12)) return fmt::format("{} and not {}", two, std::sqrt(sum));
    if (highest != most) return fmt::format("{} and not {}", highest, most);
    const at::Tensor before = net.all[0].stored().local().grad().clone();
    nn::clip_grad_norm(net, 1);
    if (!at::allclose(net.all[0].stored().local().grad(), before / (two + 1e-6), 1e-12, 0))
      return "terms are not scaled";
    return std::abs(nn::grad_norm(net) - 1) < 1e-2 ? "" : "not clipped";  // bfloat16 rounds
  });
}

TEST_CASE("a gradient that some workers lack counts zero on these, whether it is terms or copies", "[gradient]") {
  judge_team<ring>([](auto& t) -> std::string {
    layout terms;
    terms.mesh = ring::value;
    terms.placements.resize(1);
    terms.dims.resize(1);
    terms.dims[0].extent = 4;
    layout cut = tessera::stored_form(terms);
    cut.placements[0] = {};
    cut.cut_by(0, 0);
    loose net;
    for (const layout& x : {terms, cut})
      net.all.emplace_back(t.state(), fmt::format("p{}", net.all.size()), parameter_value{"p", x, x, {}},
                           element::float64, seed{1});
    if (nn::grad_norm(net) != 0) return "nobody has a gradient, and there is a norm";
    for (const nn::parameter& p : net.all)
      if (t.rank() % 2 == 1) p.stored().local().mutable_grad() = at::ones_like(p.stored().local());
    // Workers 1, 3 and 5 have terms of four elements; of what is cut, 1 and 3 have an element each.
    const double norm = nn::grad_norm(net), wanted = std::sqrt(4 * 9 + 2);
    return std::abs(norm - wanted) < 1e-12 ? "" : fmt::format("{} and not {}", norm, wanted);
  });
}

TEST_CASE("a norm that is no number or no norm is refused where that is asked for, and changes nothing", "[refusal]") {
  judge_team<plane>(
      [](auto& t) -> std::string {
        network_of_all net{t, seed{5}};
        if (nn::grad_norm(net) != 0 || nn::clip_grad_norm(net, 1) != 0) return "no gradients, but a norm";
        const auto set = [&](double value) {
          for (at::Tensor& p : net.parameters()) p.mutable_grad() = at::ones_like(p);
          for (at::Tensor& p : net.parameters())
            if (t.rank() == 4 && p.numel() > 0) p.mutable_grad().view({-1})[0] = value;
        };
        for (const double bad : {infinite, -infinite, std::numeric_limits<double>::quiet_NaN()})
          for (const double order : {2.0, infinite}) {
            set(bad);
            if (std::isfinite(nn::grad_norm(net, order))) return "a number";
            const at::Tensor before = net.parameters()[0].grad().clone();
            const std::string s = said_by([&] { nn::clip_grad_norm(net, 1, order, true); });
            if (!says(s, {"[tessera.gradient.finite]"})) return "says: " + s;
            if (!at::equal(net.parameters()[0].grad().nan_to_num(7), before.nan_to_num(7))) return "changed";
          }
        nn::clip_grad_norm(net, 1);
        if (!net.parameters()[0].grad().isnan().all().template item<bool>()) return "LibTorch lets it through";
        set(1);
        for (const double order : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
          if (const std::string s = said_by([&] { nn::grad_norm(net, order); }); !says(s, {"[tessera.gradient.clip]"}))
            return "says: " + s;
        for (const double most : {-1.0, std::numeric_limits<double>::quiet_NaN()})
          if (const std::string s = said_by([&] { nn::clip_grad_norm(net, most); });
              !says(s, {"[tessera.gradient.clip]"}))
            return "says: " + s;
        const std::string s = said_by([&] { nn::clip_grad_norm(net, t.rank() == 2 ? 2 : 1); });
        return says(s, {"[tessera.agree.fingerprint]", "worker 0, other worker 2"}) ? "" : "says: " + s;
      },
      checks::never);  // one worker alone has the number that is none
}

TEST_CASE("a norm is asked of workers that hold the network; it is no number elsewhere", "[runtime]") {
  judge_team<plane>([](auto& t) -> std::string {
    using lower = fixed<plane, deep, 1>;
    using below = tensor<partition<lower, blocks<flat>, whole>, shape<clipped_batch, dim<5>>, double>;
    const nn::sequential<below, nn::linear<6>> net{t.template over<lower>(), seed{5}};
    for (at::Tensor& p : net.parameters()) p.mutable_grad() = at::ones_like(p);
    const double norm = nn::clip_grad_norm(net, 1);
    nn::agree_on_copies(net);
    return t.template coordinate<deep>() == 0 ? (std::isnan(norm) ? "" : "a number")
           : norm == 6                        ? ""
                                              : fmt::format("{}", norm);
  });
}

TEST_CASE("copies that drifted apart are named, and equal ones are not", "[refusal]") {
  for (const char* key : {"", "0.weight", "0.bias"}) {
    const auto run = in_team<plane>([&](auto& t) {
      const network_of_all net{t, seed{5}};
      net.each_parameter([&](const nn::parameter& p) {
        const at::NoGradGuard step;
        if (p.path() == key && t.rank() == 5) p.stored().local().view({-1})[0] += 1;
      });
      return said_by([&] { nn::agree_on_copies(net); });
    });
    INFO(run.errors());
    for (const auto& r : run.results) {
      REQUIRE(r);
      INFO(key << ": " << *r);
      CHECK((*key == '\0' ? *r == "" : says(*r, {"[tessera.agree.copies]", "other worker 5", key, "grad_norm.cpp"})));
    }
  }
}

}  // namespace tessera::testing::clipping
