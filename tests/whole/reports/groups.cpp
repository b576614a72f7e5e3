#include "beside_serial.hpp"

#include <unistd.h>
#include <tessera/nn/file/weights_file.hpp>

#include <filesystem>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Groups of workers, and parts of a network by where they lie.

namespace grouped {

/// The same workers with their axes the other way round: a's coordinates are neighbours, b's are apart.
mesh_value other_groups(int a, int b) {
  mesh_value m;
  m.axes.push({text{"a"}, a, 1});
  m.axes.push({text{"b"}, b, a});
  return m;
}

const std::vector<mesh_value>& grids() {
  static const std::vector<mesh_value> all{workers(2, 2), other_groups(2, 2), workers(2, 3), other_groups(3, 2)};
  return all;
}

at::Tensor samples(index_t count, index_t length) {
  return at::arange(count, at::kDouble).view({count, 1}) * 10 + at::arange(length, at::kDouble);
}

}  // namespace grouped

// NVIDIA/Megatron-LM#7452, 7: the samples 0 … 3 and 10 … 13 were scattered in one group of workers and gathered in
// another, which gave 0, 1, 0, 1 and 12, 13, 12, 13. 5: so was a mask.
TEST_CASE("reports: what is cut by an axis is gathered along that axis, in whatever order a mesh names its workers",
          "[regression][runtime]") {
  for (const mesh_value& on : grouped::grids())
    for (const index_t length : {4, 5})
      CHECK(wrong_on(on, [&](const team_handle& t) {
              std::string said;
              const index_t count = on.axes[0].extent;
              const at::Tensor all = grouped::samples(count, length);
              const layout sample = lying(on, {count, length}, {{0, 0}});
              const tensor<dyn> x = distribute(t, sample, all);
              const tensor<dyn> cut = to(lying(on, {count, length}, {{0, 0}, {1, 1}}), x);
              coordinates here;
              on.locate(t->rank(), here);
              const index_t mine = here[0];
              if (!at::equal(to(sample, cut).local(), all.narrow(0, mine, 1))) said += "another's sample; ";
              const tensor<dyn> mask = distribute(t, lying(on, {count, length}, {{0, 0}, {1, 1}}), all.remainder(3));
              if (!at::equal(full_tensor(cut * mask), all * all.remainder(3))) said += "another's mask; ";
              return said;
            }) == "");
}

// NVIDIA/Megatron-LM#7452, 5: a mask of another group's tokens was taken for that of one's own.
TEST_CASE("reports: operands on two meshes are refused, on every worker", "[refusal][regression]") {
  const mesh_value one = workers(2, 2), other = grouped::other_groups(2, 2);
  const auto all = on_workers(4, [&](const std::shared_ptr<transport>& carrier) {
    const auto on = [&](const mesh_value& m) {
      return distribute(std::make_shared<team_state>(carrier, m), lying(m, {4, 4}, {{0, 1}}), values({4, 4}));
    };
    const tensor<dyn> x = on(one), mask = on(other);
    return told([&] { x* mask; });
  });
  for (int r = 0; r < 4; ++r) CHECK(all.of(r) == "tessera.rule.mesh");
}

