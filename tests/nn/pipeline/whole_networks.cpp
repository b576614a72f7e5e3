// Networks of several kinds trained in a pipeline for some steps, beside the same ones whose stage is one, run in the
// same micro-batches one after another.

#include "tests/support/stage_layouts.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/parameter/grad_norm.hpp>
#include <tessera/nn/pipeline/micro_batch_rows.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>
#include <tessera/operation/attention/attention.hpp>

namespace pipelined_networks {

using namespace tessera;
using namespace tessera::testing;
using nn::dynamic_flow;

template <int P>
struct stages : axis<P> {};
template <int P>
struct data : axis<P> {};
template <int P>
struct model : axis<P> {};

/// Where a model goes on with its next part: through a move in a pipeline, or on the spot.
using onward = std::function<dynamic_flow(int part, const dynamic_flow&)>;

struct kind {
  const char* name;
  std::function<dynamic_flow(nn::program&, const dynamic_flow& x, const dynamic_flow& words, const onward& to)> of;
  bool over_rows = false;  ///< it names the axis that cuts rows
};

/// Parts 0, 1 and 2.
const std::vector<kind>& kinds() {
  static const std::vector<kind> all{
      {"dropout and a way round",
       [](nn::program&, const dynamic_flow& x, const dynamic_flow&, const onward& to) {
         const auto first = tanh(nn::linear<6>{}(x));
         const auto second = nn::dropout<probability<1, 3>>{}(nn::linear<6>{}(to(1, first)));
         const auto both = to(2, second) + to(2, first);
         return nn::linear<6>{}(nn::dropout<>{}(tanh(both)));
       }},
      {"words that a later stage reads",
       [](nn::program&, const dynamic_flow& x, const dynamic_flow& words, const onward& to) {
         const auto first = nn::linear<6>{}(x);
         const auto there = to(1, words);
         const auto second = to(1, first) + nn::embedding<7, 6, weights_as<double>>{}(there);
         return nn::linear<6>{}(tanh(to(2, second)) + nn::embedding<7, 6, weights_as<double>>{}(to(2, there)));
       }},
      {"recomputed",
       [](nn::program&, const dynamic_flow& x, const dynamic_flow&, const onward& to) {
         const auto block = nn::recomputed([](const dynamic_flow& y) { return tanh(nn::linear<6>{}(y)); });
         const auto first = x | block;
         return nn::linear<6>{}(to(2, nn::dropout<>{}(to(1, first) | block)) | block);
       }},
      {"running statistics",
       [](nn::program&, const dynamic_flow& x, const dynamic_flow&, const onward& to) {
         const auto first = nn::batch_norm<>{}(nn::linear<6, no_bias>{}(x));
         return nn::linear<6>{}(to(2, nn::batch_norm<>{}(to(1, tanh(first)))));
       }},
      {"bundled gradients",
       [](nn::program&, const dynamic_flow& x, const dynamic_flow&, const onward& to) {
         const nn::bundled<nn::linear<6>> layer;
         return layer(tanh(to(2, layer(tanh(to(1, layer(x)))))));
       }},
      {"bundled gradients of several layers a stage",
       [](nn::program&, const dynamic_flow& x, const dynamic_flow&, const onward& to) {
         const auto layer = [](const dynamic_flow& y) {
           const nn::bundled<nn::linear<6>> one;
           return tanh(one(tanh(one(y))));
         };
         return layer(to(2, layer(to(1, layer(x)))));
       }},
      {"bundled tiles over the workers of a stage",
       [](nn::program&, const dynamic_flow& x, const dynamic_flow&, const onward& to) {
         const nn::bundled<nn::linear<6>, data<2>> layer;
         return layer(tanh(to(2, layer(tanh(to(1, layer(x)))))));
       },
       true},
      {"tiles that are gathered for each pass",
       [](nn::program&, const dynamic_flow& x, const dynamic_flow&, const onward& to) {
         const nn::sharded_over<nn::linear<6>, data<2>> layer;
         return layer(tanh(to(2, layer(tanh(to(1, layer(x)))))));
       },
       true},
  };
  return all;
}

template <class M>
std::string differs(const kind& k, pipeline::order by, int micro_batches, index_t rows) {
  const mesh_value& m = M::value;
  const int last = m.axes.count - 1, count = m.axes[last].extent;
  const auto out = in_team<M>([&](const team<M>& t) -> std::string {
    const auto built = [&](nn::program& p, bool moves) {
      const auto x = p.input({on_stage(m, {dynamic, 5}, 0), element::float64});
      const auto words = p.input({on_stage(m, {dynamic}, 0), element::int64});
      const auto wanted = p.input({on_stage(m, {dynamic, 6}, moves ? count - 1 : 0), element::float64});
      const onward to = [&](int part, const dynamic_flow& f) -> dynamic_flow {
        if (!moves || part * count / 3 == 0) return f;
        std::vector<index_t> extents{dynamic};
        if (p.value_of(f).layout.dims.count > 1) extents.push_back(6);
        return tessera::to(on_stage(m, extents, part * count / 3), f);
      };
      p.output(mean(square(k.of(p, x, words, to) - wanted)));
    };
    nn::program piped, plain;
    built(piped, true);
    built(plain, false);
    nn::dynamic_network a(t, seed{9}, piped), b(t, seed{9}, plain);
    nn::pipeline_parallel pipeline(a, last_axis(m), pipeline::schedule{by, {count, micro_batches}},
                                   {.rows = pipeline::micro_batch_sizes::uneven});
    torch::optim::Adam of_a(a.parameters(), 0.05), of_b(b.parameters(), 0.05);
    for (std::uint64_t step = 0; step < 5; ++step) {
      const at::Tensor x = global_of({rows, 5}, numbers{10 * step}), y = global_of({rows, 6}, numbers{10 * step + 1});
      const at::Tensor words = (global_of({rows}, numbers{10 * step + 2}) * 3.4 + 3.5).to(at::kLong);
      const auto given = [&](int stage_of_wanted) {
        return std::vector<tensor<dyn>>{distribute(t, on_stage(m, {rows, 5}, 0), x),
                                        distribute(t, on_stage(m, {rows}, 0), words),
                                        distribute(t, on_stage(m, {rows, 6}, stage_of_wanted), y)};
      };
      of_a.zero_grad();
      of_b.zero_grad();
      const double loss = full_tensor(pipeline.forward_backward(given(count - 1))[0]).template item<double>();
      const std::vector<tensor<dyn>> whole = given(0);
      double wanted = 0;
      for (int i = 0; i < micro_batches; ++i) {
        std::vector<tensor<dyn>> part;
        double weight = 0;
        for (const tensor<dyn>& one : whole) {
          const auto mine = *nn::engine::rows_of(one.layout(), t.rank(), i, micro_batches);
          weight = static_cast<double>(mine.lies.dims[0].extent) / static_cast<double>(rows);
          part.push_back({t.state(), mine.lies, one.local().narrow(0, mine.here.lo, mine.here.size())});
        }
        const tensor<dyn> one = b(part)[0];
        wanted += full_tensor(one).item<double>() * weight;
        (one * weight).backward();
      }
      if (std::abs(loss - wanted) > 1e-12) return fmt::format("step {}: loss {} and not {}", step, loss, wanted);
      const double norm = nn::clip_grad_norm(a, 0.5), norm_wanted = nn::clip_grad_norm(b, 0.5);
      if (std::abs(norm - norm_wanted) > 1e-12)
        return fmt::format("step {}: norm {} and not {}", step, norm, norm_wanted);
      of_a.step();
      of_b.step();
    }
    const nn::state_dict of_state = nn::state_of(a), wanted = nn::state_of(b);
    std::string wrong;
    if (of_state.size() != wanted.size()) wrong = "other keys ";
    for (const auto& [key, w] : wanted)
      if (!of_state.contains(key) || (of_state.at(key) - w).abs().max().template item<double>() > 1e-12)
        wrong += key + " ";
    return wrong;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

TEST_CASE("five steps in a pipeline are those of the network in micro-batches", "[law][runtime][gradient]") {
  using pipeline::order;
  int number = 0;
  for (const kind& k : kinds()) {
    INFO(k.name);
    if (!k.over_rows && tried(number++)) CHECK(differs<mesh<stages<2>>>(k, order::one_f_one_b, 3, 8) == "");
    if (!k.over_rows && tried(number++)) CHECK(differs<mesh<stages<3>>>(k, order::gpipe, 4, 16) == "");
    if (tried(number++)) CHECK(differs<mesh<data<2>, stages<3>>>(k, order::one_f_one_b, 4, 13) == "");
    if (tried(number++)) CHECK(differs<mesh<data<2>, stages<3>>>(k, order::zb_h1, 4, 13) == "");
  }
}

}  // namespace pipelined_networks
