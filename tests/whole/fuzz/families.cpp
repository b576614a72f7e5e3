#include "family.hpp"

namespace tessera::testing::fuzz {

using namespace engine;

namespace {

using ints = std::vector<index_t>;

// Normalisations.

/// Samples, channels and space: as many dimensions, the groups of three elements at least, since those of two have
/// hardly a gradient.
ints roll_channels(roller& r, int dims, index_t channels) {
  ints extents{r.roll(3, 6), channels};
  for (int i = 2; i < dims; ++i) extents.push_back(i == dims - 1 ? r.roll(3, 7) : r.roll(1, 4));
  return extents;
}
void say_eps(roller& r) {
  if (r.once_in(2)) r.say("eps", 0.25);
}
void say_running(roller& r, bool tracks) {
  r.say_unless("track_running_stats", r.once_in(2), tracks);
  if (r.once_in(3)) r.say("momentum", nullptr);
  else if (r.once_in(2)) r.say("momentum", 0.25);
}

/// Whether running statistics are means over all calls.
bool cumulative(const serial_call& s) {
  return s.of.options.contains("momentum") && s.of.options["momentum"].is_null();
}

/// Counts a call, and gives what it counts in running statistics.
double counted(const serial_call& s, bool counts) {
  if (s["num_batches_tracked"].defined() && counts && s.of.training) s["num_batches_tracked"].add_(1);
  return cumulative(s) ? 1 : s.option("momentum", 0.1);  // of the first call
}

at::Tensor batch_normed(const serial_call& s) {
  const bool own = s.of.training || !s["running_mean"].defined();
  const double momentum = counted(s, true);
  return at::batch_norm(s.x[0], s["weight"], s["bias"], s["running_mean"], s["running_var"], own, momentum,
                        s.option("eps", 1e-5), false);
}

at::Tensor instance_normed(const serial_call& s) {
  const bool own = s.of.training || !s["running_mean"].defined();
  const double momentum = counted(s, cumulative(s));  // LibTorch counts no other calls
  return at::instance_norm(s.x[0], s["weight"], s["bias"], s["running_mean"], s["running_var"], own, momentum,
                           s.option("eps", 1e-5), false);
}

/// The same as a group norm, as the layer on one worker computes it; running statistics are no matter of roundings.
tensors in_groups_of_one(const serial_call& s) {
  if (s["running_mean"].defined()) return {instance_normed(s)};
  return {at::group_norm(s.x[0], s.x[0].size(1), s["weight"], s["bias"], s.option("eps", 1e-5), false)};
}

void roll_last(roller& r, bool centred) {
  const int dims = r.roll(1, 4);
  ints extents;
  for (int i = 0; i < dims; ++i) extents.push_back(i == dims - 1 ? r.roll(3, 7) : r.roll(1, 4));
  r.say_unless("normalized_dims", r.roll(1, dims), 1);
  r.say_unless("elementwise_affine", !r.once_in(4), true);
  if (centred) r.say_unless("bias", !r.once_in(3), true);
  say_eps(r);
  r.say_stored();
  r.take(extents);
}
ints last_sizes(const serial_call& s) {
  const auto all = s.x[0].sizes();
  return all.slice(all.size() - s.option("normalized_dims", std::size_t{1})).vec();
}

at::Tensor rms_normed(const serial_call& s) {
  const element e = s.of.operands[0].element;
  const double own = e == element::float32    ? 0x1p-23
                     : e == element::float16  ? 0x1p-10
                     : e == element::bfloat16 ? 0x1p-7
                                              : 0x1p-52;
  const at::Tensor weight = s["weight"];
  return at::rms_norm(s.x[0], last_sizes(s), weight.defined() ? std::optional(weight) : std::nullopt,
                      s.option("eps", own));
}

// What looks up, attends, drops.

void roll_embedding(roller& r) {
  const int rows = r.roll(1, 8);
  r.say("num_embeddings", rows);
  r.say("embedding_dim", r.roll(1, 5));
  const ints extents = r.numbers(r.roll(0, 3), 1, 5);
  if (r.once_in(3)) r.say("padding_idx", r.roll(-rows, rows - 1));
  r.say_cuts(static_cast<int>(extents.size()) + 1);
  r.c.options.erase("grain_out");
  r.say_stored();
  r.take(extents, r.one_of({element::int64, element::int32}));
}

at::Tensor embedded(const serial_call& s) {
  const index_t padding = s.option("padding_idx", index_t{0});
  const index_t row = !s.of.options.contains("padding_idx") ? -1
                      : padding < 0                         ? padding + s.option("num_embeddings", index_t{1})
                                                            : padding;
  return at::embedding(s["weight"], s.x[0], row);
}

/// Now and then one index is that of no row.
at::Tensor rows_of(const layer_case& c, std::size_t, const at::Tensor& x) {
  const index_t rows = c.options.value("num_embeddings", index_t{1});
  at::Tensor all = (x.abs() * 16).remainder(rows);
  if (c.salt % 20 == 0 && all.numel() > 0) all.view(-1).select(0, all.numel() / 2).fill_(c.salt % 40 == 0 ? rows : -1);
  return all;
}

void roll_heads(roller& r) {
  const int key_heads = r.roll(1, 3);
  r.say("key_heads", key_heads);
  r.say("heads", key_heads * r.roll(1, 3));
  r.say("features", r.roll(1, 3));
  r.say_unless("bias", !r.once_in(4), true);
  if (const auto out = r.axes(2); !out.empty() && r.once_in(2)) r.say("cut_out", out);
  r.say_stored();
  r.take({r.batch(), r.roll(1, 4), r.roll(1, 5)}, true);
}

tensors heads_of(const serial_call& s) {
  const index_t key_heads = s.option("key_heads", index_t{1}), heads = s.option("heads", index_t{1}),
                features = s.option("features", index_t{1});
  const auto parts = at::linear(s.x[0], s["weight"], s["bias"])
                         .split_with_sizes({heads * features, key_heads * features, key_heads * features}, -1);
  return {parts[0].unflatten(-1, {key_heads, heads / key_heads, features}),
          parts[1].unflatten(-1, {key_heads, features}), parts[2].unflatten(-1, {key_heads, features})};
}

void roll_gated(roller& r, bool by_expert) {
  ints extents = r.numbers(r.roll(by_expert ? 2 : 1, by_expert ? 4 : 3), 1, 5);
  if (by_expert) r.say("experts", extents[0]);
  r.say("out_features", r.roll(1, 5));
  r.say_unless("bias", !r.once_in(4), true);
  if (const auto out = r.axes(2); !out.empty() && r.once_in(2)) r.say("cut_out", out);
  r.say_stored();
  r.take(extents, true);
}

void roll_dropout(roller& r) {
  const bool channelwise = r.once_in(3);
  ints extents = r.numbers(r.roll(channelwise ? 2 : 0, 4), 1, 5);
  r.say_unless("p", r.one_of({0.0, 0.25, 0.5, 0.9, 1.0}), 0.5);
  r.say_unless("channelwise", channelwise, false);
  r.take(extents);
}

/// The mask that one worker has, whose every element is dropped or as much larger as it must.
at::Tensor dropped(const serial_call& s) {
  if (s.of.training && s.option("p", 0.5) > 0) s["draws"].add_(1);
  const at::Tensor mask = on_one_worker(s.of, {at::ones(s.x[0].sizes(), at::kDouble)})[0];
  const double p = s.of.training ? s.option("p", 0.5) : 0, larger = p < 1 ? 1 / (1 - p) : 0;
  TORCH_CHECK_VALUE(((mask == 0) | (mask == larger)).all().item<bool>(), "a mask of other numbers");
  return s.x[0] * mask.to(s.x[0].scalar_type());
}

/// The slope that one worker draws of each element, where it is between its bounds.
at::Tensor sloped(const serial_call& s) {
  const double least = s.option("lower", 1.0 / 8), most = s.option("upper", 1.0 / 3);
  if (s.of.training) s["draws"].add_(1);
  const at::Tensor slopes = -on_one_worker(s.of, {at::full(s.x[0].sizes(), -1.0, at::kDouble)})[0];
  const at::Tensor among =
      s.of.training ? (slopes >= least) & (slopes <= most) : (slopes - (least + most) / 2).abs() < 1e-15;
  TORCH_CHECK_VALUE(among.all().item<bool>(), "slopes beyond their bounds");
  TORCH_CHECK_VALUE(
      !s.of.training || least == most || slopes.numel() < 2 || (slopes != slopes.flatten()[0]).any().item<bool>(),
      "all slopes are one");
  return at::where(s.x[0] > 0, s.x[0], s.x[0] * slopes.to(s.x[0].scalar_type()));
}

/// Rows of scores under one another, along a dimension that is whole or cut.
void roll_along(roller& r) {
  const ints extents = r.numbers(r.roll(1, 4), 1, 6);
  r.say("dim", r.roll(0, static_cast<int>(extents.size()) - 1));
  r.take(extents);
}

/// Queries, keys and values, whose samples and heads are cut alike; of a sequence that is whole, or cut and streamed,
/// or over heads, or both; by places, and with a mask.
void roll_attention(roller& r) {
  const bool causal = r.once_in(2), slides = r.once_in(3);
  const bool alike = causal || slides;
  const index_t features = r.roll(1, 4), queries = r.roll(1, 9), keys = alike || r.once_in(2) ? queries : r.roll(1, 5);
  const bool streamed = r.once_in(2), over = r.once_in(3);
  static_vector<index_t, max_dimensions> both;
  for (const index_t n : {r.batch(), queries, index_t{r.roll(1, 4)}}) both.push(n);
  layout q = roll_layout(r.d, r.mesh, both, {r.once_in(20), true, true, false});
  if (q.dims[1].kind != cover::tiled || (q.dims[1].bounds != nullptr && keys != queries)) {
    while (q.levels(1) > 0) q.set_placement(q.cutter(1, q.levels(1) - 1), {});
    q.dims[1].tile();
  }
  std::vector<std::string> moved;
  for (int level = 0; level < q.levels(1) && over && (level == 0 || r.once_in(2)); ++level) {
    const text& name = q.mesh.axes[q.cutter(1, level)].name;
    moved.emplace_back(name.data, static_cast<std::size_t>(name.size));
  }
  if (!streamed)  // what does not go to the heads is whole
    for (int level = q.levels(1) - 1; level >= static_cast<int>(moved.size()); --level)
      q.set_placement(q.cutter(1, level), {});
  const auto add = [](layout& x, index_t n) {
    x.dims.push({});
    x.dims[x.dims.count - 1].extent = n;
  };
  layout k = q, v = q;
  k.dims[1].extent = v.dims[1].extent = keys;
  add(q, r.roll(1, 3));
  add(q, features);
  add(k, features);
  add(v, r.roll(1, 4));
  r.say_unless("is_causal", causal, false);
  r.say_unless("streamed", streamed, false);
  if (streamed && r.once_in(2)) r.say("rows", r.roll(0, 3));
  if (slides) {
    r.say("keys_before", r.roll(0, 5));
    if (!causal) r.say("keys_after", r.roll(0, 5));
  }
  if (!moved.empty()) r.say("over_heads", moved);
  if (!moved.empty() && streamed) r.say_unless("fewest_bytes", r.once_in(3), false);
  if (r.once_in(3)) r.say("p", r.one_of({0.25, 0.5, 0.9, 1.0}));
  for (const layout& x : {q, k, v}) r.take(x, r.e);
  const bool masked = r.once_in(3), added = masked && r.once_in(2);
  r.say_unless("added_mask", added, false);
  if (!masked) return;
  layout mask = q;  // [n, t, s]
  for (int a = 0; a < mask.placements.count; ++a)
    if (mask.placements[a].kind == placement::cut && mask.placements[a].dimension > 1) mask.set_placement(a, {});
  mask.dims.resize(3);
  mask.dims[2] = {};
  mask.dims[2].extent = keys;
  r.take(mask, added ? r.e : element::boolean);
}

/// Which weights [n, g, r, t, s] one worker keeps: queries of zeros see all keys alike, and each value says its place.
at::Tensor kept_weights(const serial_call& s) {
  s["draws"].add_(1);
  const index_t keys = s.x[1].size(1);
  layer_case one = s.of;
  one.options = {{"p", s.option("p", 0.0)}};
  one.operands.resize(3);
  one.operands[2].layout.dims[3].extent = keys;
  const auto zeros = [](const at::Tensor& x) { return at::zeros(x.sizes(), at::kDouble); };
  const at::Tensor places = at::eye(keys, at::kDouble).view({1, keys, 1, keys});
  const at::Tensor values = places.expand({s.x[1].size(0), keys, s.x[1].size(2), keys});
  const at::Tensor y = on_one_worker(one, {zeros(s.x[0]), zeros(s.x[1]), values})[0];
  return (y != 0).view({y.size(0), y.size(1), s.x[0].size(2), s.x[0].size(3), keys}).permute({0, 2, 3, 1, 4});
}

at::Tensor attended(const serial_call& s) {
  const at::Tensor q = s.x[0], k = s.x[1].unsqueeze(3), v = s.x[2].unsqueeze(3);  // [n, t, g, r, d], [n, s, g, 1, d]
  at::Tensor scores = at::einsum("ntgrd,nsgzd->ngrts", {q, k}) / std::sqrt(static_cast<double>(q.size(4)));
  const at::Tensor i = at::arange(q.size(1)).unsqueeze(1), j = at::arange(k.size(1));
  at::Tensor hidden = at::zeros({1, 1, 1, q.size(1), k.size(1)}, at::kBool);
  if (s.option("is_causal", false)) hidden = hidden.logical_or(j > i);
  if (s.of.options.contains("keys_before") || s.of.options.contains("keys_after"))
    hidden = hidden.logical_or(j < i - s.option("keys_before", index_t{0}))
                 .logical_or(j > i + s.option("keys_after", index_t{0}));
  if (s.x.size() > 3) {
    const at::Tensor mask = s.x[3].unsqueeze(1).unsqueeze(1);
    if (mask.scalar_type() == at::kBool) hidden = hidden.logical_or(mask);
    else scores = scores + mask;
  }
  at::Tensor weights = at::softmax(scores.masked_fill(hidden, -1e30), -1).masked_fill(hidden.all(-1, true), 0);
  if (const double p = s.of.training ? s.option("p", 0.0) : 0; p > 0)
    weights = weights * kept_weights(s) * (p < 1 ? 1 / (1 - p) : 0);
  return at::einsum("ngrts,nsgze->ntgre", {weights, v}).flatten(2);
}

/// Queries, keys and values over one to three dimensions of space, whose windows are moved inside at an edge; space,
/// samples and heads are cut alike.
void roll_neighbourhood(roller& r) {
  const int space = r.roll(1, 3);
  static_vector<index_t, max_dimensions> extents;
  std::vector<index_t> seen;
  extents.push(r.batch());
  for (int i = 0; i < space; ++i) {
    extents.push(r.roll(1, space == 1 ? 12 : space == 2 ? 6 : 4));
    const int most = static_cast<int>(extents[1 + i] - 1) / 2;  // now and then wider than the dimension, or even
    seen.push_back(r.once_in(30)   ? extents[1 + i] + 1 + extents[1 + i] % 2
                   : r.once_in(40) ? 2
                                   : 2 * r.roll(0, most) + 1);
  }
  extents.push(r.roll(1, 4));
  layout q = roll_layout(r.d, r.mesh, extents, {r.once_in(20), true, true, false});
  const auto add = [](layout& x, index_t n) {
    x.dims.push({});
    x.dims[x.dims.count - 1].extent = n;
  };
  layout k = q, v = q;
  const int features = r.roll(1, 4);
  add(q, r.roll(1, 3));
  add(q, features);
  add(k, features);
  add(v, r.roll(1, 4));
  r.say("kernel_size", seen);
  for (const layout& x : {q, k, v}) r.take(x, r.e);
}

/// softmax(q kᵀ / √d) v over all keys, with a mask of what lies outside the window.
at::Tensor attended_around(const serial_call& s) {
  const auto seen = s.option("kernel_size", std::vector<index_t>{});
  const auto space = static_cast<index_t>(seen.size());
  at::Tensor hidden = at::zeros({1, 1}, at::kBool);
  for (index_t d = 0; d < space; ++d) {
    const index_t n = s.x[0].size(1 + d), width = seen[static_cast<std::size_t>(d)];
    TORCH_CHECK_VALUE(width % 2 == 1 && width <= n, "a window that is even, or wider than its dimension");
    const at::Tensor first = (at::arange(n) - width / 2).clamp(0, n - width).unsqueeze(1), j = at::arange(n);
    const at::Tensor one = (j < first).logical_or(j >= first + width);
    hidden = hidden.unsqueeze(1).unsqueeze(3).logical_or(one.unsqueeze(0).unsqueeze(2)).flatten(0, 1).flatten(1, 2);
  }
  const auto in_a_row = [&](const at::Tensor& x) { return x.flatten(1, space); };
  const at::Tensor q = in_a_row(s.x[0]), k = in_a_row(s.x[1]), v = in_a_row(s.x[2]);
  const at::Tensor scores = at::einsum("ntgrd,nsgd->ngrts", {q, k}) / std::sqrt(static_cast<double>(s.x[0].size(-1)));
  const at::Tensor y = at::einsum("ngrts,nsge->ntgre", {at::softmax(scores.masked_fill(hidden, -1e30), -1), v});
  std::vector<index_t> sizes = s.x[0].sizes().slice(0, static_cast<std::size_t>(1 + space)).vec();
  sizes.push_back(y.size(2) * y.size(3) * y.size(4));
  return y.reshape(sizes);
}

void roll_any(roller& r, int least, int most) {
  ints extents = r.numbers(r.roll(least, most), 1, 6);
  if (!extents.empty() && r.once_in(15)) extents[0] = 0;
  r.take(extents, true);
}

struct activation {
  const char* name;
  const char* first;
  double otherwise;
  const char* second;  ///< of those that have one
  double or_else;
  at::Tensor (*of)(const at::Tensor& x, const at::Scalar& a, const at::Scalar& b);
};
constexpr activation activations[]{
    {"leaky_relu", "negative_slope", 0.01, nullptr, 0,
     [](const auto& x, const auto& a, const auto&) { return at::leaky_relu(x, a); }},
    {"elu", "alpha", 1, nullptr, 0, [](const auto& x, const auto& a, const auto&) { return at::elu(x, a); }},
    {"celu", "alpha", 1, nullptr, 0, [](const auto& x, const auto& a, const auto&) { return at::celu(x, a); }},
    {"hardshrink", "lambda", 0.5, nullptr, 0,
     [](const auto& x, const auto& a, const auto&) { return at::hardshrink(x, a); }},
    {"softshrink", "lambda", 0.5, nullptr, 0,
     [](const auto& x, const auto& a, const auto&) { return at::softshrink(x, a); }},
    {"hardtanh", "min_val", -1, "max_val", 1,
     [](const auto& x, const auto& a, const auto& b) { return at::hardtanh(x, a, b); }},
    {"softplus", "beta", 1, "threshold", 20,
     [](const auto& x, const auto& a, const auto& b) { return at::softplus(x, a, b); }},
    {"threshold", "threshold", 0, "value", 0,
     [](const auto& x, const auto& a, const auto& b) { return at::threshold(x, a, b); }},
};

family family_of(const activation& f) {
  family made{f.name,
              [f](roller& r) {
                if (!r.once_in(4)) r.say(f.first, r.roll(-2, 6) / 8.0);
                if (f.second != nullptr && !r.once_in(4)) r.say(f.second, r.roll(-2, 6) / 8.0);
                roll_any(r, 0, 4);
              },
              [f](const serial_call& s) {
                return tensors{f.of(s.x[0], s.option(f.first, f.otherwise),
                                    f.second != nullptr ? s.option(f.second, f.or_else) : 0.0)};
              },
              {"tessera.rule.nonlinear", "tessera.function.options"}};
  made.node["function"] = f.name;
  return made;
}

}  // namespace

const std::vector<family>& families() {
  static const std::vector<family> all = [] {
    std::vector<family> both = window_families();
    for (family& f : layer_families()) both.push_back(std::move(f));
    for (const activation& f : activations) both.push_back(family_of(f));
    for (family& f : loss_families()) both.push_back(std::move(f));
    for (family& f : function_families()) both.push_back(std::move(f));
    for (family& f : fourier_families()) both.push_back(std::move(f));
    for (family& f : verb_families()) both.push_back(std::move(f));
    return both;
  }();
  return all;
}

std::vector<family> layer_families() {
  using call = const serial_call&;
  using codes = std::vector<std::string>;
  const codes of_terms{"tessera.rule.nonlinear"}, whole_terms{"tessera.rule.sum"};
  return {
      {"batch_norm",
       [](roller& r) {
         r.take(roll_channels(r, r.roll(2, 5), r.roll(1, 5)));
         r.say_unless("affine", !r.once_in(4), true);
         say_eps(r);
         say_running(r, true);
         r.say_stored();
       },
       [](call s) { return tensors{batch_normed(s)}; }, of_terms},
      {"instance_norm",
       [](roller& r) {
         r.take(roll_channels(r, r.roll(3, 5), r.roll(1, 5)));
         r.say_unless("affine", r.once_in(2), false);
         say_eps(r);
         say_running(r, false);
         r.say_stored();
       },
       [](call s) { return tensors{instance_normed(s)}; },
       of_terms,
       {},
       {},
       {},
       in_groups_of_one},
      {"group_norm",
       [](roller& r) {
         const int groups = r.roll(1, 4), dims = r.roll(2, 5);
         r.say("num_groups", groups);
         r.take(roll_channels(r, dims, groups * (dims == 2 ? r.roll(3, 4) : r.roll(1, 3))));
         r.say_unless("affine", !r.once_in(4), true);
         say_eps(r);
         r.say_stored();
       },
       [](call s) {
         return tensors{at::group_norm(s.x[0], s.option("num_groups", index_t{1}), s["weight"], s["bias"],
                                       s.option("eps", 1e-5), false)};
       },
       of_terms},
      {"layer_norm", [](roller& r) { roll_last(r, true); },
       [](call s) {
         return tensors{at::layer_norm(s.x[0], last_sizes(s), s["weight"], s["bias"], s.option("eps", 1e-5))};
       },
       of_terms},
      {"rms_norm", [](roller& r) { roll_last(r, false); }, [](call s) { return tensors{rms_normed(s)}; }, of_terms},
      {"embedding",
       roll_embedding,
       [](call s) { return tensors{embedded(s)}; },
       {"tessera.embedding.index", "tessera.rule.nonlinear", "tessera.rule.on"},
       {},
       rows_of},
      {"heads", roll_heads, heads_of, whole_terms},
      {"gated", [](roller& r) { roll_gated(r, false); },
       [](call s) { return at::linear(s.x[0], s["weight"], s["bias"]).chunk(2, -1); }, whole_terms},
      {"gated_experts", [](roller& r) { roll_gated(r, true); }, [](call s) { return by_expert(s).chunk(2, -1); },
       whole_terms},
      {"dropout", roll_dropout, [](call s) { return tensors{dropped(s)}; }, of_terms},
      {"relu", [](roller& r) { roll_any(r, 0, 4); }, [](call s) { return tensors{at::relu(s.x[0])}; }, of_terms},
      {"rrelu",
       [](roller& r) {
         const double least = r.roll(-2, 4) / 8.0;
         if (r.once_in(2)) r.say("lower", least), r.say("upper", least + r.roll(0, 4) / 4.0);
         roll_any(r, 0, 4);
       },
       [](call s) { return tensors{sloped(s)}; }, of_terms},
      {"prelu",
       [](roller& r) {
         const bool channelwise = r.once_in(2);
         r.say_unless("channelwise", channelwise, false);
         r.say_unless("init", r.roll(-2, 6) / 8.0, 0.25);
         roll_any(r, channelwise ? 2 : 1, 4);
       },
       [](call s) { return tensors{at::prelu(s.x[0], s["weight"])}; }, of_terms},
      {"flatten",
       [](roller& r) { roll_any(r, 2, 4); },
       [](call s) { return tensors{s.x[0].flatten(1) * 1}; },
       {"tessera.rule.whole"}},
      {"repartition",
       [](roller& r) {
         roll_any(r, 0, 4);
         r.say("to", r.partition(r.c.operands[0].layout.dims.count));
       },
       [](call s) { return tensors{s.x[0] * 1}; }},
      {"attention", roll_attention, [](call s) { return tensors{attended(s)}; }, of_terms, {{"function", "attention"}}},
      {"neighbourhood_attention",
       roll_neighbourhood,
       [](call s) { return tensors{attended_around(s)}; },
       {"tessera.rule.nonlinear", "tessera.attention.even", "tessera.window.kernel", "tessera.rule.window",
        "tessera.deal.interval"},
       {{"function", "neighbourhood_attention"}}},
      {"concat",
       [](roller& r) {
         ints extents = r.numbers(r.roll(1, 4), 1, 5);
         const int dim = r.roll(0, static_cast<int>(extents.size()) - 1);
         r.say("dim", dim);
         r.take(extents);
         layout other = r.c.operands[0].layout;
         other.dims[dim] = {};
         other.dims[dim].extent = r.roll(0, 5);
         r.take(other, r.e);
       },
       [](call s) { return tensors{at::cat({s.x[0], s.x[1]}, s.option("dim", 0))}; },
       {},
       {{"function", "concat"}}},
      {"softmax",
       roll_along,
       [](call s) { return tensors{at::softmax(s.x[0], s.option("dim", 0))}; },
       of_terms,
       {{"function", "softmax"}}},
      {"log_softmax",
       roll_along,
       [](call s) { return tensors{at::log_softmax(s.x[0], s.option("dim", 0))}; },
       of_terms,
       {{"function", "log_softmax"}}},
  };
}

}  // namespace tessera::testing::fuzz
