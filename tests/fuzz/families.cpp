#include "family.hpp"

namespace tessera::testing::fuzz {
namespace {

void roll_linear(roller& r) {
  auto extents = r.numbers(r.roll(0, 2), 1, 5);
  if (!extents.empty() && r.once_in(15)) extents[0] = 0;
  extents.push_back(r.roll(1, 7));
  r.say("out", r.roll(1, 6));
  r.say_unless("bias", !r.once_in(4), true);
  r.say_cuts(static_cast<int>(extents.size()));
  r.say_stored();
  r.take(extents, true);
}

// Lists that say one number for each dimension of a kernel.
std::vector<index_t> no_more_than(const std::vector<index_t>& most, roller& r) {
  std::vector<index_t> all;
  for (const index_t n : most) all.push_back(r.roll(0, static_cast<int>(n)));
  return all;
}

void roll_transposed(roller& r) {
  const int dims = r.roll(1, 3);
  const int groups = r.once_in(3) ? r.roll(2, 3) : 1;
  std::vector<index_t> extents{r.batch(), groups * r.roll(1, groups > 1 ? 3 : 6)};
  for (int i = 0; i < dims; ++i) extents.push_back(r.roll(1, dims == 3 ? 4 : 9));
  const auto stride = r.numbers(dims, 1, 3), dilation = r.numbers(dims, 1, 2);
  std::vector<index_t> most;
  for (std::size_t i = 0; i < stride.size(); ++i) most.push_back(std::max(stride[i], dilation[i]) - (r.once_in(20) ? 0 : 1));
  r.say("out", groups * r.roll(1, groups > 1 ? 2 : 3));
  r.say("kernel", r.numbers(dims, 1, dims == 3 ? 3 : 5));
  r.say_unless("stride", stride, std::vector<index_t>(stride.size(), 1));
  r.say_unless("dilation", dilation, std::vector<index_t>(stride.size(), 1));
  r.say_unless("padding", r.numbers(dims, 0, 2), std::vector<index_t>(stride.size(), 0));
  r.say_unless("output_padding", no_more_than(most, r), std::vector<index_t>(stride.size(), 0));
  r.say_unless("groups", groups, 1);
  r.say_unless("bias", !r.once_in(4), true);
  r.say_cuts(dims + 2);
  r.say_stored();
  r.take(extents, true);
}

at::Tensor transposed(const serial_call& s) {
  const std::size_t dims = static_cast<std::size_t>(s.x[0].dim()) - 2;
  const auto kernel = s.numbers("kernel", dims, 1);
  const auto stride = s.numbers("stride", dims, 1), padding = s.numbers("padding", dims, 0), more = s.numbers("output_padding", dims, 0),
             dilation = s.numbers("dilation", dims, 1);
  const index_t groups = s.option("groups", index_t{1});
  return at::convolution(s.x[0], s["weight"], s["bias"], stride, padding, dilation, true, more, groups);
}

}  // namespace

const std::vector<family>& families() {
  static const std::vector<family> all{
      {"linear", roll_linear, [](const serial_call& s) { return tensors{at::linear(s.x[0], s["weight"], s["bias"])}; }},
      {"conv_transpose", roll_transposed, [](const serial_call& s) { return tensors{transposed(s)}; },
       {"tessera.layer.nothing_left", "tessera.layer.output_padding"}},
  };
  return all;
}

}  // namespace tessera::testing::fuzz
