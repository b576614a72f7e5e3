#include "tests/support/pipelines.hpp"

namespace tessera::testing::backwards_apart {

using namespace pipelined;

namespace {

template <int P>
struct stage_axis : axis<P> {};

/// The gradients of both inputs on this worker, by a schedule.
template <class Schedule>
std::vector<at::Tensor> gradients_of_inputs(const team_handle& team, const Schedule& schedule) {
  nn::program p;
  build(p, team->mesh(), schedule.of, 8);
  nn::dynamic_network net(team, seed{5}, p);
  nn::pipeline_parallel pipe(net, last_axis(team->mesh()), schedule);
  std::vector<tensor<dyn>> x;
  for (std::uint64_t i = 1; i < 3; ++i) {
    x.push_back(distribute(team, on_stage(team->mesh(), {8, 5}, 0), global_of({8, 5}, numbers{i})));
    x.back().requires_grad();
  }
  pipe.forward_backward({x[0], x[1]});
  return {x[0].local().grad(), x[1].local().grad()};
}

struct model : axis<2> {};
struct stage : axis<2> {};
using grid = mesh<model, stage>;
template <int At>
using whole_on = partition<grid, whole, whole, on<stage, At>>;
template <int At>
using cut_on = partition<grid, whole, blocks<model>, on<stage, At>>;
struct batch_rows : dyn {};
using given = tensor<whole_on<0>, shape<batch_rows, dim<5>>, double>;
using wanted = tensor<whole_on<1>, shape<batch_rows, dim<6>>, double>;

/// Its first stage scatters the sum of its second layer, to which a bias is added.
struct scattering {
  constexpr auto operator()(auto x, auto target) const {
    const auto h = nn::linear<6, cut_in<model>, output_as<cut_on<0>>>{}(tanh(nn::linear<8, cut_out<model>>{}(x)));
    return mean(square(nn::linear<6>{}(to<whole_on<1>>(tanh(to<cut_on<1>>(h)))) - target));
  }
};

}  // namespace

TEST_CASE("inputs have the same gradients, whether a schedule takes the backwards of weights apart or not",
          "[law][runtime][gradient][regression]") {
  const auto run = in_team<mesh<stage_axis<2>>>([](const auto& t) -> std::string {
    const auto all = gradients_of_inputs(t.state(), pipeline::schedule{pipeline::order::one_f_one_b, {2, 4}});
    const auto apart = gradients_of_inputs(t.state(), pipeline::schedule{pipeline::order::zb_h1, {2, 4}});
    const auto turned = gradients_of_inputs(t.state(), pipeline::schedule{pipeline::order::zb_v, {2, 4, 2, true}});
    if (t.rank() == 0 && all[0].abs().max().template item<double>() < 1e-6) return "no gradient";
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!at::allclose(all[i], apart[i], 1e-12, 1e-14) || !at::allclose(all[i], turned[i], 1e-12, 1e-14))
        return fmt::format("of input {}", i);
    return "";
  });
  INFO(run.errors());
  for (const auto& r : run.results) CHECK(r.value_or("lost") == "");
}

TEST_CASE("backwards of weights apart move nothing that the backward of inputs has moved", "[law][runtime]") {
  const auto moved = [](pipeline::order order) {
    const auto run = in_team<grid>([order](const team<grid>& t) {
      nn::network<scattering, given, wanted> net{t, seed{4}};
      net.compare_copies_every(0);
      nn::pipeline_parallel pipe(net, "stage", pipeline::schedule{order, {2, 2}});
      const auto x = distribute<given>(t, global_of({8, 5}, numbers{1})).dynamic();
      const auto y = distribute<wanted>(t, global_of({8, 6}, numbers{2})).dynamic();
      pipe.forward_backward({x, y});  // binds
      const auto before = t.state()->total;
      pipe.forward_backward({x, y});
      return std::pair{t.state()->total.bytes - before.bytes, t.state()->total.messages - before.messages};
    });
    std::vector<std::pair<index_t, index_t>> all;
    for (const auto& r : run.results)
      all.push_back(r ? std::pair<index_t, index_t>(*r) : std::pair<index_t, index_t>());
    return all;
  };
  const auto whole = moved(pipeline::order::one_f_one_b);
  CHECK(whole[0].first > 0);
  CHECK(moved(pipeline::order::zb_h1) == whole);
}

}  // namespace tessera::testing::backwards_apart
