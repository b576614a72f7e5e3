#include "tests/support/pipelines.hpp"

namespace tessera::testing::joined_outputs {

using namespace pipelined;

namespace {

struct data : axis<2> {};
struct stage : axis<2> {};
using grid = mesh<data, stage>;

/// A layout of these extents at stage 1, whose rows `data` cuts or not.
layout on_last(const mesh_value& m, const std::vector<index_t>& extents, bool cut) {
  layout x;
  x.mesh = m;
  x.placements.resize(m.axes.count);
  for (const index_t n : extents) {
    x.dims.push({});
    x.dims[x.dims.count - 1].extent = n;
  }
  if (cut) x.cut_by(0, 0);
  x.set_placement(1, tessera::engine::held_on(1));
  return x;
}

/// Two layers on two stages of rows that `data` cuts; what the second gives is another output, in another form.
template <class Form>
std::string differs(const team_handle& team, index_t rows, pipeline::micro_batch_sizes sizes, const Form& form) {
  const mesh_value& m = team->mesh();
  nn::program p;
  auto x = p.input({on_stage(m, {rows, 5}, 0), element::float64});
  auto h = tanh(nn::linear<6>{}(x));
  h = tanh(nn::linear<4>{}(to(on_stage(m, {dynamic, 6}, 1), h)));
  p.output(mean(square(h)));
  p.output(form(m, h));
  nn::dynamic_network net(team, seed{5}, p);
  nn::pipeline_parallel pipe(net, last_axis(m), pipeline::schedule{pipeline::order::one_f_one_b, {2, 2}},
                             {.rows = sizes});
  const auto given = distribute(team, on_stage(m, {rows, 5}, 0), global_of({rows, 5}, numbers{1}));
  return told([&] {
    const auto got = pipe.forward({given}), wanted = net({given});
    for (std::size_t k = 0; k < 2; ++k)
      if (!at::allclose(full_tensor(got[k]), full_tensor(wanted[k]), 1e-12, 1e-14))
        throw std::runtime_error(fmt::format("output {}", k));
  });
}
template <class Form>
std::vector<std::string> found(index_t rows, const Form& form,
                               pipeline::micro_batch_sizes sizes = pipeline::micro_batch_sizes::equal) {
  const auto run = in_team<grid>([&](const auto& t) { return differs(t.state(), rows, sizes, form); });
  std::vector<std::string> all;
  for (const auto& r : run.results) all.push_back(r.value_or("lost"));
  return all;
}

const std::vector<std::string> well(4, "none");

}  // namespace

TEST_CASE("an output of a pipeline has the rows of the batch in order, gathered by its stage or not",
          "[law][runtime][regression]") {
  const auto as_it_is = [](const mesh_value&, const auto& h) { return h; };
  const auto gathered = [](const mesh_value& m, const auto& h) { return to(on_last(m, {dynamic, 4}, false), h); };
  const auto in_a_row = [](const mesh_value& m, const auto& h) {
    return flatten<0, 1>(to(on_last(m, {dynamic, 4}, false), h));
  };
  for (const auto sizes : {pipeline::micro_batch_sizes::equal, pipeline::micro_batch_sizes::uneven})
    for (const index_t rows : {8, 12}) {
      CHECK(found(rows, as_it_is, sizes) == well);
      CHECK(found(rows, gathered, sizes) == well);
      CHECK(found(rows, in_a_row, sizes) == well);
    }
  CHECK(found(9, gathered, pipeline::micro_batch_sizes::uneven) == well);
}

TEST_CASE("an output of a pipeline whose rows are cut otherwise than the batch is refused before anything runs",
          "[refusal]") {
  // its features become rows
  const auto turned = [](const mesh_value& m, const auto& h) {
    return transpose<0, 1>(to(on_last(m, {dynamic, 4}, false), h));
  };
  CHECK(found(8, turned) == std::vector<std::string>(4, "tessera.pipeline.rows"));
}

}  // namespace tessera::testing::joined_outputs
