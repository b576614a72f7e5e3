#include "tests/support/routed.hpp"
#include "tests/support/serial_leaves.hpp"

#include <tessera/nn/network/program_parts.hpp>

namespace tessera::testing::rows_to_experts {

using namespace engine;

namespace {

/// How workers stand, and how rows [row, feature] and their scores lie over them.
struct lying {
  mesh_value grid;
  layout rows;
  layout scores;
};

/// Rows cut by `data` and `place`, features by `model`; scores are copies along `model`.
lying lying_over(int data, int place, int model, bool features_cut, index_t rows, index_t features, index_t experts) {
  lying l;
  l.grid.axes.push({text{"data"}, data, 1});
  l.grid.axes.push({text{"place"}, place, 1});
  l.grid.axes.push({text{"model"}, model, 1});
  l.grid = row_major(l.grid);
  for (layout* x : {&l.rows, &l.scores}) {
    x->mesh = l.grid;
    for (int a = 0; a < 3; ++a) x->placements.push({placement::invariant});
    for (index_t n : {rows, x == &l.rows ? features : experts}) {
      dimension d;
      d.extent = n;
      x->dims.push(d);
    }
    x->cut_by(0, 0);
    x->cut_by(0, 1);
  }
  if (features_cut) l.rows.cut_by(1, 2);
  return l;
}

std::vector<index_t> parts_of(const layout& x) {
  const parts all(x, 0);
  std::vector<index_t> n;
  for (int k = 0; k < all.count(); ++k) n.push_back(size_of(all.held(k)));
  return n;
}

/// How far a mixture of linear experts is from the same row by row: results and all gradients.
double mixture_apart(const team_handle& team, const lying& l, const nn::route_layer& how, index_t groups = 0) {
  const index_t out = 5;
  const index_t rows = l.rows.dims[0].extent, features = l.rows.dims[1].extent;
  nn::program p;
  const auto given = p.input(tensor_value{l.rows, element::float64});
  const auto scored = p.input(tensor_value{l.scores, element::float64});
  const auto [slots, gates, at, chosen] = how(given, scored);
  p.output(
      nn::combine{}(slots | nn::under("of", nn::experts_layer{.experts = how.experts, .out = out}), gates, at, chosen));
  nn::dynamic_network net{team, seed{3}, p};
  const by_key w = leaves_of(net);
  const at::Tensor x_all = global_of({rows, features}, numbers{1}).set_requires_grad(true);
  const at::Tensor s_all = (2 * global_of({rows, how.experts}, numbers{2})).set_requires_grad(true);
  tensor<dyn> x = distribute(team, l.rows, x_all.detach());
  tensor<dyn> s = distribute(team, l.scores, s_all.detach());
  x.requires_grad();
  s.requires_grad();
  const tensor<dyn> y = net({x, s})[0];
  std::vector<index_t> sizes = parts_of(l.rows);
  if (groups > 0) {
    sizes.clear();
    for (index_t g = 0; g < groups; ++g) sizes.push_back(cut(rows, groups, g + 1) - cut(rows, groups, g));
  }
  const routed_serially r = routed(how.description(), s_all, sizes);
  at::Tensor serial = combined(r, x_all, out, [&](index_t e, const at::Tensor& row) {
    return row.matmul(w.at("of.weight")[e]) + w.at("of.bias")[e][0];
  });
  for (const auto& [key, t] : w) serial = serial + 0 * t.sum();  // where there are no rows, too
  serial = serial + 0 * s_all.sum();
  sum(y * y).backward();
  (serial * serial).sum().backward();
  return std::max({apart(full_tensor(y), serial), apart(full_tensor(x.grad()), x_all.grad()),
                   apart(full_tensor(s.grad()), s_all.grad()), gradients_apart(net, w)});
}

void judge(const lying& l, const nn::route_layer& how, index_t groups = 0) {
  const auto run = on_workers(l.grid.size(), [&](const std::shared_ptr<transport>& carrier) {
    return mixture_apart(std::make_shared<team_state>(carrier, l.grid), l, how, groups);
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-12);
}

}  // namespace

TEST_CASE("rows go to their experts and back as row by row in one process, unevenly, workers without rows or experts",
          "[gradient]") {
  const engine::axis_names place{"place"};
  for (const bool cut_features : {false, true})
    for (const auto& [data, where, model] : {std::array{1, 1, 1}, {1, 3, 1}, {2, 2, 1}, {1, 2, 2}}) {
      const lying l = lying_over(data, where, model, cut_features, 11, 4, 4);
      judge(l, {.experts = 4, .choices = 2, .capacity = 1.25, .over_experts = place});
      judge(l, {.experts = 4, .choices = 3, .capacity = 0.5, .over_experts = place, .normalised_gates = true});
      judge(l, {.experts = 4, .choices = 4, .capacity = 9.0, .over_experts = place, .sigmoid_gates = true});
      judge(l, {.experts = 4, .choices = 2, .capacity = 0.75, .over_experts = place, .drop_by_score = true});
    }
  judge(lying_over(1, 4, 1, false, 3, 4, 5), {.experts = 5, .choices = 2, .capacity = 1.0});
  judge(lying_over(2, 3, 1, false, 9, 4, 2), {.experts = 2, .choices = 1, .capacity = 1.5, .over_experts = place});
  judge(lying_over(2, 2, 1, false, 9, 4, 7), {.experts = 7, .choices = 3, .capacity = 1.5});
  judge(lying_over(2, 2, 1, false, 9, 4, 7), {.experts = 7, .choices = 3, .over_experts = engine::axis_names{}});
  judge(lying_over(1, 3, 1, false, 0, 4, 3), {.experts = 3, .choices = 1, .capacity = 1.5});
}

TEST_CASE("experts lie along an axis of copies of the rows", "[gradient]") {
  const engine::axis_names model{"model"};
  const lying l = lying_over(2, 1, 3, false, 11, 4, 4);
  judge(l, {.experts = 4, .choices = 2, .capacity = 1.25, .over_experts = model});
  judge(l, {.experts = 4, .choices = 2, .capacity = 1.25, .over_experts = engine::axis_names{"model", "data"}});
}

TEST_CASE("routers without a capacity keep all rows, also where one expert has all of them or there are none",
          "[gradient]") {
  const engine::axis_names place{"place"};
  for (const auto& [data, where, model] : {std::array{1, 1, 1}, {2, 2, 1}, {1, 2, 2}, {1, 5, 1}})
    for (const index_t rows : {11, 3, 1, 0}) {
      const lying l = lying_over(data, where, model, model > 1, rows, 4, 4);
      judge(l, {.experts = 4, .choices = 2, .over_experts = place, .normalised_gates = true});
      judge(l, {.experts = 4, .choices = 4, .groups = 2 * data * where});
    }
  const auto run = on_workers(4, [&](const std::shared_ptr<transport>& carrier) {
    const lying l = lying_over(2, 2, 1, false, 40, 4, 8);
    const team_handle team = std::make_shared<team_state>(carrier, l.grid);
    nn::program p;
    const auto x = p.input(tensor_value{l.rows, element::float64});
    const auto scores = p.input(tensor_value{l.scores, element::float64});
    const auto [slots, gates, at, chosen] = nn::route_layer{.experts = 8, .over_experts = place}(x, scores);
    p.output(flows{nn::combine{}(slots, gates, at, chosen), slots});
    const nn::dynamic_network net{team, seed{3}, p};
    const tensor<dyn> given = distribute(team, l.rows, global_of({40, 4}, numbers{1}));
    std::vector<index_t> found;
    for (const index_t favoured : {0, 1, 8}) {  // how many experts all rows like alike
      at::Tensor s = at::zeros({40, 8}, at::kDouble);
      if (favoured == 1) s.select(1, 5).fill_(30);
      if (favoured == 8) s.scatter_(1, at::arange(40, at::kLong).remainder(8).unsqueeze(1), 30.0);
      const std::vector<tensor<dyn>> y = net({given, distribute(team, l.scores, s)});
      found.push_back(y[1].layout().dims[2].extent);
      const at::Tensor gate = std::get<0>(at::softmax(s, 1).max(1)).unsqueeze(1);
      if (apart(full_tensor(y[0]), global_of({40, 4}, numbers{1}) * gate) > 1e-14) found.push_back(-1);
    }
    return found;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == std::vector<index_t>{10, 10, 2});
}

TEST_CASE("without a capacity the bytes of rows are those of the places that each row has experts at", "[runtime]") {
  const lying l = lying_over(2, 2, 1, false, 40, 4, 8);
  at::Tensor s = at::zeros({40, 8}, at::kDouble);
  index_t bound = 0;  // rows that go to another place, which has two of their experts
  for (index_t t = 0; t < 40; ++t) {
    const index_t own = t / 10 % 2, there = t % 2;
    s[t][4 * there + t / 2 % 3] = 30;
    s[t][4 * there + 3] = 20;
    bound += there != own;
  }
  const auto run = on_workers(4, [&](const std::shared_ptr<transport>& carrier) {
    const team_handle team = std::make_shared<team_state>(carrier, l.grid);
    nn::program p;
    const auto x = p.input(tensor_value{l.rows, element::float64});
    const auto scores = p.input(tensor_value{l.scores, element::float64});
    const nn::route_layer route{.experts = 8, .choices = 2, .over_experts = engine::axis_names{"place"}};
    const auto [slots, gates, at, chosen] = route(x, scores);
    p.output(flows{nn::combine{}(slots, gates, at, chosen), gates});
    const nn::dynamic_network net{team, seed{3}, p};
    const auto y = net({distribute(team, l.rows, global_of({40, 4}, numbers{1})), distribute(team, l.scores, s)});
    const index_t rows = y[1].layout().dims[2].extent;
    const layout by_source = tessera::detail::packed_by_source(l.rows, 2, 4, rows);
    static_vector<int, max_axes> places;
    places.push(1);
    return cost_between(by_source, tessera::detail::packed_by_place(by_source, places)).total;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == 4 * bound);
}

TEST_CASE("losses of routers are those of all rows in one process, on any mesh", "[gradient]") {
  for (const bool of_sigmoids : {false, true})
    for (const auto& [data, place, model] : {std::array{1, 1, 1}, {2, 2, 1}, {1, 3, 2}, {3, 4, 1}}) {
      const lying l = lying_over(data, place, model, false, 11, 4, 5);
      const auto run = on_workers(l.grid.size(), [&](const std::shared_ptr<transport>& carrier) {
        const team_handle team = std::make_shared<team_state>(carrier, l.grid);
        const at::Tensor all = (2 * global_of({11, 5}, numbers{2})).set_requires_grad(true);
        tensor<dyn> scores = distribute(team, l.scores, all.detach());
        scores.requires_grad();
        nn::program p;
        const auto given = p.input(tensor_value{l.rows, element::float64});
        const auto scored = p.input(tensor_value{l.scores, element::float64});
        const auto [slots, gates, at, chosen] =
            nn::route_layer{.experts = 5, .choices = 2, .capacity = 0.5}(given, scored);
        p.output(losses::load_balance_loss(scored, chosen, of_sigmoids) + 0.5 * losses::router_z_loss(scored));
        nn::dynamic_network net{team, seed{3}, p};
        const tensor<dyn> loss = net({distribute(team, l.rows, global_of({11, 4}, numbers{1})), scores})[0];
        loss.backward();

        routing how;
        how.experts = 5;
        how.choices = 2;
        const routed_serially r = routed(how, all, {11});
        const at::Tensor shares = at::tensor(r.loads, at::kDouble) / 22;
        at::Tensor each = of_sigmoids ? at::sigmoid(all) : at::softmax(all, -1);
        if (of_sigmoids) each = each / each.sum(1, true);
        const at::Tensor serial = 5 * (shares * each.mean(0)).sum() + 0.5 * at::logsumexp(all, 1).square().mean();
        serial.backward();
        return std::max(apart(full_tensor(loss), serial), apart(full_tensor(scores.grad()), all.grad()));
      });
      INFO(run.errors());
      REQUIRE(run.well());
      for (const auto& r : run.results) CHECK(*r < 1e-12);
    }
}

TEST_CASE("groups of rows fill slots apart, the same on any mesh", "[gradient]") {
  const nn::route_layer how{.experts = 3, .choices = 2, .capacity = 0.75, .groups = 4};
  judge(lying_over(1, 1, 1, false, 12, 4, 3), how, 4);
  judge(lying_over(1, 1, 1, false, 14, 4, 3), how, 4);
  judge(lying_over(2, 1, 1, false, 12, 4, 3), how, 4);
  judge(lying_over(2, 2, 1, false, 12, 4, 3), how, 4);
}

TEST_CASE("groups of rows that lie on several workers drop what one process drops", "[gradient]") {
  for (const bool by_score : {false, true})
    for (const index_t groups : {1, 2, 3, 4, 5, 20}) {
      const nn::route_layer how{
          .experts = 3, .choices = 2, .capacity = 0.5, .groups = groups, .drop_by_score = by_score};
      judge(lying_over(2, 1, 1, false, 11, 4, 3), how, groups);
      judge(lying_over(2, 2, 1, false, 11, 4, 3), how, groups);
      judge(lying_over(1, 4, 1, false, 3, 4, 3), how, groups);
    }
}

}  // namespace tessera::testing::rows_to_experts
