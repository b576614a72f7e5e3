#include "tests/support/tensors.hpp"

#include <tessera/tensor/launch.hpp>
#include <tessera/tensor/verbs.hpp>

#include <c10/core/CPUAllocator.h>

#include <barrier>

namespace tessera::testing {

using namespace engine;

namespace {

struct memory_twins : axis<2> {};
using memory_mesh = mesh<memory_twins>;
constexpr index_t mega = index_t{1} << 20;

launch_options cached(std::size_t cap = no_memory_cap) {
  launch_options o = threads_only();
  o.caches_memory = true;
  o.memory_cap = cap;
  return o;
}

memory_use now() { return caching_allocator::of_process().use(); }
bool serves() { return c10::GetCPUAllocator() == &caching_allocator::of_process(); }
at::Tensor bytes(index_t n) { return at::empty({n}, at::kByte); }

template <class F>
int in_two(const launch_options& options, F&& f) {
  return launch<memory_mesh>(0, nullptr, options, [&](team<memory_mesh>& t) { f(t); });
}

}  // namespace

TEST_CASE("within a launch the memory of one tensor serves the next, and LibTorch has its own allocator back behind it",
          "[runtime]") {
  c10::Allocator* const before = c10::GetCPUAllocator();
  const std::size_t held = now().in_use;
  bool same = true;
  bool served = true;
  in_two(cached(), [&](team<memory_mesh>& t) {
    if (!t.first()) return;
    served = serves();
    const void* const first = bytes(32 * mega).data_ptr();
    const std::uint64_t misses = now().misses;
    for (int i = 0; i < 5; ++i) same = same && bytes(32 * mega).data_ptr() == first;
    same = same && now().misses == misses;
    served = served && now().peak >= 32u << 20;
    at::Tensor none = at::empty({0});
    served = served && none.numel() == 0;
    none.resize_({1000});
    none.fill_(1);
    same = same && none.sum().item<double>() == 1000;
  });
  CHECK(served);
  CHECK(same);
  CHECK(c10::GetCPUAllocator() == before);
  CHECK(now().in_use == held);
  in_two(cached(), [](team<memory_mesh>&) {});
  CHECK(now().peak < held + mega);
}

TEST_CASE("launch_options leaves LibTorch its own allocator", "[runtime]") {
  launch_options o = threads_only();
  o.caches_memory = false;
  bool served = false;
  in_two(o, [&](team<memory_mesh>& t) {
    if (t.first()) served = serves();
  });
  CHECK_FALSE(served);
}

TEST_CASE("tensors outlive their launch, and whoever frees them gives them back", "[runtime]") {
  const std::size_t before = now().in_use;
  std::vector<at::Tensor> kept(2);
  const auto keep = [&](team<memory_mesh>& t) {
    kept[static_cast<std::size_t>(t.rank())] = at::full({3 * mega}, t.rank() + 1, at::kByte);
  };
  in_two(cached(), keep);
  CHECK(now().in_use >= before + 6u * mega);
  std::vector<at::Tensor> first = kept;
  in_two(cached(), keep);
  for (int r = 0; r < 2; ++r)
    for (const auto& x : {first, kept}) CHECK((x[static_cast<std::size_t>(r)] == r + 1).all().item<bool>());
  std::thread([&] { first.clear(); }).join();
  kept.clear();
  CHECK(now().in_use == before);
}

TEST_CASE("workers free one another's tensors while the others allocate", "[runtime]") {
  const std::size_t before = now().in_use;
  std::vector<std::vector<at::Tensor>> on_table(2);
  std::barrier together(2);
  std::vector<int> well(2, 1);
  in_two(cached(), [&](team<memory_mesh>& t) {
    const auto mine = static_cast<std::size_t>(t.rank());
    for (int round = 0; round < 50; ++round) {
      for (index_t n : {1, 100, 5'000, 300'000}) on_table[mine].push_back(at::full({n}, round + t.rank(), at::kByte));
      together.arrive_and_wait();
      const std::vector<at::Tensor> taken = std::move(on_table[1 - mine]);
      for (const at::Tensor& x : taken)
        if (!(x == round + 1 - t.rank()).all().item<bool>()) well[mine] = 0;
      together.arrive_and_wait();
      on_table[1 - mine].clear();
      together.arrive_and_wait();
    }
  });
  CHECK(well == std::vector<int>(2, 1));
  CHECK(now().in_use == before);
}

TEST_CASE("a cap is an error with its code, on every worker, and what is freed may be had again", "[refusal]") {
  std::vector<std::string> codes(2);
  std::barrier together(2);
  const auto status = in_two(cached(std::size_t{64} << 20), [&](team<memory_mesh>& t) {
    std::string& code = codes[static_cast<std::size_t>(t.rank())];
    together.arrive_and_wait();
    try {
      if (t.first()) {
        try {
          bytes(100 * mega);
        } catch (const error& e) {
          code = e.code();
        }
        bytes(40 * mega);
        const at::Tensor some = bytes(40 * mega);
        bytes(40 * mega);
      } else {
        t.state()->collect(0, "waiting");
      }
    } catch (const error& e) {
      code += std::string(" ") + e.code();
      throw;
    }
  });
  CHECK(status != 0);
  CHECK(codes == std::vector<std::string>{"tessera.memory.cap tessera.memory.cap", " tessera.memory.cap"});
}

TEST_CASE("more memory than there is, is an error with its code", "[refusal]") {
  std::string code;
  in_two(cached(), [&](team<memory_mesh>& t) {
    if (!t.first()) return;
    try {
      at::empty({index_t{1} << 44}, at::kDouble);
    } catch (const error& e) {
      code = e.code();
    }
  });
  CHECK(code == "tessera.memory.full");
}

TEST_CASE("launches inside and beside one another share the memory, under the smallest cap", "[runtime]") {
  c10::Allocator* const before = c10::GetCPUAllocator();
  const auto refused = [](index_t n) {
    try {
      bytes(n);
    } catch (const error& e) {
      return true;
    }
    return false;
  };
  std::vector<bool> seen;
  in_two(cached(), [&](team<memory_mesh>& t) {
    if (!t.first()) return;
    seen.push_back(refused(60 * mega));
    in_two(cached(std::size_t{50} << 20), [&](team<memory_mesh>& inner) {
      if (inner.first()) seen.push_back(refused(60 * mega));
    });
    seen.push_back(refused(60 * mega));
    seen.push_back(!serves());
  });
  CHECK(seen == std::vector<bool>{false, true, false, false});
  std::vector<std::thread> beside;
  for (int i = 0; i < 2; ++i)
    beside.emplace_back([] { in_two(cached(), [](team<memory_mesh>&) { at::ones({mega}).add_(1); }); });
  for (auto& launcher : beside) launcher.join();
  CHECK(c10::GetCPUAllocator() == before);
}

}  // namespace tessera::testing
