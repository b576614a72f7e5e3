// Prints docs/what-layers-move.md: each layer on two workers, for every way in which its input may lie, from its plan
// alone.

#include <tessera/inspect/text.hpp>
#include <tessera/network.hpp>
#include <tessera/operation/function/linear_cross_entropy.hpp>
#include <tessera/operation/layer/layer_values.hpp>

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace tessera;
using namespace tessera::engine;

struct a : axis<2> {};
using pair_of_workers = mesh<a>;

/// A layer with its options, as it is written and as it is planned.
struct example {
  const char* text;
  layer_plan (*plan)(const tensor_value&);
  bool has_labels = false;  ///< its second operand has no gradient
};
#define EXAMPLE(...) {#__VA_ARGS__, [](const tensor_value& x) { return (__VA_ARGS__).plan(x); }}

struct entry {
  const char* name;
  const char* serial;
  std::vector<index_t> extents;
  element of = element::float32;
  std::vector<example> examples;
  std::vector<example> refused = {};  ///< for every way in which x may lie
};

/// Keys of queries: one head for each group of theirs.
tensor_value keys_of(const tensor_value& q) {
  tensor_value k = q;
  k.layout.dims.count = 0;
  for (int d = 0; d < q.layout.dims.count; ++d)
    if (d != 3) k.layout.dims.push(q.layout.dims[d]);
  axis_placement& r = k.layout.placements[0];
  if (r.kind == placement::cut && r.dimension == 3) r = axis_placement{placement::replicate};
  if (r.kind == placement::cut && r.dimension > 3) --r.dimension;
  return k;
}

/// A label for each row.
tensor_value labels_of(const tensor_value& x) {
  tensor_value y = x;
  y.element = element::int64;
  y.layout.dims.resize(1);
  for (axis_placement& r : y.layout.placements)
    if (r.kind != placement::cut || r.dimension > 0) r = axis_placement{placement::invariant};
  return y;
}

/// A tensor that lies like x but for its last dimensions, from one on, which are whole and have these extents. Where x
/// has terms or is cut there are copies.
tensor_value beside(const tensor_value& x, int first, std::initializer_list<index_t> extents, element e) {
  tensor_value y = x;
  y.element = e;
  y.layout.dims.resize(first);
  for (const index_t n : extents) {
    y.layout.dims.push({});
    y.layout.dims[y.layout.dims.count - 1].extent = n;
  }
  for (axis_placement& r : y.layout.placements)
    if (r.kind == placement::partial || (r.kind == placement::cut && r.dimension >= first)) r = {};
  return y;
}

/// A router of rows x to four experts.
layer_plan routed(const nn::route_layer& layer, const tensor_value& x) {
  return layer.plan(x, beside(x, x.layout.dims.count - 1, {4}, x.element));
}

/// The way back of slots y[expert, group, slot, f] of 16 rows, whose groups the axis cuts where it cuts experts.
layer_plan combined(const tensor_value& y) {
  const bool by_expert = y.layout.levels(0) > 0;
  tensor_value gates = beside(y, 2, {6, 2}, y.element);
  gates.layout.dims[0].extent = by_expert ? 2 : 1;
  tensor_value chosen = beside(y, 1, {4}, element::int64);
  chosen.layout.dims[0].extent = 16;
  const bool cut = by_expert || y.layout.levels(1) > 0;
  if (cut) chosen.layout.set_placement(0, {});
  if (cut) chosen.layout.cut_by(0, 0);
  tensor_value numbers = gates;
  numbers.element = element::int64;
  return nn::combine::plan(y, gates, numbers, chosen);
}

