#include "family.hpp"

namespace tessera::testing::fuzz {

using namespace engine;

namespace {

using ints = std::vector<index_t>;

ints all_of(std::size_t count, index_t n) { return ints(count, n); }
std::size_t window_dims(const serial_call& s) { return static_cast<std::size_t>(s.x[0].dim()) - 2; }

/// Padding up to `most`: one number a dimension, or one for each end.
void say_padding(roller& r, int dims, int most) {
  const int count = r.once_in(4) ? 2 * dims : dims;
  r.say_unless("padding", r.numbers(count, 0, most), all_of(static_cast<std::size_t>(count), 0));
}
/// Before and after each dimension.
ints ends(const serial_call& s, std::size_t dims) {
  const ints said = s.numbers("padding", dims, 0);
  ints both;
  for (const index_t n : said) both.insert(both.end(), said.size() == dims ? 2 : 1, n);
  return both;
}
/// Numbers of dimensions in order, as at::pad takes them: the last dimension first.
ints from_the_last(const ints& both) {
  ints widths;
  for (std::size_t i = both.size(); i > 1; i -= 2) widths.insert(widths.end(), {both[i - 2], both[i - 1]});
  return widths;
}
/// One mode of all dimensions, as LibTorch pads them; of one each an element at a time.
at::Tensor padded_by(at::Tensor x, const ints& both, const file::json& modes) {
  if (modes.is_string())
    return at::pad(x, from_the_last(both), modes == "zeros" ? "constant" : modes.get<std::string>());
  const index_t first = x.dim() - static_cast<index_t>(modes.size());
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const index_t d = first + static_cast<index_t>(i), n = x.size(d);
    if (modes[i] == "zeros") {
      ints alone = all_of(both.size(), 0);
      alone[2 * i] = both[2 * i], alone[2 * i + 1] = both[2 * i + 1];
      x = at::constant_pad_nd(x, from_the_last(alone));
      continue;
    }
    ints at;
    for (index_t k = -both[2 * i]; k < n + both[2 * i + 1]; ++k)
      at.push_back(modes[i] == "circular"    ? (k % n + n) % n
                   : modes[i] == "replicate" ? std::clamp(k, index_t{0}, n - 1)
                   : k < 0                   ? -k
                   : k < n                   ? k
                                             : 2 * (n - 1) - k);
    x = x.index_select(d, at::tensor(at, at::kLong));
  }
  return x;
}

// Convolutions.

void roll_linear(roller& r) {
  ints extents = r.numbers(r.roll(0, 2), 1, 5);
  if (!extents.empty() && r.once_in(15)) extents[0] = 0;
  extents.push_back(r.roll(1, 7));
  r.say("out_features", r.roll(1, 6));
  r.say_unless("bias", !r.once_in(4), true);
  r.say_cuts(static_cast<int>(extents.size()));
  r.say_stored();
  r.take(extents, true);
}

/// Batch, channels and so many dimensions of space, in groups; the options of any convolution.
ints roll_any_convolution(roller& r, int dims) {
  const int groups = r.once_in(3) ? r.roll(2, 3) : 1;
  ints extents{r.batch(), groups * r.roll(1, groups > 1 ? 3 : 5)};
  r.say("out_channels", groups * r.roll(1, groups > 1 ? 2 : 4));
  r.say("kernel_size", r.numbers(dims, 1, dims == 3 ? 3 : 5));
  r.say_unless("groups", groups, 1);
  r.say_unless("bias", !r.once_in(4), true);
  r.say_cuts(dims + 2);
  r.say_stored();
  return extents;
}

void roll_convolution(roller& r, int dims) {
  ints extents = roll_any_convolution(r, dims);
  const auto count = static_cast<std::size_t>(dims);
  const auto roll_mode = [&r] { return r.once_in(2) ? "zeros" : r.one_of({"reflect", "replicate", "circular"}); };
  file::json mode = roll_mode();
  if (r.once_in(3)) {
    mode = file::json::array();
    for (int i = 0; i < dims; ++i) mode.push_back(roll_mode());
  }
  const bool zeros = mode == "zeros";
  for (int i = 0; i < dims; ++i) extents.push_back(r.roll(zeros ? 1 : 2, dims == 3 ? 5 : 9));
  r.say_unless("dilation", r.numbers(dims, 1, 2), all_of(count, 1));
  if (zeros && r.once_in(4)) {
    r.say("padding", r.one_of({"same", "valid"}));
  } else {
    r.say_unless("stride", r.numbers(dims, 1, 3), all_of(count, 1));
    say_padding(r, dims, zeros ? 3 : 2);
    r.say_unless("padding_mode", mode, "zeros");
  }
  r.take(extents, true);
}

at::Tensor convolved(const serial_call& s) {
  const std::size_t dims = window_dims(s);
  const ints stride = s.numbers("stride", dims, 1), dilation = s.numbers("dilation", dims, 1), none = all_of(dims, 0);
  const index_t groups = s.option("groups", index_t{1});
  if (s.of.options.contains("padding") && s.of.options["padding"].is_string()) {
    const std::string rule = s.of.options["padding"];
    switch (dims) {
      case 1: return at::conv1d(s.x[0], s["weight"], s["bias"], stride, rule, dilation, groups);
      case 2: return at::conv2d(s.x[0], s["weight"], s["bias"], stride, rule, dilation, groups);
      default: return at::conv3d(s.x[0], s["weight"], s["bias"], stride, rule, dilation, groups);
    }
  }
  return at::convolution(padded_by(s.x[0], ends(s, dims), s.option("padding_mode", file::json("zeros"))), s["weight"],
                         s["bias"], stride, none, dilation, false, none, groups);
}

/// Where a transposed convolution of n elements ends, without output padding.
index_t spread(index_t n, index_t stride, index_t before, index_t after, index_t dilation, index_t kernel) {
  return (n - 1) * stride - before - after + dilation * (kernel - 1) + 1;
}

/// Windows by which n elements give n strides, as where networks grow by a factor: parts cut alike meet.
ints say_factors(roller& r, int dims) {
  const ints stride = r.numbers(dims, 1, 3), padding = r.numbers(dims, 0, 2);
  ints kernel = stride;
  for (std::size_t i = 0; i < kernel.size(); ++i) kernel[i] += 2 * padding[i];
  r.say("kernel_size", kernel);
  r.say("stride", stride);
  r.say("padding", padding);
  return kernel;
}

void roll_transposed(roller& r) {
  const int dims = r.roll(1, 3);
  ints extents = roll_any_convolution(r, dims);
  const auto count = static_cast<std::size_t>(dims);
  if (r.once_in(3)) {
    say_factors(r, dims);
    for (std::size_t i = 0; i < count; ++i) extents.push_back(r.roll(1, dims == 3 ? 4 : 12));
    return r.take(extents, true);
  }
  const ints stride = r.numbers(dims, 1, 3), dilation = r.numbers(dims, 1, 2), kernel = r.c.options["kernel_size"];
  say_padding(r, dims, 2);
  const ints padding = ends({r.c, {}, {}}, count);
  ints more, sizes;
  for (std::size_t i = 0; i < count; ++i) {
    extents.push_back(r.roll(1, dims == 3 ? 4 : 9));
    more.push_back(r.roll(0, static_cast<int>(std::max(stride[i], dilation[i])) - (r.once_in(30) ? 0 : 1)));
    sizes.push_back(spread(extents.back(), stride[i], padding[2 * i], padding[2 * i + 1], dilation[i], kernel[i]) +
                    more[i]);
  }
  r.say_unless("stride", stride, all_of(count, 1));
  r.say_unless("dilation", dilation, all_of(count, 1));
  if (r.once_in(3) && *std::min_element(sizes.begin(), sizes.end()) > 0) r.say("output_size", sizes);
  else r.say_unless("output_padding", more, all_of(count, 0));
  r.take(extents, true);
}

/// LibTorch's, or the ends cut off one without padding: where they are not alike, or longer than a step, as LibTorch's
/// backward then writes outside its memory in three dimensions.
at::Tensor transposed(const serial_call& s) {
  const std::size_t dims = window_dims(s);
  const ints stride = s.numbers("stride", dims, 1), both = ends(s, dims), dilation = s.numbers("dilation", dims, 1);
  const ints kernel = s.numbers("kernel_size", dims, 1), sizes = s.numbers("output_size", dims, 0);
  ints more = s.numbers("output_padding", dims, 0), padding;
  bool alike = true;
  for (std::size_t i = 0; i < dims; ++i) {
    padding.push_back(both[2 * i]);
    alike = alike && both[2 * i] == both[2 * i + 1] && (stride[i] == 1 || both[2 * i] <= stride[i]);
    if (s.of.options.contains("output_size"))
      more[i] = sizes[i] - spread(s.x[0].size(static_cast<index_t>(i) + 2), stride[i], both[2 * i], both[2 * i + 1],
                                  dilation[i], kernel[i]);
  }
  at::Tensor y = at::convolution(s.x[0], s["weight"], s["bias"], stride, alike ? padding : all_of(dims, 0), dilation,
                                 true, more, s.option("groups", index_t{1}));
  for (std::size_t i = 0; i < dims && !alike; ++i) {
    const auto d = static_cast<index_t>(i) + 2;
    y = y.narrow(d, both[2 * i], y.size(d) - both[2 * i] - both[2 * i + 1]);
  }
  return y * 1;
}

// Poolings, padding, interpolation.

void roll_pooling(roller& r, bool is_max) {
  const int dims = r.roll(1, 3);
  ints extents{r.batch(), r.roll(1, 3)}, padding;
  const ints kernel = r.numbers(dims, 1, 4);
  const bool at_ends = is_max && r.once_in(4);
  for (const index_t k : kernel) {
    for (int end = 0; end < (at_ends ? 2 : 1); ++end) padding.push_back(r.roll(0, static_cast<int>(k / 2)));
    const index_t n = r.roll(1, dims == 3 ? 5 : 9);
    extents.push_back(is_max ? n : std::max(n, k));  // LibTorch's own bound in the backward of avg_pool3d
  }
  r.say("kernel_size", kernel);
  if (!r.once_in(3)) r.say("stride", r.numbers(dims, 1, 3));
  r.say_unless("padding", padding, all_of(padding.size(), 0));
  r.say_unless("ceil_mode", r.once_in(2), false);
  if (is_max) {
    r.say_unless("dilation", r.numbers(dims, 1, 2), all_of(kernel.size(), 1));
  } else {
    r.say_unless("count_include_pad", r.once_in(2), true);
    if (dims > 1 && r.once_in(4)) r.say("divisor_override", r.roll(1, 5));
  }
  r.take(extents, !is_max);
}

at::Tensor max_pooled(const serial_call& s) {
  const std::size_t dims = window_dims(s);
  const ints kernel = s.numbers("kernel_size", dims, 1), stride = s.option("stride", kernel),
             dilation = s.numbers("dilation", dims, 1);
  bool ceil = s.option("ceil_mode", false);
  at::Tensor x = s.x[0];
  const ints both = ends(s, dims);
  ints padding, by_hand;
  // LibTorch writes outside its memory in the backward of a dilated window that holds padding alone
  bool plain = dilation == all_of(dims, 1);
  for (std::size_t i = 0; i < dims; ++i) {
    const index_t before = both[2 * i], reach = dilation[i] * (kernel[i] - 1) + 1,
                  n = x.size(static_cast<index_t>(i) + 2);
    const index_t over = n + before + both[2 * i + 1] - reach + (ceil ? stride[i] - 1 : 0);
    index_t last = over < 0 ? -1 : over / stride[i];  // window
    if (ceil && last * stride[i] >= n + before) --last;
    plain = plain && before == both[2 * i + 1];
    padding.push_back(before);
    by_hand.insert(by_hand.end(), {before, std::max(last, index_t{0}) * stride[i] + reach - n - before});
  }
  if (!plain) {
    x = at::constant_pad_nd(x, from_the_last(by_hand), -std::numeric_limits<double>::infinity());
    padding = all_of(dims, 0);
    ceil = false;
  }
  switch (dims) {
    case 1: return at::max_pool1d(x, kernel, stride, padding, dilation, ceil);
    case 2: return at::max_pool2d(x, kernel, stride, padding, dilation, ceil);
    default: return at::max_pool3d(x, kernel, stride, padding, dilation, ceil);
  }
}

at::Tensor averaged(const serial_call& s) {
  const std::size_t dims = window_dims(s);
  const ints kernel = s.numbers("kernel_size", dims, 1), stride = s.option("stride", kernel),
             padding = s.numbers("padding", dims, 0);
  const bool ceil = s.option("ceil_mode", false), counts = s.option("count_include_pad", true);
  const index_t said = s.option("divisor_override", index_t{0});
  const std::optional<index_t> divisor = said > 0 ? std::optional(said) : std::nullopt;
  switch (dims) {
    case 1: return at::avg_pool1d(s.x[0], kernel, stride, padding, ceil, counts);
    case 2: return at::avg_pool2d(s.x[0], kernel, stride, padding, ceil, counts, divisor);
    default: return at::avg_pool3d(s.x[0], kernel, stride, padding, ceil, counts, divisor);
  }
}

void roll_pad(roller& r) {
  const int dims = r.roll(1, 3);
  // LibTorch pads two dimensions in front of others
  const std::string mode = dims == 3 ? "zeros" : r.one_of({"zeros", "reflect", "replicate", "circular"});
  ints extents{r.batch(), r.roll(1, 3)};
  for (int i = 0; i < dims; ++i) extents.push_back(r.roll(4, 9));
  r.say("widths", r.numbers(2 * dims, mode == "zeros" ? -2 : 0, 3));
  r.say_unless("padding_mode", mode, "zeros");
  r.take(extents, true);
}

at::Tensor padded(const serial_call& s) {
  return padded_by(s.x[0], s.option("widths", ints{}), s.option("padding_mode", file::json("zeros"))) * 1;
}

void roll_slice(roller& r) {
  ints extents = r.numbers(r.roll(1, 4), 1, 7);
  const int dim = r.roll(0, static_cast<int>(extents.size()) - 1);
  const int n = static_cast<int>(extents[static_cast<std::size_t>(dim)]);
  const int begin = r.roll(0, n - 1), end = r.roll(begin + 1, n);
  r.say("dim", dim);
  r.say_unless("start", begin, 0);
  r.say("end", end < n && r.once_in(2) ? end - n : end);
  r.take(extents, true);
}

void roll_adaptive(roller& r, bool linear) {
  const int dims = r.roll(1, 3);
  ints extents{r.roll(1, 3), r.roll(1, 3)}, sizes;
  for (int i = 0; i < dims; ++i) {
    extents.push_back(r.roll(1, dims == 3 ? 5 : 11));
    sizes.push_back(r.roll(1, dims == 3 ? 5 : 12));
  }
  r.say("output_size", sizes);
  r.take(extents, linear);
}

at::Tensor averaged_adaptively(const serial_call& s) {
  const ints m = s.option("output_size", ints{});
  return m.size() == 1   ? at::adaptive_avg_pool1d(s.x[0], m)
         : m.size() == 2 ? at::adaptive_avg_pool2d(s.x[0], m)
                         : at::adaptive_avg_pool3d(s.x[0], m);
}
at::Tensor most_adaptively(const serial_call& s) {
  const ints m = s.option("output_size", ints{});
  if (m.size() == 1) return std::get<0>(at::adaptive_max_pool1d(s.x[0], m));
  return std::get<0>(m.size() == 2 ? at::adaptive_max_pool2d(s.x[0], m) : at::adaptive_max_pool3d(s.x[0], m));
}

/// Channels that become space, or space that becomes channels.
void roll_shuffle(roller& r, bool back) {
  const int dims = r.roll(1, 3), factor = r.roll(1, dims == 3 ? 2 : 3);
  ints extents{r.roll(1, 3), r.roll(1, 3)};  // LibTorch gives no samples no gradient
  for (int i = 0; i < dims; ++i) extents.push_back(r.roll(1, dims == 3 ? 3 : 5) * (back ? factor : 1));
  for (int i = 0; i < dims && !back; ++i) extents[1] *= factor;
  if (r.once_in(30)) ++extents[back ? 2 : 1];
  r.say(back ? "downscale_factor" : "upscale_factor", factor);
  r.take(extents, true);
}

/// LibTorch's, of pictures; a line is one whose rows are one, and volumes are shuffled dimension by dimension.
at::Tensor shuffled(const serial_call& s) {
  const index_t r = s.option("upscale_factor", index_t{1});
  const at::Tensor& x = s.x[0];
  if (x.dim() == 4) return at::pixel_shuffle(x, r) * 1;
  if (x.dim() == 3) return x.unflatten(1, {-1, r}).permute({0, 1, 3, 2}).flatten(2) * 1;
  const at::Tensor planes = x.unflatten(1, {-1, r, r * r});  // [n, c, i, jk, d, h, w]
  const at::Tensor in_planes = at::pixel_shuffle(planes.permute({0, 1, 2, 4, 3, 5, 6}), r).squeeze(4);
  return in_planes.permute({0, 1, 3, 2, 4, 5}).flatten(2, 3) * 1;
}
at::Tensor unshuffled(const serial_call& s) {
  const index_t r = s.option("downscale_factor", index_t{1});
  const at::Tensor& x = s.x[0];
  if (x.dim() == 4) return at::pixel_unshuffle(x, r) * 1;
  if (x.dim() == 3) return x.unflatten(2, {-1, r}).permute({0, 1, 3, 2}).flatten(1, 2) * 1;
  const at::Tensor deep = x.unflatten(2, {-1, r}).permute({0, 1, 3, 2, 4, 5});  // [n, c, i, d, h, w]
  const at::Tensor flat = at::pixel_unshuffle(deep.unsqueeze(4), r);            // [n, c, i, d, jk, h, w]
  return flat.permute({0, 1, 2, 4, 3, 5, 6}).flatten(1, 3) * 1;
}

void roll_windows(roller& r, bool folds) {
  const int dims = r.roll(1, 2);
  const auto count = static_cast<std::size_t>(dims);
  ints extents{r.roll(1, 3), r.roll(1, 3)}, more, sizes;
  if (folds && r.once_in(3)) {
    for (const index_t k : say_factors(r, dims)) {
      extents.push_back(r.roll(1, 12));
      extents[1] *= k;
    }
    return r.take(extents, true);
  }
  const ints kernel = r.numbers(dims, 1, 4), stride = r.numbers(dims, 1, 3), dilation = r.numbers(dims, 1, 2);
  say_padding(r, dims, 2);
  const ints padding = ends({r.c, {}, {}}, count);
  for (std::size_t i = 0; i < count; ++i) {
    extents.push_back(r.roll(1, 9));
    if (!folds) continue;
    extents[1] *= kernel[i];
    more.push_back(r.roll(0, static_cast<int>(stride[i]) - (r.once_in(30) ? 0 : 1)));
    sizes.push_back(spread(extents.back(), stride[i], padding[2 * i], padding[2 * i + 1], dilation[i], kernel[i]) +
                    more[i]);
  }
  if (folds && r.once_in(30)) ++extents[1];
  r.say("kernel_size", kernel);
  r.say_unless("stride", stride, all_of(count, 1));
  r.say_unless("dilation", dilation, all_of(count, 1));
  if (folds && r.once_in(2) && *std::min_element(sizes.begin(), sizes.end()) > 0) r.say("output_size", sizes);
  else if (folds) r.say_unless("output_padding", more, all_of(count, 0));
  r.take(extents, true);
}

/// Options of windows over pictures, where a line is one row.
ints of_picture(ints each) {
  if (each.size() == 1) each.insert(each.begin(), 1);
  return each;
}
at::Tensor unfolded(const serial_call& s) {
  const std::size_t dims = window_dims(s);
  const ints kernel = s.numbers("kernel_size", dims, 1), stride = s.numbers("stride", dims, 1),
             dilation = s.numbers("dilation", dims, 1);
  const at::Tensor x = padded_by(s.x[0], ends(s, dims), "zeros");
  const at::Tensor y =
      at::im2col(dims == 1 ? x.unsqueeze(2) : x, of_picture(kernel), of_picture(dilation), {0, 0}, of_picture(stride));
  ints sizes{y.size(0), y.size(1)};
  for (std::size_t i = 0; i < dims; ++i)
    sizes.push_back((x.size(static_cast<index_t>(i) + 2) - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1);
  return y.view(sizes);
}

/// LibTorch's without padding, widened to all that is wanted and cut to it.
at::Tensor folded(const serial_call& s) {
  const std::size_t dims = window_dims(s);
  const at::Tensor& x = s.x[0];
  const ints kernel = s.numbers("kernel_size", dims, 1), stride = s.numbers("stride", dims, 1),
             dilation = s.numbers("dilation", dims, 1);
  const ints both = ends(s, dims), sizes = s.numbers("output_size", dims, 0),
             more = s.numbers("output_padding", dims, 0);
  ints reached, wanted;
  for (std::size_t i = 0; i < dims; ++i) {
    const index_t n = x.size(static_cast<index_t>(i) + 2);
    reached.push_back(spread(n, stride[i], 0, 0, dilation[i], kernel[i]));
    wanted.push_back(sizes[i] > 0 ? sizes[i] : reached[i] - both[2 * i] - both[2 * i + 1] + more[i]);
    const index_t beyond = wanted[i] - reached[i] + both[2 * i] + both[2 * i + 1];
    if (wanted[i] < 1 || beyond < 0 || beyond >= stride[i]) throw std::runtime_error("no such extent");
  }
  at::Tensor y = at::col2im(x.flatten(2), of_picture(reached), of_picture(kernel), of_picture(dilation), {0, 0},
                            of_picture(stride));
  if (dims == 1) y = y.squeeze(2);
  for (std::size_t i = 0; i < dims; ++i) {
    const auto d = static_cast<index_t>(i) + 2;
    ints wider(2 * static_cast<std::size_t>(y.dim() - d), 0);
    wider.back() = stride[i];
    y = at::constant_pad_nd(y, wider).narrow(d, both[2 * i], wanted[i]);
  }
  return y * 1;
}

void roll_experts(roller& r) {
  const int experts = r.roll(1, 5);
  auto extents = r.numbers(r.roll(1, 2), 1, 5);
  extents.insert(extents.begin(), experts);
  extents.push_back(r.roll(1, 6));
  r.say("experts", experts);
  r.say("out_features", r.roll(1, 6));
  r.say_unless("bias", !r.once_in(4), true);
  r.say_cuts(static_cast<int>(extents.size()));
  r.say_stored();
  r.take(extents, true);
}

void roll_upsampling(roller& r) {
  const int dims = r.roll(1, 3);
  const std::string mode = r.one_of({"nearest", "nearest-exact", "linear", "bicubic"});
  ints extents{r.roll(1, 3), r.roll(1, 3)}, sizes;
  std::vector<double> factors;
  for (int i = 0; i < dims; ++i) {
    const int n = r.roll(1, dims == 3 ? 4 : 9);
    extents.push_back(n);
    sizes.push_back(r.roll(1, dims == 3 ? 6 : 20));
    double f = r.once_in(3) ? r.roll(1, 4) : 0.1 * r.roll((10 + n - 1) / n, 30);
    // LibTorch's gradient of a bicubic that keeps all extents is that of a copy, whatever the factors made of them.
    if (mode == "bicubic" && static_cast<int>(std::floor(n * f)) == n) f = 1;
    factors.push_back(f);
  }
  if (r.once_in(2)) r.say("size", sizes);
  else r.say("scale_factor", factors);
  r.say_unless("mode", mode, "nearest");
  if (mode == "linear" || mode == "bicubic") r.say_unless("align_corners", r.once_in(3), false);
  r.take(extents, true);
}

/// LibTorch's own interpolation. Its nearest neighbours of small pictures are those of its gradient, those of lines and
/// volumes not always: so these and cubic ones, which it has in two dimensions alone, are made of pictures.
at::Tensor upsampled(const serial_call& s) {
  const at::Tensor& x = s.x[0];
  const std::size_t dims = window_dims(s);
  const auto factors = s.option("scale_factor", std::vector<double>{});
  const std::string mode = s.option("mode", std::string("nearest"));
  const bool corners = s.option("align_corners", false);
  ints m = s.option("size", ints{});
  std::vector<std::optional<double>> f(3);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    f[i] = factors[i];
    m.push_back(
        static_cast<index_t>(std::floor(static_cast<double>(x.size(static_cast<index_t>(i) + 2)) * factors[i])));
  }
  if (mode == "linear" && dims == 1) return at::upsample_linear1d(x, m, corners, f[0]);
  if (mode == "linear" && dims == 3) return at::upsample_trilinear3d(x, m, corners, f[0], f[1], f[2]);
  const auto picture = [&](const at::Tensor& in, index_t rows, index_t columns, std::optional<double> by_rows,
                           std::optional<double> by_columns) {
    if (mode == "nearest") return at::upsample_nearest2d(in, {rows, columns}, by_rows, by_columns);
    if (mode == "nearest-exact") return at::_upsample_nearest_exact2d(in, {rows, columns}, by_rows, by_columns);
    if (mode == "linear") return at::upsample_bilinear2d(in, {rows, columns}, corners, by_rows, by_columns);
    return at::upsample_bicubic2d(in, {rows, columns}, corners, by_rows, by_columns);
  };
  if (dims == 1) return picture(x.unsqueeze(2), 1, m[0], std::nullopt, f[0]).squeeze(2);
  if (dims == 2) return picture(x, m[0], m[1], f[0], f[1]);
  const at::Tensor planes = picture(x.flatten(1, 2), m[1], m[2], f[1], f[2]).unflatten(1, {x.size(1), x.size(2)});
  const at::Tensor lines = planes.movedim(2, 4).flatten(1, 3).unsqueeze(2);
  return picture(lines, 1, m[0], std::nullopt, f[0]).squeeze(2).unflatten(1, {x.size(1), m[1], m[2]}).movedim(4, 2);
}

}  // namespace

