#include "tests/support/serial_leaves.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>

namespace tessera::testing {
namespace {

struct rows_at_once : dyn {};
struct rows_kept : dyn {};

/// Rows whose first number is above 0, those of each part in slots: x[rows, f] → y[parts, slots, f]. There are as many
/// slots as the part with most rows needs.
struct kept_rows {
  static constexpr const char* name = "kept_rows";
  static constexpr layer_plan plan(const tensor_value& x) {
    layout y = x.layout;
    y.dims[0].extent = x.layout.part_count(0);
    y.dims.push(x.layout.dims[1]);
    y.dims[1] = {};
    y.dims[1].extent = dynamic;
    layer_plan p;
    p.add_input(x.layout);
    p.add_output(y);
    return p;
  }
  static at::Tensor mine(const at::Tensor& x) {
    return (x.detach().narrow(1, 0, std::min<index_t>(1, x.size(1))) > 0).sum(1).nonzero().squeeze(1);
  }
  static std::optional<index_t> extent_for(const nn::measured_call& x) { return x.most(mine(x.operands[0]).numel()); }
  static at::Tensor forward(const nn::call& c) {
    const at::Tensor& x = c.operand();
    const at::Tensor kept = x.index_select(0, mine(x));
    const at::Tensor padded = at::constant_pad_nd(kept, {0, 0, 0, c.bound.sizes[1] - kept.size(0)});
    return padded.unsqueeze(0).narrow(0, 0, c.bound.sizes[0]);
  }
};

template <int P, int M>
struct keeping {
  struct place : axis<P> {};
  struct model : axis<M> {};
  using grid = mesh<place, model>;
  using rows = tensor<partition<grid, blocks<place>, whole, invariant<model>>, shape<rows_at_once, dim<5>>, double>;
};

/// What is behind the sum knows nothing of slots.
struct sums_of_kept {
  constexpr auto operator()(auto x) const {
    const auto kept = x | nn::linear<5>{} | kept_rows{};
    const auto fed = relu(kept | nn::linear<7>{});
    const auto both = sum<1>(fed) | nn::linear<3>{};
    return both * both;
  }
};
/// The same in one process, of rows in so many parts.
at::Tensor serial_sums(const at::Tensor& x, const std::vector<index_t>& parts, const by_key& w) {
  const auto linear = [&](const at::Tensor& y, const std::string& path) {
    return at::linear(y, w.at(path + ".weight"), w.at(path + ".bias"));
  };
  std::vector<at::Tensor> kept;
  index_t most = 0;
  for (const at::Tensor& part : linear(x, "0").split_with_sizes(parts)) {
    kept.push_back(part.index_select(0, (part.select(1, 0) > 0).nonzero().squeeze(1)));
    most = std::max(most, kept.back().size(0));
  }
  for (at::Tensor& part : kept) part = at::constant_pad_nd(part, {0, 0, 0, most - part.size(0)});
  const at::Tensor both = linear(at::relu(linear(at::stack(kept), "2")).sum(1), "3");
  return both * both;
}

/// How far a network is from the serial one, over batches of which as many rows are kept as their numbers say.
template <class Module, int P, int M>
double sums_apart(auto& workers, int batches) {
  using places = keeping<P, M>;
  nn::network<Module, typename places::rows> net{workers, seed{3}};
  const by_key w = leaves_of(net);
  double worst = 0;
  for (int i = 0; i < batches; ++i) {
    const index_t n = i % 3 == 0 ? 0 : 3 + i % 5 * P + i;
    at::Tensor x = global_of({n, 5}, numbers{static_cast<std::uint64_t>(i)}) * (1 + i % 4);
    x.set_requires_grad(true);
    auto given = distribute<typename places::rows>(workers, x.detach());
    given.requires_grad();
    std::vector<index_t> parts;
    for (int p = 0; p < P; ++p) parts.push_back(size_of(held_by(given.layout(), p * M)[0]));
    const auto y = net(given);
    const at::Tensor serial = serial_sums(x, parts, w);
    sum(y).backward();
    serial.sum().backward();
    worst = std::max(
        {worst, apart(full_tensor(y), serial), apart(full_tensor(given.grad()), x.grad()), gradients_apart(net, w)});
  }
  return worst;
}

template <class Module, int P, int M>
void judge_sums(int batches = 7) {
  const auto run = in_team<typename keeping<P, M>::grid>([&](auto& t) { return sums_apart<Module, P, M>(t, batches); });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-11);
}

struct pair_of_stages : axis<2> {};
struct halves : axis<2> {};
using staged_halves = mesh<halves, pair_of_stages>;
template <int Stage>
using on_stage = partition<staged_halves, blocks<halves>, whole, on<pair_of_stages, Stage>>;
template <int Stage>
using slots_on_stage = partition<staged_halves, blocks<halves>, whole, whole, on<pair_of_stages, Stage>>;
using staged_rows = tensor<on_stage<0>, shape<rows_at_once, dim<5>>, double>;

/// Slots lie within a stage, or go on to the next one. Those of nothing add nothing.
template <bool Within>
struct over_stages {
  constexpr auto operator()(auto x) const {
    const auto kept = x | nn::linear<5>{} | kept_rows{};
    const auto added = [](auto slots) { return sum<1>(slots | nn::linear<5, no_bias>{}); };
    if constexpr (Within) {
      const auto y = to<on_stage<1>>(added(kept)) | nn::linear<3>{};
      return sum(y * y);
    } else {
      const auto y = added(to<slots_on_stage<1>>(kept)) | nn::linear<3>{};
      return sum(y * y);
    }
  }
};

/// What a pipeline of the network says, or how far its gradients are from those without stages' micro-batches.
template <bool Within>
std::string of_stages() {
  const auto run = in_team<staged_halves>([&](auto& t) -> std::string {
    nn::network<over_stages<Within>, staged_rows> net{t, seed{3}};
    constexpr pipeline::schedule turns{pipeline::order::gpipe, {.stages = 2, .micro_batches = 1}};
    nn::pipeline_parallel pipeline(net, "pair_of_stages", turns);
    const auto x = distribute<staged_rows>(t, global_of({11, 5}, numbers{2}));
    std::vector<at::Tensor> seen;
    const auto note = [&] {
      for (const at::Tensor& w : net.parameters()) seen.push_back(w.grad().clone()), w.mutable_grad().reset();
    };
    net(x).backward();
    note();
    const std::string code = told([&] { pipeline.forward_backward({x.dynamic()}); });
    if (code != "none") return code;
    note();
    const auto half = static_cast<std::ptrdiff_t>(seen.size() / 2);
    const bool alike = std::equal(seen.begin(), seen.begin() + half, seen.begin() + half,
                                  [](const at::Tensor& a, const at::Tensor& b) { return apart(a, b) < 1e-12; });
    return alike ? "" : "gradients differ";
  });
  std::string all = run.errors();
  for (const auto& one : run.results) all = std::max(all, one.value_or(""));
  return all;
}

}  // namespace

TEST_CASE("stages size slots for themselves; slots that go to another stage are refused", "[gradient][refusal]") {
  CHECK(of_stages<true>() == "");
  CHECK(of_stages<false>() == "tessera.shape.unbound");
}

TEST_CASE("layers whose results data size are bound as they run, and what follows from them", "[gradient]") {
  judge_sums<sums_of_kept, 1, 1>();
  judge_sums<sums_of_kept, 3, 1>();
  judge_sums<sums_of_kept, 2, 2>();
  judge_sums<nn::recompute<sums_of_kept>, 3, 1>();
}

TEST_CASE("a network is right for more extents of data than it keeps bound", "[gradient]") {
  judge_sums<sums_of_kept, 2, 1>(150);
}

}  // namespace tessera::testing