/// Every layer that a file may name, in the order of docs/layers.md.
const std::vector<entry>& entries() {
  static const std::vector<index_t> rows{8, 12}, sequence{8, 6, 12}, image{8, 6, 12, 12}, heads{8, 6, 2, 3, 4};
  // clang-format off
  static const std::vector<entry> all{
      {"linear", "`torch::nn::Linear`", rows, element::float32,
       {EXAMPLE(nn::linear_layer{.out = 10}),
        EXAMPLE(nn::linear_layer{.out = 10, .cut_out = {"a"}}),
        EXAMPLE(nn::linear_layer{.out = 10, .cut_in = {"a"}})}},
      {"experts", "`torch::baddbmm` of each expert's slots", {4, 6, 12}, element::float32,
       {EXAMPLE(nn::experts_layer{.experts = 4, .out = 10}),
        EXAMPLE(nn::experts_layer{.experts = 4, .out = 10, .cut_out = {"a"}})},
       {EXAMPLE(nn::experts_layer{.experts = 5, .out = 10})}},
      {"embedding", "`torch::nn::Embedding`", {8, 6}, element::int64,
       {EXAMPLE(nn::embedding_layer{.rows = 20, .features = 4}),
        EXAMPLE(nn::embedding_layer{.rows = 20, .features = 4, .cut_out = {"a"}}),
        EXAMPLE(nn::embedding_layer{.rows = 20, .features = 4, .cut_in = {"a"}})},
       {EXAMPLE(nn::embedding_layer{.rows = 20, .features = 4, .padding_idx = 20}),
        EXAMPLE(nn::embedding_layer{.rows = 20, .features = 4, .sparse = true})}},
      {"heads", "`torch::nn::Linear` with the rows q, k, v", sequence, element::float32,
       {EXAMPLE(nn::heads_layer{.heads = 4, .key_heads = 2, .features = 3}),
        EXAMPLE(nn::heads_layer{.heads = 4, .key_heads = 2, .features = 3, .cut_out = {"a"}})},
       {EXAMPLE(nn::heads_layer{.heads = 4, .key_heads = 3, .features = 3})}},
      {"attention", "`torch::scaled_dot_product_attention`", heads, element::float32,
       {{"nn::attention<>(q, k, v) with q",
         [](const tensor_value& q) { return nn::attention<>::plan(q, keys_of(q), keys_of(q)); }}}},
      {"neighbourhood_attention", "attention with a mask of all but windows", heads, element::float32,
       {{"nn::neighbourhood_attention<kernel<3>>(q, k, v) with q",
         [](const tensor_value& q) {
           return nn::neighbourhood_attention<kernel<3>>::plan(q, keys_of(q), keys_of(q));
          }}}},
      {"linear_cross_entropy", "`torch::nn::functional::cross_entropy` of `torch::nn::Linear` without bias", rows,
       element::float32,
       {{"nn::linear_cross_entropy_layer{.classes = 10}(x, labels) with x",
         [](const tensor_value& x) {
           return nn::linear_cross_entropy_layer{.classes = 10}.plan(x, labels_of(x));
         }, true},
        {"nn::linear_cross_entropy_layer{.classes = 10, .cut_out = {\"a\"}, .sample_rate = 0.1}(x, labels) with x",
         [](const tensor_value& x) {
           const nn::linear_cross_entropy_layer layer{.classes = 10, .cut_out = {"a"}, .sample_rate = 0.1};
           return layer.plan(x, labels_of(x));
         }, true}},
       {{"nn::linear_cross_entropy_layer{.classes = 10, .sample_rate = 2}(x, labels) with x",
         [](const tensor_value& x) {
           return nn::linear_cross_entropy_layer{.classes = 10, .sample_rate = 2}.plan(x, labels_of(x));
         }}}},
      {"gated", "`torch::nn::Linear` with the rows gate, up", sequence, element::float32,
       {EXAMPLE(nn::gated_layer{.out = 8}), EXAMPLE(nn::gated_layer{.out = 8, .cut_out = {"a"}})}},
      {"gated_experts", "`torch::baddbmm` of each expert's slots, the columns gate, up", {4, 6, 12}, element::float32,
       {EXAMPLE(nn::gated_experts_layer{.experts = 4, .out = 8}),
        EXAMPLE(nn::gated_experts_layer{.experts = 4, .out = 8, .cut_out = {"a"}})},
       {EXAMPLE(nn::gated_experts_layer{.experts = 5, .out = 8})}},
      {"route", "`torch::topk` of scores, and `torch::index_select` of each expert's rows", rows, element::float32,
       {{"nn::route_layer{.experts = 4, .choices = 2, .capacity = 1.25}(x, scores) with x",
         [](const tensor_value& x) { return routed({.experts = 4, .choices = 2, .capacity = 1.25}, x); }},
        {"nn::route_layer{.experts = 4, .capacity = 1, .over_experts = engine::axis_names{\"a\"}}(x, scores) with x",
         [](const tensor_value& x) {
           return routed({.experts = 4, .capacity = 1.0, .over_experts = axis_names{"a"}}, x);
         }}},
       {{"nn::route_layer{.experts = 4, .choices = 5}(x, scores) with x",
         [](const tensor_value& x) { return routed({.experts = 4, .choices = 5}, x); }},
        {"nn::route_layer{.experts = 4, .capacity = 0}(x, scores) with x",
         [](const tensor_value& x) { return routed({.experts = 4, .capacity = 0.0}, x); }}}},
      {"combine", "sums of gates times what experts give, by `torch::index_add`", {4, 2, 3, 12}, element::float32,
       {{"nn::combine{}(y, gates, numbers, chosen) with y", combined}}},
      {"cast", "`torch::Tensor::to`", rows, element::float32, {EXAMPLE(nn::cast_layer{element::bfloat16})}},
      {"conv", "`torch::nn::Conv1d` to `Conv3d`", image, element::float32,
       {EXAMPLE(nn::conv_layer{.out = 4, .kernel = {3, 3}, .padding = {1}}),
        EXAMPLE(nn::conv_layer{
            .out = 4, .kernel = {3, 3}, .stride = {2}, .padding = {1}, .padding_mode = boundary::periodic}),
        EXAMPLE(nn::conv_layer{.out = 4, .kernel = {3, 3}, .padding = {1}, .groups = 2}),
        EXAMPLE(nn::conv_layer{.out = 4, .kernel = {3, 3}, .padding = {1}, .cut_out = {"a"}})},
       {EXAMPLE(nn::conv_layer{.out = 4, .kernel = {3}}),
        EXAMPLE(nn::conv_layer{.out = 4, .kernel = {3, 3}, .groups = 4}),
        EXAMPLE(nn::conv_layer{.out = 4, .kernel = {15, 3}, .padding = {1}})}},
      {"conv_transpose", "`torch::nn::ConvTranspose1d` to `ConvTranspose3d`", image, element::float32,
       {EXAMPLE(nn::conv_transpose_layer{.out = 4, .kernel = {4, 4}, .stride = {2}, .padding = {1}}),
        EXAMPLE(nn::conv_transpose_layer{.out = 4, .kernel = {4, 4}, .stride = {2}, .padding = {1}, .cut_out = {"a"}})},
       {EXAMPLE(nn::conv_transpose_layer{.out = 4, .kernel = {4, 4}, .stride = {2}, .output_padding = {2}}),
        EXAMPLE(nn::conv_transpose_layer{.out = 4, .kernel = {3, 3}, .padding = {8}})}},
      {"max_pool", "`torch::nn::MaxPool1d` to `MaxPool3d`", image, element::float32,
       {EXAMPLE(nn::max_pool_layer{.kernel = {2, 2}}),
        EXAMPLE(nn::max_pool_layer{.kernel = {3, 3}, .stride = {2}, .padding = {1}})},
       {EXAMPLE(nn::max_pool_layer{.kernel = {3}}), EXAMPLE(nn::max_pool_layer{.kernel = {3, 3}, .padding = {2}})}},
      {"avg_pool", "`torch::nn::AvgPool1d` to `AvgPool3d`", image, element::float32,
       {EXAMPLE(nn::avg_pool_layer{.kernel = {3, 3}, .stride = {2}, .padding = {1}})},
       {EXAMPLE(nn::avg_pool_layer{.kernel = {3}}), EXAMPLE(nn::avg_pool_layer{.kernel = {3, 3}, .padding = {2}})}},
      {"global_avg_pool", "`torch::nn::AdaptiveAvgPool1d` to `AdaptiveAvgPool3d` to one element", image,
       element::float32, {EXAMPLE(nn::global_avg_pool{})}},
      {"adaptive_avg_pool", "`torch::nn::AdaptiveAvgPool1d` to `AdaptiveAvgPool3d`", image, element::float32,
       {EXAMPLE(nn::adaptive_avg_pool_layer{.sizes = {5, 8}})},
       {EXAMPLE(nn::adaptive_avg_pool_layer{.sizes = {5}})}},
      {"adaptive_max_pool", "`torch::nn::AdaptiveMaxPool1d` to `AdaptiveMaxPool3d`", image, element::float32,
       {EXAMPLE(nn::adaptive_max_pool_layer{.sizes = {5, 8}})},
       {EXAMPLE(nn::adaptive_max_pool_layer{.sizes = {5}})}},
      {"fft", "`torch::fft::fftn`", image, element::float32,
       {EXAMPLE(nn::fft_layer{.dims = {2, 3}}), EXAMPLE(nn::fft_layer{.dims = {2}})},
       {EXAMPLE(nn::fft_layer{.dims = {2, 2}}), EXAMPLE(nn::fft_layer{.dims = {4}})}},
      {"ifft", "`torch::fft::ifftn`", image, element::complex64,
       {EXAMPLE(nn::fft_layer{.dims = {2, 3}, .inverse = true})},
       {EXAMPLE(nn::fft_layer{.inverse = true})}},
      {"rfft", "`torch::fft::rfftn`", image, element::float32,
       {EXAMPLE(nn::fft_layer{.dims = {2, 3}, .real = true})},
       {EXAMPLE(nn::fft_layer{.dims = {3}, .real = true, .length = 9})}},
      {"irfft", "`torch::fft::irfftn`", image, element::complex64,
       {EXAMPLE(nn::fft_layer{.dims = {2, 3}, .inverse = true, .real = true, .length = 23})},
       {EXAMPLE(nn::fft_layer{.dims = {2, 3}, .inverse = true, .real = true, .length = 5})}},
      {"spectral_conv", "`torch::fft::irfftn` of products with some of `torch::fft::rfftn`", image, element::float32,
       {EXAMPLE(nn::spectral_conv_layer{.out = 4, .modes = {3, 4}})},
       {EXAMPLE(nn::spectral_conv_layer{.out = 4, .modes = {3}}),
        EXAMPLE(nn::spectral_conv_layer{.out = 4, .modes = {3, 8}})}},
      {"pixel_shuffle", "`torch::nn::PixelShuffle`", {8, 12, 6, 6}, element::float32,
       {EXAMPLE(nn::pixel_shuffle_layer{2})},
       {EXAMPLE(nn::pixel_shuffle_layer{0}), EXAMPLE(nn::pixel_shuffle_layer{5})}},
      {"pixel_unshuffle", "`torch::nn::PixelUnshuffle`", {8, 3, 12, 10}, element::float32,
       {EXAMPLE(nn::pixel_unshuffle_layer{2})},
       {EXAMPLE(nn::pixel_unshuffle_layer{5})}},
      {"unfold", "`torch::nn::Unfold`, its windows in as many dimensions as space has", image, element::float32,
       {EXAMPLE(nn::unfold_layer{.kernel = {3, 3}, .padding = {1}})},
       {EXAMPLE(nn::unfold_layer{.kernel = {3, 15}}), EXAMPLE(nn::unfold_layer{.kernel = {3, 3, 3}})}},
      {"fold", "`torch::nn::Fold` of the same", {8, 18, 12, 12}, element::float32,
       {EXAMPLE(nn::fold_layer{.kernel = {3, 3}, .padding = {1}})},
       {EXAMPLE(nn::fold_layer{.kernel = {4, 4}}), EXAMPLE(nn::fold_layer{.kernel = {3, 3}, .output_padding = {1}})}},
      {"batch_norm", "`torch::nn::BatchNorm1d` to `BatchNorm3d`", image, element::float32,
       {EXAMPLE(nn::batch_norm_layer{})}},
      {"group_norm", "`torch::nn::GroupNorm`", image, element::float32, {EXAMPLE(nn::group_norm_layer{.groups = 3})},
       {EXAMPLE(nn::group_norm_layer{.groups = 4})}},
      {"instance_norm", "`torch::nn::InstanceNorm1d` to `InstanceNorm3d`", image, element::float32,
       {EXAMPLE(nn::instance_norm_layer{})}},
      {"layer_norm", "`torch::nn::LayerNorm`", sequence, element::float32, {EXAMPLE(nn::layer_norm_layer{}),
      EXAMPLE(nn::layer_norm_layer{.last = 2})},
       {EXAMPLE(nn::layer_norm_layer{.last = 4})}},
      {"rms_norm", "`torch::rms_norm`", sequence, element::float32, {EXAMPLE(nn::rms_norm_layer{})},
       {EXAMPLE(nn::rms_norm_layer{.last = 4})}},
      {"upsample", "`torch::nn::Upsample`", image, element::float32,
       {EXAMPLE(nn::upsample_layer{.factors = {2, 2}}),
        EXAMPLE(nn::upsample_layer{.sizes = {18, 30}, .mode = interpolation::linear}),
        EXAMPLE(nn::upsample_layer{.factors = {2, 2}, .mode = interpolation::cubic})},
       {EXAMPLE(nn::upsample_layer{.factors = {2, 2}, .sizes = {18, 30}}),
        EXAMPLE(nn::upsample_layer{.factors = {2, 2}, .align_corners = true}),
        EXAMPLE(nn::upsample_layer{.factors = {2, 2}, .mode = interpolation::linear, .antialias = true})}},
      {"dropout", "`torch::nn::Dropout`, `Dropout2d`", image, element::float32, {EXAMPLE(nn::dropout_layer{})},
       {EXAMPLE(nn::dropout_layer{.probability = 1.5})}},
      {"relu", "`torch::nn::ReLU`", rows, element::float32, {EXAMPLE(nn::relu{})}},
      {"rrelu", "`torch::nn::RReLU`", image, element::float32, {EXAMPLE(nn::rrelu_layer{})},
       {EXAMPLE(nn::rrelu_layer{.lower = 0.5, .upper = 0.25})}},
      {"prelu", "`torch::nn::PReLU`", image, element::float32, {EXAMPLE(nn::prelu_layer{}),
      EXAMPLE(nn::prelu_layer{.channelwise = true})}},
      {"flatten", "`torch::nn::Flatten`", image, element::float32, {EXAMPLE(nn::flatten{})}},
      {"pad", "`torch::nn::functional::pad`", image, element::float32,
       {EXAMPLE(nn::pad_layer{.widths = {3, 0, 0, 0}}),
        EXAMPLE(nn::pad_layer{.widths = {3, 0, 0, 0}, .padding_mode = boundary::reflect})},
       {EXAMPLE(nn::pad_layer{.widths = {0, 0, -13, 0}}),
        EXAMPLE(nn::pad_layer{.widths = {12, 0, 0, 0}, .padding_mode = boundary::reflect})}},
      {"slice", "`torch::Tensor::slice`", image, element::float32,
       {EXAMPLE(nn::slice_layer{.dimension = 2, .begin = 1, .end = 8})},
       {EXAMPLE(nn::slice_layer{.dimension = 4, .begin = 1, .end = 8}),
        EXAMPLE(nn::slice_layer{.dimension = 2, .begin = 8, .end = 14})}},
      {"repartition", "nothing", image, element::float32,
       {{"nn::repartition<partition<mesh<a>, whole, blocks<a>, whole, whole>>",
         [](const tensor_value& x) {
           using cut = tensor<partition<pair_of_workers, whole, blocks<a>, whole, whole>, shape_of<1, 1, 1, 1>, float>;
           return nn::repartition_layer{value_of<cut>.layout}.plan(x);
         }}}},
  };
  // clang-format on
  return all;
}