at::Tensor by_expert(const serial_call& s) {
  const at::Tensor slots = s.x[0].reshape({s.x[0].size(0), -1, s.x[0].size(-1)});
  at::Tensor y = at::bmm(slots, s["weight"]);
  if (s["bias"].defined()) y = y + s["bias"];
  ints sizes = s.x[0].sizes().vec();
  sizes.back() = y.size(-1);
  return y.view(sizes);
}

std::vector<family> window_families() {
  using call = const serial_call&;
  using codes = std::vector<std::string>;
  const codes windows{"tessera.window.kernel", "tessera.window.reflect", "tessera.window.empty"};
  const codes of_terms{"tessera.rule.nonlinear"};
  return {
      {"linear", roll_linear, [](call s) { return tensors{at::linear(s.x[0], s["weight"], s["bias"])}; }},
      {"conv", [](roller& r) { roll_convolution(r, r.roll(1, 2)); }, [](call s) { return tensors{convolved(s)}; },
       windows},
      {"conv3d",
       [](roller& r) { roll_convolution(r, 3); },
       [](call s) { return tensors{convolved(s)}; },
       windows,
       {{"layer", "conv"}}},
      {"conv_transpose",
       roll_transposed,
       [](call s) { return tensors{transposed(s)}; },
       {"tessera.layer.nothing_left", "tessera.layer.output_padding"}},
      {"max_pool",
       [](roller& r) { roll_pooling(r, true); },
       [](call s) { return tensors{max_pooled(s)}; },
       {"tessera.window.kernel", "tessera.rule.nonlinear"}},
      {"avg_pool", [](roller& r) { roll_pooling(r, false); }, [](call s) { return tensors{averaged(s)}; }, windows},
      {"global_avg_pool", [](roller& r) { r.take({r.batch(), r.roll(1, 5), r.roll(1, 7), r.roll(1, 7)}, true); },
       [](call s) { return tensors{s.x[0].mean({2, 3}, true)}; }},
      {"pad", roll_pad, [](call s) { return tensors{padded(s)}; }},
      {"slice", roll_slice,
       [](call s) {
         return tensors{s.x[0].slice(s.option("dim", 0), s.option("start", index_t{0}), s.option("end", index_t{0})) *
                        1};
       }},
      {"experts", roll_experts, [](call s) { return tensors{by_expert(s)}; }},
      {"adaptive_avg_pool", [](roller& r) { roll_adaptive(r, true); },
       [](call s) { return tensors{averaged_adaptively(s)}; }},
      {"adaptive_max_pool", [](roller& r) { roll_adaptive(r, false); },
       [](call s) { return tensors{most_adaptively(s)}; }, of_terms},
      {"pixel_shuffle",
       [](roller& r) { roll_shuffle(r, false); },
       [](call s) { return tensors{shuffled(s)}; },
       {"tessera.signature.split"}},
      {"pixel_unshuffle",
       [](roller& r) { roll_shuffle(r, true); },
       [](call s) { return tensors{unshuffled(s)}; },
       {"tessera.signature.split"}},
      {"unfold", [](roller& r) { roll_windows(r, false); }, [](call s) { return tensors{unfolded(s)}; }, windows},
      {"fold",
       [](roller& r) { roll_windows(r, true); },
       [](call s) { return tensors{folded(s)}; },
       {"tessera.layer.nothing_left", "tessera.layer.output_padding", "tessera.signature.split"}},
      {"upsample", roll_upsampling, [](call s) { return tensors{upsampled(s)}; }},
  };
}

}  // namespace tessera::testing::fuzz
