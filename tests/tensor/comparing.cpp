#include "tests/support/tensors.hpp"

#include <atomic>

namespace tessera::testing::sampling {

using namespace engine;

namespace {

struct twin : axis<2> {};
struct side : axis<2> {};
using pair = mesh<twin>;
using square = mesh<twin, side>;
using copies = tensor<partition<pair, whole>, shape_of<4>, double>;
using alike = tensor<partition<pair, whole, invariant<twin>>, shape_of<4>, double>;
using halves = tensor<partition<pair, blocks<twin>>, shape_of<4>, double>;
using terms = tensor<partition<pair, whole, partial<twin>>, shape_of<4>, double>;
using sum_of_all = partition<pair, whole>;

/// The code that each worker ends with, and how many calls it had made, where f(team, calls) counts them:
/// "tessera.agree.whole 1".
template <Mesh M = pair, class F>
std::vector<std::string> exit_hooks(F&& f, checks how = checks::sampled) {
  launch_options o = threads_only();
  o.checks = how;
  std::vector<std::string> all(static_cast<std::size_t>(M::value.size()));
  char* none[]{nullptr};
  launch<M>(0, none, o, [&](team<M>& t) {
    int calls = 0;
    const std::string code = told([&] { f(t, calls); });
    all[static_cast<std::size_t>(t.rank())] = fmt::format("{} {}", code, calls);
  });
  return all;
}

std::vector<std::string> on_both(const std::string& one) { return {one, one}; }

at::Tensor numbers_of(int which) { return at::arange(4, at::kDouble) + which; }

}  // namespace

TEST_CASE("a line is compared at its 1st, 2nd, 4th, 8th … call, always or never", "[runtime]") {
  std::vector<std::uint64_t> seen;
  for (std::uint64_t n = 1; n < 40; ++n)
    if (compares(checks::sampled, n)) seen.push_back(n);
  CHECK(seen == std::vector<std::uint64_t>{1, 2, 4, 8, 16, 32});
  CHECK(!compares(checks::sampled, 5000));
  CHECK((compares(checks::always, 5000) && !compares(checks::never, 1)));
  visits v;
  const call_site a{"a", 1}, b{"a", 2};
  CHECK(std::vector<std::uint64_t>{v.next(a), v.next(b), v.next(a), v.next(a), v.next(b)} ==
        std::vector<std::uint64_t>{1, 1, 2, 3, 2});
}

TEST_CASE("a batch that each worker drew for itself is told where they take their parts of it", "[refusal]") {
  const auto first = [](team<pair>& t, int& calls) {
    ++calls;
    distribute<halves>(t, numbers_of(t.rank()));
  };
  CHECK(exit_hooks(first) == on_both("tessera.agree.whole 1"));
  CHECK(exit_hooks(first, checks::never) == on_both("none 1"));
  const auto sixth = [](team<pair>& t, int& calls) {
    for (int i = 1; i <= 20; ++i) {
      ++calls;
      distribute<halves>(t, numbers_of(i >= 6 ? t.rank() : 0));
    }
  };
  CHECK(exit_hooks(sixth) == on_both("tessera.agree.whole 8"));
  CHECK(exit_hooks(sixth, checks::always) == on_both("tessera.agree.whole 6"));
  const auto dynamic = [](team<pair>& t, int& calls) {
    ++calls;
    distribute(t, value_of<halves>.layout, numbers_of(t.rank()));
  };
  CHECK(exit_hooks(dynamic) == on_both("tessera.agree.whole 1"));
}

TEST_CASE("what workers take their parts of is compared by its elements, however they lie", "[runtime]") {
  const at::Tensor rows = at::arange(35, at::kDouble).view({5, 7});
  const at::Tensor columns = rows.t().contiguous().t();
  CHECK(detail::content_hash(rows) == detail::content_hash(columns));
  CHECK(detail::content_hash(rows) != detail::content_hash(rows + 1));
  CHECK(detail::content_hash(rows.narrow(1, 2, 3)) == detail::content_hash(rows.narrow(1, 2, 3).contiguous()));
  const at::Tensor large = at::arange(3 * 1031, at::kFloat).view({3, 1031});
  for (index_t i = 0; i < large.numel(); i += 97) {
    at::Tensor other = large.clone();
    other.view(-1)[i] += 1;
    CHECK(detail::content_hash(other) != detail::content_hash(large));
    CHECK(detail::content_hash(other.t()) == detail::content_hash(other.t().contiguous()));
  }
}

TEST_CASE("copies that differ are told where they come in", "[refusal]") {
  CHECK(exit_hooks([](team<pair>& t, int&) { from_local<alike>(t, numbers_of(t.rank())); }) ==
        on_both("tessera.agree.copies 0"));
  CHECK(exit_hooks([](team<pair>& t, int&) { tensor<dyn>(t.state(), value_of<alike>.layout, numbers_of(t.rank())); }) ==
        on_both("tessera.agree.copies 0"));
  CHECK(exit_hooks([](team<pair>& t, int&) { from_local<terms>(t, numbers_of(t.rank())); }) == on_both("none 0"));
}

TEST_CASE("two tensors of one type that a worker reduces in another order at one line are told", "[refusal]") {
  const auto in_order = [](bool swapped, auto make) {
    return [=](team<pair>& t, int&) {
      std::vector<terms> x;
      for (int i = 0; i < 2; ++i) x.push_back(make(from_local<terms>(t, numbers_of(i)), i));
      if (swapped && t.rank() == 1) std::swap(x[0], x[1]);
      for (const terms& one : x) all_reduce<sum_of_all>(one);
    };
  };
  const auto as_it_is = [](const terms& x, int) { return x; };
  CHECK(exit_hooks(in_order(true, as_it_is)) == on_both("tessera.agree.fingerprint 0"));
  CHECK(exit_hooks(in_order(false, as_it_is)) == on_both("none 0"));
  const auto scaled = [](bool swapped) {
    return [=](team<pair>& t, int&) {
      const auto x = from_local<terms>(t, numbers_of(0));
      std::vector<terms> y{x * 2.0, x * 3.0};
      if (swapped && t.rank() == 1) std::swap(y[0], y[1]);
      for (const terms& one : y) all_reduce<sum_of_all>(one);
    };
  };
  CHECK(exit_hooks(scaled(true)) == on_both("tessera.agree.fingerprint 0"));
  CHECK(exit_hooks(scaled(false)) == on_both("none 0"));
}

TEST_CASE("what a worker computes for itself alone, and reads, is nobody's matter", "[runtime]") {
  CHECK(exit_hooks([](team<pair>& t, int& calls) {
          auto w = distribute<copies>(t, numbers_of(0));
          w.requires_grad();
          for (int i = 0; i < 9; ++i) {
            const auto x = distribute<halves>(t, numbers_of(i));
            const auto loss =
                all_reduce<partition<pair, invariant<twin>>>(sum(shard<partition<pair, blocks<twin>>>(w) * x));
            if (t.first()) item(sum(detach(w) * detach(w)) + sum(w * w));
            loss.backward();
            ++calls;
          }
        }) == on_both("none 9"));
}

TEST_CASE("a worker that calls a line once more than the others is told, and nobody is stuck", "[refusal]") {
  const auto once_more = [](int at) {
    return [=](team<pair>& t, int&) {
      const auto x = from_local<terms>(t, numbers_of(0));
      for (int i = 0; i < 12; ++i) {
        all_reduce<sum_of_all>(x);
        if (i == at && t.rank() == 1) all_reduce<sum_of_all>(x);
      }
    };
  };
  for (const int at : {0, 2, 5, 11}) {
    for (const std::string& one : exit_hooks(once_more(at))) {
      INFO(at << ' ' << one);
      CHECK((one.starts_with("tessera.agree.") || one == "none 0"));
    }
  }
  for (const std::string& one : exit_hooks(once_more(2))) CHECK(one.starts_with("tessera.agree."));
}

TEST_CASE(
    "a replicate weight that was stepped by its gradient of terms is told with the next backward, also where nothing "
    "moves",
    "[refusal]") {
  const auto drifts = [](team<pair>& t, int& calls) {
    auto w = distribute<copies>(t, numbers_of(0));
    w.requires_grad();
    for (int i = 0; i < 3; ++i) {
      ++calls;
      sum(w * w).backward();
      const at::NoGradGuard step;
      w.local().sub_(w.local().grad());  // of the loss's seed, which is on one worker
    }
  };
  CHECK(exit_hooks(drifts) == on_both("tessera.agree.copies 2"));
  CHECK(exit_hooks(drifts, checks::never) == on_both("none 3"));
}

TEST_CASE("workers of a part of the mesh compare among themselves, and nobody else waits for them", "[runtime]") {
  using lower = fixed<square, twin, 1>;
  using on_lower = tensor<partition<lower, whole>, shape_of<4>, double>;
  std::atomic<int> ended = 0;
  const auto all = exit_hooks<square>([&](team<square>& t, int& calls) {
    if (t.coordinate<twin>() == 1) {
      for (; calls < 5; ++calls) from_local<on_lower>(t, numbers_of(0));
    }
    const auto everywhere =
        from_local<tensor<partition<square, whole, invariant<twin, side>>, shape_of<4>, double>>(t, numbers_of(0));
    to<partition<square, blocks<twin, side>>>(everywhere);
    ++ended;
  });
  for (const std::string& one : all) CHECK(one.starts_with("none"));
  CHECK(ended == 4);
}

}  // namespace tessera::testing::sampling