/// A tensor of these extents that is the same on both workers.
tensor_value lying(const entry& e) {
  tensor_value x{value_of<tensor<partition<pair_of_workers>, shape<>, float>>.layout, e.of};
  for (const index_t n : e.extents) {
    dimension d;
    d.extent = n;
    x.layout.dims.push(d);
  }
  return x;
}
tensor_value cut(tensor_value x, int d) {
  x.layout.placements[0] = axis_placement{};
  x.layout.placements[0].kind = placement::cut;
  x.layout.placements[0].dimension = static_cast<signed char>(d);
  x.layout.dims[d].balance(1);
  return x;
}

/// A change of layout by name, with the elements that its busiest worker receives; nothing, of what nobody has to do
/// anything for.
std::string moved(const char* what, const layout& from, const layout& to) {
  const verb v = verb_between(from, to);
  if (v == verb::nothing) return "";
  const index_t n = cost_between(from, to).busiest;
  return n == 0 ? "" : fmt::format("{} {} {}", what, name_of(v), n);
}

class told {
 public:
  void way(const char* what, const layout& from, const layout& to, bool returns = true) {
    add(there_, moved(what, from, to));
    if (returns && only_sums(from) && only_sums(to)) add(back_, moved(what, cotangent(to), cotangent(from)));
  }
  std::string row() const { return fmt::format("{} | {}", there_.empty() ? "–" : there_, back_.empty() ? "–" : back_); }