// NVIDIA/Megatron-LM#7452, 4 and 6: what ran again in backward, and the keys and values of a cross-attention, were
// gathered in the group of other workers.
TEST_CASE("reports: a part that runs again, and queries on another sequence's keys, stay with their own samples",
          "[regression][gradient]") {
  for (const mesh_value& on : grouped::grids()) {
    const index_t count = on.axes[0].extent;
    CHECK(wrong_on(on, [&](const team_handle& t) {
            std::string said;
            const sizes n{count, 5, 4}, m{count, 3, 4};
            const auto projected = [](const char* name, const nn::dynamic_flow& x) {
              return x | nn::under(name, nn::linear_layer{.out = 24, .cut_out = {"b"}});
            };
            const auto linear = [](const at::Tensor& x, const auto& w, const std::string& name) {
              return at::linear(x, w.at(name + ".weight"), w.at(name + ".bias"));
            };
            for (const bool cut : {false, true}) {
              const layout x = lying(on, n,
                                     cut ? std::initializer_list<std::pair<int, int>>{{0, 0}, {1, 1}}
                                         : std::initializer_list<std::pair<int, int>>{{0, 0}});
              said += network_beside(
                  t, {{x, values(n)}},
                  [&](const auto& v) {
                    return v[0] | nn::recomputed([&](const nn::dynamic_flow& y) {
                             return tanh(y | nn::under("first", nn::linear_layer{.out = 8, .cut_out = {"b"}})) |
                                    nn::under("second", nn::linear_layer{.out = 4, .cut_in = {"b"}});
                           });
                  },
                  [&](const whole_tensors& v, const auto& w) {
                    return linear(linear(v[0], w, "0.first").tanh(), w, "0.second");
                  });
            }
            said += network_beside(
                t, {{lying(on, n, {{0, 0}}), values(n)}, {lying(on, m, {{0, 0}}), values(m, 2)}},
                [&](const auto& v) {
                  return nn::attention_layer{.heads = 6}(projected("q", v[0]), projected("k", v[1]),
                                                         projected("v", v[1]));
                },
                [&](const whole_tensors& v, const auto& w) {
                  const auto heads = [](const at::Tensor& x) { return x.unflatten(-1, {6, 4}).transpose(1, 2); };
                  return at::scaled_dot_product_attention(heads(linear(v[0], w, "q")), heads(linear(v[1], w, "k")),
                                                          heads(linear(v[1], w, "v")))
                      .transpose(1, 2)
                      .flatten(-2);
                });
            return said;
          }) == "");
  }
}

// NVIDIA/Megatron-LM#7452, 12: each stage counted its layers from 0, so that a state that one stage saved gave the
// later of two stages the layers of the first.
TEST_CASE("reports: a layer has one key, on whichever stage it lies, and other stages load the layers that they run",
          "[regression][runtime]") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("tessera_report_stages_{}", ::getpid());
  const auto lies = [](const mesh_value& on, int stage) {
    layout x = lying(on, {3, 4});
    x.placements[0] = held_on(stage);
    return x;
  };
  const auto stack = [&](const mesh_value& on) {
    return [&lies, on](const std::vector<nn::dynamic_flow>& v) {
      nn::dynamic_flow y = v[0];
      int last = 0;
      for (int i = 0; i < 4; ++i) {
        const int stage = i * on.size() / 4;
        if (stage != last) y = y | nn::repartition_layer{lies(on, stage)};
        last = stage;
        y = y | nn::under(fmt::format("layers.{}", i), nn::linear_layer{.out = 4});
      }
      return y;
    };
  };
  for (const int saving : {1, 2, 4}) {
    at::Tensor wanted;
    by_key state;
    CHECK(wrong_on(workers(saving), [&](const team_handle& t) -> std::string {
            const mesh_value on = workers(saving);
            const trained_net made(t, {{lies(on, 0), element::float64}}, stack(on));
            nn::save(made.net, path);
            const by_key all = nn::state_of(made.net);
            const at::Tensor y = full_tensor(made.net(distribute(t, lies(on, 0), values({3, 4})))).detach();
            if (t->rank() == 0) state = all, wanted = y;
            return "";
          }) == "");
    CHECK(state.size() == 8);
    for (const int loading : {1, 2, 3, 4})
      CHECK(wrong_on(workers(loading), [&](const team_handle& t) {
              const mesh_value on = workers(loading);
              nn::program p;
              p.output(stack(on)({p.input({lies(on, 0), element::float64})}));
              nn::dynamic_network net(t, seed{6}, p);
              nn::load(net, path);
              std::string said;
              for (const auto& [key, w] : nn::state_of(net))
                if (state.count(key) == 0 || !same_bits(w, state.at(key))) said += key + "; ";
              const at::Tensor y = full_tensor(net(distribute(t, lies(on, 0), values({3, 4}))));
              return close(y, wanted) ? said : said + "result";
            }) == "");
  }
  std::filesystem::remove(path);
}
