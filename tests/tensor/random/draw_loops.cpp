#include "tests/support/tensors.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Numbers that layers draw: by key, draw and global index, whatever instructions count them and however they are cut.

namespace {

struct lengthwise : axis<3> {};
struct crosswise : axis<2> {};
using drawing_grid = mesh<lengthwise, crosswise>;

at::Tensor one_number(std::uint64_t n) { return at::full({}, static_cast<index_t>(n), at::kLong); }

/// Whether loops of one set of instructions give what is said of each number by itself: from any place, of any length.
template <class Below, class Uniform>
std::string judge_draws(const Below& below, const Uniform& uniform) {
  constexpr std::uint64_t stream = 0xfedcba9876543210u, share = (std::uint64_t{1} << 53) / 3;
  for (const index_t n : {0, 1, 7, 31, 32, 33, 64, 200})
    for (const index_t first : {index_t{0}, index_t{5}, (index_t{1} << 40) + 3}) {
      std::vector<char> room(static_cast<std::size_t>(n) + 2, 9);
      std::vector<double> numbers(static_cast<std::size_t>(n) + 2, 9);
      bool* const flags = reinterpret_cast<bool*>(room.data()) + 1;
      const std::uint64_t at = stream + (static_cast<std::uint64_t>(first) + 1) * tessera::detail::step_of_draws;
      below(flags, n, at, share);
      uniform(numbers.data() + 1, n, at);
      for (index_t i = 0; i < n; ++i) {
        const double u = tessera::detail::uniform_at(stream, static_cast<std::uint64_t>(first + i));
        const auto k = static_cast<std::size_t>(i + 1);
        if (numbers[k] != u || room[k] != static_cast<char>(u * 0x1p53 < static_cast<double>(share)))
          return fmt::format("element {} of {} from {} on", i, n, first);
      }
      if (room.front() != 9 || room.back() != 9 || numbers.front() != 9 || numbers.back() != 9) return "written beside";
    }
  return "";
}

}  // namespace

TEST_CASE("loops over draws give the same bits for each set of instructions", "[law]") {
  using namespace tessera::detail;
  CHECK(judge_draws(of_any_machine::below, of_any_machine::uniform) == "");
#ifdef __x86_64__
  if (has_avx2()) CHECK(judge_draws(of_avx2::below, of_avx2::uniform) == "");
#endif
  static_assert(bits_at(0, 0) == 0xe220a8397b1dcdafu);  // splitmix64's first number of seed 0
  static_assert(bits_at(0, 2) == 0x06c45d188009454fu);  // and its third
}

TEST_CASE("what a worker draws is its part of what one worker draws, wherever halos and lists lie", "[law]") {
  const std::vector<index_t> extents{5, 4, 7};
  layout uncut;
  for (const index_t n : extents) {
    dimension d;
    d.extent = n;
    uncut.dims.push(d);
  }
  const tessera::detail::drawn_numbers drawn(one_number(77), one_number(3));
  const at::Tensor all = drawn.uniform(uncut, 0);
  CHECK(all.data_ptr<double>()[0] == tessera::detail::uniform_at(tessera::detail::bits_at(77, 3), 0));
  CHECK(at::equal(drawn.below(uncut, 0, 0.3), all < 0.3));
  CHECK(drawn.below(uncut, 0, 1).all().item<bool>());
  CHECK(!drawn.below(uncut, 0, 0).any().item<bool>());
  CHECK(!at::equal(all, tessera::detail::drawn_numbers(one_number(77), one_number(4)).uniform(uncut, 0)));
  CHECK(drawn.uniform(layout{}, 0).item<double>() == all.data_ptr<double>()[0]);
  const auto judge = [&](layout x) {
    for (int d = 0; d < 3; ++d) x.dims[d].extent = extents[static_cast<std::size_t>(d)];
    for (int rank = 0; rank < 6; ++rank) {
      const holding held = held_by(x, rank);
      at::Tensor part = all;
      for (int d = 0; d < 3; ++d) {
        std::vector<at::Tensor> ranges{part.narrow(d, 0, 0)};
        for (const interval& i : held[d]) ranges.push_back(part.narrow(d, i.lo, i.size()));
        part = at::cat(ranges, d);
      }
      CHECK(at::equal(drawn.uniform(x, rank), part));
      CHECK(at::equal(drawn.below(x, rank, 0.6), part < 0.6));
    }
  };
  using three = shape<dim<5>, dim<4>, dim<7>>;
  using two_cuts = partition<drawing_grid, blocks<lengthwise>, tessera::whole, blocks<crosswise>>;
  using one_cut_twice = partition<drawing_grid, tessera::whole, blocks<lengthwise, crosswise>, tessera::whole>;
  using copies = partition<drawing_grid, blocks<crosswise>, tessera::whole, tessera::whole>;
  judge(value_of<tensor<two_cuts, three, double>>.layout);
  judge(value_of<tensor<one_cut_twice, three, double>>.layout);
  judge(value_of<tensor<copies, three, double>>.layout);
  // A ring's halo is two intervals.
  using ring = tensor<partition<drawing_grid, tessera::whole, tessera::whole, blocks<lengthwise>>, three, double>;
  constexpr layer_plan windowed =
      nn::conv_layer{.out = 4, .kernel = {3}, .padding = {1}, .padding_mode = boundary::periodic}.plan(value_of<ring>);
  static_assert(windowed.why.ok());
  judge(windowed.used());
}