 private:
  static void add(std::string& s, const std::string& more) {
    if (!more.empty()) s += (s.empty() ? "" : ", ") + more;
  }
  std::string there_;
  std::string back_;
};

std::string row_of(const layer_plan& p, element of, bool has_labels = false) {
  if (!p.why.ok()) return fmt::format("refused: `{}` | – | –", p.why.because->code);
  std::string result;
  for (int i = 0; i < p.outputs(); ++i) result += (i == 0 ? "" : "; ") + covers_text(p.output(i));
  told t;
  for (int i = 0; i < p.inputs(); ++i)
    t.way(p.inputs() == 1 ? "x" : fmt::format("x{}", i).c_str(), p.given(i), p.used(i),
          has_cotangent(of) && !(has_labels && i == 1));
  for (int i = 0; i < p.parameters(); ++i) t.way(p.parameter(i).name, p.stored(i), p.weight(i));
  for (int i = 0; i < p.exchanges(); ++i) t.way("parts", p.from(i), p.to(i), p.returns(i));
  for (int i = 0; i < p.outputs(); ++i)
    t.way(p.outputs() == 1 ? "y" : fmt::format("y{}", i).c_str(), p.raw(i), p.output(i),
          has_cotangent(p.element_of(i, element::float32)));
  return fmt::format("{} | {}", result, t.row());
}

constexpr const char* about = R"(# What layers move

This page is written by `scripts/make_layer_page` from the plans that networks run, and a test holds it. Each table is
one layer on an axis `a` of two workers, for every layout of its input. It has the layout of the result, and what moves
forward and back. The number behind a verb is how many elements the busier worker receives. What is not named moves
nothing; a parameter that is *copied in* costs nothing forward, and its gradient an all_reduce. *Partial* are terms of a
sum. A refusal gives its [code](refusals.md). Cuts along several axes move what each of them moves. Of p workers and a
tensor of e elements, of which each has e/p where it is cut:

| verb | a worker receives | and its adjoint |
|---|---|---|
| all_gather | e (p − 1)/p | reduce_scatter, the same |
| reduce_scatter | e (p − 1)/p | all_gather, the same |
| all_reduce | 2 e (p − 1)/p | copy_in, 0 |
| copy_in | 0 | all_reduce, 2 e (p − 1)/p |
| halo_exchange | what its windows read beyond its own part | halo_accumulate, the same of its neighbours |
| all_to_all | e (p − 1)/p² | all_to_all, the same |
| repartition | what it has not | repartition |
| several | the sum of its verbs' | their adjoints |
)";

void print(const entry& e) {
  std::printf("\n## %s\n\nIn one process: %s.\n", e.name, e.serial);
  const tensor_value same = lying(e);
  tensor_value invariant = same;
  invariant.layout.placements[0].kind = placement::invariant;
  tensor_value terms = same;
  terms.layout.placements[0].kind = placement::partial;
  for (const example& one : e.examples) {
    std::printf("\n`%s` of %s\n\n| x | y | forward | backward |\n|---|---|---|---|\n", one.text,
                shape_text(same.layout).c_str());
    const auto line = [&](const tensor_value& x) {
      std::printf("| %s | %s |\n", covers_text(x.layout).c_str(), row_of(one.plan(x), e.of, one.has_labels).c_str());
    };
    line(invariant);
    for (int d = 0; d < same.layout.dims.count; ++d) line(cut(same, d));
    line(terms);
  }
  if (e.refused.empty()) return;
  std::printf("\nRefused, however x lies:\n\n| written | told |\n|---|---|\n");
  for (const example& one : e.refused) {
    const refusal why = one.plan(same).why;
    if (why.ok()) {
      std::fprintf(stderr, "%s is not refused\n", one.text);
      std::exit(1);
    }
    std::printf("%s\n", fmt::format("| `{}` | `{}` |", one.text, why.because->code).c_str());
  }
}

}  // namespace

int main() {
  std::fputs(about, stdout);
  for (const entry& e : entries()) print(e);
}
